"""A matrix product on a systolic array: cycles, and what enters and leaves the array.

Inputs of $q_m$ rows and $q_k$ columns meet weights of $q_k$ rows and $q_n$ columns. One of
the three matrices rests in the cells, a tile at a time, while the other two stream past.
The tests compare each equation with a simulation that moves every number cell by cell.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil
from mlsim.equations.registry import equation

QUESTION = "How long does a systolic array take, and what does it move?"


@equation(source="samajdar2018scalesim", yields="array_tiles")
def weight_tiles(product_depth, outputs, array_rows, array_columns):
    """Tiles of weights, if the weights rest: each is loaded into the cells once.

    Valid for an array whose rows hold the depth of the product and whose columns its outputs.

    >>> weight_tiles(600, 600, 256, 256)
    9.0
    """
    return ceil(product_depth / array_rows) * ceil(outputs / array_columns)


@equation(source="samajdar2018scalesim", yields="array_tiles")
def input_tiles(product_depth, product_rows, array_rows, array_columns):
    """Tiles of inputs, if the inputs rest: each is loaded into the cells once.

    Valid for an array whose rows hold the depth of the product and whose columns its samples.

    >>> input_tiles(600, 300, 256, 128)
    9.0
    """
    return ceil(product_depth / array_rows) * ceil(product_rows / array_columns)


@equation(source="samajdar2018scalesim", yields="array_tiles")
def output_tiles(product_rows, outputs, array_rows, array_columns):
    """Tiles of outputs, if the outputs rest: each grows in the cells and is unloaded once.

    Valid for an array with a cell for each element of the tile.

    >>> output_tiles(300, 600, 256, 128)
    10.0
    """
    return ceil(product_rows / array_rows) * ceil(outputs / array_columns)


@equation(source="samajdar2018scalesim")
def tile_cycles(array_rows, array_columns, streamed_vectors):
    """Clock cycles for a tile: load or unload it, then let all vectors pass every cell.

    A vector enters one cell a cycle later for each row, and crosses all columns.

    Assumes that loading a tile does not overlap with the vectors of the tile before it.
    Valid for a whole array, whether or not the tile fills it.

    >>> tile_cycles(3, 3, 3)
    10
    """
    return 2 * array_rows + array_columns + streamed_vectors - 2


@equation(source="samajdar2018scalesim")
def array_cycles(array_tiles, tile_cycles):
    """Clock cycles for all tiles of a product, one after the other.

    Valid where no data is late.

    >>> array_cycles(4, 10)
    40
    """
    return array_tiles * tile_cycles


@equation(source="samajdar2018scalesim")
def array_use(product_rows, product_depth, outputs, array_cycles, array_rows, array_columns):
    """Multiply-adds of the product, over what all cells could do in its cycles.

    Valid for one product.

    >>> array_use(3, 3, 3, 10, 3, 3)
    0.3
    """
    return product_rows * product_depth * outputs / (array_cycles * array_rows * array_columns)


@equation(source="samajdar2018scalesim", yields="weight_reads")
def resting_weight_reads(product_depth, outputs):
    """Weights that enter the array if they rest in it: each once.

    Valid where the weights rest.

    >>> resting_weight_reads(4, 3)
    12
    """
    return product_depth * outputs


@equation(source="samajdar2018scalesim", yields="weight_reads")
def weight_reads_past_inputs(product_depth, outputs, product_rows, array_columns):
    """Weights that enter the array if inputs rest: all of them for each column of tiles.

    Valid where the inputs rest.

    >>> weight_reads_past_inputs(4, 3, 6, 2)
    36.0
    """
    return product_depth * outputs * ceil(product_rows / array_columns)


@equation(source="samajdar2018scalesim", yields="weight_reads")
def weight_reads_past_outputs(product_depth, outputs, product_rows, array_rows):
    """Weights that enter the array if outputs rest: all of them for each row of tiles.

    Valid where the outputs rest.

    >>> weight_reads_past_outputs(4, 3, 6, 2)
    36.0
    """
    return product_depth * outputs * ceil(product_rows / array_rows)


@equation(source="samajdar2018scalesim", yields="input_reads")
def resting_input_reads(product_rows, product_depth):
    """Inputs that enter the array if they rest in it: each once.

    Valid where the inputs rest.

    >>> resting_input_reads(6, 4)
    24
    """
    return product_rows * product_depth


@equation(source="samajdar2018scalesim", yields="input_reads")
def streaming_input_reads(product_rows, product_depth, outputs, array_columns):
    """Inputs that enter the array if they stream: all of them for each column of tiles.

    Valid where weights or outputs rest.

    >>> streaming_input_reads(6, 4, 5, 2)
    72.0
    """
    return product_rows * product_depth * ceil(outputs / array_columns)


@equation(source="samajdar2018scalesim", yields="output_moves")
def resting_output_moves(product_rows, outputs):
    """Outputs that leave the array if they rest in it: each once, when it is whole.

    Valid where the outputs rest.

    >>> resting_output_moves(6, 3)
    18
    """
    return product_rows * outputs


@equation(source="samajdar2018scalesim", yields="output_moves")
def partial_sum_moves(product_rows, outputs, product_depth, array_rows):
    """Partial sums that leave the array, and come back to be added to by the next tile.

    Valid where weights or inputs rest.

    >>> partial_sum_moves(6, 3, 5, 2)
    90.0
    """
    return product_rows * outputs * (2 * ceil(product_depth / array_rows) - 1)
