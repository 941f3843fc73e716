"""The numbers of a Matplotlib figure, read from what it draws, as comma-separated values.

    mlsim-book:
      figure-data: true

The kernel then gives each figure, besides its image, its data as `text/csv`; the page
shows them in a table that opens (see `figure_tables`). A figure that has better data
than its lines and bars gives `text/csv` itself, in the `_repr_mimebundle_` that IPython
knows. A figure without axes to read, such as a diagram, has none.

This module runs in the kernel: it imports Matplotlib only once a figure is there.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

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
    series = [(name, _points(points)) for name, points in named or unnamed]
    return [(name, points) for name, points in series if points]


def _drawn(ax: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Yield what is drawn with places: bars, lines, points, levels."""
    for bars in ax.containers:
        if hasattr(bars, "datavalues"):
            yield bars, _bars(bars)
    for line in ax.lines:
        if line.get_transform() == ax.transData:  # not a line from edge to edge
            yield line, zip(*line.get_data(), strict=True)
    for each in ax.collections:
        if type(each).__name__ == "PathCollection":
            yield each, each.get_offsets()
        elif type(each).__name__ == "LineCollection":
            yield each, _levels(each)


def _bars(bars: Any) -> Iterable[Point]:
    for patch, value in zip(bars.patches, bars.datavalues, strict=True):
        if bars.orientation == "horizontal":
            yield value, patch.get_y() + patch.get_height() / 2
        else:
            yield patch.get_x() + patch.get_width() / 2, value


def _levels(lines: Any) -> Iterable[Point]:
    """Yield the middles of short level lines, as `hlines` draws them over bars."""
    for (left, low), (right, high) in lines.get_segments():
        if low == high:
            yield (left + right) / 2, low


def _points(points: Iterable[Any]) -> list[Point]:
    return [(float(x), float(y)) for x, y in points]
