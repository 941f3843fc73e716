"""A systolic array that multiplies two matrices, moved cycle by cycle and cell by cell.

A cell multiplies what lies in it or enters it, adds, and hands on to its neighbors. Nothing
else happens, so every read of the memory beside the array can be counted. One of the three
matrices rests in the cells: the weights, the inputs or the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mlsim.errors import InvalidValueError, check_whole, unknown_name

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
