"""Values of which two ends are known, and units that people use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsim.units import quantity

# Units for people, each with the value in base units from which it is used.
_UNITS = {
    "J": ((3.6e12, "GWh"), (3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh"), (0.0, "J")),
    "kg_CO2e": ((1000.0, "tCO2e"), (1.0, "kgCO2e"), (0.0, "gCO2e")),
    "kg_CO2e/token": ((0.0, "gCO2e/token"),),
    "L/token": ((0.1, "L/token"), (0.0, "mL/token")),
    # What is known of a place.
    "kg_CO2e/J": ((0.0, "gCO2e/kWh"),),
    "L/J": ((0.0, "L/kWh"),),
    "L": ((0.1, "L"), (0.0, "mL")),
}


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

    >>> digits(1082990.0), digits(0.30004)
    ('1,082,990', '0.3')
    """
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:,.4g}"


def written(found: Any) -> str:
    """Write a quantity with its unit, or an interval."""
    if isinstance(found, Interval):
        return str(found)
    return f"{digits(found.magnitude)} {found.units:~P}".rstrip()


def readable(value: float, base: str, like: float | None = None) -> Any:
    """Return a quantity in a unit that people use, chosen by `like` if it is given."""
    size = abs(value if like is None else like)
    unit = next((unit for least, unit in _UNITS.get(base, ()) if size >= least), base)
    return quantity(value, base).to(unit)
