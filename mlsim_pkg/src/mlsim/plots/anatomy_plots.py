"""Figures of an anatomy: bars by layer, shares of the whole, and memory moment by moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError, WrongKindError, unknown_name
from mlsim.plots.plot_data import attach, axes_for, legend_above
from mlsim.plots.treemap import draw_treemap
from mlsim.solvers.anatomy.anatomy import Anatomy
from mlsim.units import MEMORY, scale_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors; every second part is hatched, so that gray print can be read.
_FILLS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_HATCHES = ("", "//", "", "\\\\", "..")
# More rows than this can't be read; blocks stand for their layers then.
_MOST_ROWS = 32
_PARTS = {
    "memory": ("bytes_in", "bytes_weights", "bytes_out"),
    "training": ("weights", "gradients", "states", "outputs", "errors"),
    "operations": ("operations",),
    "parameters": ("parameters",),
    "time": ("time",),
}
_WORDS = {"bytes_in": "inputs", "bytes_weights": "weights", "bytes_out": "outputs"}
_UNITS = {"memory": "B", "training": "B", "time": "s"}


def plot_anatomy(
    anatomy: Anatomy, what: str = "memory", *, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw one side of an anatomy.

    Parameters
    ----------
    what
        "memory": what each layer reads, holds and writes, as stacked bars; "training": its
        weights, gradients, states, outputs and errors; "operations", "parameters", "time":
        a bar for each layer; "shares": inputs, weights and outputs of the whole; "moments":
        what lies in memory at each moment of a training step; "treemap": operations as areas.
        Of more than 32 layers, blocks are drawn.

    Raises
    ------
    UnknownNameError
        If there is no such figure.
    InvalidValueError
        If it needs a device, or what training holds, and the anatomy has none.
    WrongKindError
        If it is given something else than an anatomy.

    >>> from mlsim import anatomy
    >>> figure, axes = plot_anatomy(anatomy("LeNet5_Variant"), "memory")
    >>> axes.get_xlabel()
    'kB'
    """
    drawers: dict[str, Callable[..., Axes]] = {
        **dict.fromkeys(_PARTS, _bars),
        "shares": _shares,
        "moments": _moments,
        "treemap": draw_treemap,
    }
    if not isinstance(anatomy, Anatomy):
        raise WrongKindError(f"plot_anatomy draws what anatomy(...) returns, not {anatomy!r}.")
    if what not in drawers:
        raise unknown_name("figure of an anatomy", what, drawers)
    if what == "time" and anatomy.device is None:
        raise InvalidValueError("a figure of times needs a device: give hardware= to anatomy.")
    if what == "training" and not anatomy.training:
        raise InvalidValueError("a figure of training needs anatomy(..., training=True).")
    drawn = drawers[what](anatomy, what, ax)
    return drawn.figure, drawn  # type: ignore[return-value]


def grouped(anatomy: Anatomy, columns: Sequence[str]) -> dict[str, list[float]]:
    """Return columns by layer; of a deep network, by blocks.

    >>> from mlsim import anatomy
    >>> list(grouped(anatomy("ResNet50"), ["parameters"]))[:3]
    ['conv1', 'maxpool', 'conv2.1']
    """
    rows = anatomy.layers.rows
    found: dict[str, list[float]] = {}
    for row in rows:
        name = row["layer"] if len(rows) <= _MOST_ROWS else row["runs_in"]
        name = name if len(rows) <= _MOST_ROWS else _block(name, anatomy)
        sums = found.setdefault(name, [0.0] * len(columns))
        for index, column in enumerate(columns):
            sums[index] += float(row[column])
    return found


def _block(name: str, anatomy: Anatomy) -> str:
    """Return the longest beginning of a name by which there are few enough blocks."""
    parts = name.split(".")
    names = {row["runs_in"] for row in anatomy.layers.rows}
    for depth in range(4, 1, -1):
        if len({".".join(each.split(".")[:depth]) for each in names}) <= _MOST_ROWS:
            return ".".join(parts[:depth])
    return parts[0]


def _bars(anatomy: Anatomy, what: str, ax: Axes | None) -> Axes:
    columns = _PARTS[what]
    found = grouped(anatomy, columns)
    axes = axes_for(ax, 5.6, 0.9 + 0.24 * len(found))
    largest = max(sum(values) for values in found.values())
    factor, unit = scale_for(largest, _UNITS[what]) if what in _UNITS else (1.0, "")
    names = list(found)
    left = [0.0] * len(names)
    for index, column in enumerate(columns):
        widths = [found[name][index] / factor for name in names]
        axes.barh(
            names,
            widths,
            left=left,
            color=_FILLS[index],
            hatch=_HATCHES[index],
            edgecolor="white",
            linewidth=0.4,
            label=_WORDS.get(column, column),
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel(unit or what.capitalize())
    if len(columns) > 1:
        legend_above(axes, 3)
    label = f"{unit}" if unit else what
    attach(
        axes,
        [
            {
                "Layer": name,
                **{
                    f"{_WORDS.get(column, column)} ({label})": found[name][index] / factor
                    for index, column in enumerate(columns)
                },
            }
            for name in names
        ],
    )
    return axes  # type: ignore[no-any-return]


def _shares(anatomy: Anatomy, _: str, ax: Axes | None) -> Axes:
    axes = axes_for(ax, 5.6, 3.4)
    rows = anatomy.profile_mem().rows
    wedges, *_rest = axes.pie(
        [row["bytes"] for row in rows],
        labels=[f"{row['part']}\n{row['share']:.0%}" for row in rows],
        colors=_FILLS[: len(rows)],
        wedgeprops={"width": 0.42, "edgecolor": "white"},
        startangle=90,
        counterclock=False,
    )
    for wedge, hatch in zip(wedges, _HATCHES, strict=False):
        wedge.set_hatch(hatch)
    attach(axes, [{"Part": row["part"], "Bytes": row["bytes"]} for row in rows])
    return axes  # type: ignore[no-any-return]


def _moments(anatomy: Anatomy, _: str, ax: Axes | None) -> Axes:
    axes = axes_for(ax, 5.6, 3.6)
    moments, peak = anatomy.step.moments, anatomy.step.peak
    factor, unit = scale_for(peak.total, MEMORY)
    kinds = list(moments[0].held)
    stacks = [[moment.held[kind] / factor for moment in moments] for kind in kinds]
    places = range(len(moments))
    drawn = axes.stackplot(places, stacks, labels=kinds, colors=_FILLS, step="mid")
    for area, hatch in zip(drawn, _HATCHES, strict=False):
        area.set(hatch=hatch, edgecolor="white", linewidth=0.3)
    at = moments.index(peak)
    top = peak.total / factor
    axes.plot([at], [top], marker="v", color="black")
    words = f"peak {top:.3g} {unit}\n{peak.phase} {peak.layer}"
    side = "right" if at > len(moments) / 2 else "left"
    axes.annotate(words, (at, top), (0, 8), textcoords="offset points", ha=side, fontsize=8)
    turn = next(index for index, each in enumerate(moments) if each.phase == "loss")
    axes.axvline(turn, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="Layers: forward, loss (dotted), backward", ylabel=unit, ylim=(0, 1.25 * top))
    legend_above(axes, 3)
    attach(
        axes,
        [
            {
                "Phase": moment.phase,
                "Layer": moment.layer,
                **{f"{kind} ({unit})": held / factor for kind, held in moment.held.items()},
            }
            for moment in moments
        ],
    )
    return axes  # type: ignore[no-any-return]
