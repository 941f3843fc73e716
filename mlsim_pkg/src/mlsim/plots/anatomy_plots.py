"""Figures of an anatomy: bars, shares, memory moment by moment, and areas that one can open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, WrongKindError, need, unknown_name
from mlsim.plots.drawing import attach, axes_for, legend_above, note, style
from mlsim.solvers.anatomy.anatomy import Anatomy
from mlsim.solvers.anatomy.layers import save
from mlsim.units import MEMORY, scale_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's colors; every second part is hatched, so that gray print can be read.
_FILLS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
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
    drawers: dict[str, tuple[Callable[..., None], float]] = {
        **dict.fromkeys(_PARTS, (_bars, 0.0)),
        "shares": (_shares, 3.4),
        "moments": (_moments, 3.6),
        "treemap": (draw_treemap, 3.6),
    }
    if not isinstance(anatomy, Anatomy):
        raise WrongKindError(f"plot_anatomy draws what anatomy(...) returns, not {anatomy!r}.")
    if what not in drawers:
        raise unknown_name("figure of an anatomy", what, drawers)
    if what == "time" and anatomy.device is None:
        raise InvalidValueError("a figure of times needs a device: give hardware= to anatomy.")
    if what == "training" and not anatomy.training:
        raise InvalidValueError("a figure of training needs anatomy(..., training=True).")
    draw, height = drawers[what]
    if what in _PARTS:
        height = 0.9 + 0.24 * len(grouped(anatomy, _PARTS[what]))
    drawn = axes_for(ax, 5.6, height)
    draw(anatomy, what, drawn)
    return drawn.figure, drawn


def grouped(anatomy: Anatomy, columns: Sequence[str]) -> dict[str, list[float]]:
    """Return columns by layer; of a deep network, by blocks.

    >>> from mlsim import anatomy
    >>> list(grouped(anatomy("ResNet50"), ["parameters"]))[:3]
    ['conv1', 'maxpool', 'conv2.1']
    """
    rows = anatomy.layers.rows
    found: dict[str, list[float]] = {}
    for row in rows:
        name = row["layer"] if len(rows) <= _MOST_ROWS else _block(row["runs_in"], anatomy)
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


def _bars(anatomy: Anatomy, what: str, axes: Any) -> None:
    columns = _PARTS[what]
    found = grouped(anatomy, columns)
    largest = max(sum(values) for values in found.values())
    factor, unit = scale_for(largest, _UNITS[what]) if what in _UNITS else (1.0, "")
    left = [0.0] * len(found)
    rows: list[dict[str, str | float]] = [{"Layer": name} for name in found]
    style = {"edgecolor": "white", "linewidth": 0.4}
    for index, column in enumerate(columns):
        label = _WORDS.get(column, column)
        widths = [values[index] / factor for values in found.values()]
        look = {"color": _FILLS[index], "hatch": _HATCHES[index], "label": label, **style}
        axes.barh(list(found), widths, left=left, **look)
        left = [a + b for a, b in zip(left, widths, strict=True)]
        for row, width in zip(rows, widths, strict=True):
            row[f"{label} ({unit or what})"] = width
    axes.invert_yaxis()
    axes.set_xlabel(unit or what.capitalize())
    if len(columns) > 1:
        legend_above(axes, 3)
    attach(axes, rows)


def _shares(anatomy: Anatomy, _: str, axes: Any) -> None:
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


def _moments(anatomy: Anatomy, _: str, axes: Any) -> None:
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
    note(axes, words, (at, top), (0, 8), ha=side, fontsize=8)
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


# Ink that can be read on each.
_INKS = ("#fff", "#000", "#fff", "#000", "#000", "#000", "#000")
# A smaller area has no room for a name.
_ROOM = 0.02


@dataclass
class Box:
    """A layer or a block, and what lies in it."""

    name: str
    value: float = 0.0
    inside: dict[str, Box] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle, in parts of the whole."""

    left: float
    top: float
    width: float
    height: float


def boxes(anatomy: Anatomy, column: str = "operations") -> Box:
    """Return the kernels of an anatomy as boxes within boxes, by the parts of their names.

    Raises
    ------
    WrongKindError
        If a column holds no numbers that add up.

    >>> from mlsim import anatomy
    >>> whole = boxes(anatomy("ResNet18"), "parameters")
    >>> whole.value, list(whole.inside)[:3]
    (11689512.0, ['conv1', 'maxpool', 'conv2'])
    """
    view = anatomy.operators
    values = view[column]
    if column == "intensity" or any(isinstance(each, (str, tuple)) for each in values):
        raise WrongKindError(f"{column} doesn't add up, so it has no area; try 'parameters'.")
    whole = Box(anatomy.model.name)
    for row in view.rows:
        value = float(row[column])
        box = whole
        box.value += value
        for part in row["layer"].split("."):
            box = box.inside.setdefault(part, Box(part))
            box.value += value
    return whole


def places(items: list[Box], place: Place) -> Iterator[tuple[Box, Place]]:
    """Yield a place for each box: halves of about equal value, along the longer side.

    >>> for box, at in places([Box("a", 3), Box("b", 1)], Place(0, 0, 1, 1)):
    ...     print(box.name, at.width)
    a 0.75
    b 0.25
    """
    items = [each for each in items if each.value > 0]
    if not items:
        return
    if len(items) == 1:
        yield items[0], place
        return
    total = sum(each.value for each in items)
    cut, first = 1, items[0].value
    while cut < len(items) - 1 and first + items[cut].value / 2 < total / 2:
        first += items[cut].value
        cut += 1
    left, top, width, height = place.left, place.top, place.width, place.height
    share = first / total
    if width >= height:
        one = Place(left, top, width * share, height)
        two = Place(left + width * share, top, width * (1 - share), height)
    else:
        one = Place(left, top, width, height * share)
        two = Place(left, top + height * share, width, height * (1 - share))
    yield from places(items[:cut], one)
    yield from places(items[cut:], two)


def draw_treemap(anatomy: Anatomy, _: str, axes: Any) -> None:
    """Draw blocks as areas, by their operations, with the layers of each inside."""
    whole = boxes(anatomy)
    rows: list[dict[str, str | float]] = []
    for index, (box, at) in enumerate(places(list(whole.inside.values()), Place(0, 0, 1, 1))):
        fill, ink = _FILLS[index % len(_FILLS)], _INKS[index % len(_INKS)]
        _rectangle(axes, at, fill, 1.6, f"treemap-{index}")
        for number, (_inner, inside) in enumerate(places(list(box.inside.values()), at)):
            _rectangle(axes, inside, "none", 0.4, f"treemap-{index}-{number}")
        share = box.value / whole.value
        if at.width * at.height > _ROOM:
            middle = (at.left + at.width / 2, at.top + at.height / 2)
            words, style = f"{box.name}\n{share:.0%}", {"ha": "center", "va": "center"}
            label = axes.text(*middle, words, color=ink, fontsize=8, **style)
            label.set_gid(f"keep-colours-treemap-label-{index}")
        rows.append({"Block": box.name, "Operations": box.value, "Share": share})
    axes.set(xlim=(0, 1), ylim=(1, 0))
    axes.set_axis_off()
    attach(axes, rows)


def _rectangle(axes: Any, at: Place, fill: str, line: float, name: str) -> None:
    patches = need("matplotlib.patches", "a figure", "plots")
    style = {"facecolor": fill, "edgecolor": "white", "linewidth": line}
    drawn = patches.Rectangle((at.left, at.top), at.width, at.height, **style)
    drawn.set_gid(f"keep-colours-{name}")
    axes.add_patch(drawn)


class Treemap:
    """A treemap as HTML: a block opens with a click or the Enter key, and closes again.

    It needs no script and no network. A notebook shows it; `save` writes a page of its own.

    >>> from mlsim import anatomy
    >>> "<summary>" in Treemap(anatomy("ResNet18"), "parameters").html
    True
    """

    def __init__(self, anatomy: Anatomy, column: str = "operations") -> None:
        self.whole = boxes(anatomy, column)
        self.title = f"{anatomy.about}: {column.replace('_', ' ')}"

    @property
    def html(self) -> str:
        """The map as a fragment of HTML with its style."""
        inside = "".join(self._inside(self.whole))
        page = f'<div class="treemap" role="group">{inside}</div>'
        return f"<style>{style('treemap')}</style>{page}"

    def _inside(self, box: Box) -> Iterator[str]:
        whole = Place(0, 0, 100, 100)
        for index, (each, at) in enumerate(places(list(box.inside.values()), whole)):
            share = each.value / self.whole.value
            name = escape(each.name, quote=True)
            words = f"{name} <small>{each.value:,.0f} ({share:.1%})</small>"
            color = f"background:{_FILLS[index % len(_FILLS)]};color:{_INKS[index % len(_INKS)]}"
            place = (
                f"left:{at.left:.3f}%;top:{at.top:.3f}%;"
                f"width:{at.width:.3f}%;height:{at.height:.3f}%;{color}"
            )
            if each.inside:
                inner = "".join(self._inside(each))
                yield (
                    f'<details style="{place}" title="{name}"><summary>{words}</summary>'
                    f'<div class="inside">{inner}</div></details>'
                )
            else:
                yield f'<div class="leaf" style="{place}" title="{name}">{words}</div>'

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: str | Path) -> None:
        """Write the map as a page; what stood there before goes only once it is whole."""
        title = escape(self.title)
        page = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width"></head>'
            f"<body><h1>{title}</h1><p>Open a block with a click or Enter.</p>{self.html}"
            "</body></html>\n"
        )
        save(Path(path), page)
