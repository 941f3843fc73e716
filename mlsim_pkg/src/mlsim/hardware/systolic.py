"""A systolic array that multiplies two matrices, moved cycle by cycle and cell by cell.

A cell multiplies what lies in it or enters it, adds, and hands on to its neighbors. Nothing
else happens, so every read of the memory beside the array can be counted. One of the three
matrices rests in the cells: the weights, the inputs or the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    array = _Array(rows, columns, trace)
    if rest == "outputs":
        array.grow(inputs, weights)
    elif rest == "weights":
        array.hold(weights, inputs, flip=False)
    else:  # the same machine on the transposed product: (X W)^T = W^T X^T
        array.hold(_flipped(inputs), _flipped(weights), flip=True)
    product = _flipped(array.result) if rest == "inputs" else array.result
    at_rest, streamed = array.reads
    weight_reads, input_reads = (at_rest, streamed) if rest == "weights" else (streamed, at_rest)
    if rest == "outputs":  # nothing is read to rest: both stream
        weight_reads, input_reads = array.north_reads, streamed
    return SystolicRun(
        product,
        rest,
        rows,
        columns,
        array.cycles,
        array.multiply_adds,
        weight_reads,
        input_reads,
        array.moves,
        tuple(array.trace),
    )


class _Array:
    """The cells, their clock, and the counters of what passes their edges."""

    def __init__(self, rows: int, columns: int, keep: bool) -> None:
        self.rows, self.columns, self.keep = rows, columns, keep
        self.cycles = self.multiply_adds = self.moves = self.north_reads = 0
        self.reads = (0, 0)
        self.trace: list[Cycle] = []
        self.result: list[list[float]] = []

    def hold(self, held: Matrix, streamed: Matrix, *, flip: bool) -> None:
        """Multiply rows that stream in from the west by a matrix at rest, tile by tile."""
        depth, width = len(held), len(held[0])
        self.result = [[0] * width for _ in streamed]
        for left in range(0, width, self.columns):
            for top in range(0, depth, self.rows):
                tile = self._tile(held, top, left)
                self._load(tile, flip)
                self._stream(tile, streamed, top, left, flip)

    def _tile(self, held: Matrix, top: int, left: int) -> list[list[tuple[Place, float] | None]]:
        """Cut a tile out; cells beyond the matrix stay empty."""
        return [
            [
                ((k, n), held[k][n]) if k < len(held) and n < len(held[0]) else None
                for n in range(left, left + self.columns)
            ]
            for k in range(top, top + self.rows)
        ]

    def _load(self, tile: list[list[Any]], flip: bool) -> None:
        """Shift a tile in from the north, its last row first: a cycle for each row of cells."""
        at_rest, streamed = self.reads
        self.reads = (at_rest + sum(cell is not None for row in tile for cell in row), streamed)
        for now in range(self.rows):
            below = self.rows - 1 - now  # rows that have not come in yet
            moving = [
                tile[below + row] if row <= now else [None] * self.columns
                for row in range(self.rows)
            ]
            self._tick(
                "load",
                [[Cell(_place(cell, flip), None, None, False) for cell in row] for row in moving],
            )

    def _stream(
        self, tile: list[list[Any]], streamed: Matrix, top: int, left: int, flip: bool
    ) -> None:
        """Let all rows pass: to the east what came in, to the south what was added up."""
        count, last = len(streamed), self.rows - 1
        west: list[list[Any]] = [[None] * self.columns for _ in range(self.rows)]
        sums: list[list[Any]] = [[None] * self.columns for _ in range(self.rows)]
        for now in range(count + self.rows + self.columns - 2):
            for row in reversed(range(self.rows)):
                for column in reversed(range(self.columns)):
                    if column:
                        west[row][column] = west[row][column - 1]
                    else:
                        west[row][0] = self._enters(streamed, now - row, top + row)
                    above = sums[row - 1][column] if row else 0
                    here, there = tile[row][column], west[row][column]
                    busy = here is not None and there is not None
                    sums[row][column] = (above or 0) + (here[1] * there[1] if busy else 0)
                    self.multiply_adds += busy
            for column in range(self.columns):
                done = now - last - column  # the row whose sum leaves this column now
                if 0 <= done < count and left + column < len(self.result[0]):
                    self.moves += 1 + (top > 0)  # written, and read before if not the first
                    self.result[done][left + column] += sums[last][column]
            self._tick(
                "compute",
                [
                    [
                        Cell(
                            _place(tile[r][c], flip),
                            _place(west[r][c], flip),
                            None,
                            tile[r][c] is not None and west[r][c] is not None,
                        )
                        for c in range(self.columns)
                    ]
                    for r in range(self.rows)
                ],
            )

    def _enters(self, streamed: Matrix, vector: int, element: int) -> tuple[Place, float] | None:
        if not (0 <= vector < len(streamed) and element < len(streamed[0])):
            return None
        self.reads = (self.reads[0], self.reads[1] + 1)
        return (vector, element), streamed[vector][element]

    def grow(self, inputs: Matrix, weights: Matrix) -> None:
        """Let outputs grow in the cells, while inputs pass east and weights pass south."""
        self.result = [[0] * len(weights[0]) for _ in inputs]
        for top in range(0, len(inputs), self.rows):
            for left in range(0, len(weights[0]), self.columns):
                self._grow_tile(inputs, weights, top, left)

    def _grow_tile(self, inputs: Matrix, weights: Matrix, top: int, left: int) -> None:
        depth, height, width = len(weights), len(inputs), len(weights[0])
        inside = [
            [
                (top + r, left + c) if top + r < height and left + c < width else None
                for c in range(self.columns)
            ]
            for r in range(self.rows)
        ]
        for now in range(depth + self.rows + self.columns - 2):
            cells: list[list[Cell]] = []
            for row in range(self.rows):
                cells.append([])
                for column in range(self.columns):
                    k = now - row - column  # what meets in this cell in this cycle
                    m, n, there = top + row, left + column, 0 <= k < depth
                    west = (m, k) if there and m < height else None
                    north = (k, n) if there and n < width else None
                    if west and column == 0:
                        self.reads = (0, self.reads[1] + 1)
                    if north and row == 0:
                        self.north_reads += 1
                    if west and north:
                        self.result[m][n] += inputs[m][k] * weights[k][n]
                        self.multiply_adds += 1
                    cells[row].append(Cell(inside[row][column], west, north, bool(west and north)))
            self._tick("compute", cells)
        self.moves += sum(place is not None for row in inside for place in row)
        for now in range(self.rows):  # down and out at the south, a row a cycle
            empty: list[Place | None] = [None] * self.columns
            left_in = [empty] * (now + 1) + inside[: self.rows - now - 1]
            self._tick("unload", [[Cell(p, None, None, False) for p in row] for row in left_in])

    def _tick(self, phase: str, cells: list[list[Cell]]) -> None:
        self.cycles += 1
        if self.keep:
            self.trace.append(Cycle(self.cycles, phase, tuple(tuple(row) for row in cells)))


def _place(cell: tuple[Place, float] | None, flip: bool) -> Place | None:
    """Return where an element stands in the matrix that the caller gave."""
    if cell is None:
        return None
    return (cell[0][1], cell[0][0]) if flip else cell[0]


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
