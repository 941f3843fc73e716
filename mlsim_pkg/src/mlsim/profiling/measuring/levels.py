"""Levels of memory from a curve: how fast a working set of each size is gone through.

While a working set fits in a cache, its rate does not depend on its size. Where it no longer
fits, the rate falls to that of the next level. So the curve is a staircase with rounded edges.
The fewest flat parts that explain it are its levels.

A cache that gives up what was used longest ago stops helping at once when the set outgrows it.
One that gives up anything still keeps a part: of a set a quarter larger, four fifths. There the
rate has gone about a third of the way down, on a logarithmic scale, and so a level is said to end
where the rate has fallen by a third.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from mlsim.errors import InvalidValueError

# What a further flat part must gain in squared differences of log2(rate).
PENALTY = 0.25
# Flat parts whose rates are nearer than this are one.
LEAST_STEP = log2(1.25)
# Where a level ends: so far down to the next one.
DOWN = 1 / 3
# A part this steep (in log2(rate) for each doubling of the size) and this short is an edge.
STEEP, SHORT = 0.25, 2.0
# A part of fewer doublings is an edge in any case.
NARROW = 1.0


@dataclass(frozen=True, slots=True)
class FoundLevel:
    """A flat part of the curve.

    Attributes
    ----------
    rate
        The median rate of the part, in the units of the curve.
    first, last
        Sizes of the first and the last working set of the part.
    capacity
        The size at which the rate has fallen by a third of the way to the next part, on a
        logarithmic scale; None of the last part, which is main memory.
    """

    rate: float
    first: float
    last: float
    capacity: float | None


def find_levels(sizes: Sequence[float], rates: Sequence[float]) -> tuple[FoundLevel, ...]:
    """Return the levels of a curve, the fastest first.

    Parameters
    ----------
    sizes
        Working sets in B, ascending.
    rates
        How fast each was gone through, in B/s.

    Raises
    ------
    InvalidValueError
        If there are fewer than four points, or one that can't be.

    >>> sizes = [2.0 ** (10 + k / 2) for k in range(20)]
    >>> rates = [400.0 if size <= 2**14 else 100.0 for size in sizes]
    >>> found = find_levels(sizes, rates)
    >>> [(level.rate, level.capacity and round(level.capacity)) for level in found]
    [(400.0, 18390), (100.0, None)]
    """
    _check(sizes, rates)
    x, y = [log2(each) for each in sizes], [log2(each) for each in rates]
    parts = _merged(_rising_left_out(_split(y), y), y)
    flat = [part for n, part in enumerate(parts) if not _edge(part, x, y, n, len(parts))]
    flat = _merged(flat or parts[-1:], y)
    found = []
    for n, (begin, end) in enumerate(flat):
        below = flat[n + 1] if n + 1 < len(flat) else None
        capacity = None if below is None else _crossing(x, y, (begin, end), below)
        rate = _middle(rates[begin:end])
        found.append(FoundLevel(rate, sizes[begin], sizes[end - 1], capacity))
    return tuple(found)


def _check(sizes: Sequence[float], rates: Sequence[float]) -> None:
    ascending = all(a < b for a, b in itertools.pairwise(sizes))
    if len(sizes) != len(rates) or len(sizes) < 4 or not ascending or min(sizes) <= 0:
        raise InvalidValueError(
            f"levels need four sizes or more, ascending, and a rate for each; there are "
            f"{len(sizes)} sizes and {len(rates)} rates."
        )
    if min(rates) <= 0:
        raise InvalidValueError(f"a rate must be positive, not {min(rates)}.")


Part = tuple[int, int]


def _split(y: Sequence[float]) -> list[Part]:
    """Cut a curve into the flat parts with the least squared differences and penalties."""
    count = len(y)
    sums, squares = [0.0], [0.0]
    for each in y:
        sums.append(sums[-1] + each)
        squares.append(squares[-1] + each * each)

    def cost(begin: int, end: int) -> float:
        total = sums[end] - sums[begin]
        return squares[end] - squares[begin] - total * total / (end - begin)

    best, came = [0.0] + [float("inf")] * count, [0] * (count + 1)
    for end in range(1, count + 1):
        for begin in range(end):
            value = best[begin] + cost(begin, end) + PENALTY
            if value < best[end]:
                best[end], came[end] = value, begin
    parts, end = [], count
    while end:
        parts.append((came[end], end))
        end = came[end]
    return parts[::-1]


def _rising_left_out(parts: list[Part], y: Sequence[float]) -> list[Part]:
    """Leave out the small sizes at which starting costs more than moving: they are slower."""
    fastest = max(range(len(parts)), key=lambda n: _middle(y[slice(*parts[n])]))
    return parts[fastest:]


def _merged(parts: list[Part], y: Sequence[float]) -> list[Part]:
    """Join neighbors that are about as fast, or of which the larger set is the faster one."""
    joined = parts[:1]
    for part in parts[1:]:
        before = joined[-1]
        if _middle(y[slice(*before)]) - _middle(y[slice(*part)]) < LEAST_STEP:
            joined[-1] = (before[0], part[1])
        else:
            joined.append(part)
    return joined


def _edge(part: Part, x: Sequence[float], y: Sequence[float], n: int, count: int) -> bool:
    """Whether a part between two others is the way down from one to the next."""
    if n in (0, count - 1):
        return False
    begin, end = part
    span = x[end - 1] - x[begin]
    return span < NARROW or (span < SHORT and -_slope(x[begin:end], y[begin:end]) > STEEP)


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    across = sum((a - mean_x) ** 2 for a in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / across


def _middle(values: Sequence[float]) -> float:
    ranked = sorted(values)
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2


def _crossing(x: Sequence[float], y: Sequence[float], above: Part, below: Part) -> float:
    """Return the size at which the curve has fallen far enough from one part to the next."""
    high, low = _middle(y[slice(*above)]), _middle(y[slice(*below)])
    enough = high - DOWN * (high - low)
    at = max(n for n in range(above[0], below[1]) if y[n] >= enough)
    if at + 1 >= len(x):
        return float(2 ** x[at])
    fall = y[at] - y[at + 1]
    part = (y[at] - enough) / fall if fall > 0 else 0.5
    return float(2 ** (x[at] + part * (x[at + 1] - x[at])))
