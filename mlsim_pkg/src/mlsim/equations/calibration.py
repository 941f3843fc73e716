"""Times at rates that were measured: a share of the peak, and a start for each operator."""

from __future__ import annotations

from mlsim.equations.functions import ceil, exceeds, floor, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "How much of the data sheet's rates is reached?"


@equation(source="nvidia2023matmul", counts=True)
def product_rows(tokens_worked, device_batch):
    """Rows of a matrix product in a step: one for each token.

    Valid for weights that all tokens meet.

    >>> product_rows(512, 4)
    2048
    """
    return tokens_worked * device_batch


@equation(source="nvidia2023matmul", yields="product_rows", counts=True)
def convolution_rows(batch_size, activations_written, outputs):
    """Rows of a convolution as a matrix product: one for each pixel that it writes.

    The columns are its output channels.

    Valid for one group of channels, and for fully connected layers, which write one pixel.

    >>> convolution_rows(2, 6400, 64)
    200.0
    >>> convolution_rows(2, 6400, 1)
    12800.0
    """
    return batch_size * activations_written / maximum(outputs, 1)


@equation(source="nvidia2023matmul", counts=True)
def waves(product_rows, outputs, tile_size, cores):
    """Rounds in which all tiles of a product are worked on, one tile for each core at a time.

    A tile at the edge takes as long as a whole one, and a last round as long as a full one.

    Assumes tiles of one size, and that none is divided among cores.
    Valid for products whose inner dimension is long.

    >>> waves(256, 22016, 128, 108)
    4.0
    >>> waves(17, 33, 128, 1)
    1.0
    >>> waves(17, 0, 128, 1)
    1
    """
    return maximum(
        ceil(ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores),
        1,
    )


@equation(source="nvidia2023matmul", counts=True)
def filled_share(product_rows, outputs, waves, cores, tile_size):
    """Part of the rounds that the result fills: the rest is padding and idle cores.

    A product smaller than a tile has one that fits, in steps of 16: a matrix instruction. What
    is no matrix product has no outputs, and a share of 1.

    Assumes tiles of one size.
    Valid from 0 to 1.

    >>> filled_share(128, 128, 1, 4, 128)
    0.25
    >>> filled_share(98, 98, 2, 5, 128)
    0.0765625
    >>> filled_share(16, 1, 1, 1, 128)
    0.0625
    >>> filled_share(16, 0, 1, 1, 128)
    1.0
    """
    return product_rows * outputs / (
        waves
        * cores
        * minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size)
        * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size)
    ) + exceeds(1, outputs)


@equation(source="nvidia2023matmul", yields="waves", counts=True)
def shared_waves(product_rows, outputs, tile_size, cores, last_round_share):
    """Rounds in which all tiles of a product are worked on, where the last one is shared.

    Of the idle part of a last round a share is lost: kernels that stay on their cores take
    the next piece early.

    Assumes tiles of one size.
    Valid for a share from 0, nothing lost, to 1, whole rounds.

    >>> shared_waves(1280, 1280, 128, 80, 0.4)
    1.55
    >>> shared_waves(17, 33, 128, 1, 0.4)
    1.0
    >>> shared_waves(17, 33, 128, 4, 0.4)
    1
    """
    return maximum(
        (1 - last_round_share) * ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores
        + last_round_share
        * ceil(ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores),
        1,
    )


@equation(source="nvidia2026aiconfigurator", yields="filled_share", counts=True)
def shared_filled_share(
    product_rows, outputs, product_depth, waves, cores, tile_size, least_depth, small_tile_fraction
):
    """Part of the rounds that the result fills, with the better of two tiles.

    Where large tiles leave cores idle, tiles of half the side give them work, at a part of
    the rate, and several cores share the depth of one tile. What is no matrix product has no
    outputs, and a share of 1.

    Valid from 0 to 1.

    >>> shared_filled_share(96, 96, 1024, 1, 6, 128, 512, 0.75)
    0.421875
    >>> shared_filled_share(98, 98, 1100, 1, 4, 256, 512, 0.8)
    0.30625
    >>> shared_filled_share(98, 98, 1100, 1, 1, 256, 512, 0.8)
    0.765625
    >>> shared_filled_share(98, 98, 300, 2, 4, 256, 512, 0.8)
    0.153125
    >>> shared_filled_share(98, 98, 1100, 2, 2, 256, 512, 0.8)
    0.6125
    >>> shared_filled_share(16, 1, 1100, 1, 1, 256, 512, 0.8)
    0.0625
    >>> shared_filled_share(16, 1, 1100, 4, 1, 256, 512, 0.8)
    0.05
    >>> shared_filled_share(16, 0, 1100, 1, 1, 256, 512, 0.8)
    1.0
    """
    return maximum(
        product_rows
        * outputs
        / (
            waves
            * cores
            * minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size)
            * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size)
        ),
        small_tile_fraction
        * product_rows
        * outputs
        / (
            minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size / 2)
            * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size / 2)
        )
        / maximum(
            ceil(2 * product_rows / tile_size) * ceil(2 * outputs / tile_size),
            cores / maximum(floor(product_depth / least_depth), 1),
        ),
    ) + exceeds(1, outputs)


@equation(source="nvidia2023matmul", yields="product_depth", counts=True)
def convolution_depth(multiply_adds, activations_written):
    """Depth of a convolution as a matrix product: multiply-adds of each number it writes.

    Valid for one group of channels, and for fully connected layers.

    >>> convolution_depth(6400, 100)
    64.0
    >>> convolution_depth(6400, 1)
    6400.0
    """
    return multiply_adds / maximum(activations_written, 1)


@equation(source="williams2009roofline", yields="compute_time")
def calibrated_compute_time(flops, peak_flops, compute_fraction, filled_share):
    """Time to compute at the measured part of the peak rate, on the cores that have work.

    Assumes that the part is the same for all products.
    Valid for the device and the precision that were measured.

    >>> calibrated_compute_time(300e9, 300e12, 0.5, 0.5)
    0.004
    """
    return flops / (peak_flops * compute_fraction * filled_share)


@equation(source="williams2009roofline", yields="memory_time")
def calibrated_memory_time(bytes_moved, memory_bandwidth, memory_fraction):
    """Time to move the bytes at the measured part of the memory bandwidth.

    Valid for long streams on the device that was measured.

    >>> calibrated_memory_time(2e9, 2e12, 0.5)
    0.002
    """
    return bytes_moved / (memory_bandwidth * memory_fraction)


@equation(source="thakur2005optimization", yields="network_time")
def calibrated_network_time(link_latency, link_bytes, link_bandwidth, link_fraction):
    """Time to send: a start, and the bytes at the measured part of the link bandwidth.

    Assumes that the start takes as long for any message.
    Valid for the link, the library and about as many devices as were measured.

    >>> calibrated_network_time(1.0, 450e9, 450e9, 0.5)
    3.0
    """
    return link_latency + link_bytes / (link_bandwidth * link_fraction)


@equation(source="pytorch2026roofline", yields="operator_time")
def started_time(roofline_time, kernel_overhead):
    """Time of an operator on one device: it is started, then it computes and moves bytes.

    Assumes that one operator starts when the last has ended.
    Valid where the host is ahead of the device.

    >>> started_time(0.002, 0.001)
    0.003
    """
    return roofline_time + kernel_overhead


@equation(source="pytorch2026roofline", yields="operator_time")
def started_and_sent_time(roofline_time, network_time, kernel_overhead):
    """Time of an operator with its share of sending, and its start.

    Assumes that sending and computing do not overlap.
    Valid for tensor parallelism, where the next operator needs the result.

    >>> started_and_sent_time(0.002, 0.001, 0.001)
    0.004
    """
    return roofline_time + network_time + kernel_overhead


@equation(source="pytorch2026roofline", sums=True)
def total_overhead_time(kernel_overhead, repeats):
    """Time that a step spends starting its operators.

    Valid where operators run one after another.

    >>> total_overhead_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_overhead, repeats)


@equation(source="pytorch2026roofline")
def overhead_share(total_overhead_time, latency):
    """Part of the step that is spent starting operators.

    Valid from 0 to 1.

    >>> overhead_share(0.001, 0.004)
    0.25
    """
    return total_overhead_time / latency


@equation(source="williams2009roofline", yields="compute_bound_share")
def calibrated_compute_bound_share(
    latency, memory_bound_time, total_network_time, total_overhead_time
):
    """Part of the step spent in operators for which the arithmetic is the limit.

    It is what waiting for memory, sending and starting leave.

    Valid where operators run one after another.

    >>> calibrated_compute_bound_share(8.0, 1.0, 2.0, 3.0)
    0.25
    """
    return (latency - memory_bound_time - total_network_time - total_overhead_time) / latency
