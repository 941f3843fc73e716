"""Parts of a network by the names of its layers: one block alone, or a row for each block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, unknown_name

if TYPE_CHECKING:
    from mlsim.workloads.graph import Graph, Node


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
        found = tuple(node for node in graph.layers if self._has(node.name))
        if not found:
            raise unknown_name("part of the network", self.inside, blocks(graph))
        return found

    def _has(self, name: str) -> bool:
        return not self.inside or f"{name}.".startswith(f"{self.inside}.")

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
