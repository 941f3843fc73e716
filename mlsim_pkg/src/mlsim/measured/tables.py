"""Tables of published rows, each described by its row: read strictly, and asked by column.

The fields of a row are the columns of its table, and the type of a field says what its cells must
be: a whole number from 1 up, a positive number, yes or no, a date. A field that may be None may be
empty. A model and a device are keys of the zoo. What else a column must be, its table says.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from mlsim.errors import DataFileError, nearest, unknown_name
from mlsim.precision import precision, recorded
from mlsim.records import DATA
from mlsim.records.tables import Named, Published, count, positive, read
from mlsim.zoo import resolve, spaces

FOLDER = DATA / "measurements"

Record = Mapping[str, str]
Row = TypeVar("Row", bound=Named)


@dataclass(frozen=True, kw_only=True)
class Quoted:
    """A row of somebody's document.

    Attributes
    ----------
    id
        A name of its own.
    source, quote, note
        In which document, in which words; anything else worth knowing.
    """

    id: str
    source: str
    quote: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Located(Quoted):
    """A row that also says `where` it stands in its document, and when that was `read`."""

    where: str
    read: datetime.date


@dataclass(frozen=True, kw_only=True)
class Measured(Quoted, Published):
    """A row of what was measured or reported.

    Attributes
    ----------
    metric
        What was measured, a key of its table's metrics.
    value, unit
        As printed.
    year
        When.
    """

    metric: str
    value: float
    unit: str
    year: int


@dataclass(frozen=True)
class Column:
    """What a column contains beyond its type.

    Attributes
    ----------
    read
        Returns the cell of a record, by the column's name, or refuses it.
    ask
        Returns what the table has for a value that a caller asks for.
    suffix
        What the header has behind the field's name, such as a unit that is not the field's.
    """

    read: Callable[[Record, str], Any]
    ask: Callable[[Any], Any] = lambda wanted: wanted
    suffix: str = ""


def one_of(allowed: Collection[str], what: str = "") -> Column:
    """Return a column of a few words; `what` they are is said to a caller who asks for another.

    >>> one_of(("none", "full")).read({"recompute": "full"}, "recompute")
    'full'
    """

    def cell(record: Record, name: str) -> str:
        text = record[name]
        if text not in allowed:
            raise DataFileError(
                f"{name} must be one of {', '.join(allowed)}, not {text!r}.{nearest(text, allowed)}"
            )
        return text

    def ask(wanted: str) -> str:
        if wanted not in allowed:
            raise unknown_name(what, wanted, allowed)
        return wanted

    return Column(cell, ask if what else lambda wanted: wanted)


def _key(find: Callable[[str], Any], ask: Callable[[Any], Any]) -> Column:
    """Return a column of keys of the zoo, which a caller may ask for by any name."""

    def cell(record: Record, name: str) -> str:
        key: str = find(record[name]).key
        if key != record[name]:
            raise DataFileError(f"{name} must be the key {key!r}, not {record[name]!r}.")
        return key

    return Column(cell, lambda wanted: ask(wanted).key)


def _filled(record: Record, name: str) -> str:
    if not record[name].strip():
        raise DataFileError(f"{name} is empty: fill it in.")
    return record[name]


def _flag(record: Record, name: str) -> bool:
    if record[name] not in ("yes", "no"):
        raise DataFileError(f"{name} must be yes or no, not {record[name]!r}.")
    return record[name] == "yes"


DEVICE = _key(spaces.Hardware.find, resolve.device)
MODEL = _key(resolve.model, resolve.model)
LANGUAGE_MODEL = _key(resolve.transformer, resolve.transformer)
PRECISION = Column(lambda record, name: recorded(record[name]).name, lambda x: precision(x).name)
FILLED = Column(_filled)
MILLISECONDS = Column(lambda record, name: positive(record, name) * 1e-3, suffix="_ms")
TEXT = Column(lambda record, name: record[name])
# What columns of these names contain, and else by the type of the field.
_BY_NAME = {"device": DEVICE, "hardware": DEVICE, "model": MODEL, "precision": PRECISION}
_BY_TYPE: Mapping[str, Callable[[Record, str], Any]] = {
    "str": TEXT.read,
    "int": count,
    "float": positive,
    "bool": _flag,
    "datetime.date": lambda record, name: datetime.date.fromisoformat(record[name]),
}
# Columns of which a caller gives the beginning.
_BY_BEGINNING = ("run", "software")


@dataclass(frozen=True, eq=False)
class Table(Generic[Row]):
    """A table of published rows.

    Attributes
    ----------
    row
        What a row becomes: a dataclass whose fields are the columns.
    place
        The file, or the folder of its files.
    columns
        What columns contain beyond the type of their field.
    metrics
        What can be measured, and its unit, of a table with the columns "metric" and "unit".
    check
        Refuses a row whose cells contradict each other.
    """

    row: type[Row]
    place: Path
    columns: Mapping[str, Column] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Row], None] = lambda _: None
    _loaded: dict[Path, tuple[Row, ...]] = field(default_factory=dict)

    @cached_property
    def _types(self) -> dict[str, str]:
        return {each.name: str(each.type) for each in fields(self.row)}  # type: ignore[arg-type]

    def rows(self) -> tuple[Row, ...]:
        """Return all rows of all files."""
        files = sorted(self.place.glob("*.csv")) if self.place.is_dir() else [self.place]
        return tuple(row for path in files for row in self.load(path))

    def find(self, **asked: Any) -> list[Row]:
        """Return the rows that have what is asked for by column; None asks for nothing.

        Raises
        ------
        UnknownNameError
            If there is no such model, device, metric, series or word.
        """
        found: list[Any] = list(self.rows())
        series = [row.series for row in found] if "series" in asked else []
        for name, wanted in asked.items():
            if wanted is None:
                continue
            if name == "metric" and wanted not in self.metrics:
                raise unknown_name("metric", wanted, self.metrics)
            if name == "series" and wanted not in series:
                raise unknown_name("series of measurements", wanted, dict.fromkeys(series))
            value = self._column(name).ask(wanted)
            found = [row for row in found if _has(row, name, value)]
        return found

    def load(self, path: Path) -> tuple[Row, ...]:
        """Read a file of such rows.

        Raises
        ------
        DataFileError
            If a column is missing or unknown, a cell can't be, cells contradict each other, or a
            name is not in the zoo or the bibliography; names file and line.
        """
        if path not in self._loaded:
            header = [name + self._column(name).suffix for name in self._types]
            with path.open(encoding="utf-8", newline="") as file:
                written = next(csv.reader(file), [])
            # In any order.
            columns = written if sorted(written) == sorted(header) else header
            self._loaded[path] = read(path, tuple(columns), self._row)
        return self._loaded[path]

    def _row(self, record: dict[str, str]) -> Row:
        if self.metrics:
            name = record["metric"]
            if name not in self.metrics:
                raise unknown_name("metric", name, self.metrics)
            if record["unit"] != self.metrics[name]:
                raise DataFileError(
                    f"the unit of {name} is {self.metrics[name]}, not {record['unit']!r}."
                )
        row = self.row(**{name: self._cell(record, name) for name in self._types})
        self.check(row)
        return row

    def _column(self, name: str) -> Column:
        kind = self._types[name].partition(" | ")[0]
        return self.columns.get(name) or _BY_NAME.get(name) or Column(_BY_TYPE[kind])

    def _cell(self, record: Record, name: str) -> Any:
        column = self._column(name)
        optional = self._types[name].endswith("None")
        header = name + column.suffix
        return None if optional and not record[header] else column.read(record, header)


def _has(row: Any, name: str, wanted: Any) -> bool:
    value = getattr(row, name)
    return bool(value.startswith(wanted) if name in _BY_BEGINNING else value == wanted)
