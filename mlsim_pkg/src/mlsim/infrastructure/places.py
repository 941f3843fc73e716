"""Places where machines run: grids, data centers, and regions of clouds.

What a data center adds to the energy of its machines (PUE) and the water it takes
(WUE) belong to the data center; what a kilowatt-hour emits belongs to the grid. No
record has both, so that neither is counted twice or taken from the wrong place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.infrastructure.hourly import HourlyIntensity
from mlsim.records import Figure
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

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
