"""Known quantities of a footprint: a number, or a range, with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.inputs import validate

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


Entries = dict[str, Entry]
