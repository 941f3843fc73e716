"""The factor of a kind: how much slower a reader's rows are than predicted, with a band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev
from typing import Any

from mlsim.engine.accuracy import shelf
from mlsim.engine.own_rows import OwnRow

# Share of further measurements that a band is to hold.
SHARE = 0.8
# From so many different rows up, their own spread is the band's.
ENOUGH = 5
# The published rows whose spread stands in where there are fewer.
SHELVES = {
    "solve": "networks",
    "serve-prefill": "prompts",
    "serve-decode": "generation",
    "train": "training",
}


@dataclass(frozen=True, slots=True)
class Factor:
    """What times of one kind are multiplied by.

    Attributes
    ----------
    kind
        One of "solve", "serve-prefill", "serve-decode" and "train".
    factor
        Geometric mean of measured over predicted time.
    low, high
        Eight in ten further measurements are expected between these.
    rows
        Different rows it is made of; what was measured twice counts once, by its mean.
    before, after
        Median error of predicted speed over these rows: of the predictions as they are, and
        of each one corrected by the other rows. `after` is None for a single row.
    spread
        In words, whose spread the band has.
    """

    kind: str
    factor: float
    low: float
    high: float
    rows: int
    before: float
    after: float | None
    spread: str

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def factor_of(kind: str, rows: Sequence[OwnRow]) -> Factor:
    """Work out the factor of a kind, its band, and the errors before and after."""
    repeated: dict[Any, list[float]] = {}
    for row in rows:
        repeated.setdefault(row.asked, []).append(math.log(row.ratio))
    logs = [fmean(each) for each in repeated.values()]
    middle, count = fmean(logs), len(logs)
    width, spread = _width(kind, logs)
    after = None
    if count > 1:
        after = median(
            abs(math.expm1(each - (middle * count - each) / (count - 1))) for each in logs
        )
    return Factor(
        kind=kind,
        factor=math.exp(middle),
        low=math.exp(middle - width),
        high=math.exp(middle + width),
        rows=count,
        before=median(abs(math.expm1(each)) for each in logs),
        after=after,
        spread=spread,
    )


def _width(kind: str, logs: Sequence[float]) -> tuple[float, str]:
    """Return half of a band's width, as a logarithm, and whose spread it is, in words.

    That of the next measurement around the mean of `n`: t * s * sqrt(1 + 1/n).
    """
    count = len(logs)
    room = math.sqrt(1 + 1 / count)
    own = t_quantile(count - 1) * stdev(logs) * room if count > 1 else 0.0
    words = f"{SHARE:.0%} by the spread of these {count} rows, widened by Student's t"
    if count >= ENOUGH:
        return own, words
    scatter, freedom, series = within_series(SHELVES[kind])
    shelved = t_quantile(freedom) * scatter * room
    if own > shelved:
        return own, words
    return shelved, (
        f"{SHARE:.0%} by the spread of published rows of {SHELVES[kind]} within their series "
        f"({series} of them), since fewer than {ENOUGH} different rows tell little of their own"
    )


@cache
def within_series(kind: str) -> tuple[float, int, int]:
    """Return how far published rows scatter around their series, and of how many that is.

    Returns
    -------
    tuple
        Standard deviation of the logarithm of measured over predicted time around the mean
        of each series; its degrees of freedom; how many series there are.

    >>> scatter, freedom, series = within_series("generation")
    >>> 0 < scatter < 1, freedom > series > 1
    (True, True)
    """
    series: dict[str, list[float]] = {}
    for row in shelf(kind):
        series.setdefault(row.series, []).append(math.log(row.ratio()))
    kept = [each for each in series.values() if len(each) > 1]
    freedom = sum(len(each) - 1 for each in kept)
    squares = sum((value - fmean(each)) ** 2 for each in kept for value in each)
    return math.sqrt(squares / freedom), freedom, len(kept)


def t_quantile(freedom: int, share: float = SHARE) -> float:
    """Return the t between whose two signs Student's distribution has this share.

    >>> round(t_quantile(1), 3), round(t_quantile(4), 3), round(t_quantile(1000), 3)
    (3.078, 1.533, 1.282)
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _t_share(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _t_share(angle: float, freedom: int) -> float:
    """Return the share within t = sqrt(freedom) * tan(angle), a finite sum of cosines.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    cosine, odd = math.cos(angle), freedom % 2
    added, power = 0.0, cosine if odd else 1.0
    for step in range(odd + 1, freedom, 2):
        added += power
        power *= cosine * cosine * step / (step + 1)
    added *= math.sin(angle)
    return (angle + added) * 2 / math.pi if odd else added
