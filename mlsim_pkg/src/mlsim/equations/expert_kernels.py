"""Time of a layer's experts as kernels, on the device that gets most of the tokens.

Their constants are fitted to measured kernels, in `benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import Value, ceil, maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long do measured experts take?"


@equation(source="fedus2022switch", counts=True)
def busiest_rows(
    routed_rows: Value, expert_parallel: Value, imbalance: Value, most_rows: Value
) -> Value:
    """Tokens that the device with most of them gets, where choices are uneven.

    Assumes that its share grows with a power of the devices; a power of 0 is balance.
    Valid for experts divided among devices.

    >>> busiest_rows(64, 16, 0.5, 512)
    256.0
    """
    return maximum(minimum(routed_rows * expert_parallel**imbalance, most_rows), 1)


@equation(source="fedus2022switch", counts=True)
def met_experts(
    own_experts: Value,
    experts_per_token: Value,
    experts: Value,
    group_tokens: Value,
    spread: Value,
) -> Value:
    """Experts of a device that at least one token chooses.

    Tokens choose alike; the spread is the part of them that counts as choosing alone.

    Valid for choices by chance.

    >>> met_experts(8, 2, 8, 1, 1.0)
    2.0
    """
    return own_experts * (1 - (1 - experts_per_token / experts) ** (group_tokens * spread))


@equation(source="nvidia2023matmul", counts=True)
def expert_rows(busiest_rows: Value, met_experts: Value, tile_size: Value) -> Value:
    """Rows of the tiles on which all experts together work: each expert fills its own.

    Valid where each expert's tokens are multiplied apart.

    >>> expert_rows(100, 8, 16)
    128.0
    """
    return met_experts * tile_size * ceil(maximum(busiest_rows / met_experts, 1) / tile_size)


@equation(source="nvidia2026aiconfigurator", yields="filled_share", counts=True)
def expert_filled_share(
    busiest_rows: Value, expert_rows: Value, expert_width: Value, half_width: Value
) -> Value:
    """Part of the rate that experts reach: padding of rows, and narrow layers.

    At the half width, a layer reaches 0.71 of what wide ones do.

    Valid from 0 to 1.

    >>> expert_filled_share(64, 128, 300, 400)
    0.3
    """
    return busiest_rows / expert_rows * expert_width / square_root(expert_width**2 + half_width**2)


@equation(source="williams2009roofline")
def expert_time(
    compute_time: Value,
    memory_time: Value,
    bytes_moved: Value,
    memory_bandwidth: Value,
    data_passes: Value,
    kernel_overhead: Value,
) -> Value:
    """Time of experts: starts, weights beside arithmetic, and passes over the tokens' data.

    Sorting tokens by expert and bringing results back are passes of their own.

    Valid for a layer's experts on one device.

    >>> expert_time(3.0, 4.0, 1e12, 1e12, 2.0, 3.0)
    10.0
    """
    return (
        kernel_overhead
        + data_passes * bytes_moved / memory_bandwidth
        + square_root(compute_time**2 + memory_time**2)
    )
