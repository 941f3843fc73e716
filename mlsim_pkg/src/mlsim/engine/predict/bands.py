"""Bands around predictions: how far results of the same kind were from theirs, on the shelf.

A band is made of published rows, each predicted without anything fitted to its series. Eight in
ten rows of a new series shall lie in it. A new series is farther off than another row of an old
one, so the limits are those of a larger part of the rows on record; `held` tests them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mlsim.engine.accuracy import Scored, shelf
from mlsim.engine.recorded_scores import ALL, BorrowedScore, borrowed_scores
from mlsim.hardware.relatives import LEVELS, NOBODY, Loan

# The shelf's kind for each kind of case that has one.
KIND = {
    "cnn_infer": "networks",
    "enc_infer": "prompts",
    "prefill": "prompts",
    "ttft": "prompts",
    "decode": "generation",
    "gen_e2e": "generation",
    "static_gen": "generation",
    "serve_offline": "generation",
    "serve_steady": "generation",
    "train_lm": "training",
}
# Metrics of which less is better.
TIMES = ("latency_s", "TTFT_s", "kernel_time_s", "step_s", "allreduce_time_s", "accelerator_hours")
# Share of the rows that a band holds, and the fewest rows and series of which one is made.
SHARE, FEWEST, SERIES = 0.8, 8, 2
# The part of the rows on record that a band holds, so that it holds the share of a new series.
ON_RECORD = 0.86


@dataclass(frozen=True, slots=True)
class Band:
    """Limits of measured over predicted speed, and of which rows they are made."""

    least: float
    most: float
    times: bool
    words: str

    def around(self, value: float) -> tuple[float, float]:
        """Return the lower and upper limit around a prediction.

        >>> Band(0.5, 0.9, False, "").around(100.0), Band(0.5, 0.8, True, "").around(4.0)
        ((50.0, 90.0), (5.0, 8.0))
        """
        if self.times:
            return value / self.most, value / self.least
        return value * self.least, value * self.most

    def wider(self, kind: str, loans: Iterable[Loan]) -> Band:
        """Return it for a kind of case whose constants were borrowed."""
        found = lent(KIND[kind], (self.least, self.most), loans)
        least, most = self.least * found.least, self.most * found.most
        return Band(least, most, self.times, self.words + found.words)


@cache
def band(kind: str, metric: str, estimate: str) -> Band | None:
    """Return the band of a kind of case and an estimate; None without enough rows.

    >>> found = band("decode", "decode_tokens_per_s_total", "calibrated")
    >>> 0 < found.least < found.most
    True
    """
    if kind not in KIND:
        return None
    rows = _rows(KIND[kind], estimate)
    if not _enough(rows):
        return None
    least, most = _limits(rows, estimate)
    return Band(
        least=least,
        most=most,
        times=metric in TIMES,
        words=f"band: {SHARE:.0%}, of {len(rows)} published rows of {KIND[kind]}, series left out",
    )


@dataclass(frozen=True, slots=True)
class Lent:
    """By which factors a band's limits move where constants are borrowed, and why, in words."""

    least: float
    most: float
    words: str


def lent(kind: str, limits: tuple[float, float], loans: Iterable[Loan]) -> Lent:
    """Return how much wider a band is where constants were measured on other devices.

    As far as published rows lay that were predicted with such loans (`benchmarks/borrowed.py`);
    what is borrowed of a device and of its links counts once each, as far as it was lent.

    Parameters
    ----------
    kind
        Of the shelf, such as "training".
    limits
        Of measured over predicted speed, of answers with their own constants.
    loans
        What was borrowed, and from where.

    >>> from mlsim.hardware.relatives import Relatives
    >>> loan = Loan("memory_fraction", Relatives("class", ("Cloud.A100",)))
    >>> found = lent("generation", (0.8, 1.2), [loan])
    >>> found.least < 1 < found.most
    True
    """
    far: dict[str, str] = {}
    for each in loans:
        what, level = _LENT.get(each.constant, "device"), each.kin.level
        if what not in far or _LEVELS.index(far[what]) < _LEVELS.index(level):
            far[what] = level
    found = [_lent(what, level, kind) for what, level in far.items()]
    return Lent(
        math.prod(min(1.0, each.least / limits[0]) for each in found),
        math.prod(max(1.0, each.most / limits[1]) for each in found),
        f"; wider for loans: {', '.join(map(_lent_words, found))}" if found else "",
    )


# What a constant belongs to, if not to the device.
_LENT = {"exchange": "links"}
_LEVELS = (*LEVELS, NOBODY)


def _lent(what: str, level: str, kind: str) -> BorrowedScore:
    """Return the score of such loans; of few rows that of farther loans, or of all kinds."""
    ours = [each for each in borrowed_scores() if each.what == what]
    farther = [each for each in ours if _LEVELS.index(each.level) >= _LEVELS.index(level)]
    several = [each for each in farther if each.kind == kind]
    several += [each for each in farther if each.kind == ALL]
    return next(each for each in several if each.rows >= FEWEST and each.series >= SERIES)


def _lent_words(found: BorrowedScore) -> str:
    whose = "at full rate" if found.level == NOBODY else f"of a {found.level}"
    return (
        f"{found.what} {whose} ({found.rows} rows {found.error:.0%} off, not {found.own_error:.0%})"
    )


@cache
def held(kind: str, estimate: str) -> float | None:
    """Return which share of the rows lies in a band made without their series.

    Parameters
    ----------
    kind
        Of the shelf, such as "training".
    estimate
        "roofline" or "calibrated".

    Returns
    -------
    float or None
        None where the rows that are left are too few for a band.

    >>> 0.5 < held("training", "calibrated") < 1
    True
    """
    rows = _rows(kind, estimate)
    inside = 0
    for row in rows:
        others = [each for each in rows if each.series != row.series]
        if len(others) < FEWEST:
            return None
        least, most = _limits(others, estimate)
        inside += least <= 1 / row.ratio(estimate) <= most
    return inside / len(rows) if rows else None


def _rows(kind: str, estimate: str) -> list[Scored]:
    rows = [row for row in shelf(kind) if getattr(row, estimate) is not None]
    # A roofline is used where there is no calibrated answer.
    alone = [row for row in rows if row.calibrated is None]
    return alone if estimate == "roofline" and _enough(alone) else rows


def _limits(rows: list[Scored], estimate: str) -> tuple[float, float]:
    speeds = sorted(1 / row.ratio(estimate) for row in rows)
    outside = (1 - ON_RECORD) / 2
    return quantile(speeds, outside), quantile(speeds, 1 - outside)


def _enough(rows: list[Scored]) -> bool:
    return len(rows) >= FEWEST and len({row.series for row in rows}) >= SERIES


def quantile(ordered: list[float], share: float) -> float:
    """Return the value below which a share of ordered values lies, between two of them.

    >>> quantile([1.0, 2.0, 3.0], 0.25)
    1.5
    """
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
