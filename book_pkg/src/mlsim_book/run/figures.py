"""Figures that follow the look of the page: one style for all, and a dark copy of each.

    mlsim-book:
      figure-theme: true

Matplotlib then draws in `STYLE`, unless a chapter says otherwise, and each drawing in SVG
gets a copy for the dark look whose colors are chosen by their contrast: what is written
or ruled in grays has on the dark ground the contrast that it has on paper, and other
colors keep their hue and are as light as they must be to be read. An artist whose
group id begins with `keep-colours` (`artist.set_gid("keep-colours-1")`) keeps its colors.

A reader's phone shrinks a figure only until its smallest letters are `LEAST` pixels high.
"""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

GROUND, INK = "#14181d", "#dce2e9"  # the dark look's, as site/theme/layout.css has them
READABLE = 4.5  # the contrast that text needs, by WCAG 2.2, level AA
LEAST = 9  # pixels
DARK = ".dark.svg"  # how the name of a dark copy ends
# Stands for a dark copy, so that nothing is loaded, where the page can't be dark: without
# scripts pages are light. Where the reader's system is light, `site/theme/book.js` takes it away
# as soon as the page is dark all the same. The image is one invisible pixel.
_NOT_YET = (
    '<source media="(scripting: none), (prefers-color-scheme: light)" '
    'srcset="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">'
)

# Okabe and Ito's colors, which people with any color vision can distinguish.
STYLE = """\
font.size: 10.5
axes.titlesize: 11
axes.prop_cycle: cycler("color", ["0072B2", "D55E00", "009E73", "CC79A7", "E69F00", "56B4E9"])
axes.spines.top: False
axes.spines.right: False
axes.edgecolor: "#8a94a0"
axes.labelcolor: "#2b343e"
axes.titlecolor: "#2b343e"
axes.grid: True
axes.axisbelow: True
grid.color: "#e4e8ec"
grid.linewidth: 0.7
text.color: "#2b343e"
xtick.color: "#8a94a0"
ytick.color: "#8a94a0"
xtick.labelcolor: "#47525e"
ytick.labelcolor: "#47525e"
lines.linewidth: 1.8
legend.frameon: False
hatch.linewidth: 0.7
"""

_COLOUR = re.compile(
    r"\b((?:fill|stroke|stop-color|color)\s*[:=]\s*\"?)(#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|black\b|white\b)"
)
_GROUP = re.compile(r"<g\b[^>]*?(/?)>|</g>")
_KEPT = re.compile(r"<g id=\"keep-colours[^\"]*\"")
_PAPER = re.compile(r'(<g id="patch_1">\s*<path\b[^>]*?style="fill: )#ffffff')
_LETTERS = re.compile(r"\bscale\((0\.\d+) -\1\)")
_WIDTH = re.compile(r'<svg[^>]*?\swidth="([\d.]+)pt"')
_GREY = 0.02  # chroma in Oklab
_CHROMA = 0.04  # below it a color is a gray; a tint of paper may have a little more
Colour = tuple[float, float, float]


def dark(svg: str) -> str:
    """Return an SVG drawing as the dark look shows it.

    >>> dark('<svg><path style="fill: #ffffff; stroke: #0072b2"/></svg>')
    '<svg fill="#dce2e9"><path style="fill: #14181d; stroke: #2686c7"/></svg>'
    """
    text = _PAPER.sub(r"\1none", svg)
    pieces = []
    for piece, kept in _parted(text):
        if kept:  # black is not written, and what stands around it is no longer black
            pieces.append(piece.replace("<g ", '<g fill="#000000" ', 1))
        else:
            pieces.append(_COLOUR.sub(lambda match: match[1] + dark_colour(match[2]), piece))
    return "".join(pieces).replace("<svg", f'<svg fill="{INK}"', 1)


def _parted(svg: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a drawing, and whether each keeps its colors."""
    at = 0
    while found := _KEPT.search(svg, at):
        yield svg[at : found.start()], False
        depth = 0
        for tag in _GROUP.finditer(svg, found.start()):
            depth += -1 if tag[0] == "</g>" else not tag[1]
            if not depth:
                break
        at = tag.end()
        yield svg[found.start() : at], True
    yield svg[at:], False


@functools.cache
def dark_colour(colour: str) -> str:
    """Return a color, seen on white, as the dark ground needs it.

    >>> dark_colour("white"), dark_colour("#000"), dark_colour("#E69F00")
    ('#14181d', '#dce2e9', '#e69f00')
    """
    rgb = _linear(colour)
    lightness, a, b = _oklab(rgb)
    chroma = math.hypot(a, b)
    if chroma < 1e-3 and lightness > 0.999:
        return GROUND
    wanted = contrast(rgb, (1, 1, 1))
    most = contrast(_linear(INK), _linear(GROUND))
    if chroma < _GREY and wanted < most:  # grays of the ground's own kind
        return _between(wanted)
    if chroma < _CHROMA or (lightness > 0.88 and chroma < 0.11):
        if wanted >= most:
            return INK
        return _reaching(min(wanted, most), a, b, start=0.0)
    return _reaching(READABLE, a, b, start=lightness)


def _between(wanted: float) -> str:
    """Return the color between the ground and its ink with a contrast on the ground."""
    ground, ink = _oklab(_linear(GROUND)), _oklab(_linear(INK))
    low, high = 0.0, 1.0
    for _ in range(24):
        share = (low + high) / 2
        mixed = _of_oklab(*(g + share * (i - g) for g, i in zip(ground, ink, strict=True)))
        low, high = (share, high) if contrast(mixed, _linear(GROUND)) < wanted else (low, share)
    return _hex(mixed)


def _reaching(wanted: float, a: float, b: float, *, start: float) -> str:
    """Return the darkest color of a hue, no darker than `start`, with a contrast on the ground."""
    ground = _linear(GROUND)
    low = max(start, _oklab(ground)[0])
    high = 1.0
    if contrast(_of_oklab(low, a, b), ground) < wanted:
        for _ in range(24):
            middle = (low + high) / 2
            if contrast(_of_oklab(middle, a, b), ground) < wanted:
                low = middle
            else:
                high = middle
        low = high
    return _hex(_of_oklab(low, a, b))


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast of two colors of light, as WCAG 2.2 defines it.

    >>> round(contrast((0, 0, 0), (1, 1, 1)))
    21
    """
    bright, dim = sorted(
        (sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), each, strict=True)))
        for each in (one, other)
    )[::-1]
    return (bright + 0.05) / (dim + 0.05)


def _linear(colour: str) -> Colour:
    """Return the light of a color: red, green and blue from 0 to 1."""
    digits = {"black": "000000", "white": "ffffff"}.get(colour, colour.removeprefix("#"))
    if len(digits) == 3:
        digits = "".join(2 * each for each in digits)
    values = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def _hex(light: Colour) -> str:
    shown = (12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055 for v in light)
    return "#" + "".join(f"{round(255 * v):02x}" for v in shown)


def _oklab(light: Colour) -> Colour:
    """Return lightness and the two axes of color in Oklab (Björn Ottosson, 2020)."""
    red, green, blue = light
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _of_oklab(lightness: float, a: float, b: float) -> Colour:
    """Return the light of a color in Oklab, paler where a screen can't show so much of it."""
    for share in (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1):
        light = _light(lightness, share * a, share * b)
        if all(-1e-3 <= each <= 1.001 for each in light):
            break
    else:
        light = _light(lightness, 0, 0)
    red, green, blue = (min(max(each, 0.0), 1.0) for each in light)
    return red, green, blue


def _light(lightness: float, a: float, b: float) -> Colour:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def least_width(svg: str) -> int | None:
    """Return the width in pixels below which a drawing's letters are too small to be read.

    None if it has no letters that Matplotlib drew.

    >>> least_width('<svg width="360pt"><g transform="translate(1 2) scale(0.1 -0.1)"/></svg>')
    324
    """
    width = _WIDTH.search(svg)
    sizes = [100 * float(each) for each in _LETTERS.findall(svg)]
    if width is None or not sizes:
        return None
    points = float(width[1])
    return round(96 / 72 * points * min(1.0, LEAST / (96 / 72 * min(sizes))))


def dressed(
    name: str, attributes: str, made: Mapping[str, bytes], link: Callable[[str], str]
) -> str | None:
    """Return the image of a drawing in both looks, in a box that scrolls where it must.

    None if there is no dark copy of it. `name` is its path from the book's root, `made`
    the files drawn, `link` gives the address of a file from the page.

    Of the two, a browser loads the one it shows: both are `loading="lazy"`, which `display:
    none` puts off; and as nothing is put off without scripts, the dark one is kept back there.
    The light one isn't, since a page in the dark look is printed light.
    """
    other = name.removesuffix(".svg") + DARK
    if other not in made or other == name:
        return None
    source = re.compile(r'(\ssrc=)"[^"]*"')
    second = re.sub(r'\sid="[^"]*"', "", source.sub(lambda m: f'{m[1]}"{link(other)}"', attributes))
    least = least_width(made[name].decode())
    style = f' style="min-width: {least}px"' if least and " style=" not in attributes else ""
    pair = (
        f"<img{_with_class(attributes, 'light-content')}{style}>"
        f'<picture class="dark-content">{_NOT_YET}'
        f"<img{_with_class(second, 'dark-content transparent')}{style}></picture>"
    )
    return f'<span class="figure-scroll">{pair}</span>'


def _with_class(attributes: str, name: str) -> str:
    if ' class="' in attributes:
        return attributes.replace(' class="', f' class="{name} ', 1)
    return f'{attributes} class="{name}"'


MIME = "text/csv"
Point = tuple[float, float]
Row = Mapping[str, Any]
SUFFIX = ".csv"


def publish(shell: Any) -> None:
    """Let a kernel give the data of each Matplotlib figure beside its image."""
    from IPython.core.formatters import BaseFormatter
    from traitlets import Unicode

    class Data(BaseFormatter):
        """Ask every figure: the inline backend removes Matplotlib's from a formatter's list."""

        format_type = Unicode(MIME)

        def __call__(self, shown: Any) -> str | None:
            shown = getattr(shown, "still", shown)  # of a figure that moves
            classes = [(each.__module__, each.__name__) for each in type(shown).__mro__]
            return _of_figure(shown) if ("matplotlib.figure", "Figure") in classes else None

    shell.display_formatter.formatters[MIME] = Data(parent=shell.display_formatter)


def _of_figure(figure: Any) -> str | None:
    """Return a figure's data; nothing for a figure that this module doesn't understand."""
    try:
        return csv_text(figure_rows(figure)) or None
    except Exception:  # noqa: BLE001 - a table that is missing must not stop a chapter
        return None


def csv_text(rows: Sequence[Row]) -> str:
    r"""Return rows as comma-separated values, in six significant digits.

    >>> csv_text([{"x": 1, "y (s)": 2 / 3}, {"x": 2.0, "y (s)": float("nan")}])
    'x,y (s)\n1,0.666667\n2,\n'
    """
    if not rows:
        return ""
    out = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_cell(row.get(name, "")) for name in columns] for row in rows])
    return out.getvalue()


def _cell(value: Any) -> str:
    """Return a value as text: numbers without exponent, and none where there is no number."""
    if isinstance(value, str):
        return " ".join(value.replace("$", "").split())
    if value is None or not math.isfinite(value):
        return ""
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(f"{value:.6g}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure_rows(figure: Any) -> list[dict[str, Any]]:
    """Return the data of a figure's axes, those of several with the title of each."""
    shown = [ax for ax in figure.axes if ax.get_visible() and ax.axison]
    panels = [(ax, axes_rows(ax)) for ax in shown if ax.get_label() != "<colorbar>"]
    panels = [(ax, rows) for ax, rows in panels if rows]
    if len(panels) < 2:
        return [row for _, rows in panels for row in rows]
    return [
        {"Panel": ax.get_title() or str(number), **row}
        for number, (ax, rows) in enumerate(panels, 1)
        for row in rows
    ]


def axes_rows(ax: Any) -> list[dict[str, Any]]:
    """Return what one pair of axes shows: a row for each place where all series share them."""
    series = _series(ax)
    if not series:
        return []
    across = _Axis(ax.xaxis, "x")
    up = _Axis(ax.yaxis, "y")
    lying = bool(up.names) and not across.names  # the rows of a chart with names at its side
    first, second = (up, across) if lying else (across, up)
    turned = [(name, [p[::-1] if lying else p for p in points]) for name, points in series]
    names = list(dict.fromkeys(name for name, _ in turned))
    places = [[first.text(each) for each, _ in points] for _, points in turned]
    if len(names) == len(turned) and all(each == places[0] for each in places[1:]):
        return [
            {first.name: place}
            | {
                f"{second.name}, {name}" if name else second.name: second.text(points[n][1])
                for name, points in turned
            }
            for n, place in enumerate(places[0])
        ]
    found = []
    for name, points in turned:
        for one, other in points:
            row = {"Series": name} if len(names) > 1 else {}
            found.append({**row, first.name: first.text(one), second.name: second.text(other)})
    return found


class _Axis:
    """An axis: what it shows, and the names of its places where it has names."""

    def __init__(self, axis: Any, name: str) -> None:
        self.names = _tick_names(axis)
        self.name = axis.get_label_text() or ("Name" if self.names else name)

    def text(self, value: float) -> Any:
        """Return the name of a place, or its number."""
        near = min(self.names, key=lambda at: abs(at - value), default=None)
        return self.names[near] if near is not None and abs(near - value) <= 0.5 else value


def _tick_names(axis: Any) -> dict[float, str]:
    """Return the names that an axis was given for its places; none for an axis of numbers."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    given = isinstance(formatter, FuncFormatter) and hasattr(formatter.func, "args")
    if not given and not isinstance(formatter, FixedFormatter | StrCategoryFormatter):
        return {}
    places = [float(each) for each in axis.get_majorticklocs()]
    names = dict(zip(places, formatter.format_ticks(places), strict=True))
    return {} if all(_says(*each) for each in names.items()) else names


def _says(place: float, name: str) -> bool:
    """Whether a name is but the number of its place, such as "0.5" on a logarithmic axis."""
    try:
        return math.isclose(float(name.replace(",", "")), place)
    except ValueError:
        return False


def _series(ax: Any) -> list[tuple[str, list[Point]]]:
    """Return bars, lines and points by name; unnamed ones only where none has a name."""
    found = [(str(each.get_label()), points) for each, points in _drawn(ax)]
    named = [(name, points) for name, points in found if name and not name.startswith("_")]
    unnamed = [("", points) for _, points in found]
    shown = named or unnamed
    series = [(name, [(float(x), float(y)) for x, y in points]) for name, points in shown]
    return [(name, points) for name, points in series if points]


def _drawn(ax: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Yield what is drawn with places: bars, lines, points, levels."""
    for bars in ax.containers:
        if hasattr(bars, "datavalues"):
            places = (each.get_center() for each in bars.patches)
            pairs = zip(places, bars.datavalues, strict=True)
            lying = bars.orientation == "horizontal"
            yield bars, [(value, y) if lying else (x, value) for (x, y), value in pairs]
    for line in ax.lines:
        if line.get_transform() == ax.transData:  # not a line from edge to edge
            yield line, zip(*line.get_data(), strict=True)
    for each in ax.collections:
        if type(each).__name__ == "PathCollection":
            yield each, each.get_offsets()
        elif type(each).__name__ == "LineCollection":
            # the middles of short level lines, as `hlines` draws them over bars
            ends = each.get_segments()
            yield each, [((a + b) / 2, low) for (a, low), (b, high) in ends if low == high]
