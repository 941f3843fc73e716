"""The numbers behind a figure, carried by the figure itself.

A figure that has data offers them to notebooks and books as comma-separated values,
through the protocol by which IPython asks an object what it can be shown as. Who only
knows images shows the image.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mlsim.errors import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, str | float]


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return the axes to draw on: those that are given, or those of a new figure, in inches."""
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def legend_above(ax: Any, columns: int = 2, **options: Any) -> None:
    """Draw a legend above the axes, where it hides no mark."""
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "frameon": False}
    ax.legend(**place, ncols=columns, **options)


def attach(ax: Any, rows: Sequence[Row]) -> tuple[Figure, Axes]:
    """Let a figure carry what its axes show, and return both.

    Rows are numbers by column, with the unit in its name.
    """
    figure: Any = ax.figure.canvas.figure
    if not hasattr(figure, "_mlsim_data"):
        figure._mlsim_data = []
        figure._repr_mimebundle_ = functools.partial(_offer, figure)
    figure._mlsim_data = [each for each in figure._mlsim_data if each[0] is not ax]
    figure._mlsim_data.append((ax, [dict(row) for row in rows]))
    return ax.figure, ax


def data_of(figure: Figure) -> list[dict[str, str | float]]:
    """Return the numbers behind a figure, a row for each mark; none if it carries none.

    Of a figure with several panels each row names its panel.

    >>> from mlsim.plots import plot_pipeline
    >>> data_of(plot_pipeline(2, 1)[0])[-1]
    {'Stage': 1, 'Pass': 'backward', 'Micro-batch': 1, 'Start': 4, 'End': 6}
    """
    panels = getattr(figure, "_mlsim_data", [])
    return [
        {"Panel": ax.get_title() or str(number), **row} if len(panels) > 1 else dict(row)
        for number, (ax, rows) in enumerate(panels, 1)
        for row in rows
    ]


def _offer(figure: Figure, **_: Any) -> dict[str, str]:
    """Return the data in the form that IPython asks for."""
    rows = data_of(figure)
    out = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _digits(value) for name, value in row.items()} for row in rows])
    return {"text/csv": out.getvalue()}


def _digits(value: str | float) -> str:
    """Return six significant digits of a number, without an exponent.

    >>> _digits(312e12), _digits(2 / 3), _digits("A100")
    ('312000000000000', '0.666667', 'A100')
    """
    if isinstance(value, str):
        return value
    text = format(Decimal(f"{value:.6g}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
