"""Values of which two ends are known, and units that people use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
