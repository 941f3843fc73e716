"""A reader's own measurements: rows of a table, each asked again of the door that it belongs to."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.engine.bounds import bound_of, device_of
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    UnitError,
    UnknownArgumentError,
    UnknownNameError,
    WrongKindError,
    unknown_name,
)
from mlsim.records.tables import given_text
from mlsim.units import known_factor, text, to_base

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
            raise _of_row(place, error) from None


def _of_row(place: str, error: MlsimError) -> MlsimError:
    """Return an error of the same kind that tells the row."""
    kind = type(error)
    if isinstance(error, UnknownArgumentError):
        # It is the row that has a wrong name, and not the call.
        kind = UnknownNameError
    told = kind.__new__(kind)
    told.args = (f"{place}: {error}",)
    return told


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
    answer = _ask(kind, given, estimate)
    answer.one_point(KINDS[kind][0])
    value, is_rate = _measured(row, kind)
    predicted, bound = (_time(each, kind) for each in (answer, bound_of(answer)))
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


def _ask(kind: str, given: dict[str, Any], estimate: str) -> Any:
    from mlsim.engine import Engine

    door = getattr(Engine, kind.partition("-")[0])
    return door(**given, estimate=estimate, check_memory=False)


def _measured(row: Mapping[str, Any], kind: str) -> tuple[float, bool]:
    """Return what was measured in its base unit, and whether it is a rate."""
    time, rate = KINDS[kind]
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
    is_rate = _is_rate(value, rate)
    if isinstance(value, str) and " " not in value:
        raise UnitError(f"measured needs a unit: {value!r} could mean anything. Write {shown}.")
    found = float(to_base(value, rate if is_rate else "s", "measured"))
    if not (math.isfinite(found) and found > 0):
        raise InvalidValueError(
            f"measured must be positive and finite, such as {shown}, not {row.get('measured')!r}."
        )
    return found, is_rate


def _is_rate(value: Any, rate: str) -> bool:
    unit = value.partition(" ")[2].strip() if isinstance(value, str) else None
    if unit is None:
        found = getattr(value, "units", None)
        unit = "" if found is None else f"{found:~C}"
    return "/" in unit or known_factor(unit or "1", rate) is not None


def _time(answer: Any, kind: str) -> float:
    """Return the time in s that an answer gives for a kind; of training's bound, its ideal."""
    return float(answer) if isinstance(answer, float) else float(answer.value(KINDS[kind][0]))


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
