"""Bad input: a message that names what was given and what is allowed, never a number."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from refusals import answered

from mlsim import Cluster, Device, Engine, Hardware, Models, System, Systems
from mlsim.errors import (
    InvalidValueError,
    NotMeasuredError,
    UnitError,
    WrongKindError,
)
from mlsim.parameters import validate
from mlsim.values import given as assumed, quantity

QUOTES = ". Leave out the quotes."


def test_a_batch_that_cannot_be(solve) -> None:
    """Those of a table, and what no file can hold."""
    assert answered(solve, "inputs", "batches") == []
    whole = "batch_size must be a whole number from 1 up, not "
    held = "batch_size must hold whole numbers from 1 up"
    for given, message in (
        *(
            (b"8", f"{whole}the text b'8'{QUOTES}"),
            (3 + 0j, f"{whole}(3+0j)."),
            ({1}, f"{whole}{{1}}."),
        ),
        *((np.bool_(True), f"{whole}np.True_."), (np.array(2.5), f"{whole}array(2.5).")),
        (quantity(1.5, "sample"), f"{whole}1.5."),
        ((1, 2.5), f"entry 1 of 2: {whole}2.5."),
        (range(0), "batch_size is an empty list; give at least one value."),
        (np.array([]), "batch_size is an empty array; give at least one value."),
        (np.array([0, 1, np.nan, 2, 2.5]), f"{held}, but entry 0 is 0 (and 2 more)."),
        (np.array([[1, 2], [3, 1.5]]), f"{held}, but entry (1, 1) is 1.5."),
        (quantity(np.array([1, 0]), "sample"), f"{held}, but entry 1 is 0."),
        *(
            (np.array([True]), f"{held}, not bool values."),
            (np.array(["a"]), f"{held}, not <U1 values."),
        ),
        (np.array([1, None], dtype=object), f"{held}, not object values."),
    ):
        with pytest.raises(InvalidValueError) as e:
            solve(batch_size=given)
        assert str(e.value) == message
    with pytest.raises(UnitError, match="batch_size: a value in s was given where sample is"):
        solve(batch_size=quantity(8, "s"))
    # Where a float no longer tells a number from the next.
    assert validate("batch_size", 2**53, whole=True) == 2**53
    for given in (1e300, 10**400, 2**60, [1, 1e300], 2**53 + 2):
        with pytest.raises(
            InvalidValueError, match=r"at most 9,007,199,254,740,992, not|entry 1|10{400}"
        ):
            validate("batch_size", given, whole=True)


def test_a_batch_that_is_one_number_or_many(solve) -> None:
    for given in (
        *(8, 8.0, np.int64(8), np.float32(8), np.array(8)),
        *(quantity(8, "sample"), quantity(8, "image"), assumed(8, "images")),
    ):
        profile = solve(batch_size=given)
        assert profile.batch_size == 8
        assert isinstance(profile.batch_size, int)
        assert isinstance(profile.throughput, float)
        assert profile.latency == solve(batch_size=8).latency
    for given, shape in (
        *(([1, 2], (2,)), ((1, 2), (2,)), (range(1, 4), (3,)), ([[1, 2], [3, 4], [5, 6]], (3, 2))),
        *((np.ones((2, 1, 3)), (2, 1, 3)), (np.array([7], dtype=np.uint8), (1,))),
        (quantity([1.0, 2.0], "sample"), (2,)),
    ):
        profile = solve(batch_size=given)
        assert profile.latency.shape == profile.throughput.shape == shape
        assert profile.bottleneck.shape == shape


# A bandwidth, given for one solve or for a device of one's own.


def test_a_bandwidth_that_cannot_be(solve) -> None:
    own = partial(Device, "Mine", peak_flops={"fp16": "100 TFLOP/s"}, memory_capacity="16 GB")
    for door in (solve, own):
        assert answered(door, "inputs", "bandwidths") == []
        for given in ("-1 TB/s", quantity(0, "TB/s"), quantity(float("nan"), "TB/s")):
            with pytest.raises(InvalidValueError, match="positive"):
                door(memory_bandwidth=given)
        with pytest.raises(UnitError, match="a value in TB was given where B/s is expected"):
            door(memory_bandwidth=quantity(2, "TB"))


def test_what_can_not_be_asked_is_refused(solve) -> None:
    assert answered(solve, "inputs") == []
    with pytest.raises(InvalidValueError, match="must hold positive, finite numbers, but entry 1"):
        solve(memory_bandwidth=quantity(np.array([1.0, 0.0]), "TB/s"))


def test_a_device_that_cannot_be() -> None:
    good = {"peak_flops": {"fp16": "1 TFLOP/s"}, "memory_bandwidth": "1 TB/s"}

    def device(**given: Any) -> Device:
        return Device("Mine", **{**good, "memory_capacity": "1 GB", **given})

    assert answered(device, "inputs", "device") == []
    with pytest.raises(UnitError, match="memory_bandwidth must be one number with a unit"):
        device(memory_bandwidth=quantity(np.array([1.0, 2.0]), "TB/s"))


# Records in each other's place.


def test_records_in_each_others_place(solve) -> None:
    for name, kind, wrong in (
        ("hardware", r"a device such as Hardware\.", (Models.ResNet50, None, 3, Hardware.Cloud)),
        ("model", r"a model such as Models\.", (Hardware.Cloud.A100, None, 3)),
    ):
        for given in wrong:
            with pytest.raises(WrongKindError, match=f"{name} must be {kind}") as e:
                solve(**{name: given})
            assert str(e.value).endswith(f"not {given!r}.")


def test_calibrated_says_what_is_missing(solve) -> None:
    with pytest.raises(NotMeasuredError) as e:
        solve(hardware="WSE3", precision="fp16", estimate="calibrated")
    for words in (
        "that are not on record",
        "It has no relatives either",
        "matrix products (its part of the peak)",
        "Measured are: Cloud.A100, Cloud.H100",
        "give compute_fraction, memory_fraction and kernel_overhead yourself",
        "estimate='roofline' or 'bound'.",
    ):
        assert words in str(e.value)


def test_check_returns_base_units() -> None:
    assert validate("memory_bandwidth", "2 TB/s") == 2e12
    assert validate("memory_bandwidth", ["1 TB/s", quantity(2, "GB/s")]).tolist() == [1e12, 2e9]
    assert validate("batch_size", 8, whole=True) == 8.0
    assert validate("memory_bound_share", 0.25) == 0.25


# What would be taken for something else.


def test_a_mask_is_refused_and_not_lost() -> None:
    asked = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(InvalidValueError, match=r"masked entries.*values\.compressed\(\)"):
        Engine.solve(**asked, batch_size=masked)
    with pytest.raises(InvalidValueError, match="memory_bandwidth has masked entries"):
        Engine.solve(**asked, memory_bandwidth=quantity(masked.astype(float), "TB/s"))
    with pytest.raises(InvalidValueError, match="not masked"):
        Engine.solve(**asked, batch_size=[1, np.ma.masked])
    # Nothing is lost where nothing is masked.
    whole = Engine.solve(**asked, batch_size=np.ma.array([1, 3]))
    stands = Engine.solve(**asked, batch_size=masked.compressed())
    assert (whole.value("latency") == stands.value("latency")).all()


def test_a_flag_is_true_or_false() -> None:
    trained = partial(Engine.train, model="Llama3_8B", hardware="A100", global_batch=1)
    doors = (
        (partial(Engine.solve, model="ResNet50", hardware="A100"), "check_memory"),
        (partial(Engine.serve, model="Llama3_8B", hardware="A100"), "check_memory"),
        *((trained, name) for name in ("check_memory", "search")),
    )
    for value in ("no", "False", 0, 1, None):
        for door, name in doors:
            with pytest.raises(InvalidValueError, match=f"{name} must be True or False"):
                door(**{name: value})


def test_what_is_described_has_a_name() -> None:
    board = Systems.HGX_A100
    peaks = {"fp16": "1 TFLOP/s"}
    for name, error in ((5, WrongKindError), (None, WrongKindError), (" ", InvalidValueError)):
        for make in (
            partial(Device, peak_flops=peaks, memory_bandwidth="1 TB/s", memory_capacity="1 GB"),
            partial(System, device=board.device, devices=2, link_bandwidth="1 GB/s"),
            partial(Cluster, node=board, nodes=2, link_bandwidth="1 GB/s"),
        ):
            with pytest.raises(error, match="needs a name"):
                make(name)


def test_counts_begin_at_one_or_none_and_end_where_a_float_no_longer_counts() -> None:
    count = partial(validate, "batch_size", whole=True)
    for none in (0, 0.0, [0, 3], np.array([0, 3])):
        assert np.ravel(count(none, zero=True))[0] == 0
        with pytest.raises(InvalidValueError, match="from 1 up"):
            count(none)
    for wrong in (-1, [-1], np.array([-1]), 0.5, np.array([0.5])):
        with pytest.raises(InvalidValueError, match="from 0 up"):
            count(wrong, zero=True)
    assert count(np.array([2.0**53])).tolist() == count([2**53]).tolist() == [2.0**53]
    with pytest.raises(InvalidValueError, match="entry 1 is 9"):
        count(np.array([1.0, 2.0**53 + 2]))
    # A rate counts by the second, with or without a word for what is counted.
    for rate in (quantity(20.0, "sample/s"), quantity(20.0, "1/s"), quantity(20.0, "1")):
        assert validate("throughput", rate) == 20.0
    with pytest.raises(UnitError):
        count(quantity(20.0, "1/s"))
