"""What is known around a load, a number or a range with its origin: power, places, electricity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Protocol

from mlsim.equations import energy
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.infrastructure import CloudOperator, CloudRegion, DataCentre, Grid
from mlsim.infrastructure.places import Place
from mlsim.parameters import check, validate
from mlsim.quantities import term
from mlsim.units import to_base

# What may be nothing at all; all else is positive.
_MAY_BE_ZERO = (
    *("average_carbon_intensity", "compute_utilisation", "embodied_per_device", "host_power"),
    *("memory_utilisation", "network_power", "water_intensity", "wue"),
)
_SHARES = ("compute_utilisation", "memory_utilisation", "lifetime_use")
# How the origin of what is not counted begins.
LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Entry:
    """A known quantity in its base unit: one number, or a range; and its origin."""

    low: float
    high: float
    origin: str

    @property
    def ranges(self) -> bool:
        """Whether it is more than one number."""
        return self.low != self.high


Entries = dict[str, Entry]


def exactly(value: float, origin: str) -> Entry:
    """Return an entry of one number."""
    return Entry(value, value, origin)


def entry(name: str, value: Any, *, shown: str = "") -> Entry:
    """Check a quantity that a user gives: one value, or a pair (low, high).

    `shown` is what the argument is called, if not by its name in the vocabulary.

    Raises
    ------
    InvalidValueError
        If a value can't be: a PUE below 1, a share above 1, a range upside down.
    UnitError
        If a unit is missing or of another kind.

    >>> entry("pue", (1.1, 1.3)).high
    1.3
    """
    shown = shown or name
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise InvalidValueError(
                f"{shown} must be one value or a pair (low, high), not {value!r}."
            )
        low, high = (_one(name, each, shown) for each in value)
        if low > high:
            raise InvalidValueError(f"{shown}: the range {value!r} is upside down; low first.")
        return Entry(low, high, "given, a range")
    return exactly(_one(name, value, shown), "given")


def _one(name: str, value: Any, shown: str) -> float:
    unit = term(name).unit
    try:
        found = validate(name, value, zero=name in _MAY_BE_ZERO)
    except (InvalidValueError, TypeError) as error:
        raise type(error)(str(error).replace(name, shown)) from None
    if getattr(found, "ndim", 0):
        raise InvalidValueError(f"{shown} must be one value or a pair (low, high), not an array.")
    number = float(found)
    if name == "pue" and number < 1:
        raise InvalidValueError(
            f"pue must be at least 1, not {number:g}: a data center can't use less than its "
            "machines."
        )
    if name in _SHARES and number > 1:
        raise InvalidValueError(f"{shown} is a share: it must be at most 1, not {number:g}.")
    if unit == "1" and isinstance(value, bool):
        raise InvalidValueError(f"{shown} must be a number, not {value!r}.")
    return number


# The usual share of full power that an idle device draws, and of how many devices.
IdleShare = Callable[[], tuple[float, int]]


@dataclass(frozen=True)
class Weights:
    """The fitted weights, and how well they tell power.

    Attributes
    ----------
    running, compute, memory
        Of running at all, of the use of arithmetic, and of memory.
    error, kernels, device
        Median of the relative errors of power on kernels whose shapes were left out, how many
        there are, and the device on which all were measured.
    services, rows, low, high
        The same median on services, to which nothing is fitted; how many; between which
        factors of the predicted power eight in ten of them were measured.
    sources
        Keys of the documents.
    """

    running: float
    compute: float
    memory: float
    error: float
    kernels: int
    device: str
    services: float
    rows: int
    low: float
    high: float
    sources: tuple[str, ...]

    @property
    def origin(self) -> str:
        """Where the weights come from, in one line."""
        return (
            f"fitted by least squares to the measured power of {self.kernels:,} matrix products "
            f"on {self.device} (median error {self.error:.0%} on shapes left out); of "
            f"{self.rows} services, to which nothing is fitted, the median error is "
            f"{self.services:.0%}, and eight in ten drew {self.low:.2f} to {self.high:.2f} times "
            f"the prediction, {', '.join(self.sources)}"
        )


def limits(device: Device, idle: Any, full: Any, idle_share: IdleShare) -> tuple[Entry, Entry]:
    """Return idle and full power of a device: as given, on record, or estimated.

    Raises
    ------
    InvalidValueError
        If its full power is not known, or less than when it is idle.
    """
    figure = device.figures.get("power.tdp")
    if full is not None:
        most = entry("max_power", full)
    elif figure:
        most = exactly(figure.si, f"{device.name}, TDP: {figure.origin()}")
    else:
        raise InvalidValueError(
            f"the power of {device.name} is not on record: give max_power='300 W', "
            "or device_power='250 W' for its average."
        )
    known = device.figures.get("power.idle")
    if idle is not None:
        least = entry("idle_power", idle)
    elif known:
        least = exactly(known.si, f"{device.name}: {known.origin()}")
    else:
        share, count = idle_share()
        words = f"estimate: the median of {count} devices, {share:.0%} of full power"
        low, high = (energy.estimated_idle_power(share, end) for end in (most.low, most.high))
        least = Entry(low, high, words)
    if least.high > most.low:
        raise InvalidValueError(
            f"{device.name}: idle_power {least.high:,.4g} W is above max_power "
            f"{most.low:,.4g} W. Give both in the right order."
        )
    return least, most


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
    """Return the data centers of a region: its own record, or its provider's fleet."""
    provider, _, name = region.key.partition(".")
    own = f"{provider}_Regions.{name}"
    keys = centres.keys()
    fleets: list[DataCentre] = [each for each in centres if each.scope == "fleet"]
    found: DataCentre | None = centres.get(own) if own in keys else None
    return found or next((each for each in fleets if each.name in region.provider), None)


def data_centre(place: Where, pue: Any, wue: Any) -> tuple[Entries, dict[str, str], str]:
    """Return PUE, WUE if it is known, what is missing, and the data center in words.

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
            f"{listed(place.shelves.data_centres, 'pue')}, or a region whose data centers are on "
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
            "Give wue='0.3 L/kWh', or a data center with a WUE on record: "
            f"{listed(place.shelves.data_centres, 'wue')}."
        )
    words = f"data centers of {centre.name}" if centre else "a data center"
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


def carbon(place: Where, carbon_intensity: Any, hour: Any, accounting: str) -> tuple[Entries, str]:
    """Return what the electricity emits, and where it is from in words.

    Raises
    ------
    InvalidValueError
        If nothing says what it emits, or two things do; if there are no hours, or no
        figures by contracts, for the place.
    """
    check("accounting", accounting)
    if accounting == "market":
        if hour is not None:
            raise InvalidValueError(
                "hour is an hour of what a grid generates, which contracts don't follow: "
                "leave hour out, or use accounting='location'."
            )
        found, words = _by_market(place, carbon_intensity)
    else:
        found, words = _by_location(place, carbon_intensity, hour)
    return found, f"{words}, {accounting}-based"


def _by_location(place: Where, given: Any, hour: Any) -> tuple[Entries, str]:
    grid, region, operator = place.own_grid, place.region, place.operator
    if operator and (grid or given is not None):
        raise InvalidValueError(
            f"operator={operator.name!r} says how its contracts are counted: use it with "
            "accounting='market', or leave it out."
        )
    if given is not None:
        found = entry("average_carbon_intensity", given, shown="carbon_intensity")
        words = f"electricity of {grid.name}, as given" if grid else "electricity as given"
    elif region and not place.grid and hour is None and "carbon_intensity" in region.quantities:
        found = of(region, "carbon_intensity", place.year)
        words = f"{region.name} ({region.place}), {region.basis}"
    elif grid:
        found = of(grid, "carbon_intensity", place.year)
        words = f"grid of {grid.name}, {grid.basis}"
    elif operator:
        found, words = _of_operator(operator, "location", place.year)
    else:
        raise InvalidValueError(
            "what the electricity emits is not given: say grid='Germany' (there are "
            f"{', '.join(place.shelves.grids.keys())}), or region=, or "
            "carbon_intensity='350 gCO2e/kWh', or a range of it: (low, high)."
        )
    if hour is None:
        return {"carbon_intensity": found}, words
    shape, when = _hour_factor(grid, hour)
    return {"average_carbon_intensity": found, "hour_factor": shape}, f"{words}, {when}"


def _by_market(place: Where, given: Any) -> tuple[Entries, str]:
    grid, operator = place.own_grid, place.operator
    if given is not None:
        if operator:
            raise InvalidValueError("give carbon_intensity or operator, not both.")
        found = entry("average_carbon_intensity", given, shown="carbon_intensity")
        return {"carbon_intensity": found}, "electricity as given"
    if operator:
        return _contracts(operator, grid, place.year)
    if grid and "residual_mix" in grid.quantities:
        found = of(grid, "residual_mix", place.year)
        return {"carbon_intensity": found}, f"residual mix of {grid.name}"
    lacks = f"no residual mix is on record for {grid.name}" if grid else "no grid is given"
    raise InvalidValueError(
        f"{lacks}, so that a market-based intensity is not known. Residual mixes: "
        f"{listed(place.shelves.grids, 'residual_mix')}. Or give carbon_intensity=, or operator= "
        f"one of {', '.join(place.shelves.operators.keys())}."
    )


def _contracts(operator: CloudOperator, grid: Grid | None, year: int | None) -> tuple[Entries, str]:
    """Return an operator's market-based intensity: its own, or by the ratio of its accounts."""
    electricity = operator.years("electricity")
    if any(each in electricity for each in operator.years("scope2_market")):
        found, words = _of_operator(operator, "market", year)
        return {"carbon_intensity": found}, words
    if not operator.pairs:
        raise InvalidValueError(
            f"{operator.name} has no market-based figure on record. "
            f"It has: {', '.join(operator.quantities)}."
        )
    if grid is None:
        raise InvalidValueError(
            f"{operator.name} reports emissions by grids and by contracts, but not its "
            "electricity of these years: give grid= as well, whose intensity is then taken "
            "in the ratio of the two."
        )
    if year is not None and year not in operator.pairs:
        listed = ", ".join(map(str, operator.pairs))
        raise InvalidValueError(
            f"{operator.name} has both ways of counting for {listed}, not for {year}."
        )
    used = year or operator.pairs[-1]
    market, location = (operator.figure(f"scope2_{each}", used) for each in ("market", "location"))
    origin = f"{operator.name} {used}: {market.text} by contracts over {location.text} by grids"
    entries = {
        # Few years have both a grid's figure and an operator's: the grid's last one is taken.
        "average_carbon_intensity": of(grid, "carbon_intensity", None),
        "contract_factor": exactly(
            energy.contract_factor(market.si, location.si), f"{origin}, {market.origin()}"
        ),
    }
    return entries, f"grid of {grid.name}, contracts of {operator.name} {used}"


def _of_operator(operator: CloudOperator, account: str, year: int | None) -> tuple[Entry, str]:
    value = operator.intensity(account, year)
    base = term("carbon_intensity").unit
    both = [y for y in operator.years(f"scope2_{account}") if y in operator.years("electricity")]
    used = year or both[-1]
    figure = operator.figure(f"scope2_{account}", used)
    origin = f"{operator.name} {used}: {figure.text} over its electricity, {figure.origin()}"
    return exactly(to_base(value, base, "carbon_intensity"), origin), f"{operator.name}, {used}"


def _hour_factor(grid: Grid | None, hour: Any) -> tuple[Entry, str]:
    """Return the intensity of hours per the average of the typical day."""
    if grid is None:
        raise InvalidValueError("hour is an hour of a grid: give grid= or region= as well.")
    hours = list(hour) if isinstance(hour, (list, tuple, range, set)) else [hour]
    if not hours:
        raise InvalidValueError("hour is an empty list; give hours from 0 to 23.")
    values = [float(grid.at(each).magnitude) for each in hours]
    day = grid.hourly
    assert day is not None  # or grid.at would have refused
    shape = energy.hour_factor(fmean(values), fmean(day.values))
    shown = ", ".join(f"{each:02}" for each in hours)
    origin = (
        f"hour(s) {shown} ({day.clock}) over the mean of the typical day of {grid.name} "
        f"{day.period} ({day.basis}), {day.kind}, {day.source}, {day.where}"
    )
    return exactly(shape, origin), f"hour(s) {shown} {day.clock}"
