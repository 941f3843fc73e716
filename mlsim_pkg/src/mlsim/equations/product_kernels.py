"""Time of a matrix product as one kernel: tiles on cores, a depth that is divided, a start.

The forms are those of blocked products. Their constants are fitted to measured kernels, in
`benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, floor, maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long does a measured matrix product take?"


@equation(source="nvidia2026aiconfigurator", counts=True)
def depth_parts(product_rows, outputs, product_depth, tile_size, cores, least_depth):
    """Parts of a product's depth, so that cores without a tile get work.

    A product with few rows has few tiles. Libraries then give several cores the same tile
    and a part of the depth each, and add up at the end.

    Assumes whole parts, none thinner than the least depth.
    Valid for products of any shape; what is no product has no outputs, and one part.

    >>> depth_parts(200, 200, 20000, 128, 132, 512)
    33
    >>> depth_parts(16, 1000, 1600, 128, 132, 512)
    3
    >>> depth_parts(200, 20000, 4096, 128, 132, 512)
    1
    >>> depth_parts(200, 0, 1e6, 128, 132, 512)
    66
    """
    return maximum(
        minimum(
            floor(cores / (ceil(product_rows / tile_size) * maximum(ceil(outputs / tile_size), 1))),
            floor(product_depth / least_depth),
        ),
        1,
    )


@equation(source="nvidia2026aiconfigurator", counts=True)
def split_rounds(product_rows, outputs, depth_parts, tile_size, cores, last_round_share):
    """Rounds in which cores work on all tiles and parts, at least one.

    Of the idle part of a last round, only a share is lost: libraries have other tiles, and
    begin the next one early.

    Valid for a share from 0, nothing lost, to 1, whole rounds.

    >>> split_rounds(130, 1290, 8, 128, 80, 0.4)
    2.52
    >>> split_rounds(100, 100, 1, 128, 80, 0.4)
    1
    """
    return maximum(
        ceil(product_rows / tile_size) * ceil(outputs / tile_size) * depth_parts / cores
        + last_round_share
        * (
            ceil(ceil(product_rows / tile_size) * ceil(outputs / tile_size) * depth_parts / cores)
            - ceil(product_rows / tile_size) * ceil(outputs / tile_size) * depth_parts / cores
        ),
        1,
    )


@equation(source="nvidia2023matmul", yields="filled_share", counts=True)
def split_filled_share(
    product_rows, outputs, product_depth, depth_parts, split_rounds, tile_size, cores, depth_start
):
    """Part of the cores' rounds that a product fills: the rest is padding, idleness and starts.

    Each part of a tile takes the time of some further depth to begin and to end.

    Valid for products; above 1 never.

    >>> split_filled_share(64, 128, 1000, 2, 2.5, 128, 4, 125)
    0.08
    """
    return (
        product_rows
        * outputs
        * product_depth
        / (split_rounds * cores * tile_size**2 * (product_depth / depth_parts + depth_start))
    )


@equation(source="williams2009roofline", yields="memory_time")
def cached_memory_time(
    bytes_moved, memory_bandwidth, memory_fraction, resident_bytes, cache_speedup
):
    """Time to move bytes of which a last cache still holds some from the run before.

    The smaller the traffic, the more of it stays.

    Assumes that the same kernel ran before, as in a benchmark; a model reads other weights.
    Valid for repeated kernels.

    >>> cached_memory_time(2e6, 1e12, 0.5, 2e6, 5.0)
    2.4e-06
    >>> round(cached_memory_time(2e6, 1e12, 0.5, 1e6, 5.0) * 1e9)
    3812
    """
    return (
        bytes_moved
        / (memory_bandwidth * memory_fraction)
        * (1 - (1 - 1 / cache_speedup) / (1 + (bytes_moved / resident_bytes) ** 4))
    )


@equation(source="williams2009roofline", yields="product_time")
def tile_product_time(
    compute_time,
    memory_time,
    quantized_bytes,
    memory_bandwidth,
    memory_fraction,
    kernel_overhead,
    split_start,
    depth_parts,
):
    """Time of a product with tiles of one size: a start, and arithmetic beside memory.

    Near the ridge neither hides the other wholly: the fourth root of the sum of fourth
    powers is 19 % above either where both are equal.

    Valid for one kernel, and one before it that brings the input to a shorter format.

    >>> tile_product_time(3.0, 0.0, 4e12, 1e12, 0.5, 2.0, 2.0, 4)
    14.5
    >>> round(tile_product_time(3.0, 2.0, 4e12, 1e12, 0.5, 2.0, 2.0, 4), 3)
    14.638
    """
    return (
        kernel_overhead
        + split_start * (1 - 1 / depth_parts)
        + quantized_bytes / (memory_bandwidth * memory_fraction)
        + square_root(square_root(compute_time**4 + memory_time**4))
    )
