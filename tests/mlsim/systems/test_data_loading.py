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


def test_two_workers_one_batch_ahead_by_hand() -> None:
    """3 s to prepare and 5 to compute: a place is free when the device begins an old batch."""
    run = load_and_compute(workers=2, prepare_time=3, compute_time=5, batches=6, ahead=1)
    prepared = [(work.who, work.batch, work.start, work.end) for work in run.prepared]
    assert prepared == [
        *((1, 0, 0, 3), (2, 1, 0, 3), (1, 2, 3, 6)),
        *((2, 3, 8, 11), (1, 4, 13, 16), (2, 5, 18, 21)),
    ]
    computed = [(work.who, work.batch, work.start, work.end) for work in run.computed]
    assert computed == [(0, batch, 3 + 5 * batch, 8 + 5 * batch) for batch in range(6)]
    assert (run.seconds, run.waited, run.batches_per_second) == (33, 3, 3 / 15)


def test_two_slow_workers_two_batches_ahead_by_hand() -> None:
    """7 s to prepare and 2 to compute: 23 s for five batches, of which the device waits 13."""
    run = load_and_compute(workers=2, prepare_time=7, compute_time=2, batches=5)
    assert [work.start for work in run.prepared] == [0, 0, 7, 7, 14]
    assert [work.end for work in run.computed] == [9, 11, 16, 18, 23]
    # The second half is of three batches, after the one that ends at 11.
    assert (run.seconds, run.waited, run.batches_per_second) == (23, 13, 3 / 12)
    # Two ahead is what is meant: with short work a worker waits for its third.
    short = load_and_compute(workers=1, prepare_time=1, compute_time=9, batches=5)
    assert [work.start for work in short.prepared] == [0, 1, 2, 10, 19]


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
