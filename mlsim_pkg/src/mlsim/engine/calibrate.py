"""`Engine.calibrate`: a reader's own few measurements correct predictions for their device.

Rows of a table are read, and each is asked again of the door that it belongs to. A factor is the
geometric mean of measured over predicted time, for each kind, with a band around it. It is for
this reader's software on this device; constants of the package stay as they are.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean, median, stdev
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mlsim.engine import Engine
from mlsim.engine.accuracy import shelf
from mlsim.engine.bands import bound_of, device_of, estimate_of
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    UnitError,
    UnknownArgumentError,
    UnknownNameError,
    WrongKindError,
    unknown_name,
)
from mlsim.quantities import term
from mlsim.records.tables import given_text
from mlsim.solvers.answer import Answer, Report, Written
from mlsim.units import known_factor, text, to_base

if TYPE_CHECKING:
    import pandas


# What can be measured of each kind: a time, and a rate with its unit.
KINDS: Mapping[str, tuple[str, str]] = {
    "solve": ("latency", "sample/s"),
    "serve-prefill": ("time_to_first_token", "token/s"),
    "serve-decode": ("time_per_output_token", "token/s"),
    "train": ("step_time", "token/s"),
}
# Columns of a row that are no arguments of a door, and arguments that rows don't choose.
_OWN = ("kind", "measured", "unit", "note")
_FIXED = ("estimate", "check_memory", "search")
_EXAMPLE = (
    "{'kind': 'solve', 'model': 'ResNet50', 'hardware': 'A100', 'batch_size': 8, "
    "'measured': '4.1 ms'}"
)
_NO_ROWS = f"there are no rows: give at least one, such as {_EXAMPLE}."
# A row that is slower than predicted by more is a slip, and no correction.
MOST_TIMES = 1000
# No time below the bound but for rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class OwnRow:
    """One measurement beside its prediction, both as times in s.

    Attributes
    ----------
    kind, words
        One of `KINDS`; what was measured, in words.
    device, name
        Key and name of the device.
    asked
        The arguments of the door, as text: equal for a measurement that was repeated.
    measured, predicted
        Times in s. A rate is turned into the time that it stands for.
    """

    kind: str
    words: str
    device: str
    name: str
    asked: tuple[tuple[str, str], ...]
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        """Measured over predicted time: above 1 the prediction is too fast."""
        return self.measured / self.predicted


def read(measured: Any) -> dict[str, dict[str, Any]]:
    """Return the rows of a CSV file, of a data frame or of a list of mappings, by their place.

    The place is what an error names: "mine.csv:3" is the line of a file, "row 3" of a list.

    Raises
    ------
    InvalidValueError
        If the file can't be read, or there are no rows.
    WrongKindError
        If it is none of these.
    """
    found: list[Any] = [None]
    if isinstance(measured, str | Path):
        return _from_file(measured)
    if hasattr(measured, "to_dict") and hasattr(measured, "columns"):
        found = measured.to_dict("records")
    elif isinstance(measured, Iterable) and not isinstance(measured, Mapping):
        found = list(measured)
    if not all(isinstance(each, Mapping) for each in found):
        raise WrongKindError(
            f"measured must be a list of rows such as {_EXAMPLE}, a data frame or the path of a "
            f"CSV file, not {type(measured).__name__}."
        )
    if not found:
        raise InvalidValueError(_NO_ROWS)
    return {f"row {number}": dict(each) for number, each in enumerate(found, 1)}


def _from_file(path: str | Path) -> dict[str, dict[str, Any]]:
    reader = csv.DictReader(io.StringIO(given_text(path), newline=""), strict=True)
    rows: dict[str, dict[str, Any]] = {}
    try:
        for row in reader:
            place = f"{path}:{reader.line_num}"
            if None in row:
                raise InvalidValueError(f"{place}: more cells than there are columns.")
            rows[place] = row
    except csv.Error as error:
        raise InvalidValueError(f"{path}:{reader.line_num}: {error}.") from None
    if not rows:
        raise InvalidValueError(f"{path}: {_NO_ROWS}")
    return rows


def asked(rows: Mapping[str, Mapping[str, Any]], estimate: str) -> Iterator[OwnRow]:
    """Predict what each row measured.

    Raises
    ------
    MlsimError
        As the doors; with the place of the row.
    """
    for place, row in rows.items():
        try:
            yield _row(row, estimate)
        except MlsimError as error:
            # A row that has a wrong name is no call that has one.
            kind = UnknownNameError if isinstance(error, UnknownArgumentError) else type(error)
            of_row = kind.__new__(kind)
            of_row.args = (f"{place}: {error}",)
            raise of_row from None


def _row(row: Mapping[str, Any], estimate: str) -> OwnRow:
    kind = str(_cell(row.get("kind")) or "")
    if kind not in KINDS:
        raise unknown_name("kind of measurement", kind, KINDS)
    if not all(isinstance(name, str) for name in row):
        raise WrongKindError(f"columns are called by text, not {list(row)!r}.")
    given = {
        name: value
        for name, cell in row.items()
        if name not in _OWN and (value := _cell(cell)) is not None
    }
    for name in given:
        if name in _FIXED:
            raise InvalidValueError(f"a row can't choose {name}: it holds of all rows or of none.")
    for name in ("model", "hardware", *(("global_batch",) if kind == "train" else ())):
        if name not in given:
            raise InvalidValueError(f"{name} is empty: say what was measured, such as {_EXAMPLE}.")
    door = getattr(Engine, kind.partition("-")[0])
    answer = door(**given, estimate=estimate, check_memory=False)
    answer.one_point(KINDS[kind][0])
    value, is_rate = _measured(row, *KINDS[kind])
    predicted, least = float(answer.value(KINDS[kind][0])), bound_of(answer)
    # Of training's bound it is the time itself.
    bound = least if isinstance(least, float) else float(least.value(KINDS[kind][0]))
    time = _work(answer, kind) / value if is_rate else value
    if not (math.isfinite(predicted) and predicted > 0):
        raise InvalidValueError(f"the prediction came out as {predicted} s: nothing to compare.")
    if time < bound * (1 - _ROUNDING):
        raise InvalidValueError(
            f"measured {text(time, 's')}, and no program can be below {text(bound, 's')}, the "
            "bound. Look at the unit, at precision, and whether the time is of one batch."
        )
    if time > MOST_TIMES * predicted:
        raise InvalidValueError(
            f"measured {text(time, 's')}, over {MOST_TIMES:,} times the "
            f"{text(predicted, 's')} that is predicted: no error of software is so large. "
            "Look at the unit."
        )
    device = device_of(answer)
    return OwnRow(
        kind=kind,
        words=answer.about,
        device=device.key,
        name=device.name,
        asked=tuple(sorted((name, str(value)) for name, value in given.items())),
        measured=time,
        predicted=predicted,
    )


def _cell(value: Any) -> Any:
    """Return what a cell holds: of text, the number that it is; None if it is empty."""
    if isinstance(value, float):
        # A data frame has whole numbers as floats where a column has gaps.
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    if not isinstance(value, str):
        return value
    found = value.strip()
    if found.lower() in ("true", "false"):
        return found.lower() == "true"
    for read_as in (int, float):
        try:
            return read_as(found)
        except ValueError:
            continue
    return found or None


def _measured(row: Mapping[str, Any], time: str, rate: str) -> tuple[float, bool]:
    """Return what was measured in its base unit, and whether it is a rate."""
    value, unit = row.get("measured"), row.get("unit")
    shown = f"'12 ms' ({time}) or '900 {rate}'"
    if value is None or (isinstance(value, str) and not value.strip()):
        raise InvalidValueError(f"measured is empty: give a value with its unit, such as {shown}.")
    if isinstance(value, bool):
        raise InvalidValueError(f"measured must be a number with its unit, such as {shown}.")
    unit = _cell(unit)
    if not (unit is None or isinstance(unit, str)):
        raise UnitError(f"unit must be text, such as 'ms', not {unit!r}.")
    if unit:
        value = f"{value} {unit}"
    if isinstance(value, int | float):
        value = str(value)
    if isinstance(value, str):
        # Counts with a rate are plural in tables: images/s, tokens/s.
        value = value.strip().replace("images/", "image/").replace("samples/", "sample/")
        value = value.replace("tokens/", "token/")
    unit = value.partition(" ")[2].strip() if isinstance(value, str) else None
    if unit is None:
        kept = getattr(value, "units", None)
        unit = "" if kept is None else f"{kept:~C}"
    is_rate = "/" in unit or known_factor(unit or "1", rate) is not None
    if isinstance(value, str) and " " not in value:
        raise UnitError(f"measured needs a unit: {value!r} could mean anything. Write {shown}.")
    found = float(to_base(value, rate if is_rate else "s", "measured"))
    if not (math.isfinite(found) and found > 0):
        raise InvalidValueError(
            f"measured must be positive and finite, such as {shown}, not {row.get('measured')!r}."
        )
    return found, is_rate


def _work(answer: Any, kind: str) -> float:
    """Return what is done in the time of a kind, in the unit of its rate times s."""
    if kind == "train":
        return float(answer.value("step_tokens"))
    if kind == "serve-prefill":
        return float(answer.batch_size * answer.service.prompt_tokens)
    if kind == "serve-decode":
        # Tokens of all sequences in the time of one token.
        return float(answer.value("decode_throughput") * answer.value("time_per_output_token"))
    return float(answer.batch_size)


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
        return asdict(self)

    def __str__(self) -> str:
        value, low, high, was = (
            text(each, self.unit) for each in (self.value, self.low, self.high, self.predicted)
        )
        return f"{value}, from {low} to {high} (predicted {was})\n  {self.words}"


@dataclass(frozen=True, repr=False)
class Correction(Written):
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
            kind: factor_of(kind, [row for row in self.rows if row.kind == kind])
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
        return f"corrected by your own rows on {self.device} ({', '.join(counts)})"

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
        result = _results(answer)
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
        there = [each for each, (kind, _) in result.items() if kind in self.factors]
        name = name or (there or list(result))[0]
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
        names = ("kind", "words", "measured", "predicted", "ratio")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        return {
            "device": self.device,
            "estimate": self.estimate,
            "share": SHARE,
            "factors": [asdict(each) for each in self.factors.values()],
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
        return Report(title, lines, label=15, width=58)

    def __repr__(self) -> str:
        return str(self)


def _results(answer: Any) -> dict[str, tuple[str, bool]]:
    """Return which results of an answer can be corrected."""
    from mlsim.solvers.forward.profile import Profile
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.training.training import Training

    for door, kind in (("solve", Profile), ("serve", Serving), ("train", Training)):
        if isinstance(answer, kind):
            return {name: row for name, row in RESULTS.items() if row[0].startswith(door)}
    raise WrongKindError(
        "apply() takes an answer of Engine.solve, Engine.serve or Engine.train, not "
        f"{type(answer).__name__}."
    )


ESTIMATES = ("calibrated", "roofline")


def calibrate(
    measured: list[dict[str, Any]] | pandas.DataFrame | Path | str,
    *,
    estimate: str = "calibrated",
) -> Correction:
    """Correct predictions for a device by a few measurements of your own.

    Each row is predicted. The geometric mean of measured over predicted time, by kind, is
    the factor by which `Correction.apply` multiplies times. No constant of the package changes.

    Parameters
    ----------
    measured
        Rows as a list of dicts, a data frame, or the path of a CSV file. A row has a `kind`
        ("solve", "serve-prefill", "serve-decode" or "train"), what was `measured` as a time or
        a rate, with its unit there or in a column `unit`, and the arguments of the door:
        `model`, `hardware`, `batch_size`, `precision`, `prompt_tokens` and so on. All rows are
        of one device, or of systems of it. The times are, in the order of the kinds, of one pass,
        until the first token, for each further token, and of a step; rates are "sample/s" for
        "solve", else "token/s", all devices together.
    estimate
        Which predictions are corrected: "calibrated" or "roofline".

    Returns
    -------
    Correction
        A factor for each kind, the band around it, and the errors of these rows before and
        after. The band holds eight in ten further measurements: by the spread of your rows
        from five different ones up, else by that of published rows if it is wider.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If there are no rows, they are of several devices, or one is not understood or
        faster than the bound; says which row.
    NotMeasuredError
        If a calibrated estimate is not known for the device: ask for "roofline".

    >>> from mlsim import Engine
    >>> found = Engine.calibrate([
    ...     {"kind": "serve-decode", "model": "Llama3_8B", "hardware": "H100",
    ...      "batch_size": batch, "measured": time}
    ...     for batch, time in ((1, "6.1 ms"), (8, "6.9 ms"), (32, "8.2 ms"))])
    >>> decode = found.factors["serve-decode"]
    >>> decode.rows, decode.low < decode.factor < decode.high
    (3, True)
    """
    if estimate not in ESTIMATES:
        raise unknown_name("estimate to correct", estimate, ESTIMATES)
    rows = tuple(asked(read(measured), estimate))
    names = dict.fromkeys(row.name for row in rows)
    if len({row.device for row in rows}) > 1:
        raise InvalidValueError(
            f"the rows are of {len(names)} devices: {', '.join(names)}. A correction is of one: "
            "calibrate each with its own rows."
        )
    return Correction(rows, estimate)
