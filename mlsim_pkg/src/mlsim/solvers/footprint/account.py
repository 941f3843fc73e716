"""What a footprint is reckoned from: known quantities, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mlsim.equations import Equation, Plan, energy, equations_of, footprint, plan
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.inputs import validate
from mlsim.solvers.load import Load
from mlsim.units import text
from mlsim.workloads.steps import StepTable

FOOTPRINT = equations_of(energy, footprint)

# What may be nothing at all; all else is positive.
_MAY_BE_ZERO = (
    "average_carbon_intensity",
    "compute_utilisation",
    "embodied_per_device",
    "host_power",
    "memory_utilisation",
    "network_power",
    "water_intensity",
    "wue",
)
_SHARES = ("compute_utilisation", "memory_utilisation", "lifetime_use")
# The more of these, the smaller the footprint.
_FALLING = ("device_lifetime", "lifetime_use")

# How the origin of what is not counted begins.
LEFT_OUT = "left out"

_NO_OPERATORS = StepTable((), {})


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
            f"pue must be at least 1, not {number:g}: a data centre can't use less than its "
            "machines."
        )
    if name in _SHARES and number > 1:
        raise InvalidValueError(f"{shown} is a share: it must be at most 1, not {number:g}.")
    if unit == "1" and isinstance(value, bool):
        raise InvalidValueError(f"{shown} must be a number, not {value!r}.")
    return number


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
    known: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        known = {}
        for name, each in self.entries.items():
            upper = self.large != (name in _FALLING)
            known[name] = each.high if upper else each.low
        object.__setattr__(self, "known", known)

    @property
    def ranges(self) -> bool:
        """Whether anything known is a range."""
        return any(each.ranges for each in self.entries.values())

    @property
    def table(self) -> StepTable:
        """No operators: the work has been added up."""
        return _NO_OPERATORS

    @property
    def shape(self) -> tuple[int, ...]:
        """One point."""
        return ()

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        return plan(equations_by("contract_factor" in self.known), self.known, wanted)

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

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        each = self.entries[name]
        if not each.ranges:
            return each.origin
        unit = term(name).unit
        return f"{each.origin}: {text(each.low, unit)} to {text(each.high, unit)}"
