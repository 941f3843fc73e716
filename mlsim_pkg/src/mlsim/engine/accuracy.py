"""How far predictions are from what was measured, on the shelf of published results.

Rows of whole networks, services and training steps. Only terms of software are fitted to
such rows, and each row is predicted with terms that were fitted without its series.
Kernels, to which all else is fitted, are left out.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mlsim.engine.solve import solve
from mlsim.errors import MlsimError, unknown_name
from mlsim.measured.inference import (
    Measurement,
    measurements,
    serving_measurements,
)
from mlsim.measured.training import TrainingMeasurement, training_measurements
from mlsim.software import FOLDER, narrower, of_program, without
from mlsim.values import Origin, of_base
from mlsim.zoo import spaces

if TYPE_CHECKING:
    from mlsim.values.kinds import Plain, Quantity


ESTIMATES = ("bound", "roofline", "calibrated")
CALIBRATED, ROOFLINE = "calibrated", "roofline"
# An error of at most this counts as close.
CLOSE = 0.25


@dataclass(frozen=True, slots=True)
class Scored:
    """One published result beside its predictions, as rates: more is better.

    Attributes
    ----------
    id, series, kind
        Its name and table on the shelf; one of `KINDS`.
    words, software, source
        What was measured, what ran it, and the key of the document.
    unit
        Of all four rates.
    measured, bound, roofline
        Rates.
    calibrated
        The same, None where the device or a link lacks a constant.
    """

    id: str
    series: str
    kind: str
    words: str
    software: str
    source: str
    unit: str
    measured: float
    bound: float
    roofline: float
    calibrated: float | None

    @property
    def best(self) -> float:
        """The calibrated rate, else that of the roofline."""
        return self.roofline if self.calibrated is None else self.calibrated

    @property
    def estimate(self) -> str:
        """Which of them the best is."""
        return ROOFLINE if self.calibrated is None else CALIBRATED

    def ratio(self, estimate: str = "") -> float:
        """Return predicted over measured speed: above 1 the prediction is too fast."""
        value: float = getattr(self, estimate) if estimate else self.best
        return value / self.measured


@dataclass(frozen=True, slots=True)
class Score:
    """How well an estimate does on some rows.

    `error` is the median of the errors, as a share of what was measured; `close` the share
    of rows within a quarter; `ratio` the median of predicted over measured. All three are
    values that know over how many rows they are.
    """

    rows: int
    error: Plain
    close: Plain
    ratio: Plain


def score(rows: Iterable[Scored], estimate: str = "") -> Score | None:
    """Return how well an estimate does on the rows that it answers; None if there are none.

    The best answer is scored if no estimate is named.

    >>> found = score(shelf("generation"), "bound")
    >>> found.ratio > 1
    True
    """
    kept = [row for row in rows if not estimate or getattr(row, estimate) is not None]
    if not kept:
        return None
    ratios = [row.ratio(estimate) for row in kept]
    errors = [abs(each - 1) for each in ratios]
    by = estimate or "the best answer"

    def value(number: float, what: str, *, share: bool = True) -> Plain:
        name = f"{what}, {by}"
        brief = f"{name}: computed over {len(kept):,} published rows"
        return cast("Plain", of_base(number, "1", Origin(name, brief), share=share))

    return Score(
        rows=len(kept),
        error=value(median(errors), "median error"),
        close=value(sum(each <= CLOSE for each in errors) / len(kept), "share within a quarter"),
        ratio=value(median(ratios), "median of predicted over measured speed", share=False),
    )


@cache
def shelf(kind: str) -> tuple[Scored, ...]:
    """Return the published results of a kind beside their predictions.

    Raises
    ------
    UnknownNameError
        If there is no such kind.

    >>> all(row.measured < row.bound for row in shelf("generation"))
    True
    """
    if kind not in KINDS:
        raise unknown_name("kind of measurement", kind, KINDS)
    return tuple(KINDS[kind]())


def _three(ask: Callable[[str], float]) -> dict[str, float] | None:
    """Return the answers of all estimates, as fields of a row; None if it can't be asked."""
    found: dict[str, Any] = {CALIBRATED: None}
    for estimate in ESTIMATES:
        try:
            value = ask(estimate)
        except MlsimError:
            if estimate != CALIBRATED:
                return None
            continue
        if math.isfinite(value) and value > 0:
            found[estimate] = float(value)
    return found if set(found) == set(ESTIMATES) else None


def _networks() -> Iterator[Scored]:
    for row in measurements():
        rates = _three(lambda estimate, row=row: _network_rate(row, estimate))  # type: ignore[misc]
        if rates:
            words = f"{row.model} on {row.device.name}, batch {row.batch_size:,}, {row.precision}"
            shown = {"words": words, "unit": "images/s", "measured": row.value}
            yield _scored("networks", row, **shown, **rates)


def _network_rate(row: Measurement, estimate: str) -> float:
    made_by: dict[str, Any] = {}
    if estimate == CALIBRATED:
        made_by["software"] = without(of_program(row.software, "engine"), row.series)
    found = solve(
        model=row.model,
        hardware=row.hardware,
        batch_size=row.batch_size,
        precision=row.precision,
        estimate=estimate,
        check_memory=False,
        **made_by,
    )
    return row.batch_size / float(found.value("latency"))


def _services(kind: str, metrics: tuple[str, ...]) -> Iterator[Scored]:
    for row in serving_measurements():
        if row.metric not in metrics:
            continue
        # Tokens of a prompt, or sequences of an encoder, are counted as tokens read.
        read = row.batch_size * row.prompt_tokens
        shown = {"time_to_first_token": -1.0, "pass_throughput": row.prompt_tokens}.get(
            row.metric, 1.0
        )

        def rate(value: float, shown: float = shown, read: int = read) -> float:
            return read / value if shown < 0 else value * shown

        made_by = without(of_program(row.software, "engine"), row.series)
        asked = _three(
            lambda estimate, row=row, rate=rate, made_by=made_by: rate(  # type: ignore[misc]
                row.predicted(estimate, *([made_by] if estimate == CALIBRATED else []))
            )
        )
        if asked:
            found = {"words": row.words, "unit": "tokens/s", "measured": rate(row.value)}
            yield _scored(kind, row, **found, **asked)


def _scored(kind: str, row: Any, **more: Any) -> Scored:
    """Return a published row with its rates, and what only its kind of row can say."""
    same = {name: getattr(row, name) for name in ("id", "series", "software", "source")}
    return Scored(kind=kind, **same, **more)


def _training() -> Iterator[Scored]:
    for row in training_measurements():
        if row.missing:
            continue
        rates = _three(lambda estimate, row=row: _training_rate(row, estimate))  # type: ignore[misc]
        if rates is None:
            continue
        tokens = row.global_batch * row.sequence_tokens / row.devices
        words = (
            f"training of {row.transformer.name} on {row.devices:,} x "
            f"{spaces.Hardware.get(row.device).name}, "
            f"{row.global_batch:,} x {row.sequence_tokens:,} tokens a step, {row.precision}"
        )
        speeds = {name: None if each is None else tokens / each for name, each in rates.items()}
        measured = tokens / _measured_step(row)
        unit = "tokens/s per device"
        yield _scored("training", row, words=words, unit=unit, measured=measured, **speeds)


def _training_rate(row: TrainingMeasurement, estimate: str) -> float:
    """Return the seconds of a step; the bound is the model's arithmetic at the peak rate."""
    if estimate == "bound":
        return float(row.train(attention="flash", recompute="none").value("ideal_step_time"))
    if estimate != CALIBRATED:
        return float(row.train(estimate=estimate).value("step_time"))
    made_by = without(narrower("framework", row.software), row.series)
    return float(row.train(estimate=estimate, software=made_by).value("step_time"))


def _measured_step(row: TrainingMeasurement) -> float:
    """Return the seconds of the measured step, from a share of peak where that is printed."""
    if row.step_time is not None:
        return row.step_time
    counted = "flash" if row.attention_counted == "causal" else "standard"
    ideal = float(row.train(attention=counted, recompute="none").value("ideal_step_time"))
    if row.metric == "mfu":
        return ideal / row.base_value
    peak = row.train().device.compute.figure(row.precision).si
    return ideal * peak / row.base_value


KINDS: dict[str, Callable[[], Iterator[Scored]]] = {
    "networks": _networks,
    "prompts": lambda: _services("prompts", ("time_to_first_token", "pass_throughput")),
    "generation": lambda: _services("generation", ("decode_throughput", "output_throughput")),
    "training": _training,
}


# Of rows of all kinds together.
ALL = "all"


@dataclass(frozen=True, slots=True)
class FittedScore:
    """How well open cases of a kind are predicted (`benchmarks/fit_software.py`).

    `fitted_` is with terms of software that were fitted to these very rows, `left_out_` with
    terms that were fitted without the series of each row. Errors are medians, as a share of
    what was measured; `close` is the share of rows within a quarter.
    """

    kind: str
    cases: int
    answered: int
    fitted_error: float
    fitted_close: float
    left_out_error: float
    left_out_close: float


@dataclass(frozen=True, slots=True)
class ServiceScore:
    """How well services are predicted to which nothing is fitted.

    `benchmarks/silicon_services.py` makes them. `ratio` is the median of
    predicted over measured time per token.
    """

    group: str
    rows: int
    error: float
    close: float
    ratio: float


@dataclass(frozen=True, slots=True)
class RivalScore:
    """How well another program answers open cases, and mlsim on exactly these rows.

    `benchmarks/rivals` makes them. Errors are medians, as a share of what was measured; `close`
    is the share of rows within a quarter. Those of mlsim are with terms of software fitted
    without the series of each row.
    """

    rival: str
    version: str
    settings: str
    kind: str
    rows: int
    error: float
    close: float
    our_error: float
    our_close: float

    def by_name(self, name: str = "error") -> Quantity:
        """Return an error, or a share of close rows, as a value.

        Raises
        ------
        UnknownNameError
            If it is none of the four.
        """
        who = f"{self.rival}, {self.kind}"
        words = {
            "error": f"error of {who}",
            "close": f"rows within a quarter of {who}",
            "our_error": f"our error on the rows of {who}",
            "our_close": f"our rows within a quarter on those of {who}",
        }
        if name not in words:
            raise unknown_name("score", name, words)
        value = getattr(self, name)
        brief = (
            f"{words[name]}: {value:.1%}, over {self.rows:,} rows of benchmarks/rivals/answers.csv"
        )
        return of_base(value, "1", Origin(words[name], brief), share=True)


@dataclass(frozen=True, slots=True)
class BorrowedScore:
    """How well rows of the shelf are predicted with constants of other devices.

    `benchmarks/borrowed.py` makes them. `what` was left out: constants of the "device" or of
    its "links"; `level` is how near the lenders are, and `kind` one of the shelf, or "all".
    `own_error` is the median of the same rows with their own constants; between `least` and
    `most`, measured over predicted speed, lies the part of the rows that a band holds.
    """

    what: str
    level: str
    kind: str
    rows: int
    series: int
    error: float
    own_error: float
    close: float
    ratio: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Between which measured over predicted speeds a part of the published rows of a kind lies.

    `benchmarks/borrowed.py` keeps them, since the prediction of all rows takes seconds.
    """

    kind: str
    estimate: str
    rows: int
    least: float
    most: float


Recorded = TypeVar("Recorded", FittedScore, ServiceScore, RivalScore, BorrowedScore, Limits)


@cache
def fitted_scores() -> tuple[FittedScore, ...]:
    """Return the scores of open cases by kind, and of all.

    >>> every = fitted_scores()[-1]
    >>> every.kind, every.left_out_error >= every.fitted_error
    ('all', True)
    """
    return _read("scores.csv", FittedScore)


@cache
def service_scores() -> tuple[ServiceScore, ...]:
    """Return the scores of services, of all and by group.

    >>> service_scores()[0].group
    'all'
    """
    return _read("services.csv", ServiceScore)


@cache
def rival_scores() -> tuple[RivalScore, ...]:
    """Return the scores of other programs by kind, and of all rows that each could answer.

    >>> sorted({each.rival for each in rival_scores() if each.kind == "all"})[0]
    'aiconfigurator'
    """
    return _read("rivals.csv", RivalScore)


@cache
def borrowed_scores() -> tuple[BorrowedScore, ...]:
    """Return the scores of rows with borrowed constants, by what was lent, level and kind.

    >>> {each.level for each in borrowed_scores()} == {"sibling", "family", "class", "roofline"}
    True
    """
    return _read("borrowed.csv", BorrowedScore)


@cache
def limits() -> tuple[Limits, ...]:
    """Return the limits of bands, by kind and estimate.

    >>> all(0 < each.least < each.most for each in limits())
    True
    """
    return _read("bands.csv", Limits)


def _read(name: str, kind: type[Recorded]) -> tuple[Recorded, ...]:
    """Return the rows of a table as scores, each cell as the field of its name has it."""
    read_as = {"str": str, "int": int, "float": float}
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return tuple(
            kind(**{each.name: read_as[str(each.type)](row[each.name]) for each in fields(kind)})
            for row in csv.DictReader(file)
        )
