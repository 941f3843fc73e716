"""Where a load runs: grid, region, data centre and operator, and what is on record of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.infrastructure import CloudOperator, CloudRegion, DataCentre, Grid
from mlsim.infrastructure.places import Place
from mlsim.solvers.footprint.entries import Entries, Entry, entry, exactly


class Shelf(Protocol):
    """Records by name, such as a space of the zoo."""

    def keys(self) -> list[str]:
        """Names of all records."""

    def get(self, key: str) -> Any:
        """Return the record of a key."""

    def find(self, name: str) -> Any:
        """Return the record of a name; refuse a name that there is not."""

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Shelves:
    """The places on record."""

    grids: Shelf
    regions: Shelf
    data_centres: Shelf
    operators: Shelf


@dataclass(frozen=True)
class Where:
    """Places, found by their names, and the year that figures are wanted for."""

    grid: Grid | None
    region: CloudRegion | None
    data_centre: DataCentre | None
    operator: CloudOperator | None
    year: int | None
    shelves: Shelves

    @property
    def own_grid(self) -> Grid | None:
        """The grid that is given, or that of the region."""
        return self.grid or (self.region.grid if self.region else None)


def where(
    shelves: Shelves, *, grid: Any, region: Any, data_centre: Any, operator: Any, year: int | None
) -> Where:
    """Find places by their names.

    Raises
    ------
    UnknownNameError
        If there is none of a name; suggests the nearest.
    WrongKindError
        If something else was given.
    InvalidValueError
        If the year is no year.
    """
    if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
        raise InvalidValueError(f"year must be a whole number such as 2024, not {year!r}.")
    found = Where(
        grid=find(grid, shelves.grids, Grid, "grid", "Germany"),
        region=find(region, shelves.regions, CloudRegion, "region", "us-central1"),
        data_centre=find(data_centre, shelves.data_centres, DataCentre, "data_centre", "Google"),
        operator=find(operator, shelves.operators, CloudOperator, "operator", "Google"),
        year=year,
        shelves=shelves,
    )
    if year is not None and not (found.own_grid or found.data_centre or found.operator):
        raise InvalidValueError(
            f"year={year} says which figures on record to take, but none is used: give grid=, "
            "region=, data_centre= or operator=, or leave year out."
        )
    if found.data_centre or not found.region:
        return found
    return replace(found, data_centre=_centre_of(found.region, shelves.data_centres))


def find(which: Any, shelf: Shelf, kind: type, argument: str, example: str) -> Any:
    """Return a record, given itself or its name; None if there is nothing."""
    if which is None or isinstance(which, kind):
        return which
    if isinstance(which, str):
        return shelf.find(which)
    raise WrongKindError(
        f"{argument} must be a name such as {example!r}, or its record, not {which!r}."
    )


def _centre_of(region: CloudRegion, centres: Shelf) -> DataCentre | None:
    """Return the data centres of a region: its own record, or its provider's fleet."""
    provider, _, name = region.key.partition(".")
    own = f"{provider}_Regions.{name}"
    keys = centres.keys()
    fleets: list[DataCentre] = [each for each in centres if each.scope == "fleet"]
    found: DataCentre | None = centres.get(own) if own in keys else None
    return found or next((each for each in fleets if each.name in region.provider), None)


def data_centre(place: Where, pue: Any, wue: Any) -> tuple[Entries, dict[str, str], str]:
    """Return PUE, WUE if it is known, what is missing, and the data centre in words.

    Raises
    ------
    InvalidValueError
        If there is no PUE for the place; says what to give, and what is on record.
    """
    centre, found = place.data_centre, {}
    if pue is not None:
        found["pue"] = entry("pue", pue)
    elif centre:
        found["pue"] = of(centre, "pue", place.year)
    else:
        region = place.region
        reason = f"no PUE is on record for {region.name}" if region else "no PUE is given"
        raise InvalidValueError(
            f"{reason}: say pue=1.1 or a range pue=(1.1, 1.5), or data_centre= one of "
            f"{listed(place.shelves.data_centres, 'pue')}, or a region whose data centres are on "
            "record."
        )
    missing = {}
    if wue is not None:
        found["wue"] = entry("wue", wue)
    elif centre and has(centre, "wue", place.year):
        found["wue"] = of(centre, "wue", place.year)
    else:
        missing["site_water"] = (
            f"the water used on site is not known: {lacks(centre, 'wue', place.year)}. "
            "Give wue='0.3 L/kWh', or a data centre with a WUE on record: "
            f"{listed(place.shelves.data_centres, 'wue')}."
        )
    words = f"data centres of {centre.name}" if centre else "a data centre"
    return found, missing, words


def water(place: Where, water_intensity: Any) -> tuple[Entries, dict[str, str]]:
    """Return the water of the grid's power stations if it is known, or what is missing."""
    grid = place.own_grid
    if water_intensity is not None:
        return {"water_intensity": entry("water_intensity", water_intensity)}, {}
    if grid and has(grid, "water_intensity", place.year):
        return {"water_intensity": of(grid, "water_intensity", place.year)}, {}
    reason = lacks(grid, "water_intensity", place.year)
    message = (
        f"the water of the power stations is not known: {reason}. Give water_intensity="
        f"'1.5 L/kWh', or a grid that has it: {listed(place.shelves.grids, 'water_intensity')}."
    )
    return {}, {"source_water": message}


def of(place: Place, name: str, year: int | None) -> Entry:
    """Return the entry of a figure, which names its place and year."""
    figure = place.figure(name, year)
    used = figure.name.rpartition(".")[2]
    return exactly(figure.si, f"{place.name} {used}: {figure.text}, {figure.origin()}")


def has(place: Place, name: str, year: int | None) -> bool:
    """Tell whether a quantity is on record for a year, or for any."""
    years = place.years(name)
    return bool(years) and (year is None or year in years)


def lacks(place: Place | None, name: str, year: int | None) -> str:
    """Say in words that a quantity is not on record."""
    words = {"wue": "WUE", "water_intensity": "water intensity"}[name]
    if place is None:
        return f"no {words} is given"
    years = ", ".join(map(str, place.years(name)))
    if years:
        return f"the {words} of {place.name} is on record for {years}, not for {year}"
    return f"no {words} is on record for {place.name}"


def listed(shelf: Iterable[Any], name: str) -> str:
    """List the records that have a quantity."""
    # Regions are too many to list; their provider's fleet stands for them.
    found = [each for each in shelf if getattr(each, "scope", "") != "region"]
    return ", ".join(each.key for each in found if name in each.quantities)
