"""Figures of predictions against measurements, a mark for each published row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mlsim.errors import InvalidValueError, need
from mlsim.plots.plot_data import attach, axes_for
from mlsim.plots.roof import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Each estimate's color, marker and whether it is filled.
_FORMS = {
    "bound": ("#888888", "^", False),
    "roofline": (COLOURS[1], "s", False),
    "calibrated": (COLOURS[0], "o", True),
}
_CLOSE = 0.25
_GRAY = "#888888"


class Row(Protocol):
    """A measured rate beside its predictions."""

    @property
    def words(self) -> str:
        """What was measured."""

    @property
    def unit(self) -> str:
        """Of all rates."""

    @property
    def measured(self) -> float:
        """The measured rate."""

    @property
    def bound(self) -> float:
        """The rate that nothing can exceed."""

    @property
    def best(self) -> float:
        """The calibrated rate, or that of the roofline."""


def plot_accuracy(panels: Mapping[str, Sequence[Any]]) -> tuple[Figure, Any]:
    """Draw predicted against measured rates, a panel for each kind, on logarithmic axes.

    Parameters
    ----------
    panels
        Rows by the title of their panel: measured, and by `bound`, `roofline` and
        `calibrated`, of which the last may be None.

    Returns
    -------
    tuple
        The figure and its axes.

    Raises
    ------
    InvalidValueError
        If there is no panel, or one has no row.
    MissingLibraryError
        If Matplotlib is not installed.
    """
    if not panels or not all(panels.values()):
        raise InvalidValueError("a figure needs panels, and each of them a row.")
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    lines = -(-len(panels) // 2)
    size = (5.2, 2.9 * lines + 0.5)
    figure, axes = pyplot.subplots(lines, 2, figsize=size, layout="constrained", squeeze=False)
    for ax, (title, rows) in zip(axes.flat, panels.items(), strict=False):
        _panel(ax, title, rows)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure, axes


def _panel(ax: Axes, title: str, rows: Sequence[Any]) -> None:
    shown: list[dict[str, str | float]] = []
    for estimate, (color, marker, filled) in _FORMS.items():
        kept = [row for row in rows if getattr(row, estimate) is not None]
        ax.scatter(
            [row.measured for row in kept],
            [getattr(row, estimate) for row in kept],
            s=16,
            marker=marker,
            facecolors=color if filled else "none",
            edgecolors=color,
            linewidths=0.8,
            alpha=0.8,
            label=estimate,
            zorder=3 if filled else 2,
        )
        shown += [
            {
                "What": row.words,
                "Estimate": estimate,
                f"Measured ({row.unit})": row.measured,
                f"Predicted ({row.unit})": getattr(row, estimate),
            }
            for row in kept
        ]
    _equal(ax, [row.measured for row in rows])
    ax.set(xscale="log", yscale="log", xlabel=f"Measured ({rows[0].unit})", ylabel="Predicted")
    ax.set_title(title)
    attach(ax, shown)


def _equal(ax: Axes, measured: Sequence[float]) -> None:
    """Draw where both are equal, and within a quarter."""
    ends = (min(measured) * 0.8, max(measured) * 1.25)
    ax.plot(ends, ends, color=_GRAY, linewidth=1, zorder=1)
    lower, upper = ([factor * end for end in ends] for factor in (1 - _CLOSE, 1 + _CLOSE))
    ax.fill_between(ends, lower, upper, color=_GRAY, alpha=0.2, linewidth=0, zorder=0)


def plot_shares(groups: Mapping[str, Sequence[Row]], ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw predicted against measured speed of all kinds, both as shares of the bound.

    Parameters
    ----------
    groups
        Rows by the name of their kind.
    ax
        Axes to draw on; a new figure otherwise.

    Returns
    -------
    tuple
        The figure and its axes, both logarithmic.

    Raises
    ------
    InvalidValueError
        If there is no row.
    MissingLibraryError
        If Matplotlib is not installed.
    """
    if not any(groups.values()):
        raise InvalidValueError("a figure needs a row.")
    ax = axes_for(ax, 5.2, 3.9)
    shown: list[dict[str, str | float]] = []
    measured: list[float] = []
    for number, (name, rows) in enumerate(groups.items()):
        shares = [(row.measured / row.bound, row.best / row.bound) for row in rows]
        ax.scatter(
            [each for each, _ in shares],
            [each for _, each in shares],
            s=18,
            marker=MARKERS[number % len(MARKERS)],
            color=COLOURS[number % len(COLOURS)],
            alpha=0.75,
            label=name,
            zorder=2,
        )
        measured += [each for each, _ in shares]
        shown += [
            {"What": row.words, "Kind": name, "Measured / bound": x, "Predicted / bound": y}
            for row, (x, y) in zip(rows, shares, strict=True)
        ]
    _equal(ax, measured)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="Measured speed / bound",
        ylabel="Predicted speed / bound",
    )
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.legend(frameon=False, loc="lower right")
    return attach(ax, shown)
