"""A systolic array that multiplies two matrices, moved cycle by cycle and cell by cell.

A cell multiplies what lies in it or enters it, adds, and hands on to its neighbors. Nothing
else happens, so every read of the memory beside the array can be counted. One of the three
matrices rests in the cells: the weights, the inputs or the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from mlsim.equations import machines
from mlsim.errors import InvalidValueError, check_whole, unknown_name
from mlsim.workloads.model import Network, Operator

DATAFLOWS = ("weights", "inputs", "outputs")

Matrix: TypeAlias = Sequence[Sequence[float]]
Place: TypeAlias = tuple[int, int]  # row and column of an element, counted from 0


@dataclass(frozen=True, slots=True)
class Cell:
    """What is in a cell in one cycle: places in the matrices, None where there is nothing.

    `rests` is the element at rest; `west` and `north` have come in from those sides in this
    cycle; `busy` says whether the cell multiplies two of them.
    """

    rests: Place | None
    west: Place | None
    north: Place | None
    busy: bool


@dataclass(frozen=True, slots=True)
class Cycle:
    """One clock cycle of the array: its number from 1, what it is for, and all cells."""

    number: int
    phase: str
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def busy(self) -> int:
        """Cells that multiply."""
        return sum(cell.busy for row in self.cells for cell in row)


@dataclass(frozen=True)
class SystolicRun:
    """A product with what it took.

    Attributes
    ----------
    product
        The result, a list of rows.
    dataflow, rows, columns
        What rested, in how large an array.
    cycles, multiply_adds
        Clock cycles; multiplications of two elements of the matrices.
    weight_reads, input_reads, output_moves
        Elements that entered the array, or left it, or came back to be added to.
    trace
        The cycles in order, if they were asked for.
    """

    product: list[list[float]]
    dataflow: str
    rows: int
    columns: int
    cycles: int
    multiply_adds: int
    weight_reads: int
    input_reads: int
    output_moves: int
    trace: tuple[Cycle, ...]

    @property
    def use(self) -> float:
        """Part of the cells and cycles in which a cell multiplied."""
        return self.multiply_adds / (self.cycles * self.rows * self.columns)


def multiply(
    inputs: Matrix,
    weights: Matrix,
    *,
    rows: int,
    columns: int,
    rest: str = "weights",
    trace: bool = False,
) -> SystolicRun:
    """Multiply inputs by weights on an array of cells; `rest` says what lies still.

    Raises
    ------
    InvalidValueError
        If a matrix is empty or ragged, the two don't fit, or the array has no cells.
    UnknownNameError
        If `rest` is none of "weights", "inputs" and "outputs".

    >>> run = multiply([[1, 2], [3, 4]], [[5, 6], [7, 8]], rows=2, columns=2)
    >>> run.product, run.cycles, run.weight_reads
    ([[19, 22], [43, 50]], 6, 4)
    """
    _check(inputs, weights, rows, columns)
    if rest not in DATAFLOWS:
        raise unknown_name("matrix to leave at rest", rest, DATAFLOWS)
    if rest == "inputs":  # the same machine on the transposed product: (X W)^T = W^T X^T
        return _turned(
            multiply(_flipped(weights), _flipped(inputs), rows=rows, columns=columns, trace=trace)
        )
    height, depth, width = len(inputs), len(weights), len(weights[0])
    grows = rest == "outputs"
    at_rest = height if grows else depth
    array = _Array(inputs, weights, grows=grows, keep=trace)
    empty: list[list[Place | None]] = [[None] * columns] * rows
    tiles = list(product(range(0, width, columns), range(0, at_rest, rows)))
    moves = 0
    for left, top in sorted(tiles, key=lambda tile: tile[::-1]) if grows else tiles:
        held = [
            [(r, c) if r < at_rest and c < width else None for c in range(left, left + columns)]
            for r in range(top, top + rows)
        ]
        inside = sum(place is not None for row in held for place in row)
        if grows:  # results go down and out at the south, a row a cycle
            array.compute(held, top, left)
            moves += inside
            for now in range(rows):
                array.shift("unload", [*empty[: now + 1], *held[: rows - now - 1]])
        else:  # a tile comes in from the north, its last row first
            array.weight_reads += inside
            for now in range(rows):
                array.shift("load", [*held[rows - 1 - now :], *empty[now + 1 :]])
            array.compute(held, top, left)
            # Each sum is written, and read before if it is not the first.
            moves += height * min(columns, width - left) * (1 + (top > 0))
    return SystolicRun(
        array.result,
        rest,
        rows,
        columns,
        array.cycles,
        array.multiply_adds,
        array.weight_reads,
        array.input_reads,
        moves,
        tuple(array.trace),
    )


class _Array:
    """The cells, their clock, and the counters of what passes their edges."""

    def __init__(self, inputs: Matrix, weights: Matrix, *, grows: bool, keep: bool) -> None:
        self.inputs, self.weights, self.grows, self.keep = inputs, weights, grows, keep
        self.cycles = self.multiply_adds = self.weight_reads = self.input_reads = 0
        self.trace: list[Cycle] = []
        self.result: list[list[float]] = [[0] * len(weights[0]) for _ in inputs]

    def shift(self, phase: str, at_rest: list[list[Place | None]]) -> None:
        """Let a cycle pass in which what rests moves a row on, and nothing else does."""
        self._tick(phase, [[Cell(each, None, None, False) for each in row] for row in at_rest])

    def compute(self, held: list[list[Place | None]], top: int, left: int) -> None:
        """Let inputs pass east by a tile, and weights south where results grow in it."""
        height, depth, width = len(self.inputs), len(self.weights), len(self.weights[0])
        steps, at_rest = (depth, height) if self.grows else (height, depth)
        for now in range(steps + len(held) + len(held[0]) - 2):
            cells: list[list[Cell]] = []
            for row, places in enumerate(held):
                cells.append([])
                for column, place in enumerate(places):
                    step, n = now - row - column, left + column  # what passes in this cycle
                    west = north = None
                    if 0 <= step < steps and top + row < at_rest:
                        west = (top + row, step) if self.grows else (step, top + row)
                    if self.grows and 0 <= step < steps and n < width:
                        north = (step, n)
                    self.input_reads += west is not None and column == 0
                    self.weight_reads += north is not None and row == 0
                    if west and place:
                        m, k = west
                        self.result[m][n] += self.inputs[m][k] * self.weights[k][n]
                        self.multiply_adds += 1
                    cells[row].append(Cell(place, west, north, bool(west and place)))
            self._tick("compute", cells)

    def _tick(self, phase: str, cells: list[list[Cell]]) -> None:
        self.cycles += 1
        if self.keep:
            self.trace.append(Cycle(self.cycles, phase, tuple(tuple(row) for row in cells)))


def _turned(run: SystolicRun) -> SystolicRun:
    """Return a run as one of the transposed product, in which the inputs rested."""

    def turned(cell: Cell) -> Cell:
        rests, west = (place and place[::-1] for place in (cell.rests, cell.west))
        return replace(cell, rests=rests, west=west)

    trace = [
        replace(cycle, cells=tuple(tuple(map(turned, row)) for row in cycle.cells))
        for cycle in run.trace
    ]
    reads = {"weight_reads": run.input_reads, "input_reads": run.weight_reads}
    found = _flipped(run.product)
    return replace(run, product=found, dataflow="inputs", trace=tuple(trace), **reads)


def _flipped(matrix: Matrix) -> list[list[float]]:
    return [list(column) for column in zip(*matrix, strict=True)]


def _check(inputs: Matrix, weights: Matrix, rows: int, columns: int) -> None:
    for name, matrix in {"inputs": inputs, "weights": weights}.items():
        widths = {len(row) for row in matrix}
        if len(widths) != 1 or 0 in widths:
            raise InvalidValueError(
                f"{name} must be rows of one length, at least one, not of {sorted(widths)}."
            )
    if len(inputs[0]) != len(weights):
        raise InvalidValueError(
            f"inputs have {len(inputs[0])} columns and weights {len(weights)} rows: "
            "these must be equal. Transpose one of them?"
        )
    for name, value in {"rows": rows, "columns": columns}.items():
        check_whole(name, value)


@dataclass(frozen=True, slots=True)
class ArrayCost:
    """Cycles of a product, the part of the cells that they use, and elements that move."""

    cycles: float
    use: float
    weight_reads: float
    input_reads: float
    output_moves: float


def array_cost(
    rows: int, depth: int, columns: int, *, side: int, rest: str = "weights"
) -> ArrayCost:
    """Return what (rows x depth) times (depth x columns) takes on side x side cells.

    Raises
    ------
    InvalidValueError
        If a size is not a whole number from 1 up.
    UnknownNameError
        If `rest` is none of "weights", "inputs" and "outputs".

    >>> cost = array_cost(3, 3, 3, side=3)
    >>> cost.cycles, cost.use
    (10.0, 0.3)
    """
    for name, value in {"rows": rows, "depth": depth, "columns": columns, "side": side}.items():
        check_whole(name, value)
    if rest == "weights":
        tiles, streamed = machines.weight_tiles(depth, columns, side, side), rows
        weights = machines.resting_weight_reads(depth, columns)
        inputs = machines.streaming_input_reads(rows, depth, columns, side)
        moves = machines.partial_sum_moves(rows, columns, depth, side)
    elif rest == "inputs":
        tiles, streamed = machines.input_tiles(depth, rows, side, side), columns
        weights = machines.weight_reads_past_inputs(depth, columns, rows, side)
        inputs = machines.resting_input_reads(rows, depth)
        moves = machines.partial_sum_moves(rows, columns, depth, side)
    elif rest == "outputs":
        tiles, streamed = machines.output_tiles(rows, columns, side, side), depth
        weights = machines.weight_reads_past_outputs(depth, columns, rows, side)
        inputs = machines.streaming_input_reads(rows, depth, columns, side)
        moves = machines.resting_output_moves(rows, columns)
    else:
        raise unknown_name("matrix to leave at rest", rest, DATAFLOWS)
    cycles = machines.array_cycles(tiles, machines.tile_cycles(side, side, streamed))
    use = machines.array_use(rows, depth, columns, cycles, side, side)
    return ArrayCost(float(cycles), float(use), float(weights), float(inputs), float(moves))


@dataclass(frozen=True, slots=True)
class NetworkOnArray:
    """A network's products on a systolic array: the use of its cells, and where cycles go."""

    cycles: float
    use: float
    depthwise_share: float


def network_on_array(model: Network, *, side: int, batch_size: int = 1) -> NetworkOnArray:
    """Return how well a convolutional network uses side x side cells with weights at rest.

    A convolution is the product of its windows by its weights. A depthwise one is as many
    products as it has channels, each with one column, so it fills one column of the cells.

    Raises
    ------
    InvalidValueError
        If the network has no product, or one in groups other than depthwise, or a size is
        not a whole number from 1 up.

    >>> from mlsim import Models
    >>> network_on_array(Models.MobileNetV2, side=128, batch_size=8).use < 0.01
    True
    """
    work = cycles = depthwise = 0.0
    for operator in model.operators:
        if not operator.multiply_adds:
            continue
        rows, depth, columns, count = _products(operator)
        cost = array_cost(batch_size * rows, depth, columns, side=side)
        work += count * batch_size * rows * depth * columns
        cycles += count * cost.cycles
        depthwise += count * cost.cycles if not operator.outputs else 0
    if not cycles:
        raise InvalidValueError(f"{model.name} has no matrix product that an array could do.")
    return NetworkOnArray(cycles, work / (cycles * side * side), depthwise / cycles)


# Depths of a depthwise convolution: windows of 3, 5 and 7 pixels.
_WINDOWS = (9, 25, 49)


def _products(operator: Operator) -> tuple[int, int, int, int]:
    """Return rows, depth and columns of an operator's products for a sample, and their number."""
    depth = operator.multiply_adds // operator.activations_written
    if operator.outputs:
        rows = operator.activations_written // operator.outputs
        return rows, depth, operator.outputs, operator.repeats
    # Per channel a window of weights, and two more that normalize it.
    channels, rest = divmod(operator.parameters, depth + 2)
    if depth not in _WINDOWS or rest:
        raise InvalidValueError(
            f"{operator.name} is neither one matrix product nor a depthwise convolution with "
            "batch normalization: a convolution in other groups is not counted here."
        )
    return operator.activations_written // channels, depth, 1, channels * operator.repeats
