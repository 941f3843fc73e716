"""Times of attention by the equations of the atlas, from a shape and a series' constants.

As in `kernel_times`, the same functions fit the constants on arrays of shapes and answer for
one shape, and a missing term means that it is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlsim.equations import kernels as physics
from mlsim.equations.functions import Value, ceil, minimum
from mlsim.hardware.kernel_times import Rates, memory_time

# Queries in a piece of attention over a prompt; heads of a latent cache that share a piece.
QUERIES, SHARED_HEADS = 128.0, 64.0

# Numbers of the head whose time a token the constants say; others take their part of it.
WIDTH = 128.0

_NO_WINDOW = 1e12

# Where one query has a KV head for itself, some engines run another kernel than for groups.
LONE = ("memory_fraction", "kernel_overhead", "task_time", "token_time")


def prefill_time(
    sequences: Value,
    tokens: Value,
    heads: Value,
    *,
    widths: tuple[Value, Value],
    moved: Value,
    rates: Rates,
    c: Mapping[str, float],
    cached: Value = 0.0,
    window: Value = _NO_WINDOW,
) -> Value:
    """Return the time in s of attention over prompts, causal.

    Parameters
    ----------
    sequences, tokens, heads
        Prompts, tokens of each, heads of queries.
    widths
        Of a key, and of a value.
    moved, cached
        Bytes of queries and results; of keys and values, where they are counted apart.
    window
        Tokens that a query looks back at, itself among them.

    >>> c = {"compute_fraction": 0.5, "data_passes": 1.0}
    >>> rates, widths = Rates(1e15, 2e12, 132), (128.0, 128.0)
    >>> found = prefill_time(1.0, 4096.0, 32.0, widths=widths, moved=1e8, rates=rates, c=c)
    >>> round(found * 1e6)
    325
    """
    seen = minimum(tokens, window)
    masked = physics.masked_pairs(
        tokens, window, c.get("edge_tokens", 0.0), c.get("walked_share", 0.0)
    )
    pairs = sequences * heads * (seen * tokens - seen * (seen - 1) / 2 + masked)
    step = c.get("width_step", 1.0)
    each = physics.pair_time(
        2 * (physics.computed_width(widths[0], step) + physics.computed_width(widths[1], step)),
        rates.peak,
        c["compute_fraction"],
        c.get("exponential_time", 0.0),
    )
    return physics.prefill_attention_time(
        pairs,
        each,
        sequences * heads * ceil(tokens / QUERIES),
        c.get("task_time", 0.0),
        rates.cores,
        physics.longest_pairs(tokens, window, QUERIES),
        c.get("longest_share", 0.0),
        moved,
        cached,
        rates.bandwidth,
        c["data_passes"],
        c.get("cache_passes", c["data_passes"]),
        c.get("kernel_overhead", 0.0),
    )


def decode_time(
    pieces: Value,
    context: Value,
    flops: Value,
    moved: Value,
    *,
    rates: Rates,
    c: Mapping[str, float],
    group: Value = 2.0,
    width: Value = WIDTH,
    cached: Value = 0.0,
) -> Value:
    """Return the time in s of attention of one new token a sequence.

    Parameters
    ----------
    pieces
        Sequences times KV heads, or times groups of heads that share a latent cache.
    context
        Tokens of each sequence that are looked at.
    flops, moved
        Work, and bytes of the cache, the queries and the results.
    group
        Queries of a KV head: one alone may have a kernel of its own.
    width
        Numbers of a head; of a latent one nothing is said.
    cached
        Bytes of a cache that is brought to another format before.

    >>> c = {"compute_fraction": 0.5, "memory_fraction": 0.8}
    >>> found = decode_time(64.0, 4096.0, 0.0, 1.6e9, rates=Rates(1e15, 2e12, 132), c=c)
    >>> round(found * 1e6)
    1000
    """
    c = {**c, **_of_group(group, c)}
    parts = physics.context_parts(pieces, rates.cores, context, c.get("least_context", 512.0))
    return physics.decode_attention_time(
        flops / (rates.peak * c["compute_fraction"]),
        memory_time(moved, rates, c),
        physics.context_rounds(pieces, parts, rates.cores),
        parts,
        context,
        physics.grouped_task_time(
            c.get("task_time", 0.0), group, c.get("query_time", 0.0) * width / WIDTH
        ),
        c.get("token_time", 0.0) * width / WIDTH,
        c.get("kernel_overhead", 0.0),
        c.get("split_start", 0.0),
        physics.filling_time(moved, c.get("filling_bytes", 1.0), c.get("longest_filling", 0.0)),
        physics.conversion_time(cached, c.get("converted_passes", 0.0), rates.bandwidth),
    )


def _of_group(group: Value, c: Mapping[str, float]) -> dict[str, Value]:
    """Return the constants that are others where a query has a KV head for itself."""
    shared = minimum(group - 1, 1)
    return {
        name: shared * c[name] + (1 - shared) * c[f"lone_{name}"]
        for name in LONE
        if f"lone_{name}" in c
    }
