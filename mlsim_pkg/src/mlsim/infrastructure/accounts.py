"""What an operator reports for a year: electricity, and its emissions in two ways of counting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlsim import records
from mlsim.errors import InvalidValueError, nearest
from mlsim.infrastructure.places import Place, figures_by_year
from mlsim.records import Figure, known
from mlsim.values.attributes import result

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


# How emissions of bought electricity are counted: by the grids on which it is used,
# or by the contracts for it.
ACCOUNTS = ("location", "market")
_FIGURES = {"electricity": "J", "scope2_location": "kg_CO2e", "scope2_market": "kg_CO2e"}
_HEADS = ("key", "name", "covers", "source")


@dataclass(frozen=True, eq=False, repr=False)
class CloudOperator(Place):
    """A company that runs data centers, and what it reports by year.

    "electricity" is what it used; "scope2_location" and "scope2_market" are the
    emissions of the electricity that it bought, counted by the grids on which it was
    used, and by the contracts for it. `covers` says of what the figures are.
    """

    electricity = result("What it used.")
    scope2_location = result("Emissions of what it bought, by the grids on which it was used.")
    scope2_market = result("Emissions of what it bought, by its contracts.")

    covers: str
    source: str

    @property
    def pairs(self) -> tuple[int, ...]:
        """The years for which both ways of counting are on record."""
        market = self.years("scope2_market")
        return tuple(year for year in self.years("scope2_location") if year in market)

    def intensity(self, account: str = "location", year: int | None = None) -> Quantity:
        """Return Scope 2 over electricity, of a year that has both (or the last).

        >>> from mlsim import CloudOperators
        >>> for account in ("location", "market"):
        ...     print(f"{CloudOperators.Microsoft.intensity(account, 2020):.0f}")
        381 gCO2e/kWh
        21 gCO2e/kWh

        Raises
        ------
        InvalidValueError
            If the account is none of ACCOUNTS, or no year has both figures.
        """
        if account not in ACCOUNTS:
            raise InvalidValueError(
                f"account must be one of {', '.join(ACCOUNTS)}, not {account!r}."
                f"{nearest(account, ACCOUNTS)}"
            )
        name = f"scope2_{account}"
        both = [each for each in self.years(name) if each in self.years("electricity")]
        if not both:
            raise InvalidValueError(f"{self.name}: no year has both {name} and electricity.")
        if year is not None and year not in both:
            listed = ", ".join(map(str, both))
            raise InvalidValueError(f"{self.name} has both for {listed}, not for {year!r}.")
        chosen = both[-1] if year is None else year
        emitted, used = (self.by_name(f"{each}.{chosen}") for each in (name, "electricity"))
        what = f"{account}-based Scope 2 over electricity of {self.name}, {chosen}"
        intensity: Quantity = (emitted / used).to("gCO2e/kWh")
        return intensity.named(what)

    def __repr__(self) -> str:
        return f"<Operator {self.name}: {', '.join(self.quantities)}; {self.covers}>"


def load_operator(path: str | Path) -> CloudOperator:
    """Read the file of an operator.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, there is no figure, or one lacks its source;
        names file and line.
    """
    file = records.load(path)
    file.only(file.data, (*_HEADS, *_FIGURES))
    texts = file.texts(_HEADS)
    figures = dict(figures_by_year(file, file.data, _FIGURES, {}))
    if not figures:
        raise file.error("there is no figure: add a table such as [scope2_location.2023].")
    return CloudOperator(figures=figures, **texts)


_EMBODIED = {"carbon": "kg_CO2e", "lifetime": "s", "utilisation": "1"}


@dataclass(frozen=True, eq=False, repr=False)
class EmbodiedCarbon:
    """The embodied carbon of something, as published.

    `covers` says what was counted; `device` is the key of the device of the zoo that
    it is for (empty for a server without one), and `devices` how many of it one
    figure covers: 1 for a card, 8 for a board of eight.
    """

    key: str
    name: str
    covers: str
    device: str
    devices: int
    source: str
    figures: Mapping[str, Figure] = field(repr=False)

    @property
    def carbon(self) -> Quantity:
        """What was emitted to make the whole."""
        return self.figures["carbon"].of(self.name)

    @property
    def per_device(self) -> Quantity:
        """The whole over the devices that it covers, in kg CO2e.

        >>> from mlsim import Embodied
        >>> print(Embodied.H100.per_device)
        164 kgCO2e
        """
        found: Quantity = (self.carbon / self.devices).to("kgCO2e")
        return found

    @property
    def lifetime(self) -> Quantity | None:
        """The lifetime that the source assumes, if it does."""
        return known(self.figures, self.name, "lifetime")

    @property
    def utilisation(self) -> Quantity | None:
        """The share of its lifetime in use that the source assumes, if it does."""
        return known(self.figures, self.name, "utilisation")

    def __repr__(self) -> str:
        return f"<EmbodiedCarbon {self.name}: {self.figures['carbon'].text}; {self.covers}>"


def load_embodied(path: str | Path, devices: Collection[str]) -> EmbodiedCarbon:
    """Read a file of embodied carbon; `devices` are the keys of devices that there are.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, the device is
        unknown, or a share is above 1; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, (*_HEADS, "device", "devices", *_EMBODIED))
    texts = file.texts(_HEADS)
    device = file.need(data, "device", str) if "device" in data else ""
    if device and device not in devices:
        raise file.error(f"no device has the key {device!r}.{nearest(device, devices)}", "device")
    count = file.need(data, "devices", int) if "devices" in data else 1
    if count < 1:
        raise file.error(f"devices must be 1 or more, not {count}.", "devices")
    figures = {
        name: file.figure(data[name], base, name)
        for name, base in _EMBODIED.items()
        if name in data
    }
    if "carbon" not in figures:
        raise file.error("[carbon] is missing: what was emitted to make it?")
    share = figures.get("utilisation")
    if share and share.si > 1:
        raise file.error(f"utilisation: a share can't be {share.text}.", "utilisation")
    return EmbodiedCarbon(device=device, devices=count, figures=figures, **texts)
