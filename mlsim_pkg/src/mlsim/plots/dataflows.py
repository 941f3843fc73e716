"""Figures of what happens cycle by cycle: a systolic array, and a loader that feeds a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need
from mlsim.hardware.systolic import Cell, SystolicRun
from mlsim.plots.plot_data import attach, axes_for
from mlsim.systems.data_loading import LoaderRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Letters of the matrices: at rest, from the west, from the north.
_LETTERS = {"weights": "wx ", "inputs": "xw ", "outputs": "yxw"}
_BUSY, _STILL, _EMPTY = "#56B4E9", "#DDDDDD", "#FFFFFF"


def plot_systolic(run: SystolicRun, *, cycles: Sequence[int]) -> Figure:
    """Draw the cells of a systolic array in some of its cycles, a panel for each.

    A cell names what rests in it above, and what passes through it below. It is blue while
    it multiplies, gray while something rests in it, and else white.

    Raises
    ------
    InvalidValueError
        If the run kept no trace, or has no such cycle.

    >>> from mlsim.hardware.systolic import multiply
    >>> run = multiply([[1, 2]], [[3], [4]], rows=2, columns=1, trace=True)
    >>> len(plot_systolic(run, cycles=[2, 3]).axes)
    2
    """
    if not run.trace:
        raise InvalidValueError("this run kept no cycles to draw: ask `multiply` with trace=True.")
    for number in cycles:
        if not 1 <= number <= len(run.trace):
            raise InvalidValueError(
                f"cycle {number} is none of this run: it has cycles 1 to {len(run.trace)}."
            )
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    across = min(2, len(cycles))  # a phone shows two side by side
    down = -(-len(cycles) // across)
    figure, axes = pyplot.subplots(
        down, across, figsize=(3.6, 1.95 * down), layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.axis("off")
    for ax, number in zip(axes.flat, cycles, strict=False):
        cycle = run.trace[number - 1]
        ax.set_title(f"{number}: {cycle.phase}", fontsize=9)
        for row, cells in enumerate(cycle.cells):
            for column, cell in enumerate(cells):
                _draw_cell(ax, (column, -row), cell, run.dataflow, f"{number}-{row}-{column}")
        ax.set(xlim=(-0.55, run.columns - 0.45), ylim=(-run.rows + 0.45, 0.55), aspect="equal")
        attach(
            ax,
            [
                {
                    "Cycle": number,
                    "Row": row + 1,
                    **{
                        f"Column {column + 1}": " ".join(filter(None, _words(cell, run.dataflow)))
                        for column, cell in enumerate(cells)
                    },
                }
                for row, cells in enumerate(cycle.cells)
            ],
        )
    drawn: Figure = figure
    return drawn


def _draw_cell(ax: Any, at: tuple[float, float], cell: Cell, dataflow: str, gid: str) -> None:
    from matplotlib.patches import Rectangle

    fill = _BUSY if cell.busy else _STILL if cell.rests else _EMPTY
    x, y = at
    box = ax.add_patch(
        Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=fill, edgecolor="#667788")
    )
    box.set_gid(f"keep-colours-{gid}-box")
    lines = [line for line in _words(cell, dataflow) if line]
    heights = ((), (0.18,), (0.18, -0.2), (0.27, 0.0, -0.27))[len(lines)]
    for part, (text, height) in enumerate(zip(lines, heights, strict=True)):
        weight = "bold" if part == 0 and cell.rests else "normal"
        drawn = ax.text(
            x,
            y + height,
            text,
            ha="center",
            va="center",
            fontsize=7.5,
            color="black",
            fontweight=weight,
        )
        drawn.set_gid(f"keep-colours-{gid}-text-{part}")


def _words(cell: Cell, dataflow: str) -> list[str]:
    """Name what is in a cell, at rest, from the west and from the north: letter, row and column."""
    places = (cell.rests, cell.west, cell.north)
    return [
        f"{letter}{place[0] + 1}{place[1] + 1}" if place else ""
        for letter, place in zip(_LETTERS[dataflow], places, strict=True)
    ]


def plot_loader(run: LoaderRun, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw who works on which batch when: a row for each worker, and one for the device.

    >>> from mlsim.systems.data_loading import load_and_compute
    >>> run = load_and_compute(workers=2, prepare_time=2, compute_time=1, batches=4)
    >>> plot_loader(run)[1].get_xlabel()
    'Time (s)'
    """
    workers = sorted({work.who for work in run.prepared})
    names = {who: f"worker {who}" if who else "program" for who in workers}
    drawn = axes_for(ax, 3.7, 0.7 + 0.34 * (1 + len(names)))
    rows = []
    for place, (who, label) in enumerate(names.items()):
        mine = [work for work in run.prepared if work.who == who]
        rows += [(place, label, "prepares", "#E69F00", work) for work in mine]
    rows += [(len(names), "device", "computes", "#0072B2", work) for work in run.computed]
    for place, label, _, fill, work in rows:
        box = drawn.barh(
            place,
            work.end - work.start,
            0.8,
            left=work.start,
            color=fill,
            edgecolor="white",
            linewidth=0.6,
        )
        ink = "white" if label == "device" else "black"
        text = drawn.bar_label(
            box, [f"{work.batch + 1}"], label_type="center", color=ink, fontsize=8
        )
        for each in (*box, *text):
            each.set_gid(f"keep-colours-{place}-{work.batch}-{type(each).__name__}")
    drawn.set_yticks(range(len(names) + 1), [*names.values(), "device"], fontsize=8)
    drawn.invert_yaxis()
    drawn.grid(visible=False)
    drawn.set(xlabel="Time (s)")
    return attach(
        drawn,
        [
            {
                "Who": label,
                "Does": does,
                "Batch": work.batch + 1,
                "Start (s)": work.start,
                "End (s)": work.end,
            }
            for _, label, does, _, work in rows
        ],
    )
