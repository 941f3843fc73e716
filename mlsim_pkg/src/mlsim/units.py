"""Units: their names, their sizes, and how people write them.

Inside the package numbers are plain floats in base units (s, B, FLOP, ...). Quantities stand
at the door only: `values` makes them, of these definitions. `flop`, `byte`,
`token`, `parameter`, `sample`, `element`, `USD` and `kg CO2e` are dimensions of
their own, so adding a byte to a number is an error. GB is 1e9 bytes, GiB 2**30.

A data file says "2039 GB/s"; to know that this is 2.039e12 B/s takes a table of names
and two rules, and not the fifth of a second that importing Pint does. So Pint is
imported when a quantity is made, not when a figure is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnitError

if TYPE_CHECKING:
    from pint import UnitRegistry


@cache
def definitions() -> list[str]:
    """Return the units by their definitions, a line each, as `data/units.txt` has them.

    >>> definitions()[-1]
    'watt_hour = watt * hour = Wh'
    """
    lines = (Path(__file__).parent / "data" / "units.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


# A scale, and the power of each dimension: 1 GB/s is 1e9, {"information": 1, "time": -1}.
Measure = tuple[float, Mapping[str, int]]

_PART = re.compile(r"\s*([*/])\s*")


@cache
def factor(unit: str, base: str) -> float:
    """Return what one `unit` is in `base` units.

    >>> factor("TB/s", "B/s")
    1000000000000.0

    Raises
    ------
    UnitError
        If the two don't measure the same kind of thing, or a unit is unknown.
    """
    known = known_factor(unit, base)
    if known is not None:
        return known
    import pint

    try:
        units = _plain_registry()
        return float(units.Quantity(1.0, "" if unit == "1" else unit).to(base).magnitude)
    except pint.UndefinedUnitError as error:
        raise UnitError(f"unknown unit {unit!r}; expected {base}{_such_as(base)}.") from error
    except pint.DimensionalityError as error:
        raise UnitError(f"a value in {unit} was given where {base} is expected.") from error
    except (ArithmeticError, AssertionError, TokenError, ValueError) as error:
        raise UnitError(f"{unit!r} is no unit; expected {base}{_such_as(base)}.") from error


def _such_as(base: str) -> str:
    """Name a unit that is in use beside a base unit, if it takes prefixes."""
    return f", such as '{'m' if base == 's' else 'G'}{base}'" if base in _SCALED else ""


@cache
def _plain_registry() -> UnitRegistry[Any]:
    """Return Pint's own registry: it knows what the table of names does not, and says why."""
    import pint

    units: UnitRegistry[Any] = pint.UnitRegistry(None)
    units.load_definitions(definitions())
    return units


def to_base(value: Any, base: str, name: str) -> Any:
    """Return the magnitude of a quantity, or of text such as "2 TB/s", in `base`.

    A plain number is refused unless `base` is "1": it could mean anything.

    >>> to_base("2 TB/s", "B/s", "memory_bandwidth")
    2000000000000.0

    Raises
    ------
    UnitError
        If the unit is missing, unknown, or measures something else.
    InvalidValueError
        If the text holds no number.
    """
    if isinstance(value, str):
        number, _, unit = value.strip().partition(" ")
        try:
            magnitude = float(number.replace(",", ""))
        except ValueError:
            raise InvalidValueError(
                f"{name} must be a number and a unit such as '2 {base}', not {value!r}."
            ) from None
        if not unit and base != "1":
            raise UnitError(f"{name} needs a unit: {value!r} could mean anything. Use {base}.")
        return magnitude * _factor_for(unit.strip() or "1", base, name)
    units = getattr(value, "units", None)
    if units is not None:
        try:
            scale = _factor_for(f"{units:~C}" or "1", base, name)
        except UnitError as error:
            if not isinstance(value, float):
                raise
            raise UnitError(f"{error} float(...) leaves the unit out, if it is meant.") from None
        return value.magnitude if scale == 1.0 else value.magnitude * scale
    if base == "1":
        return value
    raise UnitError(
        f"{name} needs a unit: {value!r} could mean anything. "
        f"Give text such as '2 {base}', or a quantity."
    )


def unitless(value: Any) -> Any:
    """Return a value that counts, and has no unit, as the number that it is; else what it was.

    Also within lists. What has a unit keeps it, so that a wrong one is found.

    >>> from mlsim.values import given
    >>> unitless([given(8, "GPUs"), "2 TB/s"])
    [8, '2 TB/s']
    """
    if type(value) in (list, tuple):
        return type(value)(map(unitless, value))
    if isinstance(value, float) and getattr(value, "base", "") == "1":
        return int(value) if value.is_integer() else float(value)
    return value


def _factor_for(unit: str, base: str, name: str) -> float:
    try:
        return factor(unit, base)
    except UnitError as error:
        raise UnitError(f"{name}: {error}") from None


# How a base unit is scaled for people: the prefixes that are in use for it.
_PREFIXES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")),
    "memory": ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"), (1.0, "")),
    "default": ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
}
# Bytes that something holds: with the prefixes of drivers, so that they compare with a device's.
MEMORY = "memory"
# FLOP beyond the prefixes that people know: the work of a run is given by its power of ten.
BEYOND_PREFIXES = 1e18
_SCALED = ("B", "B/s", "FLOP", "FLOP/s", "s")

# Units with which people count what has no prefix in use, from a size up.
_CUSTOMARY: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((172_800.0, "d"), (7200.0, "h")),
    "J": ((3.6e12, "GWh"), (3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh"), (0.0, "J")),
    "kg_CO2e": ((1000.0, "tCO2e"), (1.0, "kgCO2e"), (0.0, "gCO2e")),
    "kg_CO2e/token": ((0.0, "gCO2e/token"),),
    "L/token": ((0.1, "L/token"), (0.0, "mL/token")),
    "kg_CO2e/J": ((0.0, "gCO2e/kWh"),),
    "L/J": ((0.0, "L/kWh"),),
    "L": ((0.1, "L"), (0.0, "mL")),
    "USD/s": ((0.0, "USD/h"),),
}


def customary(value: float, base: str) -> str:
    """Choose the unit in which people count a quantity of this size; "" if it is the base.

    >>> customary(7.2e6, "J"), customary(9e-8, "kg_CO2e/J"), customary(0.5, "s")
    ('kWh', 'gCO2e/kWh', '')
    """
    ladder = _CUSTOMARY.get(base, ())
    return next((unit for least, unit in ladder if abs(value) >= least), "")


def scale_for(value: float, base: str) -> tuple[float, str]:
    """Choose the prefix that leaves one to three digits before the point.

    >>> scale_for(0.000144, "s")
    (1e-06, 'µs')
    >>> scale_for(2.039e12, "B/s"), scale_for(80 * 2**30, MEMORY)
    ((1000000000000.0, 'TB/s'), (1073741824.0, 'GiB'))
    """
    prefixes, base = base, "B" if base == MEMORY else base
    unit = customary(value, base)
    if unit and math.isfinite(value):
        return factor(unit, base), unit
    if base not in _SCALED or not math.isfinite(value) or value == 0:
        return 1.0, base
    table = _PREFIXES[prefixes if prefixes in _PREFIXES else "default"]
    for scale, prefix in table:
        # 0.99995 rounds up to the next prefix at four digits.
        if abs(value) >= 0.99995 * scale:
            return scale, prefix + base
    return table[-1][0], table[-1][1] + base


def text(value: float, base: str, digits: int = 4) -> str:
    """Write a number with its unit, to `digits` significant digits.

    >>> text(0.00014412, "s"), text(25557032, "parameter"), text(0.84, "1")
    ('144.1 µs', '25,557,032 parameter', '0.84')
    """
    if base == "FLOP" and BEYOND_PREFIXES <= abs(value) < math.inf:
        return f"{value:.{digits}g} FLOP"
    scale, unit = scale_for(float(value), base)
    shown = number_text(value / scale, digits)
    return shown if unit == "1" else f"{shown} {unit}"


def number_text(number: float, digits: int = 4) -> str:
    """Write a number to `digits` significant digits, a whole one in full.

    >>> number_text(199.0), number_text(18029.31), number_text(2.3456, 3)
    ('199', '18,029', '2.35')
    """
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.{max(digits, 1)}g}" if abs(number) < 10**digits else f"{number:,.0f}"


def held(value: float) -> str:
    """Write bytes that something holds, in the units of drivers.

    >>> held(85_520_809_984), held(165_128)
    ('79.65 GiB', '161.3 KiB')
    """
    return text(value, MEMORY)


def rounded(number: float, digits: int) -> str:
    """Write a number to `digits` significant digits, zeros too; a whole one in full.

    >>> [rounded(each, 2) for each in (2.04, 99.6, 173.4, 18029.31, 199.0, 0.0123)]
    ['2.0', '100', '173', '18,029', '199', '0.012']
    """
    if not math.isfinite(number):
        return number_text(number, digits)
    if abs(number) < 1e15 and math.isclose(number, round(number), rel_tol=1e-14):
        return number_text(round(number), digits)  # 8 µs are 7.999999999999999 of them
    size = math.floor(math.log10(abs(float(f"{number:.{digits - 1}e}"))))
    if not -5 < size < 15:
        return f"{number:.{digits}g}"
    return f"{number:,.{max(digits - 1 - size, 0)}f}"


_EXPONENT = re.compile(r"(?<=\d)e([+-]?)0*(\d+)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_powers(number: str) -> str:
    """Write the exponents of a number as people do, for a sentence.

    >>> with_powers("3.14e+23 FLOP"), with_powers("5e-05 s")
    ('3.14 × 10²³ FLOP', '5 × 10⁻⁵ s')
    """

    def raised(found: re.Match[str]) -> str:
        return " × 10" + (found[1].strip("+") + found[2]).translate(_RAISED)

    return _EXPONENT.sub(raised, number)


def known_factor(unit: str, base: str) -> float | None:
    """Return what one `unit` is in `base` units; None if that takes a units library.

    None too if the two don't measure the same kind of thing: the library says
    what is wrong.

    >>> known_factor("GiB", "B"), known_factor("TB/s", "B/s"), known_factor("m^2", "B")
    (1073741824.0, 1000000000000.0, None)
    """
    one, other = _product(unit, _named), _product(base, _named)
    if one is None or other is None or one[1] != other[1]:
        return None
    return one[0] / other[0]


def is_base(unit: str) -> bool:
    """Tell whether a unit is made of base units alone.

    >>> is_base("FLOP/(parameter*token)"), is_base("s**2"), is_base("GB/s"), is_base("m")
    (True, True, False, False)
    """
    units = _tables()[1]
    names = [each for each in re.split(r"[*/()]+", unit) if each and not each.isdigit()]
    return bool(unit) and all(units.get(each, (0.0,))[0] == 1.0 for each in names)


def _product(text: str, named: Callable[[str], Measure | None]) -> Measure | None:
    """Return the measure of names joined by * and /; None if one is unknown."""
    first, *rest = _PART.split(text.strip())
    terms = [("*", first), *zip(rest[::2], rest[1::2], strict=True)]
    scale, powers = 1.0, dict[str, int]()
    for sign, name in terms:
        found = named(name)
        if found is None or found[0] == 0.0:
            return None
        scale = scale * found[0] if sign == "*" else scale / found[0]
        for dimension, power in found[1].items():
            powers[dimension] = powers.get(dimension, 0) + (power if sign == "*" else -power)
    return scale, {dimension: power for dimension, power in powers.items() if power}


def _named(name: str) -> Measure | None:
    """Return the measure of one name, with a prefix or without; None if it is unknown."""
    prefixes, units = _tables()
    if name in units:
        return units[name]
    for prefix, scale in prefixes.items():
        rest = name.removeprefix(prefix)
        if rest != name and rest in units:
            return scale * units[rest][0], units[rest][1]
    return _number(name)


def _number(text: str) -> Measure | None:
    try:
        return float(text), {}
    except ValueError:
        return None


@cache
def _tables() -> tuple[dict[str, float], dict[str, Measure]]:
    """Read the definitions: the prefixes, and the units in the order in which they are made."""
    prefixes: dict[str, float] = {}
    units: dict[str, Measure] = {}
    for line in definitions():
        name, meaning, *others = (each.strip() for each in line.split(" = "))
        if name.endswith("-"):
            names = (name, *others)
            prefixes |= {each.removesuffix("-"): float(meaning) for each in names}
            continue
        measure: Measure | None = (1.0, {meaning.strip("[]"): 1})
        if not meaning.startswith("["):
            measure = _product(meaning, lambda part: units.get(part) or _number(part))
        assert measure is not None, f"{line!r} uses a unit that is defined below it"
        units.update(dict.fromkeys((name, *others), measure))
    return prefixes, units
