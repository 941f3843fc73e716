"""The systolic array: right products, and the cycles and reads that the equations give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware.systolic import DATAFLOWS, multiply

# Rows, depth and columns of the product; rows and columns of the array.
SHAPES = [(3, 3, 3, 3, 3), (5, 7, 4, 3, 2), (1, 9, 1, 4, 4), (6, 4, 3, 2, 2), (2, 5, 8, 3, 4)]


def matrices(m: int, k: int, n: int) -> tuple[list[list[float]], list[list[float]]]:
    draw = np.random.default_rng(m * k * n)
    return draw.integers(-9, 10, (m, k)).tolist(), draw.integers(-9, 10, (k, n)).tolist()


def predicted(rest: str, m: int, k: int, n: int, rows: int, columns: int) -> dict[str, Any]:
    """What the equations say of a product."""
    ask = EQUATIONS
    tiles, streamed, weights, inputs, outputs = {
        "weights": (
            ask["weight_tiles"](k, n, rows, columns),
            m,
            ask["resting_weight_reads"](k, n),
            ask["streaming_input_reads"](m, k, n, columns),
            ask["partial_sum_moves"](m, n, k, rows),
        ),
        "inputs": (
            ask["input_tiles"](k, m, rows, columns),
            n,
            ask["weight_reads_past_inputs"](k, n, m, columns),
            ask["resting_input_reads"](m, k),
            ask["partial_sum_moves"](m, n, k, rows),
        ),
        "outputs": (
            ask["output_tiles"](m, n, rows, columns),
            k,
            ask["weight_reads_past_outputs"](k, n, m, rows),
            ask["streaming_input_reads"](m, k, n, columns),
            ask["resting_output_moves"](m, n),
        ),
    }[rest]
    cycles = ask["array_cycles"](tiles, ask["tile_cycles"](rows, columns, streamed))
    use = ask["array_use"](m, k, n, cycles, rows, columns)
    return {
        "cycles": cycles,
        "use": use,
        "weight_reads": weights,
        "input_reads": inputs,
        "output_moves": outputs,
    }


@pytest.mark.parametrize("rest", DATAFLOWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_product_is_numpys_and_the_counts_are_the_equations(
    shape: tuple[int, int, int, int, int], rest: str
) -> None:
    m, k, n, rows, columns = shape
    inputs, weights = matrices(m, k, n)
    run = multiply(inputs, weights, rows=rows, columns=columns, rest=rest, trace=True)
    assert run.product == (np.array(inputs) @ np.array(weights)).tolist()
    assert run.multiply_adds == m * k * n == sum(cycle.busy for cycle in run.trace)
    assert len(run.trace) == run.cycles
    for name, value in predicted(rest, *shape).items():
        assert getattr(run, name) == pytest.approx(value), name


def test_three_by_three_by_hand() -> None:
    """Three cycles load; row 1 enters at cycle 4; the last sum leaves at cycle 10."""
    inputs, weights = matrices(3, 3, 3)
    run = multiply(inputs, weights, rows=3, columns=3, trace=True)
    assert [cycle.phase for cycle in run.trace] == ["load"] * 3 + ["compute"] * 7
    # A diagonal wave: 1, 3, 6, 7, 6, 3 and 1 cells of nine multiply.
    assert [cycle.busy for cycle in run.trace[3:]] == [1, 3, 6, 7, 6, 3, 1]
    first = run.trace[3].cells[0][0]
    assert (first.rests, first.west, first.busy) == ((0, 0), (0, 0), True)
    assert run.use == pytest.approx(27 / 90)


def test_the_last_row_comes_in_first() -> None:
    """And sinks: what rests in the first column after each of three cycles of loading."""
    run = multiply(*matrices(3, 3, 3), rows=3, columns=3, trace=True)
    rests = [[row[0].rests for row in cycle.cells] for cycle in run.trace[:3]]
    assert rests == [
        [(2, 0), None, None],
        [(1, 0), (2, 0), None],
        [(0, 0), (1, 0), (2, 0)],
    ]


@pytest.mark.parametrize("rest", DATAFLOWS)
def test_a_column_times_a_row_by_hand(rest: str) -> None:
    run = multiply([[2], [3]], [[5, 7]], rows=2, columns=3, rest=rest)
    assert run.product == [[10, 14], [15, 21]]
    assert multiply([[2, 3]], [[5], [7]], rows=2, columns=3, rest=rest).product == [[31]]


def test_what_lies_in_a_cell_is_of_the_matrix_that_rests() -> None:
    inputs, weights = matrices(2, 3, 4)
    for rest, height, width in (("weights", 3, 4), ("inputs", 2, 3), ("outputs", 2, 4)):
        run = multiply(inputs, weights, rows=4, columns=4, rest=rest, trace=True)
        lying = {cell.rests for cycle in run.trace for row in cycle.cells for cell in row}
        assert lying - {None} == {(r, c) for r in range(height) for c in range(width)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": [[1, 2], [3]]}, r"inputs must be rows of one length.*\[1, 2\]"),
        ({"weights": []}, "weights must be rows of one length"),
        ({"weights": [[1]]}, "inputs have 2 columns and weights 1 rows"),
        ({"rows": 0}, "rows must be a whole number from 1 up, not 0"),
        ({"columns": True}, "columns must be a whole number from 1 up, not True"),
        ({"columns": 2.0}, "columns must be a whole number from 1 up, not 2.0"),
    ],
)
def test_what_no_array_multiplies_is_refused(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"inputs": [[1, 2]], "weights": [[1], [2]], "rows": 2, "columns": 2}
    with pytest.raises(InvalidValueError, match=words):
        multiply(**{**given, **change})


def test_an_unknown_dataflow_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'weights'"):
        multiply([[1]], [[1]], rows=1, columns=1, rest="weight")
