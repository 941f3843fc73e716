"""Places where machines run: grids, data centers, and regions of clouds.

What a data center adds to the energy of its machines (PUE) and the water it takes
(WUE) belong to the data center; what a kilowatt-hour emits belongs to the grid. No
record has both, so that neither is counted twice or taken from the wrong place.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    check_whole,
    nearest,
    unknown_name,
)
from mlsim.records import KINDS, DataFile, Figure
from mlsim.records.tables import rows
from mlsim.units import factor
from mlsim.values import Origin, literal, quantity
from mlsim.values.attributes import count, result

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
    found: dict[str, HourlyIntensity] = {}

    def one(record: dict[str, str]) -> None:
        row = _hours(record, grids, bases)
        if found.setdefault(row.grid, row) is not row:
            raise DataFileError(f"two rows are of {row.grid}.")

    for _ in rows(Path(path), _COLUMNS, one):
        pass
    return found


def _hours(
    record: dict[str, str], grids: Collection[str], bases: tuple[str, ...]
) -> HourlyIntensity:
    """Make a record of a row; raise without file and line."""
    if "" in record.values():
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


# What an intensity counts: from mine to waste and the building of the plant, or
# only what a plant emits while it generates.
BASES = ("life-cycle", "direct")

# What a data center's figures are the average of: all that an operator owns, a part
# of it, those of one region of its cloud, or what many operators answered.
SCOPES = ("fleet", "part", "region", "survey")


@dataclass(frozen=True, eq=False)
class Place:
    """A place whose figures belong to years: "carbon_intensity.2024"."""

    key: str
    name: str
    figures: Mapping[str, Figure] = field(repr=False)

    @property
    def quantities(self) -> tuple[str, ...]:
        """What is on record, such as "pue" and "wue"."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.figures))

    def years(self, name: str) -> tuple[int, ...]:
        """Return the years for which a quantity is on record, in order.

        >>> from mlsim import DataCentres
        >>> DataCentres.AWS.years("wue")
        (2021, 2024, 2025)
        """
        named = (each.partition(".") for each in self.figures)
        return tuple(sorted(int(year) for quantity, _, year in named if quantity == name))

    def figure(self, name: str, year: int | None = None) -> Figure:
        """Return a figure with its source; without a year, the last on record.

        >>> from mlsim import Grids
        >>> Grids.France.figure("carbon_intensity").text
        '44.18 gCO2e/kWh'

        Raises
        ------
        UnknownNameError
            If the quantity is not on record; lists those that are.
        InvalidValueError
            If it is on record, but not for that year; lists the years.
        """
        years = self.years(name)
        if not years:
            raise unknown_name(f"figure of {self.name}", name, self.quantities)
        if year is not None and year not in years:
            listed = ", ".join(map(str, years))
            raise InvalidValueError(
                f"{name} of {self.name} is on record for {listed}, not for {year!r}."
            )
        return self.figures[f"{name}.{years[-1] if year is None else year}"]

    def by_name(self, name: str) -> Quantity:
        """Return a figure by its name, such as "pue", the last on record, or "pue.2023".

        Raises
        ------
        UnknownNameError, InvalidValueError
            As `figure`.
        """
        what, _, year = name.partition(".")
        figure = self.figure(what, int(year) if year.isdecimal() else None)
        words = what.upper() if what in ("pue", "wue") else what.replace("_", " ")
        return figure.of(f"{words} of {self.name}, {figure.name.rpartition('.')[2]}", " ")

    quantity = by_name  # as attributes ask: the last on record


@dataclass(frozen=True, eq=False, repr=False)
class Grid(Place):
    """The electricity of a country: what a kilowatt-hour emits, on a year's average.

    Its "carbon_intensity" is location-based: what is generated there, whoever has
    contracts for it; `basis` is one of BASES, and `basis_source` the document that
    says so. Where on record, "residual_mix" is market-based: what is left when those
    kilowatt-hours are taken out for which somebody has a contract. And
    "water_intensity" is the water that power stations consume (not what they
    withdraw and give back) for each unit of energy.
    """

    carbon_intensity = result("What a kilowatt-hour emits that is generated there.")
    residual_mix = result("What one emits for which nobody has a contract.")
    water_intensity = result("Water that power stations consume for a kilowatt-hour.")

    basis: str
    basis_source: str
    source: str
    hourly: HourlyIntensity | None = None
    with_hours: tuple[str, ...] = ()

    def at(self, hour: int) -> Quantity:
        """Return the intensity at an hour of its typical day, by the record's clock.

        >>> from mlsim import Grids
        >>> print(f"{Grids.California.at(20):.0f}")
        187 gCO2e/kWh

        Raises
        ------
        InvalidValueError
            If no hours are on record for this grid (lists those that have some), or
            it is no hour of a day.
        """
        if self.hourly is None:
            raise InvalidValueError(
                f"no hours are on record for {self.name}. "
                f"There are for: {', '.join(sorted(self.with_hours)) or 'no grid'}."
            )
        return self.hourly.at(hour)

    def __repr__(self) -> str:
        return f"<Grid {self.name}: {self.figure('carbon_intensity').text}, {self.basis}>"


@dataclass(frozen=True, eq=False, repr=False)
class DataCentre(Place):
    """Data centers of an operator: PUE, and WUE of the water used on site, by year.

    `scope` is one of SCOPES.
    """

    pue = count("Power usage effectiveness: all energy over that of the machines.")
    wue = result("Water used on site for each kilowatt-hour of the machines.")

    scope: str

    def __repr__(self) -> str:
        return f"<DataCentre {self.name}: PUE {self.figure('pue').text}, {self.scope}>"


@dataclass(frozen=True, eq=False, repr=False)
class CloudRegion(Place):
    """A region of a cloud: where it is, on which grid, and what its provider reports.

    A provider may publish the carbon intensity of the local grid, whose basis is then
    `basis`, and the carbon-free share of the energy ("carbon_free"). Else there are
    no figures, and `basis` is empty.
    """

    carbon_intensity = result("What a kilowatt-hour of the local grid emits, as reported.")
    carbon_free = count("Part of the energy that is free of carbon, as reported.")

    provider: str
    place: str
    grid: Grid
    basis: str
    basis_source: str
    source: str

    def __repr__(self) -> str:
        return f"<CloudRegion {self.name} of {self.provider}: {self.place}, {self.grid.name}>"


_SHARED = ("unit", "kind", "source", "where", "read", "note")
# The first power station for the public opened in this year.
_FIRST_YEAR = 1882


def _rows(
    file: DataFile, heads: Collection[str], words: tuple[str, ...], bases: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str], dict[str, Figure]]]:
    """Yield the title of each table of a file, its texts by name, and its figures.

    Raises
    ------
    DataFileError
        If a key is unknown, a text is missing, or a figure lacks its source; names file and line.
    """
    shared = file.data.get("shared", {})
    file.only(shared, bases, "shared")
    for name, fields in shared.items():
        file.only(fields, _SHARED, "shared", name)
    for title, row in file.data.items():
        if title in heads or title == "shared":
            continue
        if not isinstance(row, Mapping):
            raise file.error(
                f"unknown key {title!r}.{nearest(title, heads)} "
                f"Allowed here: {', '.join(heads)}, and a table for each row.",
                title,
            )
        file.only(row, (*words, *bases), title)
        texts = file.texts(words, row, title)
        yield title, texts, dict(figures_by_year(file, row, bases, shared, title))


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
    for name, base in bases.items():
        years = table.get(name, {})
        if not isinstance(years, Mapping):
            raise file.error(f"{name} must be tables of years, such as [{name}.2024].", *keys, name)
        for year, row in years.items():
            place = (*keys, name, year)
            if not (year.isdecimal() and len(year) == 4 and int(year) >= _FIRST_YEAR):
                raise file.error(f"{year!r} is no year of electricity.", *place)
            whole = {**shared.get(name, {}), **row} if isinstance(row, Mapping) else row
            figure = file.figure(whole, base, *place)
            yield f"{name}.{year}", figure


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
    texts = file.texts(("key", "name", "scope"))
    file.one_of("scope", SCOPES)
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
    file.one_of("scope", SCOPES)
    found: dict[str, DataCentre] = {}
    for title, texts, figures in _rows(file, ("scope",), ("key", "name"), _DATA_CENTRE):
        _check_overhead(file, figures, title)
        found[texts["key"]] = DataCentre(figures=figures, scope=file.data["scope"], **texts)
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
    common = file.texts(("basis", "basis_source", "source"))
    file.one_of("basis", BASES)
    hours, further = hours or {}, further or {}
    found: dict[str, Grid] = {}
    for title, texts, figures in _rows(file, common, ("key", "name"), _INTENSITY):
        if not figures:
            raise file.error(f"{title} has no carbon_intensity.", title)
        key = texts["key"]
        every = {**figures, **further.get(key, {})}
        day, listed = hours.get(key), tuple(hours)
        found[key] = Grid(figures=every, hourly=day, with_hours=listed, **texts, **common)
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
    found: dict[str, dict[str, Figure]] = {}
    for title, _, figures in _rows(file, (), (), _FURTHER):
        if title not in grids:
            raise file.error(f"no grid is called {title!r}.{nearest(title, grids)}", title)
        if not figures:
            raise file.error(f"{title} has none of {', '.join(_FURTHER)}.", title)
        found[title] = figures
    return found


@cache
def other_figures(
    folder: Path, grids: tuple[str, ...]
) -> tuple[dict[str, HourlyIntensity], dict[str, dict[str, Figure]]]:
    """Return what other files of a folder say of grids: typical days, and further figures.

    They are `hourly/typical_day.csv` and `grid_figures/*.toml`; `grids` are the keys of all
    grids.
    """
    further: dict[str, dict[str, Figure]] = {}
    for path in sorted((folder / "grid_figures").glob("*.toml")):
        for key, figures in load_grid_figures(path, grids).items():
            further.setdefault(key, {}).update(figures)
    return load_hours(folder / "hourly" / "typical_day.csv", grids, BASES), further


def load_regions(path: str | Path, grid: Callable[[str], Grid]) -> dict[str, CloudRegion]:
    """Read a file of a cloud's regions; `grid` finds a grid by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, a grid is unknown,
        a share is above 1, or an intensity has no basis; names file and line.
    """
    file = records.load(path)
    basis = ("basis", "basis_source")
    common = file.texts(("provider", "source")) | dict.fromkeys(basis, "")
    if "basis" in file.data:
        common |= file.texts(basis)
        file.one_of("basis", BASES)
    found: dict[str, CloudRegion] = {}
    for title, texts, figures in _rows(file, common, ("key", "name", "place", "grid"), _REGION):
        for name, figure in figures.items():
            if name.startswith("carbon_free.") and figure.si > 1:
                raise file.error(f"{name}: a share can't be {figure.text}.", title, "carbon_free")
            if name.startswith("carbon_intensity.") and not common["basis"]:
                words = f"{title} has an intensity: say its basis, one of {', '.join(BASES)}."
                raise file.error(words, title)
        with file.at(title, "grid"):
            where = grid(texts.pop("grid"))
        found[texts["key"]] = CloudRegion(figures=figures, grid=where, **texts, **common)
    return found
