"""Time of a matrix product as one kernel: tiles on cores, a depth that is divided, a start.

The forms are those of blocked products. Their constants are fitted to measured kernels, in
`benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, floor, maximum, minimum, square_root
from mlsim.equations.registry import Topic

PRODUCT_KERNELS = equation = Topic(
    "product_kernels", "How long does a measured matrix product take?"
)


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


ATTENTION_KERNELS = equation = Topic("attention_kernels", "How long does measured attention take?")


@equation(source="dao2022flashattention", counts=True)
def longest_pairs(context_tokens, attention_window, tile_size):
    """Pairs of the last tile of queries, which looks back the furthest.

    Valid for prompts under a causal mask, in a window or without one.

    >>> longest_pairs(1024, 1e9, 128)
    131072
    >>> longest_pairs(1024, 384, 128)
    65536
    """
    return tile_size * minimum(context_tokens, attention_window + tile_size)


@equation(source="dao2022flashattention", counts=True)
def masked_pairs(context_tokens, attention_window, edge_tokens, walked_share):
    """Pairs of one head outside of its window that a kernel computes and throws away.

    It works on whole tiles, so some tokens beyond the edge of each query's window are among
    them. Some kernels look at all tiles besides, and leave only a part of that time out.

    Valid for prompts under a causal mask; never more pairs than there are outside.

    >>> masked_pairs(1000, 600, 10, 0.05)
    14010.0
    >>> masked_pairs(1000, 600, 90, 0.05)
    80200.0
    """
    return minimum(
        edge_tokens * context_tokens
        + walked_share
        * (context_tokens - minimum(context_tokens, attention_window))
        * (context_tokens - minimum(context_tokens, attention_window) + 1)
        / 2,
        (context_tokens - minimum(context_tokens, attention_window))
        * (context_tokens - minimum(context_tokens, attention_window) + 1)
        / 2,
    )


@equation(source="dao2022flashattention", counts=True)
def computed_width(head_size, width_step):
    """Numbers of a head that a kernel computes with: whole steps of its tile.

    Valid for heads of any size; a step of 1 adds nothing.

    >>> computed_width(192, 128)
    256.0
    """
    return ceil(head_size / width_step) * width_step


@equation(source="williams2009roofline")
def pair_time(pair_flops, peak_flops, compute_fraction, exponential_time):
    """Time for a pair of query and key: two products, and the exponential of the softmax.

    Assumes that the two follow one another.
    Valid for a device all of whose cores have work.

    >>> pair_time(512, 1e15, 0.512, 1e-12)
    2e-12
    """
    return pair_flops / (peak_flops * compute_fraction) + exponential_time


@equation(source="dao2022flashattention", yields="attention_time")
def prefill_attention_time(
    attended_pairs,
    pair_time,
    attention_tasks,
    task_time,
    cores,
    longest_pairs,
    longest_share,
    bytes_moved,
    cache_bytes,
    memory_bandwidth,
    data_passes,
    cache_passes,
    kernel_overhead,
):
    """Time of attention over a prompt: pairs, starts of its pieces, and passes over the data.

    A piece is a tile of queries of one head, on one core. The longest one takes its time
    even where the others are done. Queries and results cross the memory several times, and
    keys and values another number of times: they are rotated, written to the cache, and
    brought to another format where the cache has fewer bits than the arithmetic.

    Valid for prompts under a causal mask.

    >>> prefill_attention_time(3e6, 1e-6, 8, 0.5, 4, 1e6, 0.75, 1e12, 5e11, 1e12, 2.0, 4.0, 1.0)
    10.0
    """
    return (
        kernel_overhead
        + (data_passes * bytes_moved + cache_passes * cache_bytes) / memory_bandwidth
        + square_root(
            (attended_pairs * pair_time + task_time * attention_tasks / cores) ** 2
            + (longest_share * longest_pairs * pair_time * cores) ** 2
        )
    )


@equation(source="nvidia2026aiconfigurator", counts=True)
def context_parts(attention_tasks, cores, context_tokens, least_context):
    """Parts of a context, so that cores without a sequence get work.

    Assumes whole parts, none shorter than the least.
    Valid for one new token a sequence.

    >>> context_parts(8, 132, 4000, 512)
    8.0
    >>> context_parts(8, 132, 9000, 512)
    16
    >>> context_parts(200, 132, 4000, 512)
    1
    """
    return maximum(minimum(floor(cores / attention_tasks), ceil(context_tokens / least_context)), 1)


@equation(source="nvidia2026aiconfigurator", counts=True)
def context_rounds(attention_tasks, context_parts, cores):
    """Rounds in which cores work on all parts of all contexts, at least one.

    Assumes that cores which are done early take a piece of the next round.
    Valid for many pieces of one length.

    >>> context_rounds(256, 3, 128)
    6.0
    >>> context_rounds(64, 1, 128)
    1
    """
    return maximum(attention_tasks * context_parts / cores, 1)


@equation(source="nvidia2026aiconfigurator", yields="task_time")
def grouped_task_time(task_time, group_queries, query_time):
    """Time to begin and end a piece whose queries share a KV head.

    Each query is read, and its result is added up and written.

    Valid for one new token a sequence.

    >>> grouped_task_time(1e-6, 8, 5e-8)
    1.4e-06
    """
    return task_time + group_queries * query_time


@equation(source="nvidia2026aiconfigurator")
def filling_time(bytes_moved, filling_bytes, longest_filling):
    """Time that a kernel loses until its reads come at the memory's full rate.

    Few bytes are read before that, and lose little; of many, the whole of it is lost, once.

    Valid for one kernel.

    >>> filling_time(3e7, 1e7, 8e-6)
    6e-06
    """
    return longest_filling * bytes_moved / (bytes_moved + filling_bytes)


@equation(source="nvidia2026aiconfigurator")
def conversion_time(cache_bytes, converted_passes, memory_bandwidth):
    """Time to bring a cache to the format of the arithmetic, before attention reads it.

    Reading one byte and writing two is three passes; a program that does it in several
    steps has more.

    Valid for a program that converts the cache anew for each new token.

    >>> conversion_time(1e9, 3.0, 1e12)
    0.003
    """
    return converted_passes * cache_bytes / memory_bandwidth


@equation(source="williams2009roofline", yields="attention_time")
def decode_attention_time(
    compute_time,
    memory_time,
    context_rounds,
    context_parts,
    context_tokens,
    task_time,
    token_time,
    kernel_overhead,
    split_start,
    filling_time,
    conversion_time,
):
    """Time of attention of new tokens over their contexts, which are read from the cache.

    Beside the bytes and the work stand the rounds of cores, each of which begins a piece
    and walks along its part of the context.

    Valid for one new token a sequence.

    >>> decode_attention_time(3.0, 4.0, 3, 4, 2000, 2.0, 0.004, 2.0, 2.0, 0.5, 0.25)
    17.25
    """
    return (
        kernel_overhead
        + filling_time
        + conversion_time
        + split_start * (1 - 1 / context_parts)
        + square_root(
            memory_time**2
            + compute_time**2
            + (context_rounds * (task_time + context_tokens / context_parts * token_time)) ** 2
        )
    )


EXPERT_KERNELS = equation = Topic("expert_kernels", "How long do measured experts take?")


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


STATE_KERNELS = equation = Topic("state_kernels", "How long does a measured state take?")


@equation(source="yang2024gated")
def scan_time(scan_step_time, new_tokens, scan_chunk):
    """Time to take a state through the chunks of one sequence, each of which waits for the last.

    Sequences and heads go side by side.

    Valid for prompts; a single token is no chunk, and takes next to nothing.

    >>> scan_time(2e-6, 8192, 64)
    0.000256
    """
    return scan_step_time * new_tokens / scan_chunk


@equation(source="nvidia2026aiconfigurator")
def state_time(kernel_overhead, compute_time, scan_time):
    """Time of a layer's states: starts, then arithmetic, or waiting for chunk after chunk.

    Few heads wait, many compute.

    Valid for linear attention that takes a prompt in chunks.

    >>> state_time(1.0, 3.0, 4.0)
    5.0
    """
    return kernel_overhead + maximum(compute_time, scan_time)


@equation(source="nvidia2026aiconfigurator", yields="memory_time")
def scanned_memory_time(bytes_moved, memory_bandwidth, memory_fraction, scan_time):
    """Time to move the bytes, or to wait for the chunks of a state, whichever is longer.

    Valid for the calibrated estimate; only layers with a state have chunks.

    >>> scanned_memory_time(2e9, 2e12, 0.5, 0.003)
    0.003
    >>> scanned_memory_time(8e9, 2e12, 0.5, 0.003)
    0.008
    """
    return maximum(bytes_moved / (memory_bandwidth * memory_fraction), scan_time)


EXCHANGE_KERNELS = equation = Topic("exchange_kernels", "How long does a measured exchange take?")


@equation(source="thakur2005optimization")
def exchange_start(link_latency, peer_start, group_size):
    """Time until an exchange sends: that of two devices, and some more for each further one.

    Valid for one node, or one fabric of links that are all alike.

    >>> exchange_start(4.0, 0.5, 8)
    7.0
    """
    return link_latency + peer_start * (group_size - 2)


@equation(source="thakur2005optimization")
def library_send_time(
    link_bytes, link_bandwidth, link_fraction, own_steps, group_size, ramp_start, ramp_bytes
):
    """Time in which a library sends: the bytes at the rate of many, own parts, and a ramp.

    Each device sends in as many steps as there are others. In further steps it only reads or
    writes the part of the message that is its own. With more bytes a library uses more channels,
    each of which has to start; from some size on it uses all, and the ramp costs no more.

    Valid for one node, or one fabric of links that are all alike. A fraction above 1 means
    that the switch adds up, so that devices send less than in a ring.

    >>> library_send_time(3e6, 1e12, 0.5, 5.0, 4, 1e-5, 9e6)
    1.6e-05
    """
    return (
        link_bytes / (link_bandwidth * link_fraction)
        + own_steps * link_bytes / ((group_size - 1) * link_bandwidth)
        + ramp_start * square_root(link_bytes / (link_bytes + ramp_bytes))
    )


@equation(source="vllm2024customallreduce")
def direct_send_time(link_bytes, group_size, link_bandwidth, direct_fraction, exchange_start):
    """Time of an all-reduce in which devices read each other's memory, in one step or in two.

    In one step each device reads all other messages whole. In two, each adds up its part and
    then reads the other sums; that takes a ring's bytes and one more start.

    Valid for all-reduces on links over which each device can read the memory of all others.

    >>> direct_send_time(3.5e5, 8, 1e12, 0.5, 4e-6)
    2.8e-06
    >>> direct_send_time(3.5e6, 8, 1e12, 0.5, 4e-6)
    1.1e-05
    """
    return minimum(
        link_bytes * group_size / (2 * link_bandwidth * direct_fraction),
        exchange_start + link_bytes / (link_bandwidth * direct_fraction),
    )


@equation(source="thakur2005optimization", yields="network_time")
def ramped_network_time(exchange_start, library_send_time, direct_send_time, direct_mark):
    """Time of an exchange: its start, and what takes less of a library and a kernel of its own.

    Without the mark only the library sends.

    Valid for one node, or one fabric of links that are all alike.

    >>> ramped_network_time(1.0, 5.0, 2.0, 1)
    3.0
    >>> ramped_network_time(1.0, 5.0, 2.0, 0)
    6.0
    >>> ramped_network_time(1.0, 2.0, 5.0, 1)
    3.0
    """
    return (
        exchange_start
        + library_send_time
        - direct_mark * (library_send_time - minimum(library_send_time, direct_send_time))
    )


LONE_TRANSFERS = equation = Topic("lone_transfers", "How long does a lone transfer take?")


@equation(source="chatterjee2012staged", yields="memory_time")
def turned_memory_time(
    bytes_moved, memory_bandwidth, memory_fraction, turnaround_share, written_share
):
    """Time of a stream that reads and writes: the bus of a memory turns between the two.

    A stream that only reads, or only writes, has no turns. The more evenly both share the bus,
    the more there are.

    Valid for long streams, whose bytes no cache keeps.

    >>> turned_memory_time(4e12, 2e12, 0.5, 0.25, 0.75)
    4.5
    """
    return (
        bytes_moved
        / (memory_bandwidth * memory_fraction)
        * (1 + 2 * turnaround_share * minimum(written_share, 1 - written_share))
    )


@equation(source="intel2017pcie", yields="link_bandwidth")
def packed_bandwidth(device_bandwidth, coded_share, payload_bytes, packet_bytes):
    """Rate at which data cross a link of packets, each of which has a header and a check.

    Assumes that no packet waits for room at the other end.
    Valid for PCI Express from the third generation on, one way at a time.

    >>> packed_bandwidth(32e9, 0.75, 96, 32)
    18000000000.0
    """
    return device_bandwidth * coded_share * payload_bytes / (payload_bytes + packet_bytes)
