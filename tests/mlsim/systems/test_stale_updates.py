"""Stale updates: the limit by hand, and the roots on both sides of it."""

from __future__ import annotations

import math

import pytest

from mlsim.errors import InvalidValueError
from mlsim.systems.stale_updates import largest_stable_rate, stale_descent


def test_the_limits_by_hand() -> None:
    assert largest_stable_rate(0) == pytest.approx(2)
    # One update old: 2 sin(30 degrees). Two: 2 sin(18 degrees), the golden ratio less one.
    assert largest_stable_rate(1) == pytest.approx(1)
    assert largest_stable_rate(2) == pytest.approx((math.sqrt(5) - 1) / 2)
    assert largest_stable_rate(1, curvature=4) == pytest.approx(0.25)


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 7, 15])
def test_below_the_limit_it_shrinks_and_above_it_grows(delay: int) -> None:
    limit = largest_stable_rate(delay)
    below = stale_descent(0.95 * limit, delay, 4000)
    above = stale_descent(1.05 * limit, delay, 4000)
    assert max(map(abs, below[-50:])) < 1e-3
    assert max(map(abs, above[-50:])) > 1e3


def test_curvature_scales_the_rate() -> None:
    assert stale_descent(0.1, 2, 9, curvature=3) == pytest.approx(stale_descent(0.3, 2, 9))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate": 0}, "rate must be a positive number, not 0"),
        ({"rate": math.nan}, "rate"),
        ({"delay": -1}, "delay must be a whole number from 0 up, not -1"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"curvature": -1}, "curvature"),
    ],
)
def test_what_can_not_be_is_refused(change: dict[str, float], words: str) -> None:
    given = {"rate": 0.1, "delay": 1, "steps": 3, **change}
    with pytest.raises(InvalidValueError, match=words):
        stale_descent(**given)  # type: ignore[arg-type]
