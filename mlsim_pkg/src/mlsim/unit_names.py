"""The units by name, and what each is in base units, without a units library.

A data file says "2039 GB/s"; to know that this is 2.039e12 B/s takes a table of
names and two rules, and not the fifth of a second that importing Pint does. So
Pint is imported when a quantity is made, not when a figure is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

# Base units first, each a dimension; then what is made of them. An integer
# operation counts as a FLOP, so that TOP/s and TFLOP/s are one unit.
DEFINITIONS = """
tera- = 1e12 = T-
peta- = 1e15 = P-
exa- = 1e18 = E-
giga- = 1e9 = G-
mega- = 1e6 = M-
kilo- = 1e3 = k-
milli- = 1e-3 = m-
micro- = 1e-6 = µ- = μ- = u-
nano- = 1e-9 = n-
kibi- = 1024 = Ki-
mebi- = 1048576 = Mi-
gibi- = 1073741824 = Gi-
tebi- = 1099511627776 = Ti-
second = [time] = s
byte = [information] = B
flop = [operation] = FLOP = FLOPs = flops = OP = op
multiply_add = [multiply_add] = MAC
sample = [sample]
image = sample
token = [token]
parameter = [parameter]
element = [element]
pair = [pair]
joule = [energy] = J
kg_CO2e = [carbon] = kgCO2e
g_CO2e = kg_CO2e / 1000 = gCO2e
tonne_CO2e = 1000 * kg_CO2e = tCO2e
USD = [money]
liter = [water] = L
year_date = [calendar] = year
percent = 0.01 = %
bit = byte / 8 = b
minute = 60 * second = min
hour = 60 * minute = h
day = 24 * hour = d
lifetime_year = 365 * day = yr
watt = joule / second = W
watt_hour = watt * hour = Wh
"""

# A scale, and the power of each dimension: 1 GB/s is 1e9, {"information": 1, "time": -1}.
Measure = tuple[float, Mapping[str, int]]

_PART = re.compile(r"\s*([*/])\s*")


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
    for line in DEFINITIONS.strip().splitlines():
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
