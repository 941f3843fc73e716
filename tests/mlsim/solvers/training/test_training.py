"""A whole run: days, cost, failures and checkpoints, and how large a model should be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from training_runs import SMALL, train

from mlsim import Training
from mlsim.equations import run as equations
from mlsim.errors import InvalidValueError

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
    run = train(tokens=TOKENS)
    assert run.training_time.to("s").magnitude == exactly(TOKENS / run.value("token_rate"))
    assert run.training_time.check("[time]")
    assert run.goodput == 1


def test_device_hours_and_cost() -> None:
    run = train(tokens=TOKENS, data_parallel=8, price="3 USD/h")
    hours = TOKENS / run.value("token_rate") / 3600
    assert run.device_time.to("h").magnitude == exactly(8 * hours)
    assert run.training_cost.to("USD").magnitude == exactly(8 * hours * 3)


@pytest.mark.parametrize(
    ("changes", "what", "needed"),
    [
        ({}, "training_time", "tokens=300e9"),
        ({}, "device_time", "tokens=300e9"),
        ({}, "run_tokens_per_parameter", "tokens=300e9"),
        ({"price": "2 USD/h"}, "training_cost", "tokens=300e9"),
        ({"tokens": 1e9}, "training_cost", "price='2 USD/h'"),
        ({"mean_time_to_failure": "1 h"}, "goodput", "checkpoint_bandwidth='100 GB/s'"),
        (
            {"mean_time_to_failure": "1 h", "checkpoint_bandwidth": "1 GB/s"},
            "goodput",
            "restart_time='10 min'",
        ),
        (
            {"tokens": 1e9, "mean_time_to_failure": "1 h"},
            "training_time",
            "checkpoint_bandwidth='100 GB/s'",
        ),
    ],
)
def test_what_was_not_given_is_asked_for(changes: dict[str, Any], what: str, needed: str) -> None:
    run = train(**changes)
    with pytest.raises(InvalidValueError) as caught:
        getattr(run, what)
    assert needed in str(caught.value)
    assert run.value("step_time") > 0


def test_tokens_per_parameter() -> None:
    run = train(tokens=20 * SMALL.parameter_count)
    assert run.run_tokens_per_parameter == exactly(20)


# ---- failures ---------------------------------------------------------------------------


def test_any_of_the_devices_fails() -> None:
    assert failing().value("failure_interval") == exactly(1000 * 3600 / 32)
    assert failing(data_parallel=8).value("failure_interval") == exactly(1000 * 3600 / 8)


def test_a_checkpoint_holds_weights_and_state_once() -> None:
    """Two bytes of weights and twelve of Adam, however many copies there are."""
    run = failing()
    assert run.value("checkpoint_bytes") == exactly(14 * SMALL.parameter_count)
    assert run.value("checkpoint_time") == exactly(14 * SMALL.parameter_count / 1e6)


def test_young_interval() -> None:
    run = failing()
    write, fails = run.value("checkpoint_time"), run.value("failure_interval")
    assert run.value("checkpoint_interval") == exactly(math.sqrt(2 * write * fails))


def test_goodput_by_hand() -> None:
    run = failing()
    write, fails = 14 * SMALL.parameter_count / 1e6, 1000 * 3600 / 32
    every = math.sqrt(2 * write * fails)
    lost = (600 + (every + write) / 2) / fails
    assert run.goodput == exactly(every / (every + write) * (1 - lost))
    ideal = TOKENS / run.value("token_rate")
    assert run.training_time.to("s").magnitude == exactly(ideal / run.value("goodput"))


def test_young_interval_is_the_best() -> None:
    """To first order: a tenth more or less makes the goodput no better."""
    run = failing()
    write, fails = run.value("checkpoint_time"), run.value("failure_interval")
    best = run.value("checkpoint_interval")
    near, *others = (
        equations.goodput(write, best * factor, 600.0, fails) for factor in (1, 0.7, 1.4)
    )
    assert all(near > other for other in others)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mean_time_to_failure", ("1000 h", "10000 h", "1e6 h")),
        ("checkpoint_bandwidth", ("1 MB/s", "1 GB/s", "1 TB/s")),
        ("restart_time", ("1 h", "10 min", "1 s")),
    ],
)
def test_what_is_better_loses_less(name: str, values: tuple[str, ...]) -> None:
    found = [failing(**{name: value}).goodput for value in values]
    assert found == sorted(found)
    assert all(0 < value < 1 for value in found)


def test_failures_do_not_change_a_step() -> None:
    assert failing().value("step_time") == train(data_parallel=32).value("step_time")


@pytest.mark.parametrize(
    "changes",
    [{"restart_time": "100 h"}, {"mean_time_to_failure": "1 h"}, {"checkpoint_bandwidth": "1 B/s"}],
    ids=str,
)
@pytest.mark.parametrize("what", ["goodput", "training_time", "device_time"])
def test_a_run_that_never_ends_is_refused(changes: dict[str, str], what: str) -> None:
    run = failing(**changes)
    with pytest.raises(InvalidValueError, match="such a run never ends: 32 devices fail every"):
        getattr(run, what)
    assert run.value("step_time") > 0


def test_goodput_may_be_given() -> None:
    plain, lossy = train(tokens=TOKENS), train(tokens=TOKENS, goodput=0.5)
    assert lossy.value("training_time") == exactly(2 * plain.value("training_time"))


# ---- how large a model ------------------------------------------------------------------


def test_six_operations_for_each_parameter_and_token() -> None:
    assert equations.training_flops(6.0, 70e9, 1.4e12) == exactly(5.88e23)


@pytest.mark.parametrize("budget", [1e18, 5.88e23, 1e26])
def test_optimal_size_and_tokens_use_the_budget(budget: float) -> None:
    size = equations.optimal_parameters(budget, 6.0, 20.0)
    tokens = equations.optimal_tokens(size, 20.0)
    assert tokens / size == exactly(20)
    assert equations.training_flops(6.0, size, tokens) == exactly(budget)


def test_chinchilla_is_optimal_for_its_own_budget() -> None:
    """70 billion parameters and 1.4 trillion tokens: Hoffmann et al. 2022, section 4."""
    size = equations.optimal_parameters(5.88e23, 6.0, 20.0)
    assert size == exactly(70e9)
    assert equations.optimal_tokens(size, 20.0) == exactly(1.4e12)


def test_both_grow_as_the_root_of_the_budget() -> None:
    small, large = (equations.optimal_parameters(each, 6.0, 20.0) for each in (1e20, 1e22))
    assert large / small == exactly(10)


def test_optimizer_state_that_is_given_is_also_what_a_checkpoint_holds() -> None:
    """Given 6 bytes of state for each parameter, beside its weight in 2: 8 in all."""
    run = train(state_bytes="6 B/parameter")
    assert run.value("checkpoint_bytes") == 8 * run.run.model.parameter_count
    assert run.value("optimizer_memory") == 6 * run.value("device_parameters")
