"""What the electricity of a load emits: by its grid, at its hours, or by contracts."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from mlsim.equations import energy
from mlsim.errors import InvalidValueError, nearest
from mlsim.infrastructure import CloudOperator, Grid
from mlsim.infrastructure.cloud_operators import ACCOUNTS
from mlsim.quantities import term
from mlsim.solvers.footprint.entries import Entries, Entry, entry, exactly
from mlsim.solvers.footprint.sites import Where, listed, of
from mlsim.units import to_base


def carbon(place: Where, carbon_intensity: Any, hour: Any, accounting: str) -> tuple[Entries, str]:
    """Return what the electricity emits, and where it is from in words.

    Raises
    ------
    InvalidValueError
        If nothing says what it emits, or two things do; if there are no hours, or no
        figures by contracts, for the place.
    """
    if accounting not in ACCOUNTS:
        raise InvalidValueError(
            f"accounting must be one of {', '.join(ACCOUNTS)}, not {accounting!r}."
            f"{nearest(accounting, ACCOUNTS)}"
        )
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
