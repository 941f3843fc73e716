"""Operators: what a network is made of once it is lowered.

An operator is what runs as one kernel: a convolution with its normalisation,
activation and residual addition is one operator. It is described by counts for
one sample, so batch and precision come in later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

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


Row_co = TypeVar("Row_co", covariant=True)


@dataclass(frozen=True, eq=False)
class OperatorTable(Generic[Row_co]):
    """Operators of any kind as columns: of a network, of a step, of a training run.

    Attributes
    ----------
    operators
        One object for each row.
    counted
        Those of its attributes that equations take, by their names in the vocabulary.
    extra
        Columns beside them, such as the peaks of a device.
    cache
        What solvers have worked out for this table, to be used again.

    >>> from mlsim import Models
    >>> Models.ResNet50.operators.columns["parameters"][0]
    9536.0
    """

    operators: tuple[Row_co, ...]
    counted: tuple[str, ...]
    extra: Mapping[str, Sequence[float]] = field(default_factory=dict)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[Row_co]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.counted, *self.extra)

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """One list of floats for each of `names`."""
        counted = {
            name: [float(getattr(operator, name)) for operator in self.operators]
            for name in self.counted
        }
        return {**counted, **{name: list(values) for name, values in self.extra.items()}}

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators,)."""
        import numpy as np

        return {name: np.array(values) for name, values in self.columns.items()}

    @cached_property
    def columns_2d(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators, 1), for arrays of points."""
        return {name: values[:, None] for name, values in self.arrays.items()}


# Of what has been added up already.
NO_OPERATORS: OperatorTable[Any] = OperatorTable((), ())


@dataclass(frozen=True, eq=False)
class NetworkOperators(OperatorTable[Operator]):
    """The operators of a network, which can be merged and fused."""

    counted: tuple[str, ...] = COLUMNS

    @cached_property
    def with_outputs(self) -> NetworkOperators:
        """The same table with a column for the width of each matrix product."""
        return NetworkOperators(self.operators, (*COLUMNS, "outputs"))

    @cached_property
    def with_tables(self) -> NetworkOperators:
        """The same table with a column for the parameters of tables, if it has any."""
        if not self.table_parameters or TABLES in self.names:
            return self
        return NetworkOperators(self.operators, (*self.counted, TABLES), self.extra)

    @cached_property
    def with_live(self) -> NetworkOperators:
        """The same table with what decides whether a cache can keep the activations.

        Columns for what is alive while each operator runs, and for what it moves into
        or out of the network: the first one's input, the last one's output, and rows of
        tables, which are looked up in memory.
        """
        edges = [op.activations_read if _looks_up(op) else 0 for op in self.operators]
        edges[0] = self.operators[0].activations_read
        edges[-1] += self.operators[-1].activations_written
        live = [op.activations_live for op in self.operators]
        extra = {**self.extra, "operator_live": live, "boundary_elements": edges}
        return NetworkOperators(self.operators, self.counted, extra)

    @cached_property
    def table_parameters(self) -> int:
        """Learned numbers in tables of which a sample reads a few rows."""
        return _sum(operator.table_parameters * operator.repeats for operator in self.operators)

    @cached_property
    def activations_live(self) -> int:
        """Most elements per sample that are alive at one time."""
        return max(operator.activations_live for operator in self.operators)

    @cached_property
    def merged(self) -> NetworkOperators:
        """The same operators with equal ones in one row, counted by `repeats`.

        A row has the name of its first operator, and the peak of live
        activations, which don't enter the sums.
        """
        rows: dict[Operator, tuple[str, int]] = {}
        for operator in self.operators:
            row = replace(operator, name="", activations_live=self.activations_live, repeats=1)
            name, count = rows.get(row, (operator.name, 0))
            rows[row] = (name, count + operator.repeats)
        return NetworkOperators(
            tuple(replace(row, name=name, repeats=count) for row, (name, count) in rows.items())
        )

    @cached_property
    def fused(self) -> NetworkOperators:
        """The whole network as one operator that moves compulsory bytes only.

        Weights once, the first operator's input, the last one's output. Rows of
        tables once for all samples, which may all look the same ones up.
        """
        first, last = self.operators[0], self.operators[-1]
        looked_up = [op for op in self if _looks_up(op)]
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
        return NetworkOperators((whole,))


def _looks_up(operator: Operator) -> bool:
    """Tell whether an operator reads rows of a table."""
    return operator.kind == "embedding" and operator.table_parameters > 0


def _sum(values: Iterable[int]) -> int:
    return sum(values)
