"""What to expect in place of a roofline's numbers: one line, with the cause of most of the time.

A roofline says why, and is no prediction: it has no launches, and every operator at full rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsim.errors import MlsimError
from mlsim.hardware.kernel_constants import NOBODY, Loan
from mlsim.quantities import term
from mlsim.solvers.calibrated import that_matter
from mlsim.units import number_text, scale_for, text

# What each cause does to the time, in the words of the field.
TAKES: Mapping[str, str] = {
    "arithmetic": "arithmetic takes",
    "memory": "memory takes",
    "network": "communication takes",
    "tiles": "partly filled tiles take",
    "launches": "launches take",
    "host": "the host takes",
    "bubble": "the pipeline bubble takes",
}
_DIGITS = 3


def line(answer: Any) -> str:
    """Say what the calibrated estimate expects; "" where nobody knows, or it is no roofline.

    >>> from mlsim import Engine
    >>> line(Engine.solve(model="ResNet50", hardware="A100"))
    '517 µs (334 to 888 µs): launches take 67%'
    >>> line(Engine.solve(model="ResNet50", hardware="A100", estimate="bound"))
    ''
    """
    try:
        expected = answer.as_calibrated()
        return "" if expected is None else "; ".join(_written(expected))
    # Nobody measured the device, or how far off constants of others are.
    except MlsimError:
        return ""


def _written(expected: Any) -> Iterator[str]:
    """Yield each main result in words, and of whom constants are borrowed that matter."""
    lenders: dict[str, None] = {}
    for name, words in expected.main.items():
        causes = expected.causes_behind(name)
        lenders |= dict.fromkeys(map(_lender, that_matter(expected.loans, causes)))
        yield f"{words.format(_sized(expected, name))}{_band(expected, name)}{_cause(causes)}"
    if lenders:
        yield f"rates of {' and '.join(lenders)}"


def _lender(loan: Loan) -> str:
    """Say whose a constant is, which nobody measured on the device itself."""
    return "links at full speed" if loan.kin.level == NOBODY else f"others {loan.kin.how}"


def _sized(expected: Any, name: str) -> str:
    # Of a rate of requests, the words say of what.
    return text(float(expected.value(name)), term(name).unit, _DIGITS).removesuffix(" 1/s")


def _band(expected: Any, name: str) -> str:
    """Write the band in the unit of the value."""
    band = expected.band(name)
    if band is None:
        return ""
    scale, unit = scale_for(float(expected.value(name)), term(name).unit)
    low, high = (number_text(float(each) / scale, _DIGITS) for each in (band.low, band.high))
    return f" ({low} to {high} {unit})"


def _cause(causes: Mapping[str, Any]) -> str:
    if not causes:
        return ""
    cause = max(causes, key=lambda each: float(causes[each]))
    return f": {TAKES[cause]} {float(causes[cause]):.0%}"
