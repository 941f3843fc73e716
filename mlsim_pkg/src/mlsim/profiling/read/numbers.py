"""Numbers and units as profilers print them: thousands separators, other locales, prefixes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from mlsim.errors import DataFileError, InvalidValueError

# What stands for "no value".
ABSENT = frozenset(
    {"", "-", "--", "n/a", "na", "nan", "none", "null", "(!) n/a", "<not supported>"}
    | {"<not counted>", "(!) nan", "-nan", "inf", "-inf", "infinity"}
)
_SPACES = " \u00a0\u202f\u2009'’"
_SHAPE = re.compile(rf"[+-]?\d[\d.,{_SPACES}]*([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Locale:
    """Which sign parts thousands, and which the fraction.

    >>> Locale(",", ".").number("1,862,653,056.5"), Locale(".", ",").number("1.862,5")
    (1862653056.5, 1862.5)
    """

    thousands: str
    decimal: str

    def number(self, text: str) -> float | None:
        """Return a number; None where the text stands for no value.

        Raises
        ------
        InvalidValueError
            If it is no number in this locale.

        >>> Locale(",", ".").number("n/a")
        """
        plain = text.strip()
        if plain.lower() in ABSENT:
            return None
        if plain.isascii() and plain.isdigit():
            return float(plain)
        found = _grammar(self.thousands, self.decimal).fullmatch(plain)
        if not found:
            raise InvalidValueError(f"{text!r} is no number")
        whole = re.sub(rf"[{re.escape(self.thousands + _SPACES)}]", "", found["whole"])
        value = float(f"{whole}{'.' if found['part'] else ''}{found['part'] or ''}{found['power']}")
        if not math.isfinite(value):
            raise InvalidValueError(f"{text!r} is too large for a number")
        return value


_GRAMMARS: dict[tuple[str, str], re.Pattern[str]] = {}


def _grammar(thousands: str, decimal: str) -> re.Pattern[str]:
    key = (thousands, decimal)
    if key not in _GRAMMARS:
        group = re.escape(thousands + _SPACES)
        # One sign throughout, and three digits after each.
        _GRAMMARS[key] = re.compile(
            rf"(?P<whole>[+-]?(?:\d+|\d{{1,3}}(?:(?P<sign>[{group}])\d{{3}})(?:(?P=sign)\d{{3}})*))"
            rf"(?:{re.escape(decimal)}(?P<part>\d*))?(?P<power>(?:[eE][+-]?\d+)?)"
        )
    return _GRAMMARS[key]


ENGLISH, GERMAN = Locale(",", "."), Locale(".", ",")


def find_locale(
    cells: Iterable[str], where: str, *, decimal: str | None = None, english: bool = False
) -> Locale:
    """Find out from many cells which sign parts the fraction.

    With `english` a point that could be either begins a fraction.

    Raises
    ------
    DataFileError
        If cells contradict one another, or all could be read both ways.

    >>> find_locale(["24,880,256", "24.98"], "file"), find_locale(["1.862", "24,98"], "file")
    (Locale(thousands=',', decimal='.'), Locale(thousands='.', decimal=','))
    """
    if decimal is not None:
        if decimal not in (".", ","):
            raise InvalidValueError(f'decimal is "." or ",", not {decimal!r}.')
        return ENGLISH if decimal == "." else GERMAN
    fractions: dict[str, str] = {}
    thousands: dict[str, str] = {}
    either: dict[str, str] = {}
    for cell in cells:
        text = cell.strip()
        if ("," in text or "." in text) and _SHAPE.fullmatch(text):
            _weigh(text, fractions, thousands, either)
    for sign in ",.":
        other = "." if sign == "," else ","
        if sign in fractions and (sign in thousands or other in fractions):
            against = thousands.get(sign) or fractions[other]
            raise DataFileError(
                f"{where}: {fractions[sign]!r} and {against!r} are numbers of two locales. Export "
                "the file again with LC_ALL=C."
            )
    if "," in fractions or "." in thousands:
        return GERMAN
    if "." in fractions or "," in thousands or "," in either:
        # Profilers print English unless something says otherwise.
        if "." in either and "." not in fractions and "," not in thousands and not english:
            raise _both(where, either["."])
        return ENGLISH
    if "." in either and not english:
        raise _both(where, either["."])
    return ENGLISH


def _both(where: str, cell: str) -> DataFileError:
    return DataFileError(
        f"{where}: {cell!r} could be a fraction or thousands, and nothing in the file decides. "
        'Say decimal="." or decimal=",".'
    )


def _weigh(
    text: str, fractions: dict[str, str], thousands: dict[str, str], either: dict[str, str]
) -> None:
    """Note what one cell says of the two signs."""
    mantissa = re.split("[eE]", text.lstrip("+-"))[0]
    signs = [each for each in mantissa if each in ".,"]
    last = signs[-1]
    after = len(mantissa) - mantissa.rindex(last) - 1
    before = re.split(r"[.,]", mantissa)[0]
    grouped = any(each in mantissa for each in _SPACES)
    if len(set(signs)) == 2:
        fractions.setdefault(last, text)
        thousands.setdefault(signs[0], text)
    elif len(signs) > 1:
        thousands.setdefault(last, text)
    elif grouped or after != 3 or len(before) > 3 or before[:1] == "0":
        fractions.setdefault(last, text)
    else:
        either.setdefault(last, text)


_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
_SECOND_WORDS = ("seconds", "second", "secs", "sec", "s")
_BYTE_WORDS = ("bytes", "byte", "B")
_COUNT_WORDS = ("inst", "op", "ops", "cycle", "cycles", "sector", "sectors", "request", "warp")


@lru_cache(maxsize=256)
def unit_scale(unit: str) -> tuple[str, float] | None:
    """Return what a unit measures and its scale; None if it is unknown.

    Kinds are "s", "B", "1" (things that are counted), "B/s", "1/s", "1/cycle" and "%".

    >>> unit_scale("Mbyte"), unit_scale("usecond"), unit_scale("Gbyte/second")
    (('B', 1000000.0), ('s', 1e-06), ('B/s', 1000000000.0))
    >>> unit_scale("cycle/nsecond"), unit_scale("Ghz"), unit_scale("inst/cycle")
    (('1/s', 1000000000.0), ('1/s', 1000000000.0), ('1/cycle', 1.0))
    >>> unit_scale("furlong")
    """
    text = unit.strip()
    if text in ("", "1", "#"):
        return "1", 1.0
    if text == "%":
        return "%", 1.0
    top, slash, below = text.partition("/")
    if slash:
        return _rate(top, below)
    if text.lower().endswith("hz"):
        scale = _PREFIX.get(text[:-2], _PREFIX.get(text[:-2].upper()))
        return None if scale is None else ("1/s", scale)
    for words, prefixes, kind in (
        (_SECOND_WORDS, _SECONDS, "s"),
        (_BYTE_WORDS, _PREFIX | _BINARY, "B"),
        (_COUNT_WORDS, _PREFIX, "1"),
    ):
        for word in words:
            if text.endswith(word) and text.removesuffix(word) in prefixes:
                return kind, prefixes[text.removesuffix(word)]
    return None


def _rate(top: str, below: str) -> tuple[str, float] | None:
    above, under = unit_scale(top), unit_scale(below)
    if above is None or under is None or above[0] not in ("B", "1"):
        return None
    if below.strip() == "cycle":
        return (f"{above[0]}/cycle", above[1]) if above[0] == "1" else None
    if under[0] == "s":
        return f"{above[0]}/s", float(f"{above[1] / under[1]:.12g}")
    return None
