"""The median of repeated measurements, and the interval around it."""

from __future__ import annotations

import math
import random

import pytest

from mlsim.errors import InvalidValueError
from mlsim.profiling import Spread
from mlsim.profiling.spread import coverage


@pytest.mark.parametrize(
    ("count", "rank", "chance"),
    # By hand: of 5 coins all alike 2/32; of 6 all alike 2/64; of 8 at most one head 2 * 9/256.
    [(5, 1, 30 / 32), (6, 1, 62 / 64), (8, 2, 1 - 18 / 256), (1, 1, 0.0)],
)
def test_coverage_by_hand(count: int, rank: int, chance: float) -> None:
    assert coverage(count, rank) == pytest.approx(chance)


@pytest.mark.parametrize(("count", "rank"), [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4)])
def test_ranks_are_those_of_tables(count: int, rank: int) -> None:
    found = Spread.of(range(count))
    assert (found.low, found.high) == (rank - 1, count - rank)
    assert found.confidence >= 0.95
    assert coverage(count, rank + 1) < 0.95


def test_the_median_does_not_follow_a_slow_run() -> None:
    calm, disturbed = (
        Spread.of([10, 11, 12, 11, 10, 11, 12]),
        Spread.of([10, 11, 12, 11, 10, 11, 90]),
    )
    assert calm.median == disturbed.median == 11


def test_few_values_say_how_sure_they_are() -> None:
    assert Spread.of([1.0, 2.0, 3.0]).confidence == pytest.approx(0.75)


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random_ = random.Random(7)
    inside = 0
    for _ in range(2000):
        found = Spread.of(random_.expovariate(1.0) for _ in range(9))
        inside += found.low <= math.log(2) <= found.high
    assert inside / 2000 == pytest.approx(coverage(9, 2), abs=0.015)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_has_no_spread(values: list[float]) -> None:
    with pytest.raises(InvalidValueError, match="finite values"):
        Spread.of(values)
