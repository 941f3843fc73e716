"""The bound of training: worked by hand, beaten by no measurement, without parts."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import InvalidValueError
from mlsim.measured.training_steps import training_measurements

# Whoever does not state a layout can't be asked.
STATED = [row for row in training_measurements() if not row.missing]


def train(**changes: Any) -> Any:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "shard": "zero3"}
    more = {"global_batch": 64, "recompute": "full", "estimate": "bound"}
    return Engine.train(**{**asked, **more, **changes})


def test_the_bound_is_the_longer_of_arithmetic_and_compulsory_bytes() -> None:
    found = train()
    parameters = 8_030_261_248
    # Weights are read once on each device, and the update is shared by eight.
    moved = 2 * parameters + parameters * (2 * 12 + 2) / 8
    assert found.value("compulsory_bytes") == pytest.approx(moved)
    assert found.value("compulsory_time") == pytest.approx(moved / 3.35e12)
    assert found.value("step_time") == found.value("ideal_step_time")
    assert found.model_flops_utilization == found.hardware_flops_utilization == 1
    # One short sequence does little work with as many weights.
    short = train(global_batch=8, sequence_tokens=64)
    assert short.value("step_time") == short.value("compulsory_time")
    assert short.value("memory_utilisation") == 1


def test_the_bound_asks_for_no_masked_pair_and_nothing_twice() -> None:
    assert train(attention="standard").value("step_time") == train().value("step_time")
    kept = train(recompute="none", check_memory=False)
    assert kept.value("step_time") == train().value("step_time")


def test_no_honest_measurement_beats_the_bound() -> None:
    for row in STATED:
        bound = row.train(estimate="bound")
        least = bound.value("step_time")
        if row.step_time is not None:
            assert row.step_time > least, row.id
        elif row.metric == "mfu":
            assert row.base_value < 1, row.id
        else:
            assert row.base_value < bound.device.compute.figure(row.precision).si, row.id
        assert least < row.train().value("step_time"), row.id


def test_the_bound_has_no_parts() -> None:
    found = train()
    assert "spent on" not in str(found)
    assert found.to_dict()["breakdown"] is None
    for ask in (lambda: found.breakdown, lambda: found.shares, lambda: found.value("bubble_time")):
        with pytest.raises(InvalidValueError, match="roofline"):
            ask()


def test_the_bound_is_explained_and_has_a_footprint() -> None:
    assert "step_time = maximum(ideal_step_time, compulsory_time)" in str(train().explain())
    load = train(tokens=1e12).load()
    assert load.compute_utilisation == 1
    assert load.memory_utilisation == pytest.approx(
        train().value("compulsory_time") / train().value("step_time")
    )
