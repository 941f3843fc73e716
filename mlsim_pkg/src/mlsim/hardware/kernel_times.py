"""Times of kernels by the equations of the atlas, from a shape and a series' constants.

The same functions fit the constants (`benchmarks/atlas`, on arrays of thousands of shapes)
and answer for one shape. A missing term means that it is not there: no cache, no start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlsim.equations import (
    kernels as physics,
)
from mlsim.equations.calibration import calibrated_compute_time
from mlsim.equations.functions import Value, ceil, maximum, minimum
from mlsim.equations.transformer import delta_rule_multiply_adds

# Sides of the two tiles between which a product chooses: the fast one, and a small one.
TILES = (128.0, 64.0)

# A product gives a core no thinner part of its depth.
LEAST_DEPTH = 512.0

# Tokens that linear attention takes through a state at once: of `chunk_gated_delta_rule`.
SCAN_CHUNK = 64.0

# Bytes from which on a library uses all channels, where no constant says so: any message.
ALL_CHANNELS = 1.0


@dataclass(frozen=True, slots=True)
class Path:
    """A data path: the peak that counts, and the bytes of a number on each side.

    Attributes
    ----------
    peak
        The precision whose peak holds.
    left, right, result
        Bytes of a number of the input, of the weights (scales included), and of the result.
    """

    peak: str
    left: float
    right: float
    result: float = 2.0


# NVFP4 has a scale of a byte for each 16 numbers, MXFP4 for each 32; integers of 4 bits have
# two bytes for each 128.
PATHS: Mapping[str, Path] = MappingProxyType(
    {
        "bf16": Path("bf16", 2, 2),
        "fp8": Path("fp8", 1, 1),
        "fp8_block": Path("fp8", 1, 1),
        "fp4": Path("fp4", 0.5625, 0.5625),
        "int8": Path("int8", 1, 1),
        "int8_weights": Path("bf16", 2, 1),
        "int4_weights": Path("bf16", 2, 0.515625),
        "mxfp4_weights": Path("bf16", 2, 0.53125),
        "mxfp4_fp8": Path("fp8", 1, 0.53125),
    }
)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device can do at most: FLOP/s on a path, B/s, and its cores."""

    peak: float
    bandwidth: float
    cores: float


def product_time(
    rows: Value,
    outputs: Value,
    depth: Value,
    *,
    path: Path,
    rates: Rates,
    c: Mapping[str, float],
) -> Value:
    """Return the time in s of a matrix product, with the better of two tiles.

    >>> rates, c = Rates(1e15, 1e12, 128), {"compute_fraction": 0.8, "memory_fraction": 0.8}
    >>> round(product_time(8192.0, 8192.0, 8192.0, path=PATHS["bf16"], rates=rates, c=c) * 1e3, 2)
    1.38
    """
    found = None
    for tile in TILES:
        time = tile_time(rows, outputs, depth, tile, path=path, rates=rates, c=c)
        found = time if found is None else minimum(found, time)
    return found


def tile_time(
    rows: Value,
    outputs: Value,
    depth: Value,
    tile: float,
    *,
    path: Path,
    rates: Rates,
    c: Mapping[str, float],
    products: Value = 1.0,
) -> Value:
    """Return the time in s of so many matrix products of one shape, with tiles of one size.

    >>> rates, c = Rates(1e15, 1e12, 128), {"compute_fraction": 0.8, "memory_fraction": 0.8}
    >>> time = tile_time(128.0, 128.0, 1e4, 128.0, path=PATHS["bf16"], rates=rates, c=c)
    >>> round(time * 1e6, 1)
    6.5
    """
    moved = rows * depth * path.left + depth * outputs * path.right + rows * outputs * path.result
    shape, cores = (rows, outputs), rates.cores / products
    parts = physics.depth_parts(*shape, depth, tile, cores, LEAST_DEPTH)
    rounds = physics.split_rounds(*shape, parts, tile, cores, c.get("last_round_share", 1.0))
    filled = physics.split_filled_share(
        *shape, depth, parts, rounds, tile, cores, c.get("depth_start", 0.0)
    )
    return physics.tile_product_time(
        calibrated_compute_time(
            2 * rows * outputs * depth * products,
            rates.peak,
            c["compute_fraction"] * slower(tile, c),
            filled,
        ),
        memory_time(moved * products, rates, c),
        c.get("quantized_bytes", 0.0) * rows * depth * products,
        rates.bandwidth,
        c["memory_fraction"],
        c.get("kernel_overhead", 0.0),
        c.get("split_start", 0.0),
        parts,
    )


def slower(tile: float, c: Mapping[str, float]) -> float:
    """Return the part of the rate of the fast tile that a tile reaches.

    >>> slower(64.0, {"small_tile_fraction": 0.6}), slower(128.0, {"small_tile_fraction": 0.6})
    (0.6, 1.0)
    """
    return c.get("small_tile_fraction", 1.0) if tile < TILES[0] else 1.0


def experts_time(
    tokens: Value,
    *,
    hidden: Value,
    width: Value,
    chosen: Value,
    experts_of_layer: Value,
    devices: Value,
    path: Path,
    rates: Rates,
    c: Mapping[str, float],
    even: Value = 0.0,
    matrices: float = 3.0,
) -> Value:
    """Return the time in s of a layer's experts on the busiest device.

    Parameters
    ----------
    tokens
        Of all devices that share the experts.
    hidden, width
        Of the model, and of an expert as far as one device holds it.
    chosen, experts_of_layer, devices
        Experts of a token, experts of the layer, devices among which they are divided.
    even
        1 where choices are spread evenly, as some benchmarks do; 0 where by chance.
    matrices
        Of an expert: 3 with a gate, else 2.

    >>> c = {"compute_fraction": 0.5, "memory_fraction": 0.8, "spread": 1.0}
    >>> layer = {"hidden": 4096.0, "width": 2048.0, "chosen": 8.0, "experts_of_layer": 128.0}
    >>> rates = Rates(1e15, 2e12, 132)
    >>> found = experts_time(1.0, **layer, devices=1.0, path=PATHS["bf16"], rates=rates, c=c)
    >>> round(found * 1e6)
    252
    """
    routed, own = tokens * chosen / devices, experts_of_layer / devices
    most = tokens * minimum(chosen, own)
    uneven = physics.busiest_rows(routed, devices, c.get("imbalance", 0.0), most)
    rows = even * maximum(routed, 1.0) + (1 - even) * uneven
    chance = physics.met_experts(own, chosen, experts_of_layer, tokens, c.get("spread", 1.0))
    met = even * minimum(own, routed) + (1 - even) * chance
    met = minimum(maximum(met, 1.0), rows)
    padded = physics.expert_rows(rows, met, c.get("expert_tile", 1.0))
    passed = physics.passed_rows(rows, tokens, chosen, c.get("elsewhere_share", 0.0))
    filled = physics.expert_filled_share(rows, padded, width, c.get("half_width", 0.0))
    flops = 2 * matrices * rows * hidden * width
    weights = matrices * met * hidden * width * path.right
    return physics.expert_time(
        calibrated_compute_time(flops, rates.peak, c["compute_fraction"], filled),
        weights / (rates.bandwidth * c["memory_fraction"]),
        2 * passed * (2 * hidden + matrices * width),
        rates.bandwidth,
        c.get("data_passes", 1.0),
        c.get("kernel_overhead", 0.0),
    )


def state_time(
    sequences: Value,
    tokens: Value,
    heads: Value,
    *,
    elements: Value,
    rates: Rates,
    c: Mapping[str, float],
) -> Value:
    """Return the time in s of linear attention over prompts, by the gated delta rule.

    Parameters
    ----------
    sequences, tokens, heads
        Prompts, tokens in each of them, and heads of values on the device.
    elements
        Of one head's state.

    >>> c = {"compute_fraction": 0.03, "scan_step_time": 2e-6}
    >>> rates = Rates(1e15, 2e12, 132)
    >>> found = state_time(1.0, 8192.0, 8.0, elements=16384.0, rates=rates, c=c)
    >>> round(found * 1e6)
    256
    """
    multiply_adds = delta_rule_multiply_adds(heads * elements)
    flops = 2 * sequences * tokens * multiply_adds
    return physics.state_time(
        c.get("kernel_overhead", 0.0),
        calibrated_compute_time(flops, rates.peak, c["compute_fraction"], 1.0),
        physics.scan_time(c["scan_step_time"], tokens, SCAN_CHUNK),
    )


def exchanged_time(devices: Value, sent: Value, rate: float, c: Mapping[str, float]) -> Value:
    """Return the time in s of an exchange in which each device sends so many bytes.

    Constants with a `direct_fraction` are those of an engine's all-reduce, whose kernel may read
    other devices' memory.

    >>> c = {"link_fraction": 0.5, "link_latency": 1e-5}
    >>> round(exchanged_time(8.0, 1e6, 1e11, c) * 1e6, 3)
    30.0
    """
    start = physics.exchange_start(c["link_latency"], c.get("peer_start", 0.0), devices)
    library = physics.library_send_time(
        sent,
        rate,
        c["link_fraction"],
        c.get("own_steps", 0.0),
        devices,
        c.get("ramp_start", 0.0),
        c.get("ramp_bytes", ALL_CHANNELS),
    )
    if "direct_fraction" not in c:
        return physics.ramped_network_time(start, library, library, 0.0)
    direct = physics.direct_send_time(sent, devices, rate, c["direct_fraction"], start)
    return physics.ramped_network_time(start, library, direct, 1.0)


def memory_time(moved: Value, rates: Rates, c: Mapping[str, float]) -> Value:
    """Return the time to move bytes; some stay in a cache only if constants say so."""
    return physics.cached_memory_time(
        moved,
        rates.bandwidth,
        c["memory_fraction"],
        c.get("resident_bytes", 1.0),
        c.get("cache_speedup", 1.0),
    )


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
