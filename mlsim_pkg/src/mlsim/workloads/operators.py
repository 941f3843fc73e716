"""Operators: what a network is made of once it is lowered.

An operator is what runs as one kernel: a convolution with its normalisation,
activation and residual addition is one operator. It is described by counts for
one sample, so batch and precision come in later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

# The columns that equations take, by their names in the vocabulary.
COLUMNS = ("multiply_adds", "parameters", "activations_read", "activations_written", "repeats")
# One more, of a network that looks rows of tables up.
TABLES = "table_parameters"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, counted for one sample.

    Attributes
    ----------
    name, kind
        Such as "conv2.1.a" and "convolution".
    multiply_adds
        MAC per sample, of matrix products and convolutions only.
    parameters
        Learned numbers it holds, all of which a step reads.
    activations_read, activations_written
        Elements per sample that it reads and writes.
    activations_live
        Elements per sample alive while it runs: those it reads and writes, and
        those kept for a later operator.
    repeats
        How often this very operator stands in the network.
    outputs
        Columns of the matrix product that it is: output channels of a
        convolution, which has a row for each pixel; 0 if it is no product.
    table_parameters
        Learned numbers that it holds besides, in tables of which a sample reads a
        few rows. Those are among what it reads.
    """

    name: str
    kind: str
    multiply_adds: int
    parameters: int
    activations_read: int
    activations_written: int
    activations_live: int
    repeats: int = 1
    outputs: int = 0
    table_parameters: int = 0


@dataclass(frozen=True)
class OperatorTable:
    """Operators as columns, with the peak of live activations."""

    operators: tuple[Operator, ...]
    names: tuple[str, ...] = COLUMNS

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """One list of floats for each of `names`."""
        return {
            name: [float(getattr(operator, name)) for operator in self.operators]
            for name in self.names
        }

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators,)."""
        import numpy as np

        return {name: np.array(values) for name, values in self.columns.items()}

    @cached_property
    def columns_2d(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators, 1), for arrays of points."""
        return {name: values[:, None] for name, values in self.arrays.items()}

    @cached_property
    def with_outputs(self) -> OperatorTable:
        """The same table with a column for the width of each matrix product."""
        return OperatorTable(self.operators, (*COLUMNS, "outputs"))

    @cached_property
    def with_tables(self) -> OperatorTable:
        """The same table with a column for the parameters of tables, if it has any."""
        if not self.table_parameters or TABLES in self.names:
            return self
        return OperatorTable(self.operators, (*self.names, TABLES))

    @cached_property
    def table_parameters(self) -> int:
        """Learned numbers in tables of which a sample reads a few rows."""
        return _sum(operator.table_parameters * operator.repeats for operator in self.operators)

    @cached_property
    def activations_live(self) -> int:
        """Most elements per sample that are alive at one time."""
        return max(operator.activations_live for operator in self.operators)

    @cached_property
    def merged(self) -> OperatorTable:
        """The same operators with equal ones in one row, counted by `repeats`.

        A row has the name of its first operator, and the peak of live
        activations, which don't enter the sums.
        """
        rows: dict[Operator, tuple[str, int]] = {}
        for operator in self.operators:
            row = replace(operator, name="", activations_live=self.activations_live, repeats=1)
            name, count = rows.get(row, (operator.name, 0))
            rows[row] = (name, count + operator.repeats)
        return OperatorTable(
            tuple(replace(row, name=name, repeats=count) for row, (name, count) in rows.items())
        )

    @cached_property
    def fused(self) -> OperatorTable:
        """The whole network as one operator that moves compulsory bytes only.

        Weights once, the first operator's input, the last one's output. Rows of
        tables once for all samples, which may all look the same ones up.
        """
        first, last = self.operators[0], self.operators[-1]
        looked_up = [op for op in self if op.kind == "embedding" and op.table_parameters]
        rows = _sum(op.activations_read * op.repeats for op in looked_up)
        whole = Operator(
            name="network",
            kind="network",
            multiply_adds=_sum(op.multiply_adds * op.repeats for op in self),
            parameters=_sum(op.parameters * op.repeats for op in self) + rows,
            activations_read=first.activations_read,
            activations_written=last.activations_written,
            activations_live=self.activations_live,
            table_parameters=self.table_parameters - rows,
        )
        return OperatorTable((whole,))


def _sum(values: Iterable[int]) -> int:
    return sum(values)
