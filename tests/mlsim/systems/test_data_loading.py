"""Workers that feed a device: by hand, and against the equations of the pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError
from mlsim.systems.data_loading import load_and_compute

CASE: dict[str, Any] = {"workers": 1, "prepare_time": 2.0, "compute_time": 1.0, "batches": 40}


def test_in_turn_by_hand() -> None:
    run = load_and_compute(**{**CASE, "workers": 0, "batches": 3})
    assert [(work.start, work.end) for work in run.computed] == [(2, 3), (5, 6), (8, 9)]
    assert {work.who for work in run.prepared} == {0}
    assert run.waited == 6


def test_one_worker_by_hand() -> None:
    run = load_and_compute(**{**CASE, "batches": 3})
    assert [(work.start, work.end) for work in run.prepared] == [(0, 2), (2, 4), (4, 6)]
    assert [(work.start, work.end) for work in run.computed] == [(2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("compute_time", [0.3, 1.0, 2.5])
def test_the_pace_is_that_of_the_slowest_stage(workers: int, compute_time: float) -> None:
    run = load_and_compute(
        **{**CASE, "workers": workers, "compute_time": compute_time, "batches": 60 * workers}
    )
    supply = EQUATIONS["prepare_rate"](workers, 1 / CASE["prepare_time"])
    fed = EQUATIONS["overlapped_throughput"](supply, 1 / compute_time)
    assert run.batches_per_second == pytest.approx(fed, rel=0.02)


def test_without_workers_the_pace_is_that_of_taking_turns() -> None:
    run = load_and_compute(**{**CASE, "workers": 0})
    fed = EQUATIONS["alternating_throughput"](1 / CASE["prepare_time"], 1 / CASE["compute_time"])
    assert run.batches_per_second == pytest.approx(fed)
    assert run.waited / run.seconds == pytest.approx(EQUATIONS["starved_share"](fed, 1.0))


def test_no_worker_runs_too_far_ahead() -> None:
    run = load_and_compute(workers=2, prepare_time=0.1, compute_time=1, batches=20, ahead=2)
    for work in run.prepared:
        begun = sum(each.start <= work.start for each in run.computed)
        assert work.batch - begun < 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workers": -1}, "workers must be a whole number from 0 up, not -1"),
        ({"batches": 1}, "batches must be a whole number from 2 up"),
        ({"ahead": 0}, "ahead must be a whole number from 1 up"),
        ({"prepare_time": 0}, "prepare_time must be a positive number of seconds"),
        ({"compute_time": float("inf")}, "compute_time must be a positive number"),
    ],
)
def test_what_can_not_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        load_and_compute(**{**CASE, **change})
