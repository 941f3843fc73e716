"""A typical day of a grid: what a kilowatt-hour emits at each hour, on an average."""

from __future__ import annotations

import csv
import datetime
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, UnitError, check_whole, nearest
from mlsim.records import KINDS
from mlsim.units import factor
from mlsim.values import Origin, literal, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

HOURS = 24
_TEXTS = ("grid", "period", "clock", "basis", "unit", "kind", "source", "where", "quote")
_COLUMNS = (*_TEXTS, "read", "note", *(f"h{hour:02}" for hour in range(HOURS)))
# What no hour of a grid exceeds, in kg CO2e/J: the worst lignite alone, some 1,500 g/kWh.
_MOST = 1500e-3 / 3.6e6


@dataclass(frozen=True, eq=False, repr=False)
class HourlyIntensity:
    """The carbon intensity of a grid at each hour of a typical day.

    Each of the 24 `values`, in `unit`, is the mean over all days of `period` of the
    hour that begins then by `clock`. `basis` says what is counted, as a grid's does.
    Its mean may differ from the grid's average of a year: that is of another author.
    """

    grid: str
    period: str
    clock: str
    basis: str
    unit: str
    kind: str
    source: str
    where: str
    quote: str
    read: datetime.date
    note: str
    values: tuple[float, ...] = field(repr=False)

    @property
    def si(self) -> tuple[float, ...]:
        """The 24 values in kg CO2e/J."""
        scale = factor(self.unit, "kg_CO2e/J")
        return tuple(value * scale for value in self.values)

    def at(self, hour: int) -> Quantity:
        """Return the intensity of the hour that begins at `hour`, from 0 to 23.

        >>> from mlsim import Grids
        >>> print(f"{Grids.Germany.hourly.at(12):.0f}")
        276 gCO2e/kWh

        Raises
        ------
        InvalidValueError
            If it is no hour of a day.
        """
        check_whole("hour", hour, least=0, most=HOURS - 1)
        return self._value(self.values[hour], f"at {hour} h {self.clock}", "mean over all days")

    @property
    def mean(self) -> Quantity:
        """The mean of the 24 hours."""
        return self._value(math.fsum(self.values) / HOURS, "of a day", "mean of its hours")

    def _value(self, number: float, when: str, what: str) -> Quantity:
        name = f"carbon intensity of {self.grid} {when}, {self.period}"
        made = quantity(number, self.unit)
        made._origin = partial(self._origin_of, name, what)
        return made.as_read(",g", self.unit)

    def _origin_of(self, name: str, what: str, value: Quantity) -> Origin:
        brief = f"{name}: {value.in_full}, {what}, {self.basis}, {self.kind}, [@{self.source}]"
        where = f"{brief}, {literal(self.where)}: “{literal(self.quote)}”, read {self.read}"
        return Origin(name, brief, f"{where}\n\n{literal(self.note)}")

    @property
    def lowest(self) -> int:
        """The hour at which a kilowatt-hour emits least."""
        return min(range(HOURS), key=lambda hour: self.values[hour])

    @property
    def highest(self) -> int:
        """The hour at which a kilowatt-hour emits most."""
        return max(range(HOURS), key=lambda hour: self.values[hour])

    def __repr__(self) -> str:
        low, high = self.values[self.lowest], self.values[self.highest]
        return (
            f"<HourlyIntensity {self.grid}, {self.period}: {low:.0f} to {high:.0f} {self.unit}, "
            f"{self.clock}, {self.basis}>"
        )


def load_hours(
    path: str | Path, grids: Collection[str], bases: tuple[str, ...]
) -> dict[str, HourlyIntensity]:
    """Read a table of typical days, one row for a grid; return them by grid.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a cell empty, a grid or a basis unknown, or
        a number can't be; names file and line.
    """
    path = Path(path)
    found: dict[str, HourlyIntensity] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise DataFileError(f"{path}:1: the columns must be {', '.join(_COLUMNS)}.")
        for record in reader:
            try:
                row = _row(record, grids, bases)
                if row.grid in found:
                    raise DataFileError(f"two rows are of {row.grid}.")
            except (DataFileError, UnitError, ValueError) as error:
                raise DataFileError(f"{path}:{reader.line_num}: {error}") from error
            found[row.grid] = row
    return found


def _row(record: dict[str, Any], grids: Collection[str], bases: tuple[str, ...]) -> HourlyIntensity:
    """Make a record of a row; raise without file and line."""
    if None in record or None in record.values() or "" in record.values():
        raise DataFileError("every column needs a cell, and every cell a value.")
    for name, allowed in (("grid", grids), ("basis", bases), ("kind", KINDS[:-1])):
        if record[name] not in allowed:
            raise DataFileError(
                f"{name} {record[name]!r} is unknown.{nearest(record[name], allowed)}"
            )
    values = tuple(float(record[f"h{hour:02}"]) for hour in range(HOURS))
    most = _MOST / factor(record["unit"], "kg_CO2e/J")
    for hour, value in enumerate(values):
        if not 0 < value < most:
            raise DataFileError(f"h{hour:02}: {value:g} {record['unit']} can't be.")
    return HourlyIntensity(
        **{name: record[name] for name in (*_TEXTS, "note")},
        read=datetime.date.fromisoformat(record["read"]),
        values=values,
    )
