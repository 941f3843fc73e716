"""Grids, data centers and regions from TOML files, every figure with its source.

A data center of a whole operator has a file of its own. What comes by the dozen from
one document shares a file: grids, the regions of a cloud, the data centers of those
regions, and further figures of grids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path

from mlsim import records
from mlsim.errors import MlsimError, nearest
from mlsim.infrastructure.hourly import HourlyIntensity, load_hours
from mlsim.infrastructure.places import BASES, SCOPES, CloudRegion, DataCentre, Grid
from mlsim.infrastructure.yearly_figures import figures_by_year, one_of, rows, shared_fields
from mlsim.records import DataFile, Figure

_INTENSITY = {"carbon_intensity": "kg_CO2e/J"}
_FURTHER = {"residual_mix": "kg_CO2e/J", "water_intensity": "L/J"}
_REGION = {**_INTENSITY, "carbon_free": "1"}
_DATA_CENTRE = {"pue": "1", "wue": "L/J"}


def load_data_centre(path: str | Path) -> DataCentre:
    """Read the file of a data center.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, or a PUE is below
        1; names file and line.
    """
    file = records.load(path)
    file.only(file.data, ("key", "name", "scope", *_DATA_CENTRE))
    texts = {name: file.need(file.data, name, str) for name in ("key", "name", "scope")}
    one_of(file, texts["scope"], SCOPES, "scope")
    figures = dict(figures_by_year(file, file.data, _DATA_CENTRE, {}))
    _check_overhead(file, figures)
    return DataCentre(figures=figures, **texts)


def load_data_centres(path: str | Path) -> dict[str, DataCentre]:
    """Read a file of one data center, or of many; return them by their keys.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, or a PUE is below
        1; names file and line.
    """
    file = records.load(path)
    if "key" in file.data:
        center = load_data_centre(path)
        return {center.key: center}
    scope = file.need(file.data, "scope", str)
    one_of(file, scope, SCOPES, "scope")
    shared = shared_fields(file, _DATA_CENTRE)
    found: dict[str, DataCentre] = {}
    for title, row in rows(file, ("scope",)):
        file.only(row, ("key", "name", *_DATA_CENTRE), title)
        texts = {name: file.need(row, name, str, title) for name in ("key", "name")}
        figures = dict(figures_by_year(file, row, _DATA_CENTRE, shared, title))
        _check_overhead(file, figures, title)
        found[texts["key"]] = DataCentre(figures=figures, scope=scope, **texts)
    return found


def _check_overhead(file: DataFile, figures: Mapping[str, Figure], *keys: str) -> None:
    """Refuse a data center without a PUE, or whose PUE can't be."""
    if not any(name.startswith("pue.") for name in figures):
        table = ".".join((*keys, "pue", "2024"))
        raise file.error(f"there is no PUE: add a table such as [{table}].", *keys)
    for name, figure in figures.items():
        if name.startswith("pue.") and figure.si < 1:
            raise file.error(
                f"{name}: {figure.text} is below 1: the whole can't use less than its machines.",
                *keys,
                *name.split("."),
            )


def load_grids(
    path: str | Path,
    hours: Mapping[str, HourlyIntensity] | None = None,
    further: Mapping[str, Mapping[str, Figure]] | None = None,
) -> dict[str, Grid]:
    """Read a file of grids; return them by their keys.

    `hours` and `further` are figures of grids from other documents, by their keys.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, or a figure lacks its source; names file and
        line.
    """
    file = records.load(path)
    heads = ("basis", "basis_source", "source")
    common = {name: file.need(file.data, name, str) for name in heads}
    one_of(file, common["basis"], BASES, "basis")
    shared = shared_fields(file, _INTENSITY)
    hours, further = hours or {}, further or {}
    found: dict[str, Grid] = {}
    for title, row in rows(file, heads):
        file.only(row, ("key", "name", *_INTENSITY), title)
        texts = {name: file.need(row, name, str, title) for name in ("key", "name")}
        figures = dict(figures_by_year(file, row, _INTENSITY, shared, title))
        if not figures:
            raise file.error(f"{title} has no carbon_intensity.", title)
        key = texts["key"]
        figures.update(further.get(key, {}))
        found[key] = Grid(
            figures=figures, hourly=hours.get(key), with_hours=tuple(hours), **texts, **common
        )
    return found


def load_grid_figures(path: str | Path, grids: Collection[str]) -> dict[str, dict[str, Figure]]:
    """Read a file of further figures of grids; each table is titled with a grid's key.

    `residual_mix` is what a kilowatt-hour emits when those that somebody has
    contracts for are taken out; `water_intensity` the water that is consumed where it
    is generated.

    Raises
    ------
    DataFileError
        If a grid or a key is unknown, or a figure lacks its source; names file and
        line.
    """
    file = records.load(path)
    shared = shared_fields(file, _FURTHER)
    found: dict[str, dict[str, Figure]] = {}
    for title, row in rows(file, ()):
        if title not in grids:
            raise file.error(f"no grid is called {title!r}.{nearest(title, grids)}", title)
        file.only(row, _FURTHER, title)
        figures = dict(figures_by_year(file, row, _FURTHER, shared, title))
        if not figures:
            raise file.error(f"{title} has none of {', '.join(_FURTHER)}.", title)
        found[title] = figures
    return found


def grid_loader(
    folder: Path, grids: Callable[[], Collection[str]]
) -> Callable[[Path], dict[str, Grid]]:
    """Return a loader of grids that knows the figures of the other files of a folder.

    `folder` contains `hourly/typical_day.csv` and `grid_figures/*.toml`; `grids` gives
    the keys of all grids. Those files are read once, with the first grid.
    """

    @cache
    def others() -> tuple[dict[str, HourlyIntensity], dict[str, dict[str, Figure]]]:
        keys = grids()
        further: dict[str, dict[str, Figure]] = {}
        for path in sorted((folder / "grid_figures").glob("*.toml")):
            for key, figures in load_grid_figures(path, keys).items():
                further.setdefault(key, {}).update(figures)
        return load_hours(folder / "hourly" / "typical_day.csv", keys, BASES), further

    def load(path: Path) -> dict[str, Grid]:
        return load_grids(path, *others())

    return load


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
        one_of(file, common["basis"], BASES, "basis")
    shared = shared_fields(file, _REGION)
    found: dict[str, CloudRegion] = {}
    for title, row in rows(file, tuple(common)):
        file.only(row, ("key", "name", "place", "grid", *_REGION), title)
        texts = {name: file.need(row, name, str, title) for name in ("key", "name", "place")}
        figures = dict(figures_by_year(file, row, _REGION, shared, title))
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
