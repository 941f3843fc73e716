"""Numbers as programs print them in different places of the world."""

from __future__ import annotations

import re

from mlsim.errors import DataFileError

_SPACES = "\u00a0\u202f\u2009 '’"
_WHOLE = re.compile(rf"\d{{1,3}}(?:[.,{_SPACES}]\d{{3}})+|\d+")


def whole_number(said: str) -> int | None:
    """Return a count with whatever separates its thousands; None if it is none.

    >>> whole_number("1,234,567"), whole_number("1.234.567"), whole_number("12.5")
    (1234567, 1234567, None)
    """
    plain = said.strip()
    return int(re.sub(r"\D", "", plain)) if _WHOLE.fullmatch(plain) else None


def decimal(said: str, where: str) -> float:
    """Return a number with a fraction after a point or a comma; the last sign is the one.

    Raises
    ------
    DataFileError
        If it is no number.

    >>> decimal("1,234.56", "here"), decimal("1.234,56", "here"), decimal("0,430", "here")
    (1234.56, 1234.56, 0.43)
    """
    plain = re.sub(rf"[{_SPACES}]", "", said.strip())
    if not re.fullmatch(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?", plain):
        raise DataFileError(f"{where}: {said!r} is no number.")
    last = max(plain.rfind("."), plain.rfind(","))
    if last < 0:
        return float(plain)
    sign = plain[last]
    # A sign that stands twice separates thousands.
    if plain.count(sign) > 1:
        return float(plain.replace(sign, ""))
    other = "," if sign == "." else "."
    try:
        return float(plain.replace(other, "").replace(sign, "."))
    except ValueError:
        raise DataFileError(f"{where}: {said!r} is no number.") from None
