"""Number formats: what their bits stand for, and which numbers they have."""

from __future__ import annotations

from mlsim.draw.canvas import ACCENT, HEAD, MID, QUIET, WIDTH, Anchor, Canvas, Drawing
from mlsim.errors import InvalidValueError, unknown_name
from mlsim.plots.formats import BITS

_BIT = 9.0  # width of a bit, in points
_PARTS = (("sign", QUIET), ("exponent", ACCENT), ("mantissa", MID))
_USUAL = ("FP32", "BF16", "FP16", "FP8 E4M3", "FP8 E5M2", "NVFP4", "INT8")


def bits(*names: str) -> Drawing:
    """Draw what the bits of formats stand for: sign, exponent and mantissa.

    Parameters
    ----------
    names
        Formats such as "BF16"; the usual ones if none is given.

    Raises
    ------
    UnknownNameError
        If there is no such format; suggests the nearest.

    >>> print(bits("BF16").alt)
    Rows of bits. BF16 has 1 bit of sign, 8 of exponent and 7 of mantissa.
    """
    sheet, told = Canvas("The bits of number formats"), ["Rows of bits."]
    left = 0.0
    for part, color in _PARTS:
        sheet.rect(left, 3, _BIT + 1, 12, fill=color, radius=1)
        sheet.text(left + 16, 9, part)
        left += 100
    top = 28.0
    for name in names or _USUAL:
        parts, (block, scale) = _format(name)
        split = " + ".join(f"{each}" for each in parts if each)
        sheet.text(0, top + 6, name, bold=True)
        shared = f"{scale} bits for each {block}" if block else ""
        for (part, _), each in zip(_PARTS, parts, strict=True):
            if each:
                sheet.fact(name, f"bits of {part}", f"{each}", "definition of the format")
        sheet.text(82, top + 6, f"{split} bits" + (f", and a scale of {shared}" if shared else ""))
        x = 82.0
        for (_, color), count in zip(_PARTS, parts, strict=True):
            for _ in range(count):
                sheet.rect(x, top + 16, _BIT - 1.5, 12, fill=color, radius=1)
                x += _BIT
        told.append(f"{name} has 1 bit of sign, {parts[1]} of exponent and {parts[2]} of mantissa."
                    if parts[1] else f"{name} has 1 bit of sign, {parts[2]} of value.")  # fmt: skip
        if shared:
            told.append(f"A scale of {shared} numbers is shared.")
        top += 38
    return sheet.finish(" ".join(told), height=top - 4)


def number_line(*names: str, most: float = 4.0) -> Drawing:
    """Draw all numbers from 0 to a largest one that narrow formats have.

    Where a format has an exponent, they stand closer near zero; those of an integer are spread
    evenly, the largest at the end of the line.

    Parameters
    ----------
    names
        Formats of at most eight bits; "FP8 E4M3", "FP8 E5M2", "NVFP4" and "INT8" if none is given.
    most
        The end of the line.

    Raises
    ------
    InvalidValueError
        If a format is wider, or the end is no positive number.
    UnknownNameError
        If there is no such format; suggests the nearest.

    >>> number_line("NVFP4").facts[0].value
    '7'
    """
    if not most > 0:
        raise InvalidValueError(f"most must be a positive number, not {most!r}.")
    sheet, told = Canvas("Numbers that formats have"), [f"Marks on lines from 0 to {most:g}."]
    top, left, wide = 0.0, 4.0, WIDTH - 8
    for name in names or ("FP8 E4M3", "FP8 E5M2", "NVFP4", "INT8"):
        values = [each for each in _values(name, most) if each <= most]
        count = sheet.fact(name, f"numbers from 0 to {most:g}", f"{len(values):,}",
                           "counted, of its bits")  # fmt: skip
        sheet.text(0, top + 8, name, bold=True, size=HEAD)
        sheet.text(WIDTH, top + 8, f"{count} numbers", "end", color=QUIET)
        sheet.line((left, top + 34), (left + wide, top + 34))
        for value in values:
            x = left + wide * value / most
            sheet.line((x, top + 22), (x, top + 34), color=ACCENT, width=1)
        spread = "closer to one another near 0" if _format(name)[0][1] else "spread evenly"
        told.append(f"{name} has {count} numbers there, {spread}.")
        top += 50
    for at in range(5):
        anchor: Anchor = "start" if not at else "end" if at == 4 else "middle"
        x = WIDTH * at / 4 if at in (0, 4) else left + wide * at / 4
        sheet.text(x, top - 2, f"{most * at / 4:g}", anchor, color=QUIET)
    ticks = ", ".join(f"{most * at / 4:g}" for at in range(5))
    return sheet.finish(f"{' '.join(told)} Ticks at {ticks}.", height=top + 6)


def _format(name: str) -> tuple[tuple[int, int, int], tuple[int, int]]:
    if name not in BITS:
        raise unknown_name("number format", name, BITS)
    return BITS[name]


def _values(name: str, most: float) -> list[float]:
    """Return the numbers of a format that are not negative, as IEEE 754 reads bits."""
    (_, exponent, mantissa), _ = _format(name)
    if exponent + mantissa > 7:
        raise InvalidValueError(f"{name} has too many numbers for a line: give one of 8 bits.")
    steps = 2**mantissa
    if not exponent:
        return [most * each / (steps - 1) for each in range(steps)]
    bias = 2 ** (exponent - 1) - 1
    small = [each / steps * 2 ** (1 - bias) for each in range(steps)]
    rest = [(1 + each / steps) * 2 ** (power - bias)
            for power in range(1, 2**exponent) for each in range(steps)]  # fmt: skip
    return small + rest
