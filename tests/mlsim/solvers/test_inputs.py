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
    MlsimError,
    NotMeasuredError,
    UnitError,
    WrongKindError,
)
from mlsim.solvers.inputs import validate
from mlsim.values import given as assumed, quantity

QUOTES = ". Leave out the quotes."
# What is no batch, and how its refusal ends.
NO_COUNTS = (
    *((0, "0."), (-1, "-1."), (1.5, "1.5."), (True, "True."), (False, "False."), (None, "None.")),
    *(("8", "the text '8'" + QUOTES), ("8 sample", "the text '8 sample'" + QUOTES)),
    *(("many", "the text 'many'" + QUOTES), (b"8", "the text b'8'" + QUOTES)),
    *((float("nan"), "nan."), (float("inf"), "inf."), (-float("inf"), "-inf."), ({}, "{}.")),
    *((3 + 0j, "(3+0j)."), ({1}, "{1}."), (10**400, f"{10**400}."), (np.bool_(True), "np.True_.")),
    *((np.array(0), "array(0)."), (np.array(2.5), "array(2.5).")),
    (quantity(1.5, "sample"), "1.5."),
)
NO_ENTRIES = (
    *(([1, 2, 0], "2 of 3", "0."), ((1, 2.5), "1 of 2", "2.5."), ([1, None], "1 of 2", "None.")),
    *(([1, "8"], "1 of 2", "the text '8'" + QUOTES), ([True], "0 of 1", "True.")),
    ([np.nan], "0 of 1", "nan."),
)
NO_ARRAYS = (
    (np.array([1, -3]), ", but entry 1 is -3."),
    (np.array([0, 1, np.nan, 2, 2.5]), ", but entry 0 is 0 (and 2 more)."),
    (np.array([[1, 2], [3, 1.5]]), ", but entry (1, 1) is 1.5."),
    ([[1, 0], [2, 3]], ", but entry (0, 1) is 0."),
    (quantity(np.array([1, 0]), "sample"), ", but entry 1 is 0."),
    (np.array([True]), ", not bool values."),
    (np.array(["a"]), ", not <U1 values."),
    (np.array([1, None], dtype=object), ", not object values."),
)


def test_a_batch_that_cannot_be(solve) -> None:
    whole = "batch_size must be a whole number from 1 up, not "
    cases = [
        *((given, whole + end) for given, end in NO_COUNTS),
        *((given, f"entry {place}: {whole}{end}") for given, place, end in NO_ENTRIES),
        *(
            (given, f"batch_size must hold whole numbers from 1 up{end}")
            for given, end in NO_ARRAYS
        ),
    ]
    for kind, several in (("list", ([], range(0))), ("array", (np.array([]), [[]]))):
        words = f"batch_size is an empty {kind}; give at least one value."
        cases += [(given, words) for given in several]
    for given, message in cases:
        with pytest.raises(InvalidValueError) as e:
            solve(batch_size=given)
        assert str(e.value) == message
    with pytest.raises(UnitError, match="batch_size: a value in s was given where sample is"):
        solve(batch_size=quantity(8, "s"))
    # Where a float no longer tells a number from the next.
    assert validate("batch_size", 2**53, whole=True) == 2**53
    for given in (1e300, 2**60, [1, 1e300], 2**53 + 2):
        with pytest.raises(InvalidValueError, match=r"at most 9,007,199,254,740,992, not|entry 1"):
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


def test_a_missing_peak_can_be_given(solve) -> None:
    assert solve(precision="fp8", peak_flops="624 TFLOP/s").latency.magnitude > 0


# A bandwidth, given for one solve or for a device of one's own.


def by_solve(value: object) -> object:
    return Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, memory_bandwidth=value)


def by_device(value: object) -> object:
    return Device(
        "Mine", peak_flops={"fp16": "100 TFLOP/s"}, memory_bandwidth=value, memory_capacity="16 GB"
    )


def test_a_bandwidth_that_cannot_be() -> None:
    name = "memory_bandwidth"
    bare: tuple[object, ...] = (-1, 0, float("nan"), True, None, {}, "2")
    in_tb = "a value in TB was given where B/s is expected."
    cases: list[tuple[object, type[MlsimError], str]] = [
        *((given, UnitError, f"{name} needs a unit: {given!r} could mean any") for given in bare),
        (2e12, UnitError, "Give text such as '2 B/s', or a quantity."),
        ("2 TB", UnitError, f"{name}: {in_tb}"),
        ("2 TFLOP/s", UnitError, "a value in TFLOP/s was given where B/s is expected."),
        ("2 XB/s", UnitError, f"{name}: unknown unit 'XB/s'"),
        ("2 TB^", UnitError, f"{name}: 'TB^' is no unit"),
        (quantity(2, "TB"), UnitError, in_tb),
        ("fast", InvalidValueError, f"{name} must be a number and a unit such as '2 B/s'"),
    ]
    texts = [f"{number} TB/s" for number in (-1, 0, "nan", "inf")]
    values = [quantity(number, "TB/s") for number in (-1, 0, float("nan"))]
    cases += [(given, InvalidValueError, "positive") for given in (*texts, *values)]
    for door in (by_solve, by_device):
        for given, error, words in cases:
            with pytest.raises(error) as e:
                door(given)
            assert words in str(e.value), given


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


def test_what_follows_model_and_hardware_is_given_by_name(resnet, a100) -> None:
    with pytest.raises(TypeError, match="positional"):
        Engine.solve(resnet, a100, 32)


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
