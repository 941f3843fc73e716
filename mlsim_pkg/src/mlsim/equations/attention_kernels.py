"""Time of attention as one kernel: of a prompt, and of one new token over its context.

Their constants are fitted to measured kernels, in `benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, floor, maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long does measured attention take?"


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
