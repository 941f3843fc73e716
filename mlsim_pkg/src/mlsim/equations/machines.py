"""What many processors gain, and what a faster or smaller circuit takes.

These explain why machines look as they do; no solver asks them.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, minimum
from mlsim.equations.registry import Topic

EXECUTION = equation = Topic("execution", "Where does a peak rate come from?")


@equation(source="nvidia2020ampere", yields="peak_flops")
def unit_peak(cores, units_per_core, unit_multiply_adds, flops_per_multiply_add, clock_rate):
    """Rate at which all units of a device compute, if none of them ever waits.

    Assumes that every unit starts one operation in every clock cycle, at the highest clock.
    Valid for one kind of unit in one number format.

    >>> unit_peak(100, 4, 256, 2, 1e9)
    204800000000000.0
    """
    return cores * units_per_core * unit_multiply_adds * flops_per_multiply_add * clock_rate


MACHINES = equation = Topic("machines", "Why are there many processors, and what do they gain?")


@equation(source="pattbuzzwords")
def speedup(parallel_share, processors):
    """Speedup by several processors, by Amdahl's law.

    The part that they share takes one share of its time each; the rest takes as long as before.

    Assumes that the parallel part splits evenly, and that splitting costs nothing.

    Valid for work of a fixed size; real speedups are lower.

    >>> speedup(0.75, 3.0)
    2.0
    """
    return 1 / (1 - parallel_share + parallel_share / processors)


@equation(source="horowitz2000circuit")
def power_ratio(capacitance_ratio, voltage_ratio, frequency_ratio):
    """Power that switching takes, over the old one: capacitance, voltage squared, and clock.

    Assumes that leakage is small beside switching.

    Valid for the same circuit, at another size, voltage or clock.

    >>> power_ratio(0.5, 0.5, 2.0)
    0.25
    """
    return capacitance_ratio * voltage_ratio**2 * frequency_ratio


@equation(source="pop2024balance")
def load_balance(mean_busy_time, longest_busy_time):
    """How evenly processors share a job: the mean of their busy times over the longest.

    Assumes that all begin together and that the next step waits for the last one.

    Valid for one step that all share; 1 is a perfect balance.

    >>> load_balance(3.0, 4.0)
    0.75
    """
    return mean_busy_time / longest_busy_time


TILES = equation = Topic("tiles", "How often does a matrix product read its inputs?")


@equation(source="hennessy2019quantitative", counts=True)
def operand_reads(product_rows, outputs, product_depth, tile_size):
    """Elements of the inputs that a matrix product reads, in square tiles.

    Each multiply-add needs two numbers. With tiles, each number that is read serves a whole
    row, or column, of a tile.

    Assumes tiles that divide the product, and a fast memory that keeps a tile of each input
    and nothing else.

    Valid for reads from the next slower memory; the result is written once besides.

    >>> operand_reads(4, 4, 4, 1)
    128.0
    >>> operand_reads(4, 4, 4, 2)
    64.0
    """
    return 2 * product_rows * outputs * product_depth / tile_size


@equation(source="hennessy2019quantitative", counts=True)
def tile_bytes(tile_size, bytes_per_element):
    """Bytes of a square tile of each of the two inputs.

    Assumes that the tile of the result is in registers.

    Valid for one set of tiles; a kernel that loads the next set while it works keeps two.

    >>> tile_bytes(32, 4.0)
    8192.0
    """
    return 2 * tile_size**2 * bytes_per_element


@equation(source="hennessy2019quantitative", counts=True)
def tile_intensity(tile_size, bytes_per_element):
    """Arithmetic intensity of a tiled product toward the memory that it reads its inputs from.

    Two operations for each multiply-add, over two elements for each `tile_size` of them.

    Assumes large products, whose result weighs little beside the reads.

    Valid for square tiles.

    >>> tile_intensity(32, 4.0)
    8.0
    """
    return tile_size / bytes_per_element


SYSTOLIC = equation = Topic(
    "systolic", "How long does a systolic array take, and what does it move?"
)


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


INPUT_PIPELINE = equation = Topic("input_pipeline", "Does the data keep up with the accelerator?")


@equation(source="mohan2021datastalls")
def read_rate(storage_bandwidth, stored_bytes):
    """Samples that a disk delivers, if it reads without a pause.

    Valid for a data set that memory does not hold: else it is read once and kept.

    >>> read_rate(5e8, 1e5)
    5000.0
    """
    return storage_bandwidth / stored_bytes


@equation(source="mohan2021datastalls")
def prepare_rate(load_workers, worker_rate):
    """Samples that all workers of a host prepare.

    Assumes that each worker has a core of its own, and none slows another.
    Valid up to the cores of the host.

    >>> prepare_rate(8, 600.0)
    4800.0
    """
    return load_workers * worker_rate


@equation(source="mohan2021datastalls")
def copy_rate(host_link_bandwidth, copied_bytes):
    """Samples that the link between host and device carries.

    Valid for large batches, sent from memory that the system does not move.

    >>> copy_rate(3e10, 1.5e5)
    200000.0
    """
    return host_link_bandwidth / copied_bytes


@equation(source="mohan2021datastalls")
def supply_rate(read_rate, prepare_rate, copy_rate):
    """Samples that arrive: a pipeline is as fast as its slowest stage.

    Assumes that the stages overlap, each with the next batch.
    Valid over many batches.

    >>> supply_rate(5000.0, 4800.0, 200000.0)
    4800.0
    """
    return minimum(minimum(read_rate, prepare_rate), copy_rate)


@equation(source="mohan2021datastalls", yields="fed_throughput")
def overlapped_throughput(supply_rate, throughput):
    """Samples that a device finishes while the next ones are prepared.

    Valid over many batches, with a batch in reserve.

    >>> overlapped_throughput(1500.0, 3000.0)
    1500.0
    """
    return minimum(supply_rate, throughput)


@equation(source="mohan2021datastalls", yields="fed_throughput")
def alternating_throughput(supply_rate, throughput):
    """Samples that are finished if preparing and computing take turns.

    Valid where the program that computes also prepares the samples.

    >>> alternating_throughput(1500.0, 3000.0)
    1000.0
    """
    return supply_rate * throughput / (supply_rate + throughput)


@equation(source="mohan2021datastalls")
def starved_share(fed_throughput, throughput):
    """Part of the time in which the device has nothing to work on.

    Valid over many batches.

    >>> starved_share(1000.0, 4000.0)
    0.75
    """
    return 1 - fed_throughput / throughput
