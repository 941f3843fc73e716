"""`search=True`: the layout that it finds fits, and no layout written by hand is faster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from training_runs import CHIP, CLUSTER, SMALL

from mlsim import Engine, Training
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    MlsimError,
    UnitError,
    UnsupportedPrecisionError,
)

CASES: tuple[dict[str, Any], ...] = (
    {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64},
    {
        "model": "Llama2_13B",
        "hardware": "Selene",
        "devices": 32,
        "global_batch": 64,
        "estimate": "calibrated",
        "overlap": {"gradient": 0.5},
    },
    {"model": SMALL, "hardware": CLUSTER, "devices": 16, "global_batch": 32},
)
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["model"]))


def by_hand(case: dict[str, Any]) -> Iterator[Training]:
    """Yield what fits of the layouts that a person would try, other shards among them."""
    for tensor, pipeline, micro, shard, recompute in product(
        (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4), ("none", "zero1", "zero2", "zero3"), ("none", "full")
    ):
        try:
            run = Engine.train(
                **case,
                tensor_parallel=tensor,
                pipeline_parallel=pipeline,
                micro_batch=micro,
                shard=shard,
                recompute=recompute,
                sequence_parallel=tensor > 1,
            )
        except InvalidValueError:
            continue
        if run.feasible:
            yield run


@cases
def test_no_layout_by_hand_is_faster(case: dict[str, Any]) -> None:
    found = Engine.train(**case, search=True)
    tried = [run.value("step_time") for run in by_hand(case)]
    assert len(tried) > 50
    assert found.value("step_time") <= min(tried) * (1 + 1e-12)


@cases
def test_what_is_found_fits_and_uses_all_devices(case: dict[str, Any]) -> None:
    found = Engine.train(**case, search=True)
    assert found.feasible
    assert found.value("memory_free") >= 0
    assert found.devices == case["devices"]
    assert found.run.parallelism.tensor <= 8


@cases
def test_what_is_found_is_answered_the_same_when_it_is_given(case: dict[str, Any]) -> None:
    found = Engine.train(**case, search=True)
    parallelism = found.run.parallelism
    again = Engine.train(
        **case,
        tensor_parallel=parallelism.tensor,
        pipeline_parallel=parallelism.pipeline,
        data_parallel=parallelism.data,
        interleaved=parallelism.interleaved,
        sequence_parallel=parallelism.sequence,
        shard=parallelism.shard,
        recompute=found.run.recipe.recompute,
        micro_batch=int(found.run.micro_batch),
    )
    assert again.value("step_time") == found.value("step_time")


def test_all_devices_are_used_if_nobody_says_how_many() -> None:
    found = Engine.train(model="Llama3_8B", hardware="HGX_H100", global_batch=64, search=True)
    assert found.devices == 8


def test_what_is_asked_besides_is_kept() -> None:
    found = Engine.train(
        model="Llama3_8B",
        hardware="HGX_H100",
        global_batch=64,
        search=True,
        attention="standard",
        context_parallel=2,
        tokens=1e12,
        price="2 USD/h",
        memory_capacity="1 TB",
    )
    assert found.run.recipe.attention == "standard"
    assert found.run.parallelism.context == 2
    assert found.training_cost.magnitude > 0
    assert found.value("memory_capacity") == 1e12


def test_more_memory_is_never_slower() -> None:
    times = [
        Engine.train(
            model="Llama3_8B",
            hardware="HGX_A100",
            global_batch=32,
            search=True,
            memory_capacity=size,
        ).value("step_time")
        for size in ("40 GB", "80 GB", "200 GB")
    ]
    assert times == sorted(times, reverse=True)


def test_nothing_fits() -> None:
    with pytest.raises(DoesNotFitError) as caught:
        Engine.train(model="GPT3_175B", hardware="HGX_A100", global_batch=64, search=True)
    message = str(caught.value)
    assert message.startswith("no layout fits; the nearest one: Training GPT-3 175B on 8 x")
    assert "too much. Give more devices=" in message


def test_nothing_divides() -> None:
    with pytest.raises(InvalidValueError, match="no layout divides Small, a global batch of 7"):
        Engine.train(model=SMALL, hardware=CLUSTER, devices=24, global_batch=7, search=True)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"global_batch": float("nan")}, InvalidValueError, "global_batch must be a whole number"),
        ({"global_batch": "64"}, InvalidValueError, "Leave out the quotes"),
        ({"global_batch": [64, 128]}, InvalidValueError, "one run at a time"),
        ({"global_batch": None}, InvalidValueError, "global_batch must be"),
        ({"sequence_tokens": [512, 1024]}, InvalidValueError, "one run at a time"),
        ({"sequence_tokens": 10**6}, InvalidValueError, "longer than the context"),
        ({"devices": 0}, InvalidValueError, "from 1 to 32"),
        ({"devices": 33}, InvalidValueError, "from 1 to 32, which Round cluster has"),
        ({"devices": True}, InvalidValueError, "devices must be a whole number"),
        ({"context_parallel": 0}, InvalidValueError, "context_parallel must be a whole number"),
        ({"context_parallel": "2"}, InvalidValueError, "context_parallel must be a whole number"),
        ({"attention": "flsh"}, InvalidValueError, "Did you mean 'flash'?"),
        ({"shard": "zero9"}, InvalidValueError, "shard must be one of"),
        ({"overlap": 2}, InvalidValueError, "overlap must be a share"),
        ({"estimate": "bund"}, InvalidValueError, "Did you mean 'bound'"),
        ({"expert_parallel": 2}, InvalidValueError, "has no experts"),
        ({"price": 2}, UnitError, "needs a unit"),
        ({"precision": "fp8"}, UnsupportedPrecisionError, "no fp8 peak"),
    ],
)
def test_bad_input_is_named(changes: dict[str, Any], kind: type[MlsimError], words: str) -> None:
    arguments = {"model": SMALL, "hardware": CLUSTER, "global_batch": 32, "search": True}
    with pytest.raises(kind, match=words):
        Engine.train(**{**arguments, **changes})


def test_one_device_has_one_layout() -> None:
    found = Engine.train(model=SMALL, hardware=CHIP, global_batch=8, search=True)
    assert str(found.run.parallelism) == "1 device"
    assert found.run.recipe.recompute == "none"
