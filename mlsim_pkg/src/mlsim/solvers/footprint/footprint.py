"""The footprint of a load: energy, carbon and water, each explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Report
from mlsim.solvers.footprint.account import RESULTS, Account
from mlsim.solvers.footprint.entries import LEFT_OUT
from mlsim.solvers.footprint.footprint_report import INNER, entry, inputs, report
from mlsim.solvers.footprint.interval import Interval
from mlsim.solvers.load import Load
from mlsim.solvers.question import Question
from mlsim.units import customary
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.solvers.explain import Explanation

_PER_TOKEN = {
    "energy": "energy_per_token",
    "device_energy": "device_energy_per_token",
    "carbon": "carbon_per_token",
    "water": "water_per_token",
}
# What a result can't do without, if nobody gave it.
_NEEDS = {
    "embodied_carbon": ("embodied_carbon",),
    "total_carbon": ("embodied_carbon",),
    "site_water": ("site_water",),
    "source_water": ("source_water",),
    "total_water": ("total_water",),
    "energy_per_token": ("load_tokens",),
    "device_energy_per_token": ("load_tokens",),
    "carbon_per_token": ("load_tokens", "embodied_carbon"),
    "water_per_token": ("load_tokens", "total_water"),
    "power_load": ("power_load",),
    "power_share": ("power_share",),
}
# What is left out by leaving out another.
_KNOWN_BY = {"host_energy": "host_power", "network_energy": "network_power"}


class Footprint(Answer):
    """Energy, carbon and water of a training run, a service, or another load.

    Each result is a quantity, or an `Interval` where something known is a range;
    `low` and `high` are the footprints at its ends. What is not known is refused,
    with what to give; what is not counted is named in `left_out`.

    >>> from mlsim import Engine
    >>> found = Engine.footprint(hardware="A100", device_hours=1000, device_power="400 W",
    ...                          host=False, pue=1.1, carbon_intensity="100 gCO2e/kWh")
    >>> print(f"{found.facility_energy:.0f}, {found.operational_carbon:.0f}")
    440 kWh, 44 kgCO2e
    """

    noun, variable, first = "footprint", "footprint", "total_carbon"
    reported = tuple(name for name in RESULTS if name not in INNER)

    def __init__(self, account: Account) -> None:
        super().__init__()
        self.account = account

    @property
    def question(self) -> Question:
        """What is asked; of a range, at the end that is taken."""
        return self.account.question

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        return (*RESULTS, *self.question.known)

    @property
    def load(self) -> Load:
        """The load that this is the footprint of."""
        return self.account.load

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not counted, in words."""
        return self.account.left_out

    @property
    def ranges(self) -> bool:
        """Whether this is a range, because something known is."""
        return self._split and self.account.ranges

    # A footprint at one end of its ranges is one number.
    _split = True

    @cached_property
    def low(self) -> Footprint:
        """The smallest footprint; this one itself if nothing is a range."""
        return self._end(large=False)

    @cached_property
    def high(self) -> Footprint:
        """The largest footprint; this one itself if nothing is a range."""
        return self._end(large=True)

    def _end(self, *, large: bool) -> Footprint:
        if not self.ranges:
            return self
        found = Footprint(replace(self.account, large=large))
        found._split = False
        return found

    def value(self, name: str) -> Any:
        """Return a result in its base unit: a float, or an `Interval` of two.

        Raises
        ------
        UnknownNameError
            If there is no such result.
        InvalidValueError
            If it needs something that is not known; says what to give.
        """
        if not self.ranges:
            return super().value(name)
        low, high = self.low.value(name), self.high.value(name)
        if name in ("device_lifetime", "lifetime_use"):
            low, high = high, low
        return low if low == high else Interval(low, high)

    def _asked(self, name: str) -> tuple[Question, str]:
        for need in _NEEDS.get(name, ()):
            if need in self.account.missing:
                raise InvalidValueError(self.account.missing[need])
        return super()._asked(name)

    def quantity(self, name: str) -> Any:
        """Return a result as a value, or an `Interval` of two."""
        found, base = self.value(name), term(name).unit
        if not isinstance(found, Interval):
            return super().quantity(name)
        unit = customary(found.high, base) or base
        ends = (self.low, self.high) if self.low.value(name) == found.low else (self.high, self.low)
        return Interval(*(end.quantity(name).to(unit) for end in ends))

    facility_energy = result(
        "Energy that the data centre takes for it, cooling and losses included."
    )
    it_energy = result("Energy of the machines: devices, hosts and network.")
    device_energy = result("Energy of the devices alone.")
    host_energy = result("Energy of the hosts.")
    network_energy = result("Energy of the switches between hosts.")
    device_power = result("Power of one device, on the average.")
    total_carbon = result(
        "Emissions of the electricity, and the share in those of making the devices."
    )
    operational_carbon = result("Emissions of the electricity.")
    embodied_carbon = result("The share in the emissions of making the devices.")
    total_water = result("Water on site and at power stations, as far as it is known.")
    site_water = result("Water used in the data centre.")
    source_water = result("Water consumed where the electricity is made.")
    host_power = result("A device's share of the power of its host.")
    pue = count("Energy of the data centre over that of its machines.")
    carbon_intensity = result("Emissions of the electricity for each unit of energy.")
    energy_per_token = result("Energy of the data centre for each token.")
    device_energy_per_token = result("Energy of the devices alone for each token.")

    @property
    def parts(self) -> dict[str, Any]:
        """Parts of energy, carbon and water, as far as they are known and counted."""
        names = ["device_energy", "host_energy", "network_energy", "operational_carbon"]
        names += ["embodied_carbon", "site_water", "source_water"]
        return {name: self.quantity(name) for name in names if self.has(name)}

    def has(self, name: str) -> bool:
        """Tell whether a result is known and not left out."""
        out = self.account.entries.get(_KNOWN_BY.get(name, name))
        if out is not None and out.origin.startswith(LEFT_OUT):
            return False
        return not any(need in self.account.missing for need in _NEEDS.get(name, ()))

    def per_token(self, name: str = "energy") -> Any:
        """Return "energy", "carbon" or "water" for each token.

        Raises
        ------
        UnknownNameError
            If it is none of these.
        InvalidValueError
            If nobody knows how many tokens there are.
        """
        if name not in _PER_TOKEN:
            raise unknown_name("result per token", name, _PER_TOKEN)
        return self.quantity(_PER_TOKEN[name])

    def part(self, name: str) -> tuple[Answer, str]:
        """Return the answer that a name speaks of, and its name there; "latency" is the energy.

        Raises
        ------
        InvalidValueError
            For a range: take one end of it.
        """
        name = "facility_energy" if name == "latency" else name
        if self.ranges:
            raise InvalidValueError(
                f"{name.replace('_', ' ')} is a range, since something known is: show one end of "
                f"it, such as show(footprint.high, {name!r})."
            )
        return self, name

    def explain(self, name: str = "") -> Explanation:
        """Show how a result came to be: equations, values, units, sources.

        Raises
        ------
        InvalidValueError
            For a range: explain `low` or `high`.
        """
        if self.ranges:
            name = name or self.first
            raise InvalidValueError(
                "this footprint is a range: explain one end of it, "
                f".low.explain({name!r}) or .high.explain({name!r})."
            )
        return super().explain(name)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return f"{self.load.label}, {self.account.place}"

    def to_dict(self) -> dict[str, Any]:
        """Return inputs and results for JSON; a range has "low" and "high".

        What is not known is null, with the reason in "missing".
        """
        account = self.account
        found = super().to_dict()
        return {**found, "left_out": list(account.left_out), "missing": dict(account.missing)}

    def _inputs(self) -> Mapping[str, Any]:
        return inputs(self)

    def _entry(self, name: str) -> Any:
        return entry(self, name) if self.has(name) else None

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        return report(self)
