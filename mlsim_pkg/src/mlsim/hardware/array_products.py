"""What a matrix product, or a network of them, takes on a systolic array, by the equations."""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.equations import machines
from mlsim.errors import InvalidValueError, check_whole, unknown_name
from mlsim.hardware.systolic import DATAFLOWS
from mlsim.workloads.model import Network, Operator


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
