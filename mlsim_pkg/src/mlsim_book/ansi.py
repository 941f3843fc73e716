"""Turn terminal colours into spans, with the class names nbconvert and Quarto use."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def has_ansi(text: str) -> bool:
    """Say whether a text holds terminal codes."""
    return _CODE.search(text) is not None


def ansi_to_html(text: str) -> str:
    r"""Return escaped HTML with a span for each coloured stretch.

    >>> ansi_to_html("\x1b[1;31m<a>\x1b[0m b")
    '<span class="ansi-bold ansi-red-fg">&lt;a&gt;</span> b'
    """
    pieces: list[str] = []
    classes: dict[str, str] = {}
    position = 0
    for code in _CODE.finditer(text):
        pieces.append(_span(text[position : code.start()], classes))
        if code.group(2) == "m":
            _apply(code.group(1), classes)
        position = code.end()
    pieces.append(_span(text[position:], classes))
    return "".join(pieces)


def _span(text: str, classes: dict[str, str]) -> str:
    escaped = html.escape(text, quote=False)
    if not text or not classes:
        return escaped
    return f'<span class="{" ".join(classes.values())}">{escaped}</span>'


def _apply(codes: str, classes: dict[str, str]) -> None:
    """Change the classes in force as one `ESC[...m` says."""
    numbers = [int(number) for number in codes.split(";") if number] or [0]
    index = 0
    while index < len(numbers):
        number = numbers[index]
        if number in (38, 48):  # 256 or true colours: no class for them
            index += 3 if numbers[index + 1 : index + 2] == [5] else 5
            continue
        if number == 0:
            classes.clear()
        elif number in (1, 3, 4):
            classes[str(number)] = {1: "ansi-bold", 3: "ansi-italic", 4: "ansi-underline"}[number]
        elif number in (39, 49):
            classes.pop({39: "fg", 49: "bg"}[number], None)
        else:
            _apply_colour(number, classes)
        index += 1


def _apply_colour(number: int, classes: dict[str, str]) -> None:
    for first, side, name in (
        (30, "fg", "ansi-{}-fg"),
        (40, "bg", "ansi-{}-bg"),
        (90, "fg", "ansi-{}-intense-fg"),
        (100, "bg", "ansi-{}-intense-bg"),
    ):
        if first <= number < first + len(_NAMES):
            classes[side] = name.format(_NAMES[number - first])
