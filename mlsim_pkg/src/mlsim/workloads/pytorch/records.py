"""What a recording holds: tensors with what computed them, and the layers in their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

# In which of a node's counts the numbers of a parameter belong.
WEIGHTS, BIASES, TABLE = "weights", "biases", "table"


@dataclass(frozen=True)
class Use:
    """A parameter that a layer reads: which, how many of its numbers, and in which role."""

    parameter: str
    size: int
    read: int
    role: str


@dataclass(frozen=True)
class Value:
    """What is known of a tensor: the record that computed it, if it depends on the input.

    `uses` are the parameters that it is made of otherwise, such as rows of a table of
    positions; `mask` is a constant that was added to it, such as minus infinity for what
    attention must not see. `order` counts what was computed.
    """

    tensor: torch.Tensor
    record: Record | None = None
    uses: tuple[Use, ...] = ()
    mask: torch.Tensor | None = None
    order: int = 0

    @property
    def is_data(self) -> bool:
        """Whether it depends on the input."""
        return self.record is not None


@dataclass(eq=False)
class Record:
    """One layer as it was seen; see `Node` for what it is made into."""

    name: str
    base: str
    path: str
    kind: str
    shape: tuple[int, ...]
    inputs: list[Record] = field(default_factory=list)
    function: str = ""
    uses: list[Use] = field(default_factory=list)
    buffers: int = 0
    multiply_adds: int = 0
    masked_multiply_adds: int = 0
    window: int = 0
    outputs: int = 0
    chosen: tuple[int, int] | None = None
    read: int | None = None
    kept_bytes: int = 0
    element_bytes: int = 0
    in_place: bool = False
    # A constant that is added or multiplied, of which attention may be made.
    mask: torch.Tensor | None = None

    @property
    def elements(self) -> int:
        """Numbers in its output."""
        found = 1
        for size in self.shape:
            found *= size
        return found


class Names:
    """Names that are given once: a second of the same is numbered."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def unique(self, name: str) -> str:
        """Return a name, with a number if it was given before."""
        found, number = name, 1
        while found in self._given:
            number += 1
            found = f"{name}_{number}"
        self._given.add(found)
        return found

    def again(self, name: str, instead_of: Iterable[Record]) -> str:
        """Return a name for what takes the place of records, whose names are free again."""
        self._given.difference_update(each.name for each in instead_of)
        return self.unique(name)


def readers_of(records: Iterable[Record]) -> dict[Record, list[Record]]:
    """Return for each record those that read it."""
    found: dict[Record, list[Record]] = defaultdict(list)
    for record in records:
        for source in record.inputs:
            found[source].append(record)
    return found


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Return the tensors in nested arguments, in their order."""
    return [each for each in _leaves(values) if isinstance(each, torch.Tensor)]


def _leaves(values: Any) -> Iterable[Any]:
    from torch.utils._pytree import tree_leaves

    found: Iterable[Any] = tree_leaves(values)
    return found
