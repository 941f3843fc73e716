"""Figures of machines and of what runs on them.

Half a century of processors, Amdahl's law, levels of memory, systolic arrays, loading of data, and
updates that come late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from mlsim.equations.machines import speedup
from mlsim.errors import InvalidValueError
from mlsim.hardware import memory_levels
from mlsim.hardware.processor_trends import doubling_years, growth, trend
from mlsim.hardware.systolic import Cell, SystolicRun
from mlsim.plots.drawing import (
    COLOURS,
    MARKERS,
    Row,
    attach,
    axes_for,
    curves,
    legend_above,
    note,
    panels,
)
from mlsim.systems.in_steps import LoaderRun, largest_stable_rate, stale_descent
from mlsim.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDE = 5.2  # inches
_STYLES = ("-", "--", "-.", ":")
_NAMES = {
    "transistors": "transistors",
    "single_thread": "one thread (SpecINT x 1000)",
    "frequency": "clock (MHz)",
    "power": "power (W)",
    "cores": "logical cores",
}


def plot_moore(*, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the most transistors of a chip in each year, and the line that fits them.

    >>> plot_moore()[1].get_ylabel()
    'Transistors of the largest chip'
    """
    ax = axes_for(ax, WIDE, 3.4)
    rows = trend("transistors")
    years, first = [row.year for row in rows], rows[0]
    factor = growth("transistors", first.year, rows[-1].year, column="most")
    ax.plot(years, [row.most for row in rows], MARKERS[0], color=COLOURS[0], markersize=4)
    # The line goes through the middle of the points, as a fit does.
    level = geometric_mean([row.most / factor ** (row.year - first.year) for row in rows])
    label = f"twice as many in {doubling_years(factor):.1f} years"
    fitted = [level * factor ** (year - first.year) for year in years]
    ax.plot(years, fitted, color=COLOURS[1], label=label)
    ax.set(yscale="log", xlabel="Year", ylabel="Transistors of the largest chip")
    ax.legend(frameon=False)
    return attach(ax, [{"Year": str(row.year), "Transistors": row.most} for row in rows])


def plot_dennard(
    names: Sequence[str] = ("single_thread", "frequency", "power", "cores"),
    *,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw the medians of each year: what rose with the transistors, and what stopped.

    Raises
    ------
    UnknownNameError
        If a name is no quantity of processors.

    >>> len(plot_dennard(["frequency", "power"])[1].lines)
    2
    """
    ax = axes_for(ax, WIDE, 4.2)
    by_year: dict[int, dict[str, str | float]] = {}
    for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
        rows, label = trend(name), _NAMES[name]
        years, medians = [row.year for row in rows], [row.median for row in rows]
        ax.plot(
            years, medians, f"{marker}-", color=colour, label=label, markersize=3.5, linewidth=1.0
        )
        for row in rows:
            by_year.setdefault(row.year, {"Year": str(row.year)})[label] = row.median
    ax.set(yscale="log", xlabel="Year", ylabel="Median of the chips of a year")
    legend_above(ax)
    return attach(ax, [by_year[year] for year in sorted(by_year)])


def plot_amdahl(
    shares: Sequence[float], *, most: int = 1024, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw the speedup by up to `most` processors, for several parallel shares.

    Raises
    ------
    InvalidValueError
        If a share is not between 0 and 1.

    >>> plot_amdahl([0.9])[1].get_ylabel()
    'Speedup'
    """
    for share in shares:
        if not 0 <= share <= 1:
            raise InvalidValueError(f"a parallel share is from 0 to 1, not {share!r}.")
    ax = axes_for(ax, WIDE, 3.4)
    counts = [2**n for n in range(most.bit_length()) if 2**n <= most]
    gains = {
        f"{100 * share:g} % parallel": [speedup(share, float(count)) for count in counts]
        for share in shares
    }
    curves(ax, counts, gains, markersize=4)
    ax.set(xscale="log", yscale="log", xlabel="Processors", ylabel="Speedup")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.legend(frameon=False)
    rows = zip(*gains.values(), strict=True)
    return attach(
        ax,
        [
            {"Processors": str(count), **dict(zip(gains, row, strict=True))}
            for count, row in zip(counts, rows, strict=True)
        ],
    )


def plot_latencies(*, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the latency of one access at each level on record, lowest at the top.

    >>> plot_latencies()[1].get_xscale()
    'log'
    """
    found = [entry for entry in memory_levels.levels() if "latency" in entry]
    found.sort(key=lambda entry: -entry["latency"].si)
    ladder = [
        (each.name, 1e9 * each["latency"].si, text(each["latency"].si, "s", 3), bool(each.device))
        for each in found
    ]
    ax = _ladder(ax, ladder, ("server with a CPU", "H100"))
    ax.set(xlabel="Latency (ns)", xlim=(0.8, 2e8))
    rows = zip(found, ladder, strict=True)
    return attach(
        ax,
        [
            {"Level": f"{entry.machine}: {entry.name}", "Latency (ns)": value}
            for entry, (_, value, _, _) in rows
        ],
    )


def _ladder(
    ax: Any, entries: Sequence[tuple[str, float, str, bool]], kinds: tuple[str, str]
) -> Any:
    """Draw entries upwards, a line each: name, value, words, and of which of two kinds it is."""
    ax = axes_for(ax, WIDE, 0.8 + 0.28 * len(entries))
    for place, (_, value, words, kind) in enumerate(entries):
        ax.plot(value, place, MARKERS[kind], color=COLOURS[kind], label=kinds[kind])
        note(ax, words, (value, place), (8, -3.5))
    ax.set(xscale="log")
    ax.set_yticks(range(len(entries)), [name for name, *_ in entries])
    handles, labels = ax.get_legend_handles_labels()  # one for each kind
    once = dict(zip(reversed(labels), reversed(handles), strict=True))
    ax.legend(list(once.values()), list(once), frameon=False, loc="upper right")
    return ax


def plot_sweep(
    sizes: Sequence[int],
    times: Mapping[str, Sequence[float]],
    caches: Mapping[str, int],
    *,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw measured times of a read against the bytes that are read from, with caches as lines.

    Parameters
    ----------
    sizes
        Bytes of the working set.
    times
        Nanoseconds for each size, by the name of the curve.
    caches
        Bytes of each cache, by its name; none where the system does not say.

    Raises
    ------
    InvalidValueError
        If a curve has not a time for each size.

    >>> plot_sweep([4096, 8192], {"in order": [1.0, 1.0]}, {"L1": 4096})[1].get_xlabel()
    'Working set (bytes)'
    """
    for name, each in times.items():
        if len(each) != len(sizes):
            raise InvalidValueError(f"{name!r} has {len(each)} times for {len(sizes)} sizes.")
    ax = axes_for(ax, WIDE, 3.4)
    curves(ax, sizes, times, markersize=4)
    ax.set(xscale="log", xlabel="Working set (bytes)", ylabel="Time of a read (ns)")
    ax.set_xscale("log", base=2)
    ticks = list(sizes[::4])
    ax.set_xticks(ticks, [_binary(size) for size in ticks])
    ax.set_ylim(0, None)
    for name, size in caches.items():
        if sizes[0] <= size <= 1.5 * sizes[-1]:
            ax.axvline(size, color="#8a94a0", linewidth=1, linestyle=":")
            note(ax, name, (size, 1), (2, -10), xycoords=("data", "axes fraction"))
    ax.legend(frameon=False, loc="center left")
    return attach(
        ax,
        [
            {"Working set": _binary(size), **{f"{name} (ns)": times[name][n] for name in times}}
            for n, size in enumerate(sizes)
        ],
    )


def _binary(size: int) -> str:
    """Write a power of two as people do.

    >>> _binary(4096), _binary(2**26)
    ('4 KiB', '64 MiB')
    """
    for scale, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale:
            return f"{size / scale:g} {name}"
    return f"{size:g} B"


# Letters of the matrices: at rest, from the west, from the north.
_LETTERS = {"weights": "wx ", "inputs": "xw ", "outputs": "yxw"}
_BUSY, _STILL, _EMPTY = "#56B4E9", "#DDDDDD", "#FFFFFF"


def plot_systolic(*runs: SystolicRun, cycles: Sequence[int]) -> Figure:
    """Draw the cells of a systolic array in some of its cycles, a panel for each.

    A cell names what rests in it above, and what passes through it below. It is blue while
    it multiplies, gray while something rests in it, and else white. Of several runs the same
    cycles are drawn, and panels name what rests.

    Raises
    ------
    InvalidValueError
        If a run kept no trace, or has no such cycle.

    >>> from mlsim.hardware.systolic import multiply
    >>> run = multiply([[1, 2]], [[3], [4]], rows=2, columns=1, trace=True)
    >>> len(plot_systolic(run, cycles=[2, 3]).axes)
    2
    """
    drawn = [(run, number) for run in runs for number in cycles]
    for run, number in drawn:
        if not run.trace:
            raise InvalidValueError(
                "this run kept no cycles to draw: ask `multiply` with trace=True."
            )
        if not 1 <= number <= len(run.trace):
            raise InvalidValueError(
                f"cycle {number} is none of this run: it has cycles 1 to {len(run.trace)}."
            )
    across = min(2, len(drawn))  # a phone shows two side by side
    down = -(-len(drawn) // across)
    figure, axes = panels(down, across, 3.6, 1.95 * down)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (run, number) in zip(axes.flat, drawn, strict=False):
        cycle = run.trace[number - 1]
        who = f"{run.dataflow}, " if len(runs) > 1 else ""
        ax.set_title(f"{who}{number}: {cycle.phase}", fontsize=9)
        for row, cells in enumerate(cycle.cells):
            for column, cell in enumerate(cells):
                gid = f"{run.dataflow}-{number}-{row}-{column}"
                _draw_cell(ax, (column, -row), cell, run.dataflow, gid)
        ax.set(xlim=(-0.55, run.columns - 0.45), ylim=(-run.rows + 0.45, 0.55), aspect="equal")
        rows: list[Row] = []
        for row, cells in enumerate(cycle.cells, 1):
            words = [" ".join(filter(None, _words(cell, run.dataflow))) for cell in cells]
            columns = {f"Column {column}": each for column, each in enumerate(words, 1)}
            rows.append({"Cycle": number, "Row": row, **columns})
        attach(ax, rows)
    return figure


def _draw_cell(ax: Any, at: tuple[float, float], cell: Cell, dataflow: str, gid: str) -> None:
    from matplotlib.patches import Rectangle

    fill = _BUSY if cell.busy else _STILL if cell.rests else _EMPTY
    x, y = at
    corner = (x - 0.46, y - 0.46)
    box = ax.add_patch(Rectangle(corner, 0.92, 0.92, fc=fill, ec="#667788"))
    box.set_gid(f"keep-colours-{gid}-box")
    lines = [line for line in _words(cell, dataflow) if line]
    heights = ((), (0.18,), (0.18, -0.2), (0.27, 0.0, -0.27))[len(lines)]
    for part, (line, height) in enumerate(zip(lines, heights, strict=True)):
        weight = "bold" if part == 0 and cell.rests else "normal"
        middle = {"ha": "center", "va": "center", "fontsize": 7.5, "color": "black"}
        drawn = ax.text(x, y + height, line, fontweight=weight, **middle)
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

    >>> from mlsim.systems.in_steps import load_and_compute
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
        style = {"left": work.start, "color": fill, "edgecolor": "white", "linewidth": 0.6}
        box = drawn.barh(place, work.end - work.start, 0.8, **style)
        ink = "white" if label == "device" else "black"
        words = {"label_type": "center", "color": ink, "fontsize": 8}
        text = drawn.bar_label(box, [f"{work.batch + 1}"], **words)
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


def plot_staleness(rate: float, delays: Sequence[int], *, steps: int = 60) -> Figure:
    """Draw gradient descent with stale gradients, and the largest rate that converges.

    Above, the distance from the minimum of a quadratic at a learning rate, for some delays.
    Below, the limit by the formula, and where a simulation begins to grow.

    Raises
    ------
    InvalidValueError
        If there are not one to four delays, or one is not a whole number from 0 up.

    >>> len(plot_staleness(0.3, [0, 4]).axes)
    2
    """
    if not 1 <= len(delays) <= len(_STYLES):
        raise InvalidValueError(f"give one to {len(_STYLES)} delays, not {len(delays)}.")
    figure, ((upper,), (lower,)) = panels(2, 1, 3.7, 4.8)
    rows: list[dict[str, float]] = []
    for delay, style in zip(delays, _STYLES, strict=False):
        away = [abs(weight) for weight in stale_descent(rate, delay, steps)]
        upper.plot(away, style, label=f"{delay} old")
        rows += [{"Updates old": delay, "Update": at, "Distance": d} for at, d in enumerate(away)]
    upper.set(yscale="log", ylim=(1e-6, 1e3), xlabel="Update", ylabel="Distance from the minimum")
    upper.set_title("Descent", fontsize=9)
    upper.legend(frameon=False, fontsize=8)
    attach(upper, rows)
    every = range(32)
    limits = [largest_stable_rate(delay) for delay in every]
    tried = [0, 1, 2, 4, 7, 15, 31]
    lower.plot(every, limits, label="formula")
    lower.plot(tried, [grows_from(delay) for delay in tried], "x", label="simulation")
    lower.set(yscale="log", xlabel="Updates old", ylabel="Largest rate, × c")
    lower.set_title("Limit", fontsize=9)
    lower.legend(frameon=False, fontsize=8)
    attach(
        lower, [{"Updates old": d, "Limit": limit} for d, limit in zip(every, limits, strict=True)]
    )
    return figure


def grows_from(delay: int, *, steps: int = 3000) -> float:
    """Find the learning rate from which a simulation grows, by halving an interval.

    >>> abs(grows_from(1) - 1) < 0.01
    True
    """
    low, high = 0.0, 2.5
    for _ in range(13):
        middle = (low + high) / 2
        late = stale_descent(middle, delay, steps)[-100:]
        low, high = (middle, high) if max(map(abs, late)) < 1 else (low, middle)
    return middle
