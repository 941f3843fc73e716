"""Figures of published rows: predictions against measurements, and growth over the years."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need, unknown_name
from mlsim.measured.growth import Growth, growth_of, records, years
from mlsim.plots import drawing
from mlsim.plots.drawing import COLOURS, MARKERS, attach, axes_for, legend_above, note

if TYPE_CHECKING:
    import pandas
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
    lines = -(-len(panels) // 2)
    figure, axes = drawing.panels(lines, 2, 5.2, 2.9 * lines + 0.5)
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


def plot_shares(groups: Mapping[str, Sequence[Any]], ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw predicted against measured speed of all kinds, both as shares of the bound.

    Parameters
    ----------
    groups
        Rows by the name of their kind: words, unit, measured, bound, and best, the prediction.
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
    ax.set(xscale="log", yscale="log")
    ax.set(xlabel="Measured speed / bound", ylabel="Predicted speed / bound")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.legend(frameon=False, loc="lower right")
    return attach(ax, shown)


# What a column is called on an axis, and by what its numbers are divided there.
COLUMNS = {
    "parameters": ("Parameters (billion)", 1e9),
    "active_parameters": ("Parameters a token meets (billion)", 1e9),
    "tokens": ("Tokens of training (trillion)", 1e12),
    "flops": ("Work of training (10²¹ FLOP)", 1e21),
    "peak": ("Peak in 16 bits (TFLOP/s)", 1e12),
    "capacity": ("Memory (GB)", 1e9),
    "bandwidth": ("Memory bandwidth (GB/s)", 1e9),
}
# Dense and experts differ by color and by marker; closed weights are hollow.
_OF_WEIGHTS = {
    "dense": (COLOURS[0], MARKERS[0], "dense"),
    "experts": (COLOURS[1], MARKERS[2], "mixture of experts"),
}
_DEVICE = (COLOURS[2], MARKERS[1], "device")
_SIZE = (5.2, 3.9)
# Two names need this much room between their points, as shares of the figure.
_WIDE, _HIGH = 0.35, 0.055
_STYLES = ("-", "--", ":")


def plot_growth(
    table: pandas.DataFrame,
    column: str,
    *,
    spans: Sequence[tuple[float, float]] = (),
    named: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw how a column grew: a point for each row, and a fitted line for each span.

    Parameters
    ----------
    table
        Language models (`language_models()`) or devices (`accelerators()`), or some of
        their rows.
    column
        One of `COLUMNS` that the table has.
    spans
        Pairs of years; for each a line is fitted to the points between them, the first
        included, and the legend says in how many months or years it doubles.
    named
        Keys of rows whose names are written beside them. If left out, the records are named,
        from the largest down, as far as there is room.
    ax
        Axes to draw on; a new figure otherwise.

    Returns
    -------
    tuple
        The figure and its axes, whose vertical one is logarithmic.

    Raises
    ------
    UnknownNameError
        If there is no such column, or a name is no key of the table.
    InvalidValueError
        If a span has fewer than three points.
    MissingLibraryError
        If Matplotlib is not installed.

    >>> from mlsim.measured import language_models
    >>> figure, axes = plot_growth(language_models(), "tokens", spans=[(2022, 2027)])
    >>> axes.get_yscale()
    'log'
    """
    there = [each for each in COLUMNS if each in table]
    if column not in there:
        raise unknown_name("column", column, there)
    label, scale = COLUMNS[column]
    fits = [growth_of(table, column, since=since, until=until) for since, until in spans]
    times: Any = years(table)
    known: Any = table[table[column].notna() & times.notna()]
    values = known[column] / scale
    for key in named or ():
        if key not in table.index:
            raise unknown_name("row of the table", key, list(table.index))
    names = _apart(table, column) if named is None else named
    ax = axes_for(ax, *_SIZE)
    styles = _OF_WEIGHTS if "form" in known else {None: _DEVICE}
    for form, style in styles.items():
        rows = known if form is None else known[known["form"] == form]
        _points(ax, times, rows, values, style)
    for number, ((since, until), fit) in enumerate(zip(spans, fits, strict=True)):
        inside = times[known.index][(times >= since) & (times < until)]
        ends = (inside.min(), inside.max())
        ax.plot(
            ends,
            [fit.at(end) / scale for end in ends],
            color="#555555",
            linestyle=_STYLES[number % len(_STYLES)],
            label=doubling_words(fit),
            zorder=1,
        )
    ax.margins(x=0.06, y=0.08)
    _name(ax, known, times, values, names)
    ax.set(yscale="log", ylabel=label)
    ax.xaxis.set_major_locator(need("matplotlib.ticker", "a figure", "plots").MultipleLocator(1))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.tick_params(axis="x", rotation=45)
    ax.yaxis.set_major_formatter("{x:g}")
    legend_above(ax)
    return attach(ax, _rows(known, times, column, label, scale))


def doubling_words(fit: Growth) -> str:
    """Say in how long a fit doubles: months below two years, years above.

    >>> from mlsim.measured.growth import fit_growth
    >>> doubling_words(fit_growth([2020, 2021, 2022], [1, 4, 16]))
    'doubles in 6.0 months'
    >>> doubling_words(fit_growth([2020, 2021, 2022], [4, 2, 1]))
    'halves in 12 months'
    """
    time = abs(fit.doubling_time)
    verb = "doubles" if fit.doubling_time > 0 else "halves"
    if time < 2:
        months = 12 * time
        return f"{verb} in {months:.1f} months" if months < 10 else f"{verb} in {months:.0f} months"
    return f"{verb} in {time:.1f} years" if time < 100 else "stands still"


def _points(ax: Any, times: Any, rows: Any, values: Any, style: tuple[str, str, str]) -> None:
    """Draw rows as points; those whose weights nobody outside has are hollow."""
    color, marker, words = style
    closed = rows["weights"] == "closed" if "weights" in rows else values < 0
    for hollow in (False, True):
        some = rows[closed == hollow]
        if some.empty:
            continue
        ax.scatter(
            times[some.index],
            values[some.index],
            s=34,
            marker=marker,
            facecolor="none" if hollow else color,
            edgecolor=color,
            label=f"{words}, closed" if hollow else words,
            zorder=3,
        )


def _name(ax: Any, known: Any, times: Any, values: Any, names: Sequence[str]) -> None:
    """Write names beside points, toward the middle of the figure so that none is cut."""
    early, late = times[known.index].min(), times[known.index].max()
    for key in names:
        right = times[key] > early + 0.55 * (late - early)
        # Without what a name has in brackets or after a comma: there is little room.
        name = re.split(r" \(|,", known.loc[key, "name"])[0]
        side, offset = ("right", (-5, 4)) if right else ("left", (5, -9))
        note(ax, name, (times[key], values[key]), offset, ha=side, fontsize=8)


def _apart(table: pandas.DataFrame, column: str) -> list[str]:
    """Return the records that have room for a name, the largest first."""
    times: Any = years(table)
    logs: Any = table[column].map(math.log10)
    wide, high = times.max() - times.min() or 1.0, logs.max() - logs.min() or 1.0
    kept: list[str] = []
    for key in reversed([str(each) for each in records(table, column).index]):
        if all(
            abs(times[key] - times[other]) > _WIDE * wide
            or abs(logs[key] - logs[other]) > _HIGH * high
            for other in kept
        ):
            kept.append(key)
    return kept


def _rows(known: Any, times: Any, column: str, label: str, scale: float) -> list[dict[str, Any]]:
    """Return what is drawn as numbers."""
    rows = []
    for key, row in known.iterrows():
        shown = {"Name": row["name"], "Year": f"{float(times[key]):.1f}"}  # text: 2022.2, not 2022
        for name, head in {"form": "Form", "weights": "Weights"}.items():
            if name in known:
                shown[head] = row[name] or ""
        rows.append({**shown, label: row[column] / scale})
    return rows
