"""Schedulers that look seldom, hold prompts back, or make steps up ahead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlsim.errors import InvalidValueError
from mlsim.solvers.arrivals.residents import Run
from mlsim.solvers.arrivals.simulate import simulate
from mlsim.solvers.arrivals.step_times import CHUNKS, CONTEXTS, StepTimes
from mlsim.systems.schedulers import scheduler
from mlsim.workloads.requests import Requests

# A step takes a second, and a hundredth of one for each token; nothing depends on the context.
FLAT = StepTimes(
    [0.0, *(1 + 0.01 * n for n in range(1, 600))],
    [0.0] * 20,
    [[0.0] * CONTEXTS] * 20,
    [[0.0] * CONTEXTS] * CHUNKS,
    100.0,
    10.0,
    [float(n) for n in range(CONTEXTS)],
    1e9,
    6400,
)
PLAIN = replace(scheduler("sglang"), steps_ahead=0)


def run(rule: Any, arrived: list[float], prompt: int = 100, output: int = 50) -> Run:
    count = len(arrived)
    asked = Requests(np.array(arrived), np.full(count, prompt), np.full(count, output))
    return simulate(asked, FLAT, rule)


def test_who_comes_during_a_step_waits_for_its_end() -> None:
    """Prompt 0 to 2, then steps of 1.01; who comes at 2.5 starts at 3.01 and reads for 2."""
    assert run(PLAIN, [0.0, 2.5]).first[1] == pytest.approx(5.01)


def test_a_step_that_is_made_up_already_takes_nobody_in() -> None:
    ahead = replace(PLAIN, steps_ahead=1)
    assert run(ahead, [0.0, 2.5]).first[1] == pytest.approx(6.02)
    # Where nothing runs, nothing is made up.
    assert run(ahead, [0.0]).first[0] == pytest.approx(2.0)


def test_it_looks_for_requests_every_so_many_steps() -> None:
    """Ten steps after the first prompt it looks: at 2 + 10 x 1.01."""
    seldom = PLAIN.with_patience(poll_steps=10)
    assert run(seldom, [0.0, 2.5]).first[1] == pytest.approx(2 + 10.1 + 2)


def test_prompts_wait_for_others_but_not_for_ever() -> None:
    """Twenty steps after it came, at 3.01, it is read; two together fill the share at once."""
    patient = PLAIN.with_limits(tokens_per_step=250).with_patience(wait_steps=20, wait_share=0.8)
    late = run(patient, [0.0, 2.5]).first[1]
    assert late == pytest.approx(3.01 + 20 * 1.01 + 2)
    both = run(patient, [0.0, 2.5, 2.6]).first
    assert both[1] == both[2] == pytest.approx(3.01 + 3)


def test_the_way_to_the_scheduler_counts() -> None:
    asked = Requests(np.zeros(1), np.full(1, 100), np.full(1, 2))
    assert simulate(asked, FLAT, PLAIN, 0.5).first[0] == pytest.approx(2.5)


def test_a_long_text_is_longer_on_its_way() -> None:
    """Who came first has a text of 5 s: the second, at 1 and there at 2, is read before it."""
    asked = Requests(np.array([0.0, 1.0]), np.array([100, 100]), np.array([1, 1]))
    found = simulate(asked, FLAT, PLAIN, [5.0, 1.0])
    assert found.arrived == [0.0, 1.0]
    assert found.first == [pytest.approx(7.0), pytest.approx(4.0)]


def test_users_who_ask_again_have_their_text_cut_again() -> None:
    """One user: read from 1 to 3, then from 4 to 6."""
    asked = Requests(np.zeros(2), np.array([100, 100]), np.array([1, 1]), users=1)
    found = simulate(asked, FLAT, PLAIN, [1.0, 1.0])
    assert found.arrived == [0.0, pytest.approx(3.0)]
    assert found.first == [pytest.approx(3.0), pytest.approx(6.0)]


@pytest.mark.parametrize(
    "given", [{"poll_steps": 0}, {"wait_steps": -1}, {"wait_share": 1.5}, {"poll_steps": 2.5}]
)
def test_patience_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(given))):
        PLAIN.with_patience(**given)
