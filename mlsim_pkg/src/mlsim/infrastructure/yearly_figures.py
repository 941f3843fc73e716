"""What the loaders of this floor share: rows of a file, their common fields, their years.

Grids and regions come by the dozen from one document, so one file has them all:
what their figures have in common (unit, kind, source, place, date) stands once, in a
table `[shared.…]`, and each row keeps its value and its own quotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsim.errors import nearest
from mlsim.records import DataFile, Figure

_SHARED = ("unit", "kind", "source", "where", "read", "note")
# The first power station for the public opened in this year.
_FIRST_YEAR = 1882


def one_of(file: DataFile, value: str, allowed: tuple[str, ...], key: str) -> None:
    """Refuse a text that is none of those allowed.

    Raises
    ------
    DataFileError
        Naming those allowed and the nearest; names file and line.
    """
    if value not in allowed:
        raise file.error(
            f"{key} must be one of {', '.join(allowed)}, not {value!r}.{nearest(value, allowed)}",
            key,
        )


def rows(file: DataFile, heads: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the titles and tables of a file's rows; refuse a key that is neither.

    Raises
    ------
    DataFileError
        If a key is neither one of `heads` nor a table; names file and line.
    """
    for title, row in file.data.items():
        if title in heads or title == "shared":
            continue
        if not isinstance(row, Mapping):
            raise file.error(
                f"unknown key {title!r}.{nearest(title, heads)} "
                f"Allowed here: {', '.join(heads)}, and a table for each row.",
                title,
            )
        yield title, row


def shared_fields(file: DataFile, bases: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the figures of a file have in common, by quantity.

    Raises
    ------
    DataFileError
        If a quantity or a field is unknown; names file and line.
    """
    shared: Mapping[str, Mapping[str, Any]] = file.data.get("shared", {})
    file.only(shared, bases, "shared")
    for name, fields in shared.items():
        file.only(fields, _SHARED, "shared", name)
    return shared


def figures_by_year(
    file: DataFile,
    table: Mapping[str, Any],
    bases: Mapping[str, str],
    shared: Mapping[str, Mapping[str, Any]],
    *keys: str,
) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a table, each named for its quantity and its year.

    Raises
    ------
    DataFileError
        If a year is none, or a figure lacks its source; names file and line.
    """
    for quantity, base in bases.items():
        years = table.get(quantity, {})
        if not isinstance(years, Mapping):
            raise file.error(
                f"{quantity} must be tables of years, such as [{quantity}.2024].", *keys, quantity
            )
        for year, row in years.items():
            place = (*keys, quantity, year)
            if not (year.isdecimal() and len(year) == 4 and int(year) >= _FIRST_YEAR):
                raise file.error(f"{year!r} is no year of electricity.", *place)
            whole = {**shared.get(quantity, {}), **row} if isinstance(row, Mapping) else row
            figure = file.figure(whole, base, *place)
            yield f"{quantity}.{year}", figure
