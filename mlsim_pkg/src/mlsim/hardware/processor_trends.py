"""Half a century of processors: transistors, clock, power, cores, speed of one thread.

The median and the largest of the chips of each year, adapted from Karl Rupp's collection
under CC BY 4.0 (`data/machines/NOTICE.txt` says what was changed).

>>> trend("transistors")[0].year, trend("transistors")[0].most
(1971, 2310.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, cast

from mlsim.errors import DataFileError, InvalidValueError, nearest, unknown_name
from mlsim.records import DATA
from mlsim.records.tables import count, positive, read
from mlsim.values import given

if TYPE_CHECKING:
    from mlsim.values.kinds import Plain

PATH = DATA / "machines" / "processors.csv"
# What each quantity is counted in.
UNITS = {
    "transistors": "transistors",
    "frequency": "MHz",
    "power": "W",
    "cores": "logical cores",
    "single_thread": "SpecINT x 1000",
}


@dataclass(frozen=True, slots=True)
class Year:
    """The chips of one year, for one quantity.

    Attributes
    ----------
    id, year, quantity
        "power-2004", the year, and a name of `UNITS`.
    median, most, chips
        The middle and the largest value, and of how many chips.
    source
        Key of the bibliography.
    """

    id: str
    year: int
    quantity: str
    median: float
    most: float
    chips: int
    source: str


def trend(quantity: str) -> list[Year]:
    """Return the years of one quantity, oldest first.

    Raises
    ------
    UnknownNameError
        If it is none of `UNITS`; suggests the nearest.

    >>> max(row.median for row in trend("cores") if row.year < 2004)
    1.0
    """
    if quantity not in UNITS:
        raise unknown_name("quantity of processors", quantity, UNITS)
    return [row for row in load(PATH) if row.quantity == quantity]


def growth(quantity: str, first: int, last: int, *, column: str = "median") -> Plain:
    """Return the factor by which a quantity grew each year, by a straight line through its logs.

    The factor is a value.

    Parameters
    ----------
    quantity
        A name of `UNITS`.
    first, last
        The first and the last year that count.
    column
        "median" or "most".

    Raises
    ------
    UnknownNameError
        If there is no such quantity.
    InvalidValueError
        If fewer than three years are between the two, or the column is neither.

    >>> print(growth("frequency", 2005, 2021).show(".2f"))
    0.99
    """
    if column not in ("median", "most"):
        raise InvalidValueError(f'column must be "median" or "most", not {column!r}.')
    rows = [row for row in trend(quantity) if first <= row.year <= last]
    if len(rows) < 3:
        raise InvalidValueError(
            f"{quantity} has {len(rows)} years from {first} to {last}, and a growth needs three: "
            f"take years from {trend(quantity)[0].year} to {trend(quantity)[-1].year}."
        )
    logs = [math.log(getattr(row, column)) for row in rows]
    factor = math.exp(linear_regression([row.year for row in rows], logs).slope)
    return cast(
        "Plain",
        given(
            factor,
            f"growth of {quantity.replace('_', ' ')} a year, {first} to {last}",
            because=f"a straight line through the logarithms of each year's {column} "
            f"[@{rows[0].source}]",
        ),
    )


def doubling_years(factor: float) -> float:
    """Return how many years a growth takes to double something.

    Raises
    ------
    InvalidValueError
        If it does not grow.

    >>> doubling_years(2 ** 0.5)
    2.0
    """
    if not (math.isfinite(factor) and factor > 1):
        raise InvalidValueError(f"a growth of {factor!r} a year never doubles: it must be above 1.")
    return round(math.log(2) / math.log(factor), 12)


@cache
def load(path: Path) -> tuple[Year, ...]:
    """Read a table of years strictly.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a cell can't be, or the median is above the
        largest; names file and line.
    """
    return read(path, tuple(Year.__dataclass_fields__), _year)


def _year(record: dict[str, str]) -> Year:
    quantity, year = record["quantity"], count(record, "year")
    if quantity not in UNITS:
        raise DataFileError(
            f"quantity must be one of {', '.join(UNITS)}, not {quantity!r}."
            f"{nearest(quantity, UNITS)}"
        )
    if record["id"] != f"{quantity}-{year}":
        raise DataFileError(f"id must be '{quantity}-{year}', not {record['id']!r}.")
    median, most = positive(record, "median"), positive(record, "most")
    if median > most:
        raise DataFileError(f"the median, {median:g}, is above the largest value, {most:g}.")
    return Year(
        record["id"], year, quantity, median, most, count(record, "chips"), record["source"]
    )
