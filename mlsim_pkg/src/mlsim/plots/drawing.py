"""What all figures share: axes, the roof, colors, and the numbers that a figure itself carries.

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

from mlsim.equations import roofline
from mlsim.errors import need
from mlsim.hardware import Device
from mlsim.records import DATA
from mlsim.units import scale_for, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Row = Mapping[str, str | float]


def panels(down: int, across: int, width: float, height: float) -> tuple[Figure, Any]:
    """Return a new figure, in inches, and its axes in rows."""
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    made: tuple[Figure, Any] = pyplot.subplots(
        down, across, figsize=(width, height), layout="constrained", squeeze=False
    )
    return made


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return the axes to draw on: those that are given, or those of a new figure, in inches."""
    return panels(1, 1, width, height)[1][0, 0] if ax is None else ax


def note(ax: Any, words: str, at: tuple[Any, Any], offset: tuple[float, float], **how: Any) -> None:
    """Write words beside a place, so many points to its right and above it."""
    ax.annotate(words, at, xytext=offset, textcoords="offset points", **how)


def curves(ax: Any, xs: Sequence[float], lines: Mapping[str, Sequence[float]], **how: Any) -> None:
    """Draw lines over the same numbers, each in a color and with a marker of its own."""
    for (name, ys), color, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
        ax.plot(xs, ys, f"{marker}-", color=color, label=name, **how)


def style(page: str) -> str:
    """Return the style of a page of HTML, such as that of a report."""
    return (DATA / "styles" / f"{page}.css").read_text(encoding="utf-8")


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


# Okabe and Ito's colors, which people with any color vision can distinguish; the
# markers differ too, so a print in gray can be read.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
# Inches. Text of 10 points in so narrow a figure can still be read on a phone.
SIZE = (5.2, 3.9)
X_LABEL, Y_LABEL = "Arithmetic intensity (FLOP/byte)", "Rate (TFLOP/s)"


def draw_roof(ax: Any, device: Device, peak: float, intensities: list[float]) -> None:
    """Draw slope, flat and ridge, three decades about the ridge or as points need."""
    ticker = need("matplotlib.ticker", "a figure", "plots")
    bandwidth = device.bandwidth_si
    ridge = roofline.ridge_point(peak, bandwidth)
    low = min([ridge / 300, *(each / 3 for each in intensities)])
    high = max([ridge * 10, *(each * 3 for each in intensities)])
    roof = [roofline.attainable_flops(each, bandwidth, peak) / 1e12 for each in (low, ridge, high)]
    ax.plot([low, ridge, high], roof, color="#555555", linewidth=2, zorder=1)
    # Room above the roof for the legend and the name of the peak.
    ax.set(xscale="log", yscale="log", xlabel=X_LABEL, ylabel=Y_LABEL)
    ax.set(xlim=(low, high), ylim=(roof[0], 6 * roof[-1]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
    ax.axvline(ridge, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    scale, unit = scale_for(peak, "FLOP/s")
    note(ax, f"peak {peak / scale:g} {unit}", (ridge, roof[-1]), (4, 9))
    note(ax, f"ridge {ridge:.0f} FLOP/byte", (ridge, roof[0]), (5, 6), color="#555555")
    left = low * 4
    start = (left, roofline.attainable_flops(left, bandwidth, peak) / 1e12)
    note(ax, text(bandwidth, "B/s"), start, (8, -4), va="top")


def draw_ceilings(ax: Any, ceilings: dict[str, float], bandwidth: float) -> None:
    """Draw ceilings below the flat, each from where the slope meets it, with its name."""
    _, high = ax.get_xlim()
    for name, rate in ceilings.items():
        left = roofline.ridge_point(rate, bandwidth)
        ax.plot([left, high], [rate / 1e12] * 2, color="#777777", linewidth=1, linestyle="--")
        style = {"ha": "right", "fontsize": "small", "color": "#555555"}
        note(ax, name, (high, rate / 1e12), (-3, 2), **style)
    low, top = ax.get_ylim()
    ax.set_ylim(min([low, *(rate / 2e12 for rate in ceilings.values())]), top)
