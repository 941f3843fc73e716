"""What a reader's own measurements say about predictions for a device: a factor and a band.

A factor is the geometric mean of measured over predicted time, for each kind. It is for this
reader's software on this device; constants of the package stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import fmean, median, stdev
from types import MappingProxyType
from typing import Any

from mlsim.engine.accuracy import shelf
from mlsim.engine.own_rows import KINDS, OwnRow, bound_of, device_of, estimate_of
from mlsim.errors import InvalidValueError, WrongKindError, unknown_name
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.reports import Report
from mlsim.units import text

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
# Kind of each result that can be corrected, and whether it is a time.
RESULTS: Mapping[str, tuple[str, bool]] = {
    "latency": ("solve", True),
    "throughput": ("solve", False),
    "time_to_first_token": ("serve-prefill", True),
    "time_per_output_token": ("serve-decode", True),
    "decode_throughput": ("serve-decode", False),
    "step_time": ("train", True),
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


@dataclass(frozen=True, slots=True)
class Corrected:
    """A result after correction, in its base unit, with its band.

    `predicted` is what the package says; `value`, `low` and `high` are corrected, none of them
    beyond the bound; `words` says by whose rows.
    """

    name: str
    unit: str
    predicted: float
    value: float
    low: float
    high: float
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        value, low, high, was = (
            text(each, self.unit) for each in (self.value, self.low, self.high, self.predicted)
        )
        return f"{value} ({low} to {high}; predicted {was}; {self.words})"


@dataclass(frozen=True, repr=False)
class Correction:
    """A correction of predictions for one device, made of its reader's own rows.

    Attributes
    ----------
    rows
        The measurements beside their predictions.
    estimate
        Which predictions they correct, "calibrated" or "roofline".
    factors
        One for each kind of which there are rows.
    """

    rows: tuple[OwnRow, ...]
    estimate: str
    factors: Mapping[str, Factor] = field(init=False)

    def __post_init__(self) -> None:
        found = {
            kind: _factor(kind, [row for row in self.rows if row.kind == kind])
            for kind in KINDS
            if any(row.kind == kind for row in self.rows)
        }
        object.__setattr__(self, "factors", MappingProxyType(found))

    @property
    def device(self) -> str:
        """Name of the device of all rows."""
        return self.rows[0].name

    @cached_property
    def by(self) -> str:
        """Whose rows correct, in words."""
        counts = (f"{each.rows} of {each.kind}" for each in self.factors.values())
        return f"corrected by the reader's own rows on {self.device} ({', '.join(counts)})"

    def apply(self, answer: Answer, name: str = "") -> Corrected:
        """Correct a result of `Engine.solve`, `serve` or `train` on the same device.

        Parameters
        ----------
        answer
            For one point, of the same device and estimate as the rows.
        name
            Which result, one of `latency`, `throughput` (of a network),
            `time_to_first_token`, `time_per_output_token`, `decode_throughput` and
            `step_time`. By default the first time of the answer of which there are rows.

        Raises
        ------
        WrongKindError
            If it is no answer of those doors.
        InvalidValueError
            If it has many points, is of another device or estimate, or there are no rows of
            its kind.
        UnknownNameError
            If the result is none that can be corrected.

        >>> from mlsim import Engine
        >>> rows = [{"kind": "solve", "model": "ResNet50", "hardware": "A100",
        ...          "batch_size": 8, "measured": "2 ms"}]
        >>> profile = Engine.solve(model="ResNet50", hardware="A100", batch_size=8,
        ...                        estimate="calibrated")
        >>> found = Engine.calibrate(rows).apply(profile)
        >>> round(found.value, 6), found.low < found.value < found.high
        (0.002, True)
        """
        door = _door(answer)
        device = device_of(answer)
        if device.key != self.rows[0].device:
            raise InvalidValueError(
                f"the rows were measured on {self.device}, and this answer is of {device.name}: "
                "measure a few rows there."
            )
        if estimate_of(answer) != self.estimate:
            raise InvalidValueError(
                f"the rows correct {self.estimate} predictions, and this one is "
                f"{estimate_of(answer)}: ask for estimate={self.estimate!r}."
            )
        name = name or self._first(door)
        result = _results(door)
        if name not in result:
            raise unknown_name("result to correct of such an answer", name, result)
        kind, is_time = result[name]
        if kind not in self.factors:
            raise InvalidValueError(
                f"there are no rows of {kind}, which {name} needs; there are of "
                f"{', '.join(self.factors)}."
            )
        answer.one_point(name)
        return self._corrected(answer, name, self.factors[kind], is_time)

    def _first(self, door: str) -> str:
        names = _results(door)
        held = [name for name, (kind, _) in names.items() if kind in self.factors]
        return held[0] if held else next(iter(names))

    def _corrected(self, answer: Any, name: str, by: Factor, is_time: bool) -> Corrected:
        predicted, bound = float(answer.value(name)), bound_of(answer)
        limit = bound if isinstance(bound, float) else float(bound.value(name))
        if is_time:
            found = [max(predicted * each, limit) for each in (by.factor, by.low, by.high)]
        else:
            found = [min(predicted / each, limit) for each in (by.factor, by.high, by.low)]
        value, low, high = found
        return Corrected(name, term(name).unit, predicted, value, low, high, self.by)

    def explain(self) -> str:
        """Return how each factor and its band came to be, in words, and from which rows."""
        lines = []
        for each in self.factors.values():
            lines.append(
                f"{each.kind}: the geometric mean of measured over predicted time is "
                f"{each.factor:.3g}. Band {each.low:.3g} to {each.high:.3g}: {each.spread}."
            )
            lines += [
                f"  {row.words}: measured {text(row.measured, 's')}, predicted "
                f"{text(row.predicted, 's')}, ratio {row.ratio:.3g}"
                for row in self.rows
                if row.kind == each.kind
            ]
        lines.append(
            "It holds for this device and the software that was measured. No constant of the "
            "package has changed."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the correction for JSON; times are in s."""
        rows = [
            {
                "kind": row.kind,
                "words": row.words,
                "measured": row.measured,
                "predicted": row.predicted,
                "ratio": row.ratio,
            }
            for row in self.rows
        ]
        factors = [each.as_dict() for each in self.factors.values()]
        return {
            "device": self.device,
            "estimate": self.estimate,
            "share": SHARE,
            "factors": factors,
            "rows": rows,
        }

    def report(self) -> Report:
        """Return the correction as a title and rows."""
        lines = []
        for each in self.factors.values():
            after = "" if each.after is None else f", {each.after:.0%} corrected by the others"
            counted = "1 row" if each.rows == 1 else f"{each.rows} rows"
            lines += [
                (each.kind, f"times x {each.factor:.3g} ({each.low:.3g} to {each.high:.3g})"),
                ("error", f"median {each.before:.0%}{after}; {counted}"),
                ("band", each.spread),
            ]
        title = f"Correction of {self.estimate} predictions for {self.device}"
        return Report(title, lines, label=15)

    def __str__(self) -> str:
        return self.report().text()

    def __repr__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()


def _door(answer: Any) -> str:
    from mlsim.solvers.forward.profile import Profile
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.training.training import Training

    for door, kind in (("solve", Profile), ("serve", Serving), ("train", Training)):
        if isinstance(answer, kind):
            return door
    raise WrongKindError(
        "apply() takes an answer of Engine.solve, Engine.serve or Engine.train, not "
        f"{type(answer).__name__}."
    )


def _results(door: str) -> dict[str, tuple[str, bool]]:
    return {name: found for name, found in RESULTS.items() if found[0].partition("-")[0] == door}


def _factor(kind: str, rows: Sequence[OwnRow]) -> Factor:
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
