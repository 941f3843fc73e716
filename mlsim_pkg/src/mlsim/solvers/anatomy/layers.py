"""Layers as rows: what each computes, holds and moves, as values and as tables.

A `View` is a table of rows for a terminal, a notebook or a file; a `Part` says which layers it
shows, and how closely.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need, unknown_name
from mlsim.units import MEMORY, text
from mlsim.values import Origin, of_base
from mlsim.values.attributes import count, result
from mlsim.workloads.graph import (
    COUNTS,
    FLOP,
    MAC,
    PYTORCH,
    Graph,
    Node,
    backward_multiply_adds,
    operations,
)
from mlsim.workloads.graph.fuse import Fused, Traffic
from mlsim.workloads.graph.training import learning

if TYPE_CHECKING:
    import pandas

    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.graph.training import Moment

# Columns of bytes, seconds and the like, and the unit in which they are written.
UNITS = {
    **dict.fromkeys(("time", "step_time", "paging_time", "epoch_time", "all_epochs"), "s"),
    **dict.fromkeys(("memory", "excess"), MEMORY),
    "intensity": "FLOP/byte",
    "throughput": "sample/s",
}


@dataclass(frozen=True)
class View:
    """Rows of one kind, in a fixed order of columns.

    Attributes
    ----------
    title
        What the rows are.
    columns
        Names of the columns; each row is a mapping that has them.
    rows
        Raw numbers: counts, bytes, seconds.
    notes
        Lines below the rows, such as totals in words.
    most
        Rows that are written; of more, those at the ends. 0 for all.

    >>> view = View("Layers", ("layer", "operations"), [{"layer": "fc", "operations": 1200}])
    >>> print(view)
    Layers
      layer  operations
      fc          1,200
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    most: int = 0

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column.

        Raises
        ------
        UnknownNameError
            If there is none of that name.
        """
        if name not in self.columns:
            raise unknown_name("column", name, self.columns)
        return [row.get(name) for row in self.rows]

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows as a pandas table, numbers as they are.

        Raises
        ------
        MissingLibraryError
            If pandas is not installed.
        """
        library = need("pandas", "a table of layers", "arrays")
        rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
        table: pandas.DataFrame = library.DataFrame(rows, columns=list(self.columns))
        return table

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV; with a path, also write them there, whole or not at all."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([_plain(row.get(name)) for name in self.columns])
        if path is not None:
            save(Path(path), written.getvalue())
        return written.getvalue()

    def _cells(self) -> list[list[str]]:
        head = [name.replace("_", " ") for name in self.columns]
        rows = [[_shown(name, row.get(name)) for name in self.columns] for row in self.rows]
        if self.most and len(rows) > self.most:
            ends = self.most // 2
            left_out = [f"... {len(rows) - 2 * ends} more", *["..."] * (len(head) - 1)]
            rows = [*rows[:ends], left_out, *rows[-ends:]]
        return [head, *rows]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        left = self._left()
        lines = [
            "  "
            + "  ".join(
                f"{cell:<{width}}" if index in left else f"{cell:>{width}}"
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.title, *lines, *(f"  {note}" for note in self.notes)])

    def _left(self) -> set[int]:
        """Return the columns of words, which are aligned to the left."""
        return {
            index
            for index, name in enumerate(self.columns)
            if any(isinstance(row.get(name), str) for row in self.rows)
        }

    def _repr_markdown_(self) -> str:
        head, *rows = self._cells()
        left = self._left()
        rule = ["---" if index in left else "---:" for index in range(len(head))]
        lines = [f"**{_marked(self.title)}**", "", f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|"]
        lines += [
            f"| {' | '.join(_marked(each).replace('|', ' ') for each in row)} |" for row in rows
        ]
        return "\n".join([*lines, "", "  \n".join(map(_marked, self.notes))]).rstrip()

    __repr__ = __str__


def save(path: Path, content: str) -> None:
    """Write a file in one go: what stood there before is lost only once the new one is whole.

    Raises
    ------
    InvalidValueError
        If its folder is not there.
    """
    path = path.expanduser()
    if not path.parent.is_dir():
        raise InvalidValueError(f"there is no folder {str(path.parent)!r} to write to.")
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(made).replace(path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _marked(words: str) -> str:
    """Keep names that somebody gave from being markup, and shapes on a line."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(" x ", "\u00a0x\u00a0")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return "" if value is None else value


def _shown(name: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, (str, tuple)):
        return " x ".join(map(str, value)) if isinstance(value, tuple) else value
    if name in UNITS:
        return text(float(value), UNITS[name])
    if name.endswith("share"):
        return f"{value:.1%}"
    return f"{value:,.0f}"


@dataclass(frozen=True)
class Part:
    """Which layers a view shows, and how closely.

    Attributes
    ----------
    inside
        Names before a dot, such as "encoder.1": only layers whose names begin with them. All,
        if empty.
    depth
        How many names between dots tell rows apart, counted from `inside` on; layers that share
        them are one row. 0 for a row for each layer.

    >>> Part("encoder.1", depth=1).row("encoder.1.self.norm")
    'self'
    """

    inside: str = ""
    depth: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.depth, int) and not isinstance(self.depth, bool)
        if not whole or self.depth < 0:
            raise InvalidValueError(
                f"depth must be a whole number from 0 on, not {self.depth!r}: 1 makes a row for "
                "each first name, 0 one for each layer."
            )
        if not isinstance(self.inside, str):
            raise InvalidValueError(
                f"inside must be a name such as 'encoder.1', not {self.inside!r}."
            )

    @property
    def about(self) -> str:
        """The part in words, before the name of its network."""
        return f"{self.inside} of " if self.inside else ""

    def of(self, graph: Graph) -> tuple[Node, ...]:
        """Return the layers of the part.

        Raises
        ------
        UnknownNameError
            If no layer lies in it.
        """
        inside = f"{self.inside}." if self.inside else ""
        found = tuple(node for node in graph.layers if f"{node.name}.".startswith(inside))
        if not found:
            raise unknown_name("part of the network", self.inside, blocks(graph))
        return found

    def row(self, name: str) -> str:
        """Return the name of the row that a layer is in."""
        inner = name.removeprefix(f"{self.inside}.") if self.inside else name
        return ".".join(inner.split(".")[: self.depth or None])

    def folded(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a row for each name: numbers are added up, and the last shape stands.

        In place of a word that its layers don't share, a row has their number.
        """
        together: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            together.setdefault(self.row(row["layer"]), []).append(row)
        return [_one(name, found) for name, found in together.items()]


def _one(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return several rows as one."""
    folded = dict(rows[-1])
    for column, last in rows[-1].items():
        if isinstance(last, str) and len(rows) > 1:
            folded[column] = f"{len(rows)} layers"
        elif isinstance(last, (int, float)):
            folded[column] = sum(row[column] for row in rows)
    return folded | {"layer": name}


def blocks(graph: Graph) -> list[str]:
    """Return all beginnings of names that several layers may share, in the order of the layers.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.language import graph
    >>> blocks(graph(Models.ResNet18))[:3]
    ['conv2', 'conv2.1', 'conv2.2']
    """
    found: dict[str, None] = {}
    for node in graph.layers:
        names = node.name.split(".")
        for depth in range(1, len(names)):
            found[".".join(names[:depth])] = None
    return list(found)


# Each figure of a layer: its unit, its name in words, and how it is counted.
_MOVED = "each number takes the bytes of its format, and moves once"
_HELD = "each number takes the bytes of its format"
_FIGURES: Mapping[str, tuple[str, str, str]] = {
    "parameters": ("parameter", "parameters", "learned numbers, biases included"),
    "operations": ("FLOP", "operations", COUNTS[FLOP]),
    "multiply_adds": ("MAC", "multiply-adds", COUNTS[MAC]),
    "operations_backward": ("FLOP", "operations of the way back", COUNTS[FLOP]),
    "bytes_in": ("B", "bytes read by", _MOVED),
    "bytes_out": ("B", "bytes written by", _MOVED),
    "bytes_weights": ("B", "bytes of weights", _MOVED),
    "working_set": ("B", "working set", "bytes read and written, and those of weights"),
    "weights": (MEMORY, "weights", f"{_HELD}, biases included"),
    "gradients": (MEMORY, "gradients of weights", f"{_HELD}, one for each weight"),
    "states": (MEMORY, "states of the optimizer", f"{_HELD}, of each weight"),
    "outputs": (MEMORY, "outputs", _HELD),
    "errors": (MEMORY, "errors", f"{_HELD}, one for each output that has a gradient"),
    "time": ("s", "time", "of each kernel, at the first of its layers"),
    "total": (MEMORY, "memory", "all kinds added up"),
}


class Held:
    """What training holds, by kind, as values."""

    weights = result("Bytes that training holds of weights.")
    gradients = result("Bytes that training holds of gradients of weights.")
    states = result("Bytes that training holds of the optimizer's states.")
    outputs = result("Bytes that training holds of outputs.")
    errors = result("Bytes that training holds of errors.")

    def quantity(self, name: str) -> Quantity:
        """Return a figure by its name, as its attribute does.

        Raises
        ------
        InvalidValueError
            If it is not known of what was asked; says what to ask.
        """
        raise NotImplementedError


class Figures(Held):
    """The figures of a layer, of a part of a network or of all of it."""

    parameters = count("Learned numbers, biases included.")
    operations = result("Operations of the batch, in the way of counting that was asked for.")
    multiply_adds = count("Multiply-adds of the batch.")
    operations_backward = result("Operations of the way back, if training was asked about.")
    bytes_in = result("Bytes that are read.")
    bytes_out = result("Bytes that are written.")
    bytes_weights = result("Bytes of weights that are read.")
    working_set = result("Bytes read and written, and those of weights.")
    time = result("Time of its kernels, if hardware was given.")

    @property
    def intensity(self) -> Any:
        """Operations for each byte of the working set."""
        return self.operations / self.working_set


def figure(name: str, rows: Sequence[Mapping[str, Any]], what: str, anatomy: Anatomy) -> Quantity:
    """Return a figure of several layers together: `what` names them."""
    unit, words, _ = _FIGURES[name]
    if rows and name not in rows[0]:
        wanted = "hardware=, such as 'A100'" if name == "time" else "training=True"
        raise InvalidValueError(f"{words} of {what} needs more than was asked: give {wanted}.")
    if name == "operations" and anatomy.count not in (FLOP, PYTORCH):
        unit = "MAC" if anatomy.count == MAC else "1"
    value = sum(row[name] for row in rows)
    return of_base(value, unit, partial(_origin, name, what, anatomy, len(rows)))


def _origin(name: str, what: str, anatomy: Anatomy, layers: int, value: Quantity) -> Origin:
    _, words, how = _FIGURES[name]
    if name == "operations":
        how = COUNTS[anatomy.count]
    if name == "operations" and anatomy.count != FLOP:
        words = f"operations ({anatomy.count})"
    title = f"{words} {what}" if words.endswith(" by") else f"{words} of {what}"
    shown = value.text if value.base in ("parameter", "1") else value.in_full
    brief = f"{title} = {shown} ({anatomy.about})"
    added = f", {layers} layers added up" if layers > 1 else ""
    return Origin(title, brief, f"{brief}\n\nCounted from the sizes of each layer: {how}{added}.")


class Layer(dict[str, Any], Figures):
    """A row of an anatomy: plain numbers by name as in a mapping, and values as attributes.

    >>> from mlsim import Models, anatomy
    >>> conv1 = anatomy(Models.LeNet5_Variant)["conv1"]
    >>> conv1["working_set"], conv1.working_set.show(",.0f", "B"), conv1.parameters.name
    (17584.0, 17,584 B, 'parameters of conv1')
    """

    def __init__(self, row: Mapping[str, Any], anatomy: Anatomy) -> None:
        super().__init__(row)
        self._anatomy = anatomy

    def quantity(self, name: str) -> Quantity:
        """Return a figure of the layer by its name."""
        return figure(name, (self,), self["layer"], self._anatomy)


class Layers(Figures):
    """Several layers of a network: each, and their figures together.

    >>> from mlsim import Models, anatomy
    >>> linear = anatomy(Models.LeNet5_Variant).part(kind="linear")
    >>> len(linear), linear.parameters, linear.parameters.name
    (3, 38,710, 'parameters of 3 linear layers')
    """

    def __init__(self, rows: Sequence[Layer], what: str, anatomy: Anatomy) -> None:
        self.rows, self.what, self._anatomy = rows, what, anatomy

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def quantity(self, name: str) -> Quantity:
        """Return a figure of all layers together by its name."""
        return figure(name, self.rows, self.what, self._anatomy)


class Peak(Held):
    """The moment of a training step at which most is held: what, while which layer runs.

    `phase` is "forward", "loss", "backward" or "update".

    >>> from mlsim import Models, anatomy
    >>> peak = anatomy(Models.LeNet5_Variant, training=True).peak
    >>> peak.phase, peak.total.show(".0f", "kB"), peak.gradients.name
    ('backward', 539 kB, 'gradients of weights at the peak')
    """

    total = result("Bytes in all.")

    def __init__(self, moment: Moment, anatomy: Anatomy) -> None:
        self.phase, self.layer = moment.phase, moment.layer
        self._held = {**moment.held, "total": moment.total}
        self._anatomy = anatomy

    def quantity(self, name: str) -> Quantity:
        """Return what is held of a kind by its name."""
        return of_base(self._held[name], MEMORY, partial(self._origin, name))

    def _origin(self, name: str, value: Quantity) -> Origin:
        title = f"{_FIGURES[name][1]} at the peak"
        brief = f"{title} = {value.in_full} ({self._anatomy.about})"
        when = f"{self.phase} {self.layer}".strip()
        how = f"The step was followed moment by moment, as PyTorch runs it. Its peak: {when}."
        return Origin(title, brief, f"{brief}\n\n{how}")


SIZES = ("bytes_in", "bytes_out", "bytes_weights")
LAYER = ("layer", "kind", "function", "shape_in", "shape_out", "parameters", "operations")
MOVED = (*SIZES, "working_set", "intensity")
TRAINED = ("operations_backward", "weights", "outputs", "errors", "gradients", "states")


def layer_rows(
    graph: Graph, traffic: Traffic, count: str, kernels: Sequence[Fused]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each layer as a framework runs it, for the whole batch."""
    homes = {node.name: each.operator.name for each in kernels for node in each.nodes}
    for node in graph.layers:
        row = _row(graph, traffic, count, (node,))
        runs_in = {"runs_in": homes[node.name]}
        yield (
            row | {"function": node.function} | traffic.moved((node,), row["operations"]) | runs_in
        )


def kernel_rows(
    graph: Graph, traffic: Traffic, count: str, kernels: Sequence[Fused]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel, for the whole batch: layers that run together are one."""
    for each in kernels:
        row, name = _row(graph, traffic, count, each.nodes), each.operator.name
        also = {"layer": name, "function": ", ".join(node.name for node in each.nodes[1:])}
        moved = traffic.moved(each.nodes, row["operations"])
        yield row | also | moved | {"runs_in": name}


def _row(graph: Graph, traffic: Traffic, count: str, nodes: Sequence[Node]) -> dict[str, Any]:
    """Return what layers that run together compute; its shapes are what is read first and last."""
    first = nodes[0]
    return {
        "layer": first.name,
        "kind": first.kind,
        "function": "",
        "shape_in": graph[first.inputs[0]].shape if first.inputs else (),
        "shape_out": nodes[-1].shape,
        "parameters": sum(node.parameters for node in nodes),
        "operations": traffic.scaled(sum(operations(node, count) for node in nodes)),
        "multiply_adds": traffic.scaled(sum(operations(node, MAC) for node in nodes)),
    }


def add_training(
    rows: Iterable[dict[str, Any]], graph: Graph, traffic: Traffic, states: int
) -> Iterator[dict[str, Any]]:
    """Yield rows with what training holds of each layer, in bytes, and its way back."""
    learns = learning(graph)
    for row in rows:
        node = graph[row["layer"]]
        back = backward_multiply_adds(graph, node, learns)
        yield row | {
            "operations_backward": traffic.flops(back),
            **traffic.held(node, states, has_error=node.name in learns),
        }


def add_times(
    rows: Iterable[dict[str, Any]], operators: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield rows with the time of the kernel in which each runs, at the first row of it."""
    found = {each["name"]: each for each in operators}
    seen = set()
    for row in rows:
        kernel = found[row["runs_in"]]
        first = row["runs_in"] not in seen
        seen.add(row["runs_in"])
        time = kernel["roofline_time"] if first else 0.0
        yield row | {"time": time, "bound": kernel["bound"] if first else ""}
