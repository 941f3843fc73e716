"""Turn terminal colours into spans, with the class names that Quarto uses."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def has_ansi(text: str) -> bool:
    """Say whether a text holds codes for colours or weight."""
    return any(code.group(2) == "m" for code in _CODE.finditer(text))


def ansi_to_html(text: str) -> str:
    r"""Return escaped HTML with a span for each coloured stretch.

    >>> ansi_to_html("\x1b[1;31m<a>\x1b[0m b")
    '<span class="ansi-bold ansi-red-fg">&lt;a&gt;</span> b'
    """
    pieces: list[str] = []
    looks: dict[str, str] = {}
    position = 0
    for code in _CODE.finditer(text):
        pieces.append(_span(text[position : code.start()], looks))
        if code.group(2) == "m":
            _apply(code.group(1), looks)
        position = code.end()
    pieces.append(_span(text[position:], looks))
    return "".join(pieces)


def _span(text: str, looks: dict[str, str]) -> str:
    """Return a text in a span of its looks: class names, and styles (which hold a colon)."""
    escaped = html.escape(text, quote=False)
    if not text or not looks:
        return escaped
    styles = ";".join(look for look in looks.values() if ":" in look)
    classes = " ".join(look for look in looks.values() if ":" not in look)
    given = (f' style="{styles}"' if styles else "") + (f' class="{classes}"' if classes else "")
    return f"<span{given}>{escaped}</span>"


_ON = {
    1: ("weight", "ansi-bold"),
    2: ("weight", "opacity:0.7"),
    3: ("slant", "font-style:italic"),
    4: ("line", "text-decoration:underline"),
}
_OFF = {22: "weight", 23: "slant", 24: "line", 39: "fg", 49: "bg"}


def _apply(codes: str, looks: dict[str, str]) -> None:
    """Change the looks in force as one `ESC[...m` says."""
    numbers = [int(number) for number in codes.split(";") if number] or [0]
    index = 0
    while index < len(numbers):
        number = numbers[index]
        if number in (38, 48):
            index += _apply_palette("fg" if number == 38 else "bg", numbers[index + 1 :], looks)
        elif number == 0:
            looks.clear()
        elif number in _ON:
            side, look = _ON[number]
            looks[side] = look
        elif number in _OFF:
            looks.pop(_OFF[number], None)
        else:
            _apply_colour(number, looks)
        index += 1


def _apply_colour(number: int, looks: dict[str, str]) -> None:
    for first, side, name in (
        (30, "fg", "ansi-{}-fg"),
        (40, "bg", "ansi-{}-bg"),
        (90, "fg", "ansi-bright-{}-fg"),
        (100, "bg", "ansi-bright-{}-bg"),
    ):
        if first <= number < first + len(_NAMES):
            looks[side] = name.format(_NAMES[number - first])


def _apply_palette(side: str, after: list[int], looks: dict[str, str]) -> int:
    """Set one of 256 colours (`5;n`) or any colour (`2;r;g;b`); return how many codes it took.

    >>> looks = {}
    >>> _apply_palette("fg", [5, 208], looks), looks
    (2, {'fg': 'color:rgb(255,135,0)'})
    """
    style = "color" if side == "fg" else "background-color"
    if after[:1] == [2] and len(after) >= 4:
        looks[side] = f"{style}:rgb({','.join(str(min(each, 255)) for each in after[1:4])})"
        return 4
    if after[:1] != [5] or len(after) < 2:
        return len(after)
    number = after[1]
    if number < 16:
        bright = "bright-" if number >= len(_NAMES) else ""
        looks[side] = f"ansi-{bright}{_NAMES[number % len(_NAMES)]}-{side}"
    else:
        looks[side] = f"{style}:rgb({','.join(map(str, _rgb(min(number, 255))))})"
    return 2


def _rgb(number: int) -> tuple[int, int, int]:
    """Return a colour of the 6 x 6 x 6 cube (16 to 231) or of the ramp of greys above it."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(number - 16, 36)
    return steps[red], steps[rest // 6], steps[rest % 6]
