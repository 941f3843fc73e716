"""The systolic array: right products, the counts that the equations give, and whole networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import answered

from mlsim import Models
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError
from mlsim.hardware import array_cost, network_on_array
from mlsim.hardware.systolic import DATAFLOWS, multiply

# Rows, depth and columns of the product; rows and columns of the array.
SHAPES = [(3, 3, 3, 3, 3), (5, 7, 4, 3, 2), (1, 9, 1, 4, 4), (6, 4, 3, 2, 2), (2, 5, 8, 3, 4)]
COUNTS = ("cycles", "use", "weight_reads", "input_reads", "output_moves")


def matrices(m: int, k: int, n: int) -> tuple[list[list[float]], list[list[float]]]:
    draw = np.random.default_rng(m * k * n)
    return draw.integers(-9, 10, (m, k)).tolist(), draw.integers(-9, 10, (k, n)).tolist()


def predicted(rest: str, m: int, k: int, n: int, rows: int, columns: int) -> tuple[Any, ...]:
    """What the equations say of a product, in the order of `COUNTS`."""
    ask = EQUATIONS
    inputs, outputs = (
        ask["streaming_input_reads"](m, k, n, columns),
        ask["partial_sum_moves"](m, n, k, rows),
    )
    tiles, streamed, *moved = {
        "weights": (
            *(ask["weight_tiles"](k, n, rows, columns), m),
            *(ask["resting_weight_reads"](k, n), inputs, outputs),
        ),
        "inputs": (
            *(ask["input_tiles"](k, m, rows, columns), n),
            *(ask["weight_reads_past_inputs"](k, n, m, columns), ask["resting_input_reads"](m, k)),
            outputs,
        ),
        "outputs": (
            *(ask["output_tiles"](m, n, rows, columns), k),
            *(ask["weight_reads_past_outputs"](k, n, m, rows), inputs),
            ask["resting_output_moves"](m, n),
        ),
    }[rest]
    cycles = ask["array_cycles"](tiles, ask["tile_cycles"](rows, columns, streamed))
    return (cycles, ask["array_use"](m, k, n, cycles, rows, columns), *moved)


@pytest.mark.parametrize("rest", DATAFLOWS)
def test_the_product_is_numpys_and_the_counts_are_the_equations(rest: str) -> None:
    for m, k, n, rows, columns in SHAPES:
        inputs, weights = matrices(m, k, n)
        run = multiply(inputs, weights, rows=rows, columns=columns, rest=rest, trace=True)
        assert run.product == (np.array(inputs) @ np.array(weights)).tolist()
        assert run.multiply_adds == m * k * n == sum(cycle.busy for cycle in run.trace)
        assert len(run.trace) == run.cycles
        expected = predicted(rest, m, k, n, rows, columns)
        assert [getattr(run, name) for name in COUNTS] == pytest.approx(list(expected))
        # The formula for a square array says the same.
        square = multiply(inputs, weights, rows=rows, columns=rows, rest=rest)
        cost = array_cost(m, k, n, side=rows, rest=rest)
        found = [getattr(cost, name) for name in COUNTS]
        assert found == pytest.approx([getattr(square, name) for name in COUNTS])
    # A column times a row, and a row times a column, by hand.
    run = multiply([[2], [3]], [[5, 7]], rows=2, columns=3, rest=rest)
    assert run.product == [[10, 14], [15, 21]]
    assert multiply([[2, 3]], [[5], [7]], rows=2, columns=3, rest=rest).product == [[31]]


def test_three_by_three_by_hand() -> None:
    """Three cycles load; row 1 enters at cycle 4; the last sum leaves at cycle 10."""
    run = multiply(*matrices(3, 3, 3), rows=3, columns=3, trace=True)
    assert [cycle.phase for cycle in run.trace] == ["load"] * 3 + ["compute"] * 7
    # A diagonal wave: 1, 3, 6, 7, 6, 3 and 1 cells of nine multiply.
    assert [cycle.busy for cycle in run.trace[3:]] == [1, 3, 6, 7, 6, 3, 1]
    first = run.trace[3].cells[0][0]
    assert (first.rests, first.west, first.busy) == ((0, 0), (0, 0), True)
    assert run.use == pytest.approx(27 / 90)
    # The last row comes in first, and sinks: what rests in the first column while it loads.
    rests = [[row[0].rests for row in cycle.cells] for cycle in run.trace[:3]]
    assert rests == [[(2, 0), None, None], [(1, 0), (2, 0), None], [(0, 0), (1, 0), (2, 0)]]
    # What rests as a result sinks out at the south once all is computed, a row a cycle.
    run = multiply(*matrices(3, 3, 3), rows=3, columns=3, rest="outputs", trace=True)
    assert [cycle.phase for cycle in run.trace] == ["compute"] * 7 + ["unload"] * 3
    rests = [[row[0].rests for row in cycle.cells] for cycle in run.trace[-3:]]
    assert rests == [[None, (0, 0), (1, 0)], [None, None, (0, 0)], [None] * 3]


def test_what_lies_in_a_cell_is_of_the_matrix_that_rests() -> None:
    inputs, weights = matrices(2, 3, 4)
    for rest, height, width in (("weights", 3, 4), ("inputs", 2, 3), ("outputs", 2, 4)):
        run = multiply(inputs, weights, rows=4, columns=4, rest=rest, trace=True)
        lying = {cell.rests for cycle in run.trace for row in cycle.cells for cell in row}
        assert lying - {None} == {(r, c) for r in range(height) for c in range(width)}


def test_what_no_array_multiplies_is_refused() -> None:
    def ask(**changes: Any) -> Any:
        given: dict[str, Any] = {"inputs": [[1, 2]], "weights": [[1], [2]]}
        return multiply(**{**given, "rows": 2, "columns": 2, **changes})

    def cost(**changes: Any) -> Any:
        sizes = {"rows": 2, "depth": 2, "columns": 2, "side": 2, **changes}
        return array_cost(**sizes)

    assert answered(ask, "systolic", "products") == []
    assert answered(cost, "systolic", "costs") == []
    with pytest.raises(InvalidValueError, match="neither one matrix product nor a depthwise"):
        network_on_array(Models.AlexNet, side=128)


def test_the_tpu_paper_finds_a_larger_array_slower() -> None:
    """600 x 600 weights: 18 us on 256 x 256, 32 us on 512 x 512 [jouppi2017tpu].

    A step loads a tile, with its empty cells: four times as much for twice the side.
    """
    loaded = [EQUATIONS["weight_tiles"](600, 600, side, side) * side**2 for side in (256, 512)]
    assert loaded[1] / loaded[0] == pytest.approx(32 / 18)
    small, large = (array_cost(1, 600, 600, side=side) for side in (256, 512))
    assert large.use < small.use
    # Of a network the multiply-adds are its own.
    resnet, mobile = (
        network_on_array(model, side=128, batch_size=8)
        for model in (Models.ResNet50, Models.MobileNetV2)
    )
    assert resnet.depthwise_share == 0
    assert 0.5 < resnet.use < 1
    assert mobile.use < 0.05 * resnet.use
    assert mobile.depthwise_share > 0.9
    work = mobile.use * mobile.cycles * 128**2 / 8
    assert 2 * work == pytest.approx(Models.MobileNetV2.flop_count)
