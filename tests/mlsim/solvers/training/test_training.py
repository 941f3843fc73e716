"""A whole run: days, cost, failures and checkpoints, and how large a model should be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from refusals import answered
from training_runs import SMALL, train

from mlsim import Training
from mlsim.equations import run as equations

EXACT = 1e-12
TOKENS = 1e12
FAILS: dict[str, Any] = {
    "data_parallel": 32,
    "tokens": TOKENS,
    "mean_time_to_failure": "1000 h",
    "checkpoint_bandwidth": "1 MB/s",
    "restart_time": "10 min",
}


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def failing(**changes: Any) -> Training:
    return train(**{**FAILS, **changes})


# ---- time and cost ----------------------------------------------------------------------


def test_a_run_takes_its_tokens_by_its_rate() -> None:
    run = train(tokens=TOKENS, data_parallel=8, price="3 USD/h")
    seconds = TOKENS / run.value("token_rate")
    assert run.training_time.to("s").magnitude == exactly(seconds)
    assert run.goodput == 1
    assert run.device_time.to("h").magnitude == exactly(8 * seconds / 3600)
    assert run.training_cost.to("USD").magnitude == exactly(8 * seconds / 3600 * 3)
    assert train(tokens=20 * SMALL.parameter_count).run_tokens_per_parameter == exactly(20)
    lossy = train(tokens=TOKENS, data_parallel=8, goodput=0.5)
    assert lossy.value("training_time") == exactly(2 * seconds)


def test_what_was_not_given_is_asked_for_and_what_never_ends_is_refused() -> None:
    def result(what: str, **asked: Any) -> Any:
        run = train(**asked)
        assert run.value("step_time") > 0
        return getattr(run, what)

    def endless(what: str, **asked: Any) -> Any:
        return result(what, **{**FAILS, **asked})

    assert answered(result, "training", "results") == []
    assert answered(endless, "training", "endless") == []


# ---- failures ---------------------------------------------------------------------------


def test_goodput_by_hand() -> None:
    """Any of 32 devices fails; a checkpoint holds two bytes of weights and twelve of Adam once.

    At Young's interval a write, half an interval and a restart of 600 s are lost.
    """
    run = failing()
    write, fails = 14 * SMALL.parameter_count / 1e6, 1000 * 3600 / 32
    every = math.sqrt(2 * write * fails)
    assert run.value("checkpoint_bytes") == exactly(14 * SMALL.parameter_count)
    assert run.value("checkpoint_time") == exactly(write)
    assert run.value("failure_interval") == exactly(fails)
    assert failing(data_parallel=8).value("failure_interval") == exactly(1000 * 3600 / 8)
    assert run.value("checkpoint_interval") == exactly(every)
    lost = (600 + (every + write) / 2) / fails
    assert run.goodput == exactly(every / (every + write) * (1 - lost))
    ideal = TOKENS / run.value("token_rate")
    assert run.training_time.to("s").magnitude == exactly(ideal / run.value("goodput"))
    # To first order it is the best: more or less makes the goodput no better.
    near, *others = (
        equations.goodput(write, every * factor, 600.0, fails) for factor in (1, 0.7, 1.4)
    )
    assert all(near > other for other in others)
    # Failures do not change a step.
    assert run.value("step_time") == train(data_parallel=32).value("step_time")


# ---- how large a model ------------------------------------------------------------------


def test_optimal_size_and_tokens_use_the_budget() -> None:
    """70 billion parameters and 1.4 trillion tokens: Hoffmann et al. 2022, section 4."""
    assert equations.training_flops(6.0, 70e9, 1.4e12) == exactly(5.88e23)
    for budget in (1e18, 5.88e23, 1e26):
        size = equations.optimal_parameters(budget, 6.0, 20.0)
        # Both grow as the root of the budget.
        assert size == exactly(70e9 * math.sqrt(budget / 5.88e23))
        assert equations.optimal_tokens(size, 20.0) == exactly(20 * size)


def test_optimizer_state_that_is_given_is_also_what_a_checkpoint_holds() -> None:
    """Given 6 bytes of state for each parameter, beside its weight in 2: 8 in all."""
    run = train(state_bytes="6 B/parameter")
    assert run.value("checkpoint_bytes") == 8 * run.run.model.parameter_count
    assert run.value("optimizer_memory") == 6 * run.value("device_parameters")
