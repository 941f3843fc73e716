"""Units as people write them after a number: the factor between two that measure the same.

`verdicts.js` of `mlsim_book` reads units in the same way, from the tables that `rules`
returns. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# What a word stands for: numbers and other words. A word that stands nowhere counts itself.
_UNITS: Mapping[str, str] = {
    "%": "0.01", "percent": "%", "per cent": "%", "times": "1", "time": "1", "x": "1", "×": "1",
    "thousand": "1000", "million": "1000000", "billion": "1000000000", "trillion": "1000000000000",
    "sec": "s", "min": "60 s", "minute": "min", "h": "3600 s", "hour": "h", "day": "24 h",
    "year": "12 month",
    "tonne": "t", "ton": "t", "CO2": "1", "CO2e": "1", "CO₂": "1", "CO₂e": "1",
    "gCO2": "g", "gCO2e": "g", "gCO₂e": "g", "m^3": "m³", "m3": "m³", "$": "USD",
}  # fmt: skip
# The same of words that take a prefix. No "b" is a bit: "Gb" is as often a slip for GB.
_PREFIXED: Mapping[str, str] = {
    "s": "", "second": "s", "B": "", "byte": "B", "Byte": "B", "bit": "0.125 B", "Bps": "B/s",
    "bps": "bit/s", "FLOP": "", "flop": "FLOP", "Flop": "FLOP", "operation": "FLOP", "op": "FLOP",
    "FLOPS": "FLOP/s", "J": "", "joule": "J", "W": "J/s", "watt": "W", "Wh": "3600 J",
    "g": "", "gram": "g", "t": "1000000 g",
    "L": "0.001 m³", "l": "L", "liter": "L", "litre": "L",
}  # fmt: skip
_PREFIXES: Mapping[str, float] = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "P": 1e15,
    "nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12,
    "Ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3, "Ti": 1024.0**4,
}  # fmt: skip
_BINARY = "[KMGT]i"  # in the unit that is asked for: a K before bytes is then 1,024
_PLURAL = r"([A-Za-z]{3,})s"
_OVER = r" */ *|(?:^| +)per +"

Measure = tuple[float, Mapping[str, int]]


def rules() -> dict[str, Any]:
    """Return what the script of a page needs to read units as this module does."""
    return {
        "units": _UNITS,
        "prefixes": _PREFIXES,
        "prefixed": _PREFIXED,
        "binary": _BINARY,
        "plural": _PLURAL,
        "over": _OVER,
    }


def unit_factor(written: str, unit: str) -> float | None:
    """Return what a number in one unit is multiplied by to be in another one.

    None if they don't measure the same. A capital K before bytes is 1,024 where the other
    unit is binary, and 1,000 elsewhere.

    >>> unit_factor("FLOP/B", "FLOP/byte"), unit_factor("KB", "KiB"), unit_factor("min", "s")
    (1.0, 1.0, 60.0)
    >>> unit_factor("GPUs", "GPU"), unit_factor("requests per minute", "requests/s") == 1 / 60
    (1.0, True)
    >>> unit_factor("ms", "GB"), unit_factor("kB", "KiB"), unit_factor("%", "times")
    (None, 0.9765625, 0.01)
    """
    binary = re.search(_BINARY, unit) is not None
    (given, what), (wanted, asked) = _measure(written, binary), _measure(unit, binary)
    return given / wanted if what == asked else None


def _measure(text: str, binary: bool) -> Measure:
    """Return a unit as a factor, and the power of each thing that it measures."""
    total, powers = 1.0, dict[str, int]()
    plain = re.sub("[µμ]", "u", text.strip())
    parts = [plain] if plain in _UNITS else re.split(_OVER, plain)
    for place, part in enumerate(parts):
        for word in [part] if part in _UNITS else re.split(r"[ ·*]+", part):
            value, what = _word(word, binary)
            total = total / value if place else total * value
            for name, power in what.items():
                powers[name] = powers.get(name, 0) + (-power if place else power)
    return total, {name: power for name, power in powers.items() if power}


def _word(word: str, binary: bool) -> Measure:
    if word == "":
        return 1.0, {}
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?", word):
        return float(word), {}
    plural = re.fullmatch(_PLURAL, word)
    for known in (word, plural[1] if plural else word):
        if known in _UNITS:
            return _measure(_UNITS[known], binary)
        for end, meaning in _PREFIXED.items():
            prefix = known.removesuffix(end)
            if prefix != known and prefix in _PREFIXES:
                value, what = _measure(meaning, binary) if meaning else (1.0, {end: 1})
                scale = 1024.0 if binary and prefix == "K" else _PREFIXES[prefix]
                return scale * value, what
    return 1.0, {plural[1] if plural else word: 1}
