"""Bad input of a training run never gives a number, and is told what to do."""

from __future__ import annotations

import math
from typing import Any

import pytest
from training_runs import train

from mlsim import Engine
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnitError,
    UnknownNameError,
    UnsupportedPrecisionError,
    WrongKindError,
)

COUNTS = ("global_batch", "micro_batch", "sequence_tokens")
SIZES = (
    "devices",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "context_parallel",
    "expert_parallel",
    "interleaved",
)
NO_COUNTS = (0, -4, 1.5, math.nan, math.inf, True, "8", [8, 16], (8,))
NO_SIZES = (0, -1, 2.0, math.nan, True, "2", [2])


def message(kind: type[MlsimError], **changes: Any) -> str:
    with pytest.raises(kind) as caught:
        train(**changes)
    return str(caught.value)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", NO_COUNTS, ids=str)
def test_counts_are_whole_numbers(name: str, value: Any) -> None:
    assert name in message(InvalidValueError, **{name: value})


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", NO_SIZES, ids=str)
def test_sizes_are_whole_numbers(name: str, value: Any) -> None:
    assert f"{name} must be a whole number" in message(InvalidValueError, **{name: value})


@pytest.mark.parametrize("name", COUNTS)
def test_one_run_at_a_time(name: str) -> None:
    numpy = pytest.importorskip("numpy")
    for several in ([8, 16], numpy.array([8, 16])):
        assert "one run at a time" in message(InvalidValueError, **{name: several})


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "1e12", [1e12, 2e12]], ids=str)
def test_tokens_of_a_run_are_a_number(value: Any) -> None:
    assert "training_tokens" in message(InvalidValueError, tokens=value)


@pytest.mark.parametrize(
    ("name", "value", "suggestion"),
    [
        ("shard", "zero4", "zero3"),
        ("shard", "fsdp", "zero3"),
        ("recompute", "selectiv", "selective"),
        ("recompute", True, ""),
        ("attention", "flsh", "flash"),
        ("collective", "rings", "ring"),
        ("estimate", "calibratd", "calibrated"),
    ],
)
def test_words_are_among_those_allowed(name: str, value: Any, suggestion: str) -> None:
    found = message(InvalidValueError, **{name: value})
    assert found.startswith(f"{name} must be one of ")
    assert repr(value) in found
    if suggestion and suggestion[:4] == str(value)[:4]:
        assert f"Did you mean {suggestion!r}?" in found


@pytest.mark.parametrize("name", ["dropout", "sequence_parallel"])
@pytest.mark.parametrize("value", [1, "yes", None])
def test_switches_are_true_or_false(name: str, value: Any) -> None:
    assert f"{name} must be True or False" in message(InvalidValueError, **{name: value})


@pytest.mark.parametrize(
    "value", [-0.1, 1.1, math.nan, True, "0.5", [0.5], {"gradient": 2}, {"gradient": True}], ids=str
)
def test_overlap_is_a_share(value: Any) -> None:
    assert "must be a share of at least 0 and at most 1" in message(
        InvalidValueError, overlap=value
    )


def test_overlap_has_three_parts() -> None:
    found = message(InvalidValueError, overlap={"gradents": 0.5})
    assert "exchange, pipeline, gradient" in found
    assert "Did you mean 'gradient'?" in found


@pytest.mark.parametrize("value", [1, 1.0, -0.1, math.nan, True, "0.1"], ids=str)
def test_reserve_is_a_share_below_one(value: Any) -> None:
    assert "reserve must be a share" in message(InvalidValueError, reserve=value)


# ---- units ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("price", 2, "device_price needs a unit"),
        ("price", "2 USD", "USD was given where USD/s is expected"),
        ("mean_time_to_failure", 50_000, "mean_time_to_failure needs a unit"),
        ("restart_time", "10", "restart_time needs a unit"),
        ("checkpoint_bandwidth", "100 GB", "where B/s is expected"),
        ("memory_bandwidth", 1e12, "memory_bandwidth needs a unit"),
        ("hop_latency", "5 GB", "where s is expected"),
    ],
)
def test_what_has_a_unit_needs_it(name: str, value: Any, words: str) -> None:
    assert words in message(UnitError, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("price", "-2 USD/h"),
        ("price", "nan USD/h"),
        ("price", ["2 USD/h", "3 USD/h"]),
        ("mean_time_to_failure", "0 h"),
        ("checkpoint_bandwidth", "inf GB/s"),
        ("memory_bandwidth", "0 B/s"),
        ("peak_flops", ["1 TFLOP/s", "2 TFLOP/s"]),
    ],
)
def test_what_has_a_unit_is_one_positive_number(name: str, value: Any) -> None:
    message(InvalidValueError, **{name: value})


@pytest.mark.parametrize("name", ["goodput", "filled_share", "model_flops_utilization"])
def test_a_part_is_no_more_than_the_whole(name: str) -> None:
    assert "at most 1" in message(InvalidValueError, **{name: 1.5})


# ---- names and kinds --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "suggestion"),
    [
        ({"model": "Lama3_8B"}, "Llama3_8B"),
        ({"hardware": "Selen"}, "Selene"),
        ({"hardware": "HGX_A1000"}, "HGX_A100"),
        ({"precision": "bf17"}, "bf16"),
        ({"gradients": "fp33"}, "fp32"),
        ({"step_tme": "1 s"}, "step_time"),
    ],
)
def test_unknown_names_get_the_nearest(changes: dict[str, str], suggestion: str) -> None:
    assert f"Did you mean {suggestion!r}?" in message(UnknownNameError, **changes)


def test_unknown_results_get_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'bubble_time'"):
        train().value("buble_time")
    with pytest.raises(UnknownNameError, match="Did you mean 'step_time'"):
        train().explain("step_tim")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "A100"}, "is a device"),
        ({"hardware": "Llama3_8B"}, "is a model"),
    ],
)
def test_what_stands_in_the_wrong_place_is_named(changes: dict[str, str], words: str) -> None:
    assert words in message(WrongKindError, **changes)


def test_a_precision_that_the_device_lacks() -> None:
    found = message(UnsupportedPrecisionError, hardware="Selene", precision="fp8")
    assert "NVIDIA A100 SXM 80 GB has no fp8 peak on record. It has: " in found


def test_a_device_that_nobody_measured() -> None:
    found = message(NotMeasuredError, estimate="calibrated")
    assert "Cloud.A100" in found
    assert "Use one of these" in found


# ---- memory -----------------------------------------------------------------------------


def too_large(**changes: Any) -> Any:
    arguments = {
        "model": "GPT3_175B",
        "hardware": "Selene",
        "devices": 64,
        "global_batch": 64,
        "tensor_parallel": 8,
    }
    return Engine.train(**{**arguments, **changes})


def test_too_large_says_by_how_much_and_what_helps() -> None:
    run = too_large()
    assert not run.feasible
    with pytest.raises(DoesNotFitError) as caught:
        _ = run.step_time
    found = str(caught.value)
    required, free = run.value("memory_required"), run.value("memory_free")
    assert f"needs {required / 2**30:.1f} GiB on each device, which has 80 GiB, 10% of it" in found
    assert f"{-free / 2**30:.4g} GiB too much" in found
    for way in ("recompute='full'", "shard='zero1'", "sequence_parallel=True", "search=True"):
        assert way in found
    assert "check_memory=False gives the time" in found


@pytest.mark.parametrize(
    "name",
    ["model_flops_utilization", "hardware_flops_utilization", "token_rate", "breakdown", "shares"],
)
def test_no_time_of_a_run_that_does_not_fit(name: str) -> None:
    with pytest.raises(DoesNotFitError):
        getattr(too_large(), name)
    assert getattr(too_large(check_memory=False), name)


def test_its_memory_is_told_nevertheless() -> None:
    run = too_large()
    assert run.value("state_memory") > 80e9
    assert run.memory["memory_free"].magnitude < 0
    assert "too much" in str(run)
    assert run.to_dict()["step_time"]["value"] is None


def test_advice_is_not_what_is_done_already() -> None:
    run = too_large(recompute="full", shard="zero3", memory_capacity="1 GB")
    with pytest.raises(DoesNotFitError) as caught:
        _ = run.step_time
    assert "recompute='full'" not in str(caught.value)
    assert "shard=" not in str(caught.value)
