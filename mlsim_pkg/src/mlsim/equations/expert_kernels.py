"""Time of a layer's experts as kernels, on the device that gets most of the tokens.

Their constants are fitted to measured kernels, in `benchmarks/atlas`, with these functions.
In a step of a model the operators of experts stand beside others in one table; a mark, 1 for
theirs and 0 for all others, tells for which these equations hold.
"""

from __future__ import annotations

from mlsim.equations.functions import maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long do measured experts take?"


@equation(source="fedus2022switch", counts=True)
def busiest_rows(routed_rows, expert_parallel, imbalance, most_rows):
    """Tokens that the device with most of them gets, where choices are uneven.

    Assumes that its share grows with a power of the devices; a power of 0 is balance.
    Valid for experts divided among devices.

    >>> busiest_rows(64, 16, 0.5, 512)
    256.0
    >>> busiest_rows(0.25, 4, 0.5, 512)
    1
    """
    return maximum(minimum(routed_rows * expert_parallel**imbalance, most_rows), 1)


@equation(source="fedus2022switch", counts=True)
def met_experts(own_experts, experts_per_token, experts, group_tokens, spread):
    """Experts of a device that at least one token chooses.

    Tokens choose alike; the spread is the part of them that counts as choosing alone.

    Valid for choices by chance.

    >>> met_experts(8, 2, 8, 4, 0.5)
    3.5
    """
    return own_experts * (1 - (1 - experts_per_token / experts) ** (group_tokens * spread))


@equation(source="nvidia2023matmul", counts=True)
def expert_rows(busiest_rows, met_experts, expert_tile):
    """Rows of the tiles on which all experts together work: each expert fills its own.

    The last tile of an expert is half empty, on average: its tokens end anywhere in it. A tile
    of one row has no padding.

    Valid where each expert's tokens are multiplied apart, and their numbers differ.

    >>> expert_rows(100, 8, 17)
    164.0
    """
    return busiest_rows + met_experts * (expert_tile - 1) / 2


@equation(source="nvidia2026aiconfigurator", counts=True)
def passed_rows(busiest_rows, group_tokens, experts_per_token, elsewhere_share):
    """Tokens that a device sorts and adds up, one for each choice: its own, and some of others.

    Where experts are divided among devices, many kernels sort all choices, and write and read
    empty results for experts elsewhere.

    Valid for tokens that all devices have at hand.

    >>> passed_rows(20, 10, 8, 0.5)
    50.0
    >>> passed_rows(20, 2, 8, 0.5)
    20.0
    """
    return busiest_rows + elsewhere_share * maximum(
        group_tokens * experts_per_token - busiest_rows, 0
    )


@equation(source="nvidia2026aiconfigurator", yields="filled_share", counts=True)
def expert_filled_share(busiest_rows, expert_rows, expert_width, half_width):
    """Part of the rate that experts reach: padding of rows, and narrow layers.

    At the half width, a layer reaches 0.71 of what wide ones do.

    Valid from 0 to 1.

    >>> expert_filled_share(64, 128, 300, 400)
    0.3
    """
    return busiest_rows / expert_rows * expert_width / square_root(expert_width**2 + half_width**2)


@equation(source="williams2009roofline")
def expert_time(
    compute_time, memory_time, bytes_moved, memory_bandwidth, data_passes, kernel_overhead
):
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


@equation(source="fedus2022switch", counts=True)
def own_experts(experts, expert_parallel):
    """Experts whose weights a device holds, or holds a slice of.

    Valid for experts divided evenly among devices.

    >>> own_experts(256, 8)
    32.0
    """
    return experts / expert_parallel


@equation(source="shoeybi2019megatron", counts=True)
def expert_width(expert_size, tensor_parallel, expert_parallel):
    """Inner width of an expert on one device: whole, or a slice where more devices share it.

    Valid for tensor parallelism of which expert parallelism takes a part, or more.

    >>> expert_width(2048, 8, 2)
    512.0
    """
    return expert_size * expert_parallel / maximum(tensor_parallel, expert_parallel)


@equation(source="nvidia2026aiconfigurator", counts=True)
def passed_bytes(bytes_per_element, hidden_size, expert_branches, expert_width):
    """Bytes that a token brings to a product of one of its experts, and takes from it.

    Valid for each product of an expert: gate and value side by side, or the way back.

    >>> passed_bytes(2, 4096, 2, 512)
    10240
    """
    return bytes_per_element * (hidden_size + expert_branches * expert_width)


@equation(source="fedus2022switch", counts=True)
def routed_rows(group_tokens, experts_per_token, expert_parallel):
    """Tokens that a device's experts get on average, one for each choice.

    Valid for experts divided evenly among devices.

    >>> routed_rows(64, 2, 8)
    16.0
    """
    return group_tokens * experts_per_token / expert_parallel


@equation(source="fedus2022switch", counts=True)
def most_rows(group_tokens, experts_per_token, own_experts):
    """Tokens that a device's experts get at most: all that can choose one of them.

    Valid for tokens that choose each expert once.

    >>> most_rows(64, 8, 4)
    256
    """
    return group_tokens * minimum(experts_per_token, own_experts)


@equation(source="fedus2022switch", yields="expert_share", counts=True)
def spread_expert_share(experts_per_token, experts, group_tokens, spread):
    """Share of the experts that are read where tokens choose alike.

    The spread is the part of the tokens that counts as choosing alone. One token reads all
    that it chooses.

    Valid for any number of tokens.

    >>> spread_expert_share(2, 8, 8, 0.25)
    0.4375
    >>> spread_expert_share(2, 8, 2, 0.25)
    0.25
    """
    return 1 - (1 - experts_per_token / experts) ** maximum(group_tokens * spread, 1)


@equation(source="nvidia2026aiconfigurator", counts=True)
def expert_fill(
    routed_rows, busiest_rows, own_experts, expert_share, expert_tile, expert_width, half_width
):
    """Part of the rate that experts reach: the busiest device, padding, and narrow layers.

    Of each expert that is met the last tile is half empty, on the device with most of the
    tokens. At the half width, a layer reaches 0.71 of what wide ones do.

    Valid from 0 to 1.

    >>> expert_fill(64, 64, 8, 0.25, 65, 300, 400)
    0.3
    >>> expert_fill(64, 64, 8, 0.125, 65, 300, 400)
    0.4
    """
    return (
        routed_rows
        / (
            busiest_rows
            + maximum(minimum(own_experts * expert_share, busiest_rows), 1) * (expert_tile - 1) / 2
        )
        * expert_width
        / square_root(expert_width**2 + half_width**2)
    )


@equation(source="nvidia2026aiconfigurator", yields="compute_time")
def routed_compute_time(
    flops, peak_flops, compute_fraction, filled_share, routed_mark, expert_fill
):
    """Time to compute at the measured part of the peak rate; of experts, with their own tiles.

    Valid for the device and the precision that were measured.

    >>> routed_compute_time(3e11, 3e14, 0.5, 0.5, 0, 0.8)
    0.004
    >>> routed_compute_time(3e11, 3e14, 0.5, 0.5, 1, 0.8)
    0.005
    """
    return flops / (
        peak_flops * compute_fraction * filled_share * (1 - routed_mark * (1 - expert_fill))
    )


@equation(source="nvidia2026aiconfigurator", yields="full_tile_time")
def routed_full_tile_time(compute_time, filled_share, routed_mark, expert_fill):
    """Time that an operator's arithmetic would take if its tiles filled all cores.

    Valid for the calibrated estimate, whose compute time has the share in it.

    >>> routed_full_tile_time(0.004, 0.5, 1, 0.25)
    0.0005
    >>> routed_full_tile_time(0.004, 0.5, 0, 0.25)
    0.002
    """
    return compute_time * filled_share * (1 - routed_mark * (1 - expert_fill))


@equation(source="nvidia2026aiconfigurator")
def expert_pass_time(data_passes, passed_bytes, passed_rows, memory_bandwidth):
    """Time to sort tokens by expert before a product, and to bring results back after it.

    Each token's numbers cross the memory several times, apart from the product.

    Valid on the device that gets most of the tokens.

    >>> expert_pass_time(4.0, 1000.0, 50, 1e6)
    0.2
    """
    return data_passes * passed_bytes * passed_rows / memory_bandwidth


@equation(source="nvidia2026aiconfigurator", yields="roofline_time")
def routed_roofline_time(compute_time, memory_time, routed_mark, expert_pass_time):
    """Time of an operator: the longer of computing and moving; of experts, more than that.

    Experts wait for weights now and for arithmetic then, so that neither hides the other
    whole; and their tokens are sorted before and brought back after.

    Valid for the calibrated estimate.

    >>> routed_roofline_time(3.0, 4.0, 1, 1.0)
    6.0
    >>> routed_roofline_time(3.0, 4.0, 0, 1.0)
    4.0
    """
    return (1 - routed_mark) * maximum(compute_time, memory_time) + routed_mark * (
        square_root(compute_time**2 + memory_time**2) + expert_pass_time
    )


@equation(source="nvidia2026aiconfigurator", yields="untiled_time")
def routed_untiled_time(full_tile_time, memory_time, routed_mark, expert_pass_time):
    """Time that an operator would take if its tiles filled all cores, also one of experts.

    Valid for the calibrated estimate.

    >>> routed_untiled_time(3.0, 4.0, 1, 2.0)
    7.0
    >>> routed_untiled_time(3.0, 4.0, 0, 2.0)
    4.0
    """
    return (1 - routed_mark) * maximum(full_tile_time, memory_time) + routed_mark * (
        square_root(full_tile_time**2 + memory_time**2) + expert_pass_time
    )
