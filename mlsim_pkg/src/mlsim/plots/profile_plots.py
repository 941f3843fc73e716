"""Figures of measured runs: tasks over time with the longest chain, and points in five regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mlsim.equations.roofline import attainable_flops, ridge_point
from mlsim.errors import InvalidValueError
from mlsim.plots.plot_data import attach, axes_for
from mlsim.profiling.stopwatch import Task, critical_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CHAIN, _REST = "#D55E00", "#56B4E9"
# A point below this part of the roof is far from it. A convention of this book.
_NEAR = 0.5


def plot_tasks(tasks: Sequence[Task], *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw recorded tasks over time, a row for each lane; the longest chain is hatched.

    Raises
    ------
    InvalidValueError
        If a task has no beginning.

    >>> figure, axes = plot_tasks([Task("a", 1.0, start=0.0), Task("b", 2.0, ("a",), start=1.0)])
    >>> len(axes.patches)
    2
    """
    for task in tasks:
        if task.start is None:
            raise InvalidValueError(f"{task.name} has no beginning; give start=, or use a Trace.")
    chain = set(critical_path(tasks).names)
    names = list(dict.fromkeys(task.lane for task in tasks))
    ax = axes_for(ax, 4.2, 0.8 + 0.5 * len(names))
    for task in tasks:
        on = task.name in chain
        ax.barh(
            names.index(task.lane), task.seconds, left=task.start or 0.0, height=0.6,
            color=_CHAIN if on else _REST, hatch="//" if on else "", edgecolor="white",
        )  # fmt: skip
        middle = (task.start or 0.0) + task.seconds / 2
        ax.text(middle, names.index(task.lane) - 0.42, task.name, ha="center", fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="Time (s)", ylim=(len(names) - 0.5, -0.75))
    rows: list[dict[str, str | float]] = [
        {
            "Task": task.name,
            "Lane": task.lane,
            "Begins (s)": task.start or 0.0,
            "Takes (s)": task.seconds,
            "Longest chain": "yes" if task.name in chain else "no",
        }
        for task in tasks
    ]
    return attach(ax, rows)


def plot_regions(
    peak: float,
    bandwidth: float,
    points: Mapping[str, tuple[float, float]] | None = None,
    *,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw the roof of a machine, its five regions, and points in them.

    Parameters
    ----------
    peak, bandwidth
        Of the machine, in FLOP/s and B/s.
    points
        By name, intensity (FLOP/byte) and rate (FLOP/s).

    >>> figure, axes = plot_regions(1e12, 1e11, {"triad": (0.083, 7e9)})
    >>> axes.get_xscale()
    'log'
    """
    ax = axes_for(ax, 4.2, 3.2)
    ridge = float(ridge_point(peak, bandwidth))
    given = points or {}
    left = min([ridge / 100, *(x / 3 for x, _ in given.values())])
    right = max([ridge * 100, *(x * 3 for x, _ in given.values())])
    across = [left, ridge, right]
    roof = [float(attainable_flops(x, bandwidth, peak)) for x in across]
    low = min([roof[0] / 30, *(y / 3 for _, y in given.values())])
    ax.fill_between(across, [_NEAR * y for y in roof], roof, color=_REST, alpha=0.35, linewidth=0)
    ax.plot(across, roof, color="black")
    ax.plot([ridge, ridge], [low, peak], color="#777777", linestyle=":", linewidth=1)
    middle = (ridge * left) ** 0.5
    slope = middle * bandwidth
    for x, y, words in (
        (ridge * 6, peak * 2.2, "above the peak"),
        (middle, slope * 4.5, "above the\nslope"),
        (ridge * 10, peak * 0.68, "compute-bound"),
        (ridge * 8, peak / 12, "far below\nthe roof"),
    ):
        ax.text(x, y, words, ha="center", va="center", fontsize=8)
    ax.annotate(
        "memory-bound", (middle, slope * 0.7), (middle * 3, slope * 0.22), fontsize=8,
        ha="left", va="center", arrowprops={"arrowstyle": "-", "linewidth": 0.7},
    )  # fmt: skip
    for index, (name, (x, y)) in enumerate(given.items()):
        ax.plot(x, y, marker="os^Dv"[index % 5], linestyle="", color=_CHAIN, label=name)
    if given:
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, peak * 6))
    ax.set(xlabel="Arithmetic intensity (FLOP/byte)", ylabel="FLOP/s")
    rows: list[dict[str, str | float]] = [
        {
            "Point": name,
            "Intensity (FLOP/byte)": x,
            "Rate (FLOP/s)": y,
            "Roof (FLOP/s)": float(attainable_flops(x, bandwidth, peak)),
        }
        for name, (x, y) in given.items()
    ]
    return attach(ax, rows or [{"Roof at (FLOP/byte)": ridge, "Rate (FLOP/s)": peak}])
