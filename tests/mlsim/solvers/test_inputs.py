"""Bad input: a message that names what was given and what is allowed, never a number."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlsim import Cluster, Device, Engine, Hardware, Models, System, Systems
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnitError,
    UnknownNameError,
    UnsupportedPrecisionError,
    WrongKindError,
)
from mlsim.solvers.inputs import validate
from mlsim.values import given as assumed, quantity

WHOLE = "batch_size must be a whole number from 1 up, not "


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, WHOLE + "0."),
        (-1, WHOLE + "-1."),
        (1.5, WHOLE + "1.5."),
        ("8", WHOLE + "the text '8'. Leave out the quotes."),
        ("8 sample", WHOLE + "the text '8 sample'. Leave out the quotes."),
        ("many", WHOLE + "the text 'many'. Leave out the quotes."),
        (b"8", WHOLE + "the text b'8'. Leave out the quotes."),
        (float("nan"), WHOLE + "nan."),
        (float("inf"), WHOLE + "inf."),
        (-float("inf"), WHOLE + "-inf."),
        (True, WHOLE + "True."),
        (False, WHOLE + "False."),
        (np.bool_(True), WHOLE + "np.True_."),
        (None, WHOLE + "None."),
        (3 + 0j, WHOLE + "(3+0j)."),
        ({}, WHOLE + "{}."),
        ({1}, WHOLE + "{1}."),
        (10**400, WHOLE + f"{10**400}."),
        (np.array(0), WHOLE + "array(0)."),
        (np.array(2.5), WHOLE + "array(2.5)."),
        (quantity(1.5, "sample"), WHOLE + "1.5."),
        ([1, 2, 0], "entry 2 of 3: " + WHOLE + "0."),
        ((1, 2.5), "entry 1 of 2: " + WHOLE + "2.5."),
        ([1, "8"], "entry 1 of 2: " + WHOLE + "the text '8'. Leave out the quotes."),
        ([1, None], "entry 1 of 2: " + WHOLE + "None."),
        ([True], "entry 0 of 1: " + WHOLE + "True."),
        ([np.nan], "entry 0 of 1: " + WHOLE + "nan."),
        ([], "batch_size is an empty list; give at least one value."),
        (range(0), "batch_size is an empty list; give at least one value."),
        (np.array([]), "batch_size is an empty array; give at least one value."),
        ([[]], "batch_size is an empty array; give at least one value."),
        (
            np.array([1, -3]),
            "batch_size must hold whole numbers from 1 up, but entry 1 is -3.",
        ),
        (
            np.array([0, 1, np.nan, 2, 2.5]),
            "batch_size must hold whole numbers from 1 up, but entry 0 is 0 (and 2 more).",
        ),
        (
            np.array([[1, 2], [3, 1.5]]),
            "batch_size must hold whole numbers from 1 up, but entry (1, 1) is 1.5.",
        ),
        (
            [[1, 0], [2, 3]],
            "batch_size must hold whole numbers from 1 up, but entry (0, 1) is 0.",
        ),
        (
            quantity(np.array([1, 0]), "sample"),
            "batch_size must hold whole numbers from 1 up, but entry 1 is 0.",
        ),
        (np.array([True]), "batch_size must hold whole numbers from 1 up, not bool values."),
        (np.array(["a"]), "batch_size must hold whole numbers from 1 up, not <U1 values."),
        (
            np.array([1, None], dtype=object),
            "batch_size must hold whole numbers from 1 up, not object values.",
        ),
    ],
    ids=lambda given: re.sub(r"\s+", " ", repr(given))[:40],
)
def test_a_batch_that_cannot_be(solve, given: object, message: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        solve(batch_size=given)
    assert str(e.value) == message


@pytest.mark.parametrize("given", [[[1, 2], [3]], [[1, 2], 3]])
def test_a_ragged_batch(solve, given: object) -> None:
    with pytest.raises(InvalidValueError, match="batch_size: the entries don't form an array"):
        solve(batch_size=given)


def test_a_batch_in_seconds(solve) -> None:
    with pytest.raises(UnitError, match="batch_size: a value in s was given where sample is"):
        solve(batch_size=quantity(8, "s"))


@pytest.mark.parametrize(
    "given",
    [
        *(8, 8.0, np.int64(8), np.float32(8), np.array(8)),
        *(quantity(8, "sample"), quantity(8, "image"), assumed(8, "images")),
    ],
    ids=repr,
)
def test_a_batch_that_is_one_number(solve, given: object) -> None:
    profile = solve(batch_size=given)
    assert profile.batch_size == 8
    assert isinstance(profile.batch_size, int)
    assert isinstance(profile.throughput, float)
    assert profile.latency == solve(batch_size=8).latency


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ([1, 2], (2,)),
        ((1, 2), (2,)),
        (range(1, 4), (3,)),
        ([[1, 2], [3, 4], [5, 6]], (3, 2)),
        (np.ones((2, 1, 3)), (2, 1, 3)),
        (np.array([7], dtype=np.uint8), (1,)),
        (quantity([1.0, 2.0], "sample"), (2,)),
    ],
    ids=["list", "tuple", "range", "nested", "three axes", "bytes", "quantity"],
)
def test_a_batch_that_is_many(solve, given: object, shape: tuple[int, ...]) -> None:
    profile = solve(batch_size=given)
    assert profile.latency.shape == profile.throughput.shape == profile.bottleneck.shape == shape


# Precision.


def test_a_precision_that_nobody_has(solve) -> None:
    with pytest.raises(UnknownNameError) as e:
        solve(precision="fp7")
    assert str(e.value) == (
        "no precision is called 'fp7'. Did you mean 'fp8'? "
        "There are: fp64, fp32, tf32, bf16, fp16, fp8, int8, nvfp4, mxfp4, fp4, int4."
    )


def test_a_precision_that_the_device_lacks(solve) -> None:
    with pytest.raises(UnsupportedPrecisionError) as e:
        solve(precision="fp8")
    assert str(e.value) == (
        "NVIDIA A100 SXM 80 GB has no fp8 peak on record. "
        "It has: fp64, fp32, tf32, bf16, fp16, int8, int4."
    )


def test_a_missing_peak_can_be_given(solve) -> None:
    assert solve(precision="fp8", peak_flops="624 TFLOP/s").latency.magnitude > 0


# A bandwidth, given for one solve or for a device of one's own.


def by_solve(value: object) -> object:
    return Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, memory_bandwidth=value)


def by_device(value: object) -> object:
    return Device(
        "Mine",
        peak_flops={"fp16": "100 TFLOP/s"},
        memory_bandwidth=value,
        memory_capacity="16 GB",
    )


@pytest.mark.parametrize("door", [by_solve, by_device])
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (-1, UnitError, "memory_bandwidth needs a unit: -1 could mean anything."),
        (0, UnitError, "memory_bandwidth needs a unit: 0 could mean anything."),
        (float("nan"), UnitError, "memory_bandwidth needs a unit: nan could mean anything."),
        (2e12, UnitError, "Give text such as '2 B/s', or a quantity."),
        (True, UnitError, "memory_bandwidth needs a unit: True"),
        (None, UnitError, "memory_bandwidth needs a unit: None"),
        ({}, UnitError, "memory_bandwidth needs a unit: {}"),
        ("2", UnitError, "memory_bandwidth needs a unit: '2'"),
        ("2 TB", UnitError, "memory_bandwidth: a value in TB was given where B/s is expected."),
        ("2 TFLOP/s", UnitError, "a value in TFLOP/s was given where B/s is expected."),
        ("2 XB/s", UnitError, "memory_bandwidth: unknown unit 'XB/s'"),
        ("2 TB^", UnitError, "memory_bandwidth: 'TB^' is no unit"),
        ("fast", InvalidValueError, "memory_bandwidth must be a number and a unit such as '2 B/s'"),
        ("-1 TB/s", InvalidValueError, "memory_bandwidth must be "),
        ("0 TB/s", InvalidValueError, "memory_bandwidth must be "),
        ("nan TB/s", InvalidValueError, "memory_bandwidth must be "),
        ("inf TB/s", InvalidValueError, "memory_bandwidth must be "),
        (quantity(2, "TB"), UnitError, "a value in TB was given where B/s is expected."),
        (quantity(-1, "TB/s"), InvalidValueError, "memory_bandwidth must be "),
        (quantity(0, "TB/s"), InvalidValueError, "memory_bandwidth must be "),
        (quantity(float("nan"), "TB/s"), InvalidValueError, "memory_bandwidth must be "),
    ],
    ids=repr,
)
def test_a_bandwidth_that_cannot_be(door, given: object, error: type[MlsimError], words) -> None:
    with pytest.raises(error) as e:
        door(given)
    assert words in str(e.value)
    if error is InvalidValueError:
        assert "positive" in str(e.value) or "a number and a unit" in str(e.value)


def test_a_bad_bandwidth_among_many(solve) -> None:
    with pytest.raises(InvalidValueError, match="entry 1 of 2: memory_bandwidth must be") as e:
        solve(memory_bandwidth=["1 TB/s", "-2 TB/s"])
    assert "'-2 TB/s'" in str(e.value)
    with pytest.raises(UnitError, match="entry 1 of 2: memory_bandwidth: a value in TB was given"):
        solve(memory_bandwidth=["1 TB/s", "2 TB"])
    with pytest.raises(InvalidValueError, match="must hold positive, finite numbers, but entry 1"):
        solve(memory_bandwidth=quantity(np.array([1.0, 0.0]), "TB/s"))
    with pytest.raises(InvalidValueError, match="memory_bandwidth is an empty list"):
        solve(memory_bandwidth=[])


def test_shapes_that_do_not_broadcast(solve) -> None:
    with pytest.raises(InvalidValueError) as e:
        solve(batch_size=[1, 2, 3], memory_bandwidth=["1 TB/s", "2 TB/s"])
    assert str(e.value) == ("these shapes don't broadcast: batch_size (3,), memory_bandwidth (2,).")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"peak_flops": "1 TFLOP/s"}, InvalidValueError, "peak_flops must map precisions to rates"),
        ({"peak_flops": {}}, InvalidValueError, "such as {'fp16': '100 TFLOP/s'}, not {}."),
        ({"peak_flops": {"fp7": "1 TFLOP/s"}}, UnknownNameError, "'fp7'. Did you mean 'fp8'?"),
        ({"peak_flops": {"fp16": "1 TB/s"}}, UnitError, "in TB/s was given where FLOP/s is"),
        ({"peak_flops": {"fp16": 1e12}}, UnitError, "compute.fp16 needs a unit"),
        ({"memory_capacity": "16 GB/s"}, UnitError, "in GB/s was given where B is expected"),
        ({"memory_bandwidth": ["1 TB/s"]}, UnitError, "memory_bandwidth needs a unit"),
        (
            {"memory_bandwidth": quantity(np.array([1.0, 2.0]), "TB/s")},
            UnitError,
            "memory_bandwidth must be one number with a unit",
        ),
    ],
)
def test_a_device_that_cannot_be(arguments, error: type[MlsimError], words: str) -> None:
    good = {
        "peak_flops": {"fp16": "1 TFLOP/s"},
        "memory_bandwidth": "1 TB/s",
        "memory_capacity": "1 GB",
    }
    with pytest.raises(error) as e:
        Device("Mine", **{**good, **arguments})
    assert words in str(e.value)


# Records in each other's place.


@pytest.mark.parametrize("given", [Models.ResNet50, None, 3, Hardware.Cloud], ids=repr)
def test_hardware_that_is_no_device(solve, given: object) -> None:
    with pytest.raises(WrongKindError, match=r"hardware must be a device such as Hardware\.") as e:
        solve(hardware=given)
    assert str(e.value).endswith(f"not {given!r}.")


@pytest.mark.parametrize("given", [Hardware.Cloud.A100, None, 3], ids=repr)
def test_a_model_that_is_none(solve, given: object) -> None:
    with pytest.raises(WrongKindError, match=r"model must be a model such as Models\.") as e:
        solve(model=given)
    assert str(e.value).endswith(f"not {given!r}.")


def test_names_that_are_unknown(solve) -> None:
    with pytest.raises(
        UnknownNameError, match=r"no device is called 'H1000'\. Did you mean 'H100'"
    ):
        solve(hardware="H1000")
    with pytest.raises(
        UnknownNameError, match=r"no model is called 'ResNet5'\. Did you mean 'ResNet50'"
    ):
        solve(model="ResNet5")
    with pytest.raises(WrongKindError, match=r"Hardware\.Cloud\.A100; 'ResNet50' is a model\."):
        solve(hardware="ResNet50")


def test_what_follows_model_and_hardware_is_given_by_name(resnet, a100) -> None:
    with pytest.raises(TypeError, match="positional"):
        Engine.solve(resnet, a100, 32)


# Estimates and overrides.


def test_an_unknown_estimate(solve) -> None:
    with pytest.raises(InvalidValueError) as e:
        solve(estimate="roof")
    assert str(e.value) == (
        "estimate must be one of roofline, bound, calibrated, not 'roof'. Did you mean 'roofline'?"
    )
    for given in (None, 3, ["bound"]):
        with pytest.raises(InvalidValueError, match="estimate must be one of roofline, bound"):
            solve(estimate=given)


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory_bandwith", "Did you mean 'memory_bandwidth'?"),
        ("peak_flop", "Did you mean 'peak_flops'?"),
        # Columns of operators and what layers are made of are not to be given here.
        ("multiply_adds", "the glossary the quantities."),
        ("stride", "help(Engine.solve) lists the arguments"),
    ],
)
def test_an_unknown_override(solve, name: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no argument or quantity is called '{name}'") as e:
        solve(**{name: "1 TB/s"})
    assert words in str(e.value)


def test_an_override_of_another_kind(solve) -> None:
    with pytest.raises(UnitError, match="latency: a value in TB/s was given where s is expected"):
        solve(latency="1 TB/s")
    with pytest.raises(
        InvalidValueError, match=r"memory_bound_share must be .* not the text '0.4'"
    ):
        solve(memory_bound_share="0.4")


def test_check_returns_base_units() -> None:
    assert validate("memory_bandwidth", "2 TB/s") == 2e12
    assert validate("memory_bandwidth", ["1 TB/s", quantity(2, "GB/s")]).tolist() == [1e12, 2e9]
    assert validate("batch_size", 8, whole=True) == 8.0
    assert validate("memory_bound_share", 0.25) == 0.25


@pytest.mark.parametrize("batch", [1e300, 2**60, [1, 1e300]])
def test_a_batch_that_cannot_be_counted_is_refused(batch) -> None:
    with pytest.raises(InvalidValueError, match=r"at most 9,007,199,254,740,992, not|entry 1"):
        validate("batch_size", batch, whole=True)


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


@pytest.mark.parametrize("value", ["no", "False", 0, 1, None])
def test_a_flag_is_true_or_false(value: object) -> None:
    for ask in (
        lambda: Engine.solve(model="ResNet50", hardware="A100", check_memory=value),
        lambda: Engine.serve(model="Llama3_8B", hardware="A100", check_memory=value),
        lambda: Engine.train(
            model="Llama3_8B",
            hardware="A100",
            global_batch=1,
            check_memory=value,
        ),
    ):
        with pytest.raises(InvalidValueError, match="check_memory must be True or False"):
            ask()
    with pytest.raises(InvalidValueError, match="search must be True or False"):
        Engine.train(model="Llama3_8B", hardware="A100", global_batch=1, search=value)


@pytest.mark.parametrize(
    ("name", "error"), [(5, WrongKindError), (None, WrongKindError), (" ", InvalidValueError)]
)
def test_what_is_described_has_a_name(name: object, error: type[MlsimError]) -> None:
    board = Systems.HGX_A100
    for make in (
        lambda: Device(
            name,
            peak_flops={"fp16": "1 TFLOP/s"},
            memory_bandwidth="1 TB/s",
            memory_capacity="1 GB",
        ),
        lambda: System(name, board.device, devices=2, link_bandwidth="1 GB/s"),
        lambda: Cluster(name, board, nodes=2, link_bandwidth="1 GB/s"),
    ):
        with pytest.raises(error, match="needs a name"):
            make()
