"""The footprint of a load: energy, carbon and water, each explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, energy, equations_of
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Form, Pairs, Row
from mlsim.solvers.footprint.surroundings import LEFT_OUT, Entry
from mlsim.solvers.load import Load
from mlsim.solvers.question import Known, Question
from mlsim.units import customary, text
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.solvers.explain import Explanation


@dataclass(frozen=True)
class Interval:
    """What is known to lie between two values: numbers, or quantities of one unit.

    >>> print(Interval(1.5, 2.0))
    1.5 to 2
    """

    low: Any
    high: Any

    def to(self, unit: str) -> Interval:
        """Return it in another unit."""
        return Interval(self.low.to(unit), self.high.to(unit))

    def __str__(self) -> str:
        if hasattr(self.low, "units"):
            return f"{digits(self.low.magnitude)} to {written(self.high)}"
        return f"{digits(self.low)} to {digits(self.high)}"


def digits(number: float) -> str:
    """Write a number to four digits, and no exponent where it is large.

    >>> digits(1082990.0), digits(10000.0), digits(0.30004)
    ('1,082,990', '10,000', '0.3')
    """
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:,.4g}"


def written(found: Any) -> str:
    """Write a quantity with its unit, or an interval."""
    if isinstance(found, Interval):
        return str(found)
    return f"{digits(found.magnitude)} {found.units:~P}".rstrip()


FOOTPRINT = equations_of(energy.ENERGY, energy.FOOTPRINT)
RESULTS = tuple(dict.fromkeys(each.yields for each in FOOTPRINT))

# The more of these, the smaller the footprint.
_FALLING = ("device_lifetime", "lifetime_use")


@cache
def equations_by(contracts: bool) -> tuple[Equation, ...]:
    """Return one equation for each result, with emissions by contracts or by grids."""
    other = "carbon_intensity" if contracts else "contract_carbon_intensity"
    return tuple(each for each in FOOTPRINT if each.name != other)


@dataclass(frozen=True, eq=False)
class Account:
    """A load and its surroundings, at one end of what is known of them.

    `missing` says of what is not known what a user could give; `left_out` names what
    is not counted.
    """

    load: Load
    entries: Mapping[str, Entry]
    place: str
    missing: Mapping[str, str]
    left_out: tuple[str, ...]
    # Which end of each range is taken: the one for a small or for a large footprint.
    large: bool = False

    @property
    def ranges(self) -> bool:
        """Whether anything known is a range."""
        return any(each.ranges for each in self.entries.values())

    @cached_property
    def question(self) -> Question:
        """What is asked: all that is known, at this end of its ranges."""
        known = Known()
        for name, each in self.entries.items():
            upper = self.large != (name in _FALLING)
            value = each.high if upper else each.low
            known.add(partial(self._origin, name), **{name: value})
        return Question(known, equations_by("contract_factor" in known), lambda: self.labels)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        words = {"hardware": self.load.device.name, **self.load.labels, "model": self.load.label}
        estimate = words.get("estimate", "")
        end = "" if not self.ranges else "the high end, " if self.large else "the low end, "
        return {
            "model": words["model"],
            "model_source": words.get("model_source", ""),
            "hardware": words["hardware"],
            "precision": ", ".join(each for each in (words.get("precision"), estimate) if each),
            "estimate": f"{end}{self.place}",
        }

    def _origin(self, name: str) -> str:
        """Say where a known quantity comes from, and of a range, both its ends."""
        each = self.entries[name]
        if not each.ranges:
            return each.origin
        unit = term(name).unit
        return f"{each.origin}: {text(each.low, unit)} to {text(each.high, unit)}"


# What is not of interest by itself.
INNER = ("power_load", "power_share", "carbon_intensity")


def entry(footprint: Footprint, name: str) -> dict[str, Any]:
    """Return a quantity for JSON: its value, or of a range both ends."""
    found, unit = footprint.value(name), term(name).unit
    if isinstance(found, Interval):
        return {"low": found.low, "high": found.high, "unit": unit}
    return {"value": found, "unit": unit}


def _shown(footprint: Footprint, name: str) -> str:
    return written(footprint.quantity(name))


def _energies(footprint: Footprint) -> str:
    parts = [f"devices {_shown(footprint, 'device_energy')}"]
    for name, words in (("host", "hosts"), ("network", "network")):
        if not footprint.has(f"{name}_power"):
            continue
        known = footprint.account.entries.get(f"{name}_power")
        most = "at most " if known and known.origin.startswith("at most") else ""
        parts.append(f"{words} {most}{_shown(footprint, f'{name}_energy')}")
    whole = _shown(footprint, "facility_energy")
    return f"{whole} ({', '.join(parts)}; PUE {_shown(footprint, 'pue')})"


def _carbon(footprint: Footprint) -> str:
    used = f"{_shown(footprint, 'operational_carbon')} by its electricity"
    if "embodied_carbon" in footprint.account.entries:
        return used
    if footprint.has("embodied_carbon"):
        whole = _shown(footprint, "total_carbon")
        return f"{whole}: {used}, {_shown(footprint, 'embodied_carbon')} by making the devices"
    return f"{used}; of making the devices not all is known"


def _water(footprint: Footprint) -> str:
    if not footprint.has("total_water"):
        return "not known: neither the data center's nor the power stations'"
    parts = {"site_water": "on site", "source_water": "at power stations"}
    known = [f"{_shown(footprint, n)} {words}" for n, words in parts.items() if footprint.has(n)]
    return " and ".join(known)


def _per_token(footprint: Footprint) -> str:
    if not footprint.has("energy_per_token"):
        return ""
    names = ["energy_per_token", "carbon_per_token", "water_per_token"]
    return ", ".join(_shown(footprint, name) for name in names if footprint.has(name))


def _held(footprint: Footprint) -> str:
    """Tell how many devices are held for how long; of many hours, their sum."""
    known = footprint.question.known
    devices, seconds = known["devices"], known["working_time"]
    hours = f"{digits(devices * seconds / 3600)} device-hours"
    if devices == 1 and seconds > 86400:
        return hours
    for scale, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 3 * scale:
            return f"{devices:,.0f} device(s) for {digits(seconds / scale)} {unit}: {hours}"
    return f"{devices:,.0f} device(s) for {digits(seconds)} s"


def _inputs(footprint: Footprint) -> dict[str, Any]:
    """Return what is known with its origin, for JSON."""
    account = footprint.account
    return {
        name: {**entry(footprint, name), "origin": footprint.question.origin(name)}
        for name in account.entries
        # A part of the water that is not known stands for nothing in the sum.
        if name not in account.missing
    }


def _about(footprint: Footprint) -> str:
    labels = footprint.account.labels
    return ", ".join(each for each in (labels["hardware"], labels["precision"]) if each)


def _left_out(footprint: Footprint) -> Pairs:
    return [("" if i else "left out", each) for i, each in enumerate(footprint.left_out)]


_FORM = Form(
    title=lambda footprint: footprint.account.labels["model"],
    rows=(
        Row("on", _about),
        Row("place", lambda footprint: footprint.account.place),
        Row("power", lambda footprint: f"{_shown(footprint, 'device_power')} per device"),
        Row("held", _held),
        Row("energy", _energies),
        Row("carbon", _carbon),
        Row("water", _water),
        Row("per token", _per_token),
        Row("", _left_out),
    ),
    inputs={
        "load": lambda footprint: footprint.account.labels["model"],
        "hardware": lambda footprint: footprint.account.labels["hardware"],
        "place": lambda footprint: footprint.account.place,
        "inputs": _inputs,
    },
    label=11,
)


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
    results = RESULTS
    reported = tuple(name for name in RESULTS if name not in INNER)
    form = _FORM

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self.account = account

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
        "Energy that the data center takes for it, cooling and losses included."
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
    site_water = result("Water used in the data center.")
    source_water = result("Water consumed where the electricity is made.")
    host_power = result("A device's share of the power of its host.")
    pue = count("Energy of the data center over that of its machines.")
    carbon_intensity = result("Emissions of the electricity for each unit of energy.")
    energy_per_token = result("Energy of the data center for each token.")
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

    def _entry(self, name: str) -> Any:
        return entry(self, name) if self.has(name) else None
