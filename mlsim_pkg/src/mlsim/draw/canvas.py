"""A sheet to draw on: boxes, pipes, arrows and words, in one style for all drawings.

A sheet is 390 points wide. A phone shows all of it, and letters of 12 points are then 11 pixels
high; in print they are like those of the text. Letters are outlines of the font in which Matplotlib
writes, so a drawing looks the same in every browser, in print and beside the other figures.

Colors are written for paper. What shows a drawing in a dark look finds them by their contrast, as
it does for Matplotlib's figures. So words have one of three colors, and stand on paper or a tint.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from mlsim.display.notes import name_documents
from mlsim.errors import need
from mlsim.records import Figure
from mlsim.records.references import label

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

WIDTH = 390.0  # points
SHOWN = 0.8  # the size at which it is printed; a large screen shows it larger
SIZE = 12.0  # of letters, in points; nothing is smaller
HEAD = 13.0

PAPER = "#ffffff"
INK, QUIET, ACCENT = "#2b343e", "#566270", "#00609c"  # words and lines
TINT, DEEP, BLUE = "#eef2f6", "#dde5ed", "#d5e8f5"  # boxes; blue marks what the drawing is about
MID = "#8dbfe2"  # marks that bear no words, beside the accent
EDGE = "#8a94a0"

Anchor = Literal["start", "middle", "end"]
_UNITS = 100.0  # size at which outlines are kept
_STEPS = {1: "M", 2: "L", 3: "Q", 4: "C"}  # of outlines, by their codes in Matplotlib
_CAPITALS = 0.365  # half the height of a capital letter, in sizes


@dataclass(frozen=True)
class Word:
    """Words on a sheet: where they stand, in which color, on which ground."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    color: str
    ground: str


@dataclass(frozen=True)
class Fact:
    """A number that a drawing shows: of what, as written, and where it is from."""

    part: str
    what: str
    value: str
    source: str


@dataclass(frozen=True, repr=False)
class Drawing:
    """A finished drawing.

    Attributes
    ----------
    title, alt
        What it is, and what it shows, in words: for who can't see it.
    svg
        The drawing, as a file holds it.
    facts
        The numbers in it, with their sources.
    words
        What is written in it, and where.
    """

    title: str
    alt: str
    svg: str
    facts: Sequence[Fact]
    words: Sequence[Word]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the forms in which IPython may show it: image, numbers, text."""
        forms = {"image/svg+xml": self.svg, "text/plain": repr(self)}
        if self.facts:
            out = io.StringIO()
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["Part", "What", "Value", "Source"])
            writer.writerows([each.part, each.what, each.value, each.source] for each in self.facts)
            forms["text/csv"] = out.getvalue()
        return forms

    def __repr__(self) -> str:
        """Return what it is, on a line.

        >>> from mlsim import draw
        >>> draw.chip("A100")
        <drawing: NVIDIA A100 SXM 80 GB with its memory and its host>
        """
        return f"<drawing: {self.title}>"


class Canvas:
    """A sheet, and what is on it so far.

    Places are points from the upper left corner. Of words, `y` is the middle of their capitals.

    >>> sheet = Canvas("A box")
    >>> sheet.box(0, 0, 90, 30, "L2 cache")
    >>> sheet.finish("One box, the L2 cache.", height=30).words[0].text
    'L2 cache'
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.facts: list[Fact] = []
        self.words: list[Word] = []
        self._shapes: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, *, fill: str = TINT,
        edge: str = "", radius: float = 3, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a box without words."""
        line = f' stroke="{edge}" stroke-width="1"' if edge else ""
        line += ' stroke-dasharray="4 3"' if dashed else ""
        self._shapes.append(
            f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" '
            f'rx="{radius:g}" fill="{fill}"{line}/>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, words: str = "", *,
        fill: str = TINT, edge: str = "", color: str = INK, bold: bool = False,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a box with words in its middle, a line for each line of them."""
        self.rect(x, y, width, height, fill=fill, edge=edge, dashed=dashed)
        lines = words.split("\n")
        first = y + height / 2 - 7.5 * (len(lines) - 1)
        for row, each in enumerate(lines):
            self.text(x + width / 2, first + 15 * row, each, "middle", color=color, bold=bold,
                      ground=fill)  # fmt: skip

    def line(
        self, *points: tuple[float, float], color: str = EDGE, width: float = 1.2,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a line from point to point."""
        path = "M" + " L".join(f"{x:.4g} {y:.4g}" for x, y in points)
        dash = ' stroke-dasharray="3 3"' if dashed else ""
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:.4g}"{dash}/>'
        )

    def arrow(self, *points: tuple[float, float], color: str = EDGE, width: float = 1.2) -> None:
        """Draw a line whose end has a head."""
        (a, b), (x, y) = points[-2:]
        long = ((x - a) ** 2 + (y - b) ** 2) ** 0.5 or 1.0
        across, down = (x - a) / long, (y - b) / long
        size = 4.5 + width
        neck = (x - size * across, y - size * down)
        self.line(*points[:-1], neck, color=color, width=width)
        side = 0.55 * size
        corners = [(x, y), (neck[0] - side * down, neck[1] + side * across),
                   (neck[0] + side * down, neck[1] - side * across)]  # fmt: skip
        self.area(*corners, fill=color)

    def area(self, *points: tuple[float, float], fill: str) -> None:
        """Fill the area between points."""
        path = "M" + " L".join(f"{x:.4g} {y:.4g}" for x, y in points) + " Z"
        self._shapes.append(f'<path d="{path}" fill="{fill}"/>')

    def text(
        self, x: float, y: float, words: str, anchor: Anchor = "start", *, size: float = SIZE,
        bold: bool = False, color: str = INK, ground: str = PAPER,
    ) -> None:  # fmt: skip
        """Write words on a ground."""
        if not words:
            return
        outline, wide = _outline(words, bold)
        wide *= size / _UNITS
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
        half = _CAPITALS * size
        self.words.append(Word(words, left, y - half, left + wide, y + half, color, ground))
        scale = f"{size / _UNITS:g}"
        self._shapes.append(
            f'<path d="{outline}" fill="{color}" '
            f'transform="translate({left:.5g} {y + half:.5g}) scale({scale} -{scale})"/>'
        )

    def fact(
        self, part: str, what: str, value: Quantity | str, source: Figure | Quantity | str = ""
    ) -> str:
        """Note a number that the drawing shows, and return how it is written.

        The source of a quantity that is written as it is need not be given.

        >>> from mlsim import Hardware
        >>> Canvas("A chip").fact("HBM", "rate", Hardware.Cloud.A100.memory.bandwidth)
        '2,039 GB/s'
        """
        written = value if isinstance(value, str) else value.text
        origin = source or value
        if isinstance(origin, Figure):
            words = (
                [origin.kind, label(origin.source), origin.where] if origin.source else ["given"]
            )
            said = ", ".join(words)
        else:
            said = origin if isinstance(origin, str) else name_documents(origin.origin.brief)
        self.facts.append(Fact(part, what, written, "" if said == written else said))
        return written

    def finish(self, alt: str, *, height: float) -> Drawing:
        """Return the drawing, cut at a height, with what it shows in words."""
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{SHOWN * WIDTH:g}pt" height="{SHOWN * height:g}pt" '
            f'viewBox="0 0 {WIDTH:g} {height:g}" '
            f'role="img">\n<title>{escape(self.title)}</title>\n<desc>{escape(alt)}</desc>\n'
            f'<rect width="{WIDTH:g}" height="{height:g}" fill="{PAPER}"/>\n'
            + "\n".join(self._shapes)
            + "\n</svg>\n"
        )
        return Drawing(self.title, alt, svg, tuple(self.facts), tuple(self.words))


def width_of(words: str, *, size: float = SIZE, bold: bool = False) -> float:
    """Return how wide words are, in points.

    >>> width_of("HBM") < width_of("HBM2e") < width_of("HBM2e", bold=True)
    True
    """
    return _outline(words, bold)[1] * size / _UNITS


@cache
def _outline(words: str, bold: bool) -> tuple[str, float]:
    """Return the outline of words as a path, and how wide they are, at a size of 100."""
    textpath = need("matplotlib.textpath", "a drawing", "plots")
    manager = need("matplotlib.font_manager", "a drawing", "plots")
    font = manager.FontProperties(weight="bold" if bold else "normal", size=_UNITS)
    path = textpath.TextPath((0, 0), words, prop=font)
    wide = textpath.text_to_path.get_text_width_height_descent(words, font, ismath=False)[0]
    drawn = []
    for corners, code in path.iter_segments(simplify=False, curves=True):
        places = " ".join(f"{each:.0f}" for each in corners)
        drawn.append("Z" if code == path.CLOSEPOLY else _STEPS[code] + places)
    return "".join(drawn), wide
