"""Grids, data centres and regions from TOML files, every figure with its source.

A data centre has a file of its own. Grids and regions come by the dozen from one
document, so one file holds them all: what their figures have in common (unit, kind,
source, place, date) stands once, in a table `[shared.…]`, and each row keeps its
value and its own quotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import MlsimError, nearest
from mlsim.infrastructure.places import BASES, SCOPES, CloudRegion, DataCentre, Grid
from mlsim.records import DataFile, Figure

_INTENSITY = {"carbon_intensity": "kg_CO2e/J"}
_REGION = {**_INTENSITY, "carbon_free": "1"}
_DATA_CENTRE = {"pue": "1", "wue": "L/J"}
_SHARED = ("unit", "kind", "source", "where", "read", "note")
# The first power station for the public opened in this year.
_FIRST_YEAR = 1882


def load_data_centre(path: str | Path) -> DataCentre:
    """Read the file of a data centre.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, or a PUE is below
        1; names file and line.
    """
    file = records.load(path)
    file.only(file.data, ("key", "name", "scope", *_DATA_CENTRE))
    texts = {name: file.need(file.data, name, str) for name in ("key", "name", "scope")}
    _one_of(file, texts["scope"], SCOPES, "scope")
    figures = dict(_figures(file, file.data, _DATA_CENTRE, {}))
    if "pue" not in file.data:
        raise file.error("there is no PUE: add a table such as [pue.2024].")
    for name, figure in figures.items():
        if name.startswith("pue.") and figure.si < 1:
            raise file.error(
                f"{name}: {figure.text} is below 1: the whole can't use less than its machines.",
                *name.split("."),
            )
    return DataCentre(figures=figures, **texts)


def load_grids(path: str | Path) -> dict[str, Grid]:
    """Read a file of grids; return them by their keys.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, or a figure lacks its source; names file and
        line.
    """
    file = records.load(path)
    heads = ("basis", "basis_source", "source")
    common = {name: file.need(file.data, name, str) for name in heads}
    _one_of(file, common["basis"], BASES, "basis")
    shared = _shared(file, _INTENSITY)
    found: dict[str, Grid] = {}
    for title, row in _rows(file, heads):
        file.only(row, ("key", "name", *_INTENSITY), title)
        texts = {name: file.need(row, name, str, title) for name in ("key", "name")}
        figures = dict(_figures(file, row, _INTENSITY, shared, title))
        if not figures:
            raise file.error(f"{title} has no carbon_intensity.", title)
        found[texts["key"]] = Grid(figures=figures, **texts, **common)
    return found


def load_regions(path: str | Path, grid: Callable[[str], Grid]) -> dict[str, CloudRegion]:
    """Read a file of a cloud's regions; `grid` finds a grid by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, a grid is unknown,
        a share is above 1, or an intensity has no basis; names file and line.
    """
    file = records.load(path)
    data = file.data
    common = {name: file.need(data, name, str) for name in ("provider", "source")}
    for name in ("basis", "basis_source"):
        common[name] = file.need(data, name, str) if "basis" in data else ""
    if "basis" in data:
        _one_of(file, common["basis"], BASES, "basis")
    shared = _shared(file, _REGION)
    found: dict[str, CloudRegion] = {}
    for title, row in _rows(file, tuple(common)):
        file.only(row, ("key", "name", "place", "grid", *_REGION), title)
        texts = {name: file.need(row, name, str, title) for name in ("key", "name", "place")}
        figures = dict(_figures(file, row, _REGION, shared, title))
        for name, figure in figures.items():
            if name.startswith("carbon_free.") and figure.si > 1:
                raise file.error(f"{name}: a share can't be {figure.text}.", title, "carbon_free")
        if "carbon_intensity" in row and not common["basis"]:
            raise file.error(
                f"{title} has an intensity: say its basis, one of {', '.join(BASES)}.", title
            )
        try:
            where = grid(file.need(row, "grid", str, title))
        except MlsimError as error:
            raise file.error(str(error), title, "grid") from None
        found[texts["key"]] = CloudRegion(figures=figures, grid=where, **texts, **common)
    return found


def _one_of(file: DataFile, value: str, allowed: tuple[str, ...], key: str) -> None:
    if value not in allowed:
        raise file.error(
            f"{key} must be one of {', '.join(allowed)}, not {value!r}.{nearest(value, allowed)}",
            key,
        )


def _rows(file: DataFile, heads: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the titles and tables of a file's rows; refuse a key that is neither."""
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


def _shared(file: DataFile, bases: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the figures of a file have in common, by quantity."""
    shared: Mapping[str, Mapping[str, Any]] = file.data.get("shared", {})
    file.only(shared, bases, "shared")
    for name, fields in shared.items():
        file.only(fields, _SHARED, "shared", name)
    return shared


def _figures(
    file: DataFile,
    table: Mapping[str, Any],
    bases: Mapping[str, str],
    shared: Mapping[str, Mapping[str, Any]],
    *keys: str,
) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a table, each named for its quantity and its year."""
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
