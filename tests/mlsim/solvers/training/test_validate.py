"""Bad input of a training run never gives a number, and is told what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from refusals import answered
from training_runs import MIXTURE, train

from mlsim import Engine, LoRA
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError

COUNTS = ("global_batch", "micro_batch", "sequence_tokens")
SIZES = (
    *("devices", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel"),
    *("expert_parallel", "interleaved"),
)
NO_NUMBERS = (0, -4, 1.5, math.nan, math.inf, True, "8", [8, 16], (8,))


def refusal(**asked: Any) -> str:
    with pytest.raises(InvalidValueError) as caught:
        train(**asked)
    return str(caught.value)


def test_counts_and_sizes_are_whole_numbers() -> None:
    for value in NO_NUMBERS:
        for name in COUNTS:
            assert name in refusal(**{name: value}), (name, value)
        for name in SIZES:
            assert f"{name} must be a whole number" in refusal(**{name: value}), (name, value)
    for name in COUNTS:
        for several in ([8, 16], np.array([8, 16])):
            assert "one run at a time" in refusal(**{name: several})


def test_what_can_not_be_is_refused() -> None:
    def layout(**asked: Any) -> Any:
        given = {"model": "Llama3_8B", "hardware": "DGX_A100_SuperPOD", "global_batch": 64}
        return Engine.train(**{**given, "tensor_parallel": 8, **asked})

    def experts(**asked: Any) -> Any:
        return train(model=MIXTURE, global_batch=96, **asked)

    assert answered(train, "training") == []
    assert answered(layout, "training", "layouts") == []
    assert answered(experts, "training", "experts") == []
    with pytest.raises(UnknownNameError, match="Did you mean 'bubble_time'"):
        train().value("buble_time")
    with pytest.raises(UnknownNameError, match="Did you mean 'step_time'"):
        train().explain("step_tim")
    with pytest.raises(WrongKindError, match="adapters must be LoRA"):
        train(adapters=LoRA)


# ---- memory -----------------------------------------------------------------------------


def too_large(**changes: Any) -> Any:
    arguments = {"model": "GPT3_175B", "hardware": "Selene", "devices": 64, "global_batch": 64}
    return Engine.train(**{**arguments, "tensor_parallel": 8, **changes})


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
    # What is done already is no advice.
    again = too_large(recompute="full", shard="zero3", memory_capacity="1 GB").too_large()
    assert "recompute='full'" not in again
    assert "shard=" not in again


def test_a_run_that_does_not_fit_has_its_memory_and_no_time() -> None:
    run, unchecked = too_large(), too_large(check_memory=False)
    for name in (
        *("model_flops_utilization", "hardware_flops_utilization", "token_rate"),
        *("breakdown", "shares"),
    ):
        with pytest.raises(DoesNotFitError):
            getattr(run, name)
        assert getattr(unchecked, name)
    assert run.value("state_memory") > 80e9
    assert run.memory["memory_free"].magnitude < 0
    assert "too much" in str(run)
    assert run.to_dict()["step_time"]["value"] is None
