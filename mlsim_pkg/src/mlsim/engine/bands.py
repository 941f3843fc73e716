"""Bands around predictions: how far results of the same kind were from theirs, on the shelf.

A band is made of published rows, each predicted without anything fitted to its series. Eight in
ten rows of a new series shall lie in it. A new series is farther off than another row of an old
one, so the limits are those of a larger part of the rows on record; `held` tests them. `band`
makes them for cases of a table, `band_of` for answers of `Engine`, whose bound is their limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from mlsim.engine.accuracy import (
    ALL,
    BorrowedScore,
    Limits,
    Scored,
    borrowed_scores,
    limits,
    shelf,
)
from mlsim.errors import NotMeasuredError
from mlsim.hardware.kernel_constants import LEVELS, NOBODY, Loan
from mlsim.parameters import CALIBRATED
from mlsim.solvers.answer import Answer, Band
from mlsim.solvers.calibrated import that_matter


def device_of(answer: Any) -> Any:
    """Return the device of an answer, or each device of its system."""
    return answer.device if hasattr(answer, "run") else answer.hardware


def estimate_of(answer: Any) -> str:
    """Return which estimate an answer is."""
    return str(_asked(answer).estimate)


def _asked(answer: Any) -> Any:
    """Return what an answer was asked."""
    holders = ("configuration", "service", "run")
    return next(getattr(answer, each) for each in holders if hasattr(answer, each))


def bound_of(answer: Answer) -> Any:
    """Return the answer of the bound to the same question; of training, a time in s."""
    from mlsim.solvers.forward import configuration, profile
    from mlsim.solvers.serving.serving import Serving

    if isinstance(answer, profile.Profile):
        held = answer.configuration
        known = configuration.Configuration.givable
        return profile.solve(
            held.model,
            held.device,
            batch_size=held.batch_size,
            precision=held.precision,
            estimate="bound",
            check_memory=False,
            given={name: value for name, value in held.given.items() if name in known},
        )
    if isinstance(answer, Serving):
        return Serving(replace(answer.service, estimate="bound"), check_memory=False)
    run: Any = answer.run  # type: ignore[attr-defined]
    least = type(answer)(replace(run, estimate="bound"), check_memory=False)
    return float(least.value("step_time"))


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
# The training of networks of layers, to which nothing is fitted.
OF_NETWORKS = "training of networks"
# Share of the rows that a band holds, and the fewest rows and series of which one is made.
SHARE, FEWEST, SERIES = 0.8, 8, 2
# The part of the rows on record that a band holds, so that it holds the share of a new series.
ON_RECORD = 0.86


@dataclass(frozen=True, slots=True)
class SpeedBand:
    """Limits of measured over predicted speed, and of which rows they are made."""

    least: float
    most: float
    times: bool
    words: str

    def around(self, value: float) -> tuple[float, float]:
        """Return the lower and upper limit around a prediction.

        >>> SpeedBand(0.5, 0.9, False, "").around(100.0), SpeedBand(0.5, 0.8, True, "").around(4.0)
        ((50.0, 90.0), (5.0, 8.0))
        """
        if self.times:
            return value / self.most, value / self.least
        return value * self.least, value * self.most

    def wider(self, kind: str, loans: Iterable[Loan]) -> SpeedBand:
        """Return it for a kind of case whose constants were borrowed."""
        found = lent(KIND[kind], (self.least, self.most), loans)
        least, most = self.least * found.least, self.most * found.most
        return SpeedBand(least, most, self.times, self.words + found.words)


@cache
def band(kind: str, metric: str, estimate: str) -> SpeedBand | None:
    """Return the band of a kind of case and an estimate; None without enough rows.

    >>> found = band("decode", "decode_tokens_per_s_total", "calibrated")
    >>> 0 < found.least < found.most
    True
    """
    found = _kept(KIND.get(kind, ""), estimate)
    if found is None:
        return None
    return SpeedBand(
        least=found.least,
        most=found.most,
        times=metric in TIMES,
        words=f"band: {SHARE:.0%}, of {found.rows} published rows of {KIND[kind]}, series left out",
    )


def _kept(kind: str, estimate: str) -> Limits | None:
    """Return the limits of a kind; None of too few rows."""
    return next((each for each in limits() if (each.kind, each.estimate) == (kind, estimate)), None)


def limits_of_shelf() -> Iterator[Limits]:
    """Yield the limits of each kind and estimate of which there are enough rows, worked out."""
    for kind, estimate in product(dict.fromkeys(KIND.values()), ("bound", "roofline", CALIBRATED)):
        rows = _rows(kind, estimate)
        if _enough(rows):
            yield Limits(kind, estimate, len(rows), *_limits(rows, estimate))


def limits_anew() -> Iterator[Limits]:
    """Yield all limits that are kept, worked out."""
    from mlsim.measured.training import network_steps

    yield from limits_of_shelf()
    speeds = sorted(
        row.value / row.train(CALIBRATED).value("throughput") for row in network_steps()
    )
    ends = (quantile(speeds, each) for each in ((1 - SHARE) / 2, (1 + SHARE) / 2))
    yield Limits(OF_NETWORKS, CALIBRATED, len(speeds), *ends)


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

    >>> from mlsim.hardware.kernel_constants import Relatives
    >>> loan = Loan("memory_fraction", Relatives("class", ("Cloud.A100",)))
    >>> found = lent("generation", (0.8, 1.2), [loan])
    >>> found.least < 1 < found.most
    True
    """
    far: dict[str, str] = {}
    for each in loans:
        what, level = LENT.get(each.constant, "device"), each.kin.level
        if what not in far or LEVELS_LENT.index(far[what]) < LEVELS_LENT.index(level):
            far[what] = level
    found = [lent_score(what, level, kind) for what, level in far.items()]
    return Lent(
        math.prod(min(1.0, each.least / limits[0]) for each in found),
        math.prod(max(1.0, each.most / limits[1]) for each in found),
        f"; wider for loans: {', '.join(map(_lent_words, found))}" if found else "",
    )


# What a constant belongs to, if not to the device.
LENT = {"exchange": "links"}
LEVELS_LENT = (*LEVELS, NOBODY)


def lent_score(what: str, level: str, kind: str) -> BorrowedScore:
    """Return the score of such loans; of few rows that of farther loans, or of all kinds."""
    ours = [each for each in borrowed_scores() if each.what == what]
    farther = [each for each in ours if LEVELS_LENT.index(each.level) >= LEVELS_LENT.index(level)]
    several = [each for each in farther if each.kind == kind]
    several += [each for each in farther if each.kind == ALL]
    for each in several:
        if each.rows >= FEWEST and each.series >= SERIES:
            return each
    raise NotMeasuredError(
        f"no published row tells how far off constants of {what} are that nobody measured "
        f"(level {level!r}): give the constant itself, such as memory_fraction=0.8."
    )


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


# Of each result that has a band: the kind of case whose band it is, and whether it is a time.
_RESULTS: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "Profile": {"latency": ("cnn_infer", True), "throughput": ("cnn_infer", False)},
    "Serving": {
        "time_to_first_token": ("prefill", True),
        "time_per_output_token": ("decode", True),
        "generation_latency": ("decode", True),
        "user_token_rate": ("decode", False),
        "decode_throughput": ("decode", False),
        "output_throughput": ("decode", False),
    },
    "Training": {"step_time": ("train_lm", True), "token_rate": ("train_lm", False)},
    "NetworkTraining": {"step_time": ("", True), "throughput": ("", False)},
}


def band_of(answer: Answer, name: str) -> Band | None:
    """Return the band around a result; None where none is known.

    None is known of other estimates, of sizes, and of rates that were given.
    """
    result = _RESULTS.get(type(answer).__name__, {}).get(name)
    if result is None or estimate_of(answer) != CALIBRATED or _given(answer):
        return None
    case, is_time = result
    if case:
        known = band(case, "rate", CALIBRATED)
        if known is None:
            return None
        least, most, words = known.least, known.most, known.words.removeprefix("band: ")
    else:
        found = _kept(OF_NETWORKS, CALIBRATED)
        if found is None:
            return None
        least, most = found.least, found.most
        words = f"{SHARE:.0%} of {found.rows} published rows of {OF_NETWORKS}, none fitted"
    shelf = KIND[case] if case else "networks"
    wide = lent(shelf, (least, most), mattering(answer, name))
    least, most, words = least * wide.least, most * wide.most, words + wide.words
    value = answer.value(name)
    low, high = (value / most, value / least) if is_time else (value * least, value * most)
    return _within_bound(answer, name, Band(low, high, words), is_time=is_time)


def mattering(answer: Answer, name: str) -> tuple[Loan, ...]:
    """Return the loans of an answer that decide at least a tenth of a result's time."""
    if not answer.loans:
        return ()
    causes = answer.causes_behind(name).items()
    # Of many points, as much as it is of any.
    most = {cause: float(getattr(share, "max", lambda: share)()) for cause, share in causes}  # noqa: B023
    return that_matter(answer.loans, most)


def _given(answer: Any) -> bool:
    """Tell whether no row is like it: quantities were given, or activations stay on chip.

    Nor is any published row one of fine-tuning with adapters, or of a service with a cache of
    prefixes, speculation, offload or adapters, nor of a service on several nodes.
    """
    held = _asked(answer)
    tuned = getattr(getattr(held, "recipe", None), "adapters", None)
    switched = getattr(getattr(held, "switches", None), "on", False)
    told = ("keeps", "beyond_one_node")
    return bool(held.given or tuned or switched) or any(getattr(held, each, False) for each in told)


def _within_bound(answer: Answer, name: str, wide: Band, *, is_time: bool) -> Band:
    """Return the band without what no program could reach."""
    if answer.shape:
        return wide
    found = bound_of(answer)
    if isinstance(found, float) and not is_time:  # of training, the time of a step
        return wide
    limit = found if isinstance(found, float) else float(found.value(name))
    if is_time:
        return Band(max(wide.low, limit), wide.high, wide.words)
    return Band(wide.low, min(wide.high, limit), wide.words)
