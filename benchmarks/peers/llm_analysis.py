"""What llm-analysis 0.2.2 assumes, as analysis.py has it."""

from __future__ import annotations

from mlsim.solvers.formats import WIDE_BYTES
from peers.causes import (
    BINARY_ROOM,
    FEED_FORWARD,
    LOGITS,
    ROOM,
    SIZES,
    SQUARE,
    TABLE,
    Cause,
    all_experts,
    all_in_eight_bits,
    in_each_layer,
    tokens,
    vocabulary,
)
from peers.sheet import ATTENTION, DECODE, EMBEDDING, OUTPUT, PROJECTION, QUERIES, Row, Sheet


def square_feed_forward(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Count 16 b s h^2 FLOP for the feed-forward network, whatever its size and experts."""
    lines = [line for line in sheet.lines if line.name in FEED_FORWARD]
    ours = sum(line.flops for line in lines)
    theirs = 16 * tokens(row, phase) * row.model.hidden**2 / row.tp
    return sheet.change(
        FEED_FORWARD, lambda line: line.but(flops=line.flops * theirs / ours)
    ).change("router", lambda line: line.but(flops=0.0))


def no_cache_flops(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let a new token look at itself only, when its work is counted."""
    return sheet.change(ATTENTION, lambda line: line.but(flops=line.flops / (row.context + 1)))


def cache_twice(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Read the whole KV cache in each step, and write it back."""
    return sheet.change(ATTENTION, lambda line: line.but(cache=line.cache * 2))


def output_without_memory(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Read no weights in the output layer."""
    return sheet.change(OUTPUT, lambda line: line.but(weights=0.0, activations=0.0))


def table_at_each_step(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Read the whole embedding table in each step, in 16 bits, on each device."""
    return sheet.change(EMBEDDING, lambda line: line.but(weights=2 * vocabulary(row)))


LLM_ANALYSIS_LATENCY = 8e-6  # s, of its GPU configurations


def narrow_sums(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Send sums of devices in the bytes of activations; mlsim sends 16 bits at least."""
    share = row.activation_bytes / max(row.activation_bytes, WIDE_BYTES)
    return sheet.change("all-reduce", lambda line: line.but(sent=line.sent * share))


def least_latency(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let an all-reduce take 8 us at least."""
    return sheet.change(
        "all-reduce", lambda line: line.but(sent=max(line.sent, LLM_ANALYSIS_LATENCY))
    ).change("gather of the output", lambda line: line.share(0.0))


def two_blocks(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Set one roofline for attention with its matrices, one for the feed-forward network.

    Of the activations, the largest at one time are counted, and norms in 32 bits.
    """
    model, count = row.model, tokens(row, phase)
    size = count * row.activation_bytes
    blocks = ((QUERIES, ATTENTION, PROJECTION), (*FEED_FORWARD, "router"))
    wide = model.experts.size if model.experts else model.feed_forward.size
    per_token = model.experts.per_token if model.experts else 1
    moved = (
        max(3 * model.hidden, 2 * model.hidden + 4 * model.attention.heads) * size / row.tp,
        max(model.hidden, 1.5 * wide) * per_token * size / row.tp,
    )
    made, cached = [], sheet.line(ATTENTION).cache
    for names, activations in zip(blocks, moved, strict=True):
        lines = [line for line in sheet.lines if line.name in names]
        made.append(
            in_each_layer(
                row,
                f"block of {names[0]}",
                flops=sum(line.flops for line in lines),
                weights=sum(line.weights for line in lines),
                activations=activations,
                peak=lines[0].peak,
            )
        )
    if phase == DECODE:
        made.append(in_each_layer(row, "cache", cache=cached))
    grouped = {name for names in blocks for name in names}
    kept = tuple(line for line in sheet.lines if line.name not in grouped)
    norm = 4.0 * count * model.hidden / row.tp
    return sheet.but(lines=(*kept, *made)).change(
        "norms",
        lambda line: line.but(weights=0.0, activations=norm, repeats=2.0 * model.layers),
    )


def without_table(row: Row, weights: float) -> float:
    """Leave the embedding table out; mlsim keeps it, in 16 bits."""
    return weights - 2 * vocabulary(row) / row.tp


CAUSES = (
    Cause("output layer computes in 8 bits too", ask=all_in_eight_bits),
    SQUARE,
    LOGITS,
    Cause("MLP as 16 b s h^2: no gate, no experts", edit=square_feed_forward),
    Cause("all experts read at any batch", ask=all_experts),
    Cause("no FLOP for attention over the cache", (DECODE,), edit=no_cache_flops),
    Cause("KV cache read and written back", (DECODE,), edit=cache_twice),
    Cause("output layer reads no weights", edit=output_without_memory),
    Cause("embedding table read at each step", edit=table_at_each_step),
    Cause("sums sent in 8 bits", edit=narrow_sums),
    Cause("8 us for an all-reduce", edit=least_latency),
    Cause("one roofline per block", edit=two_blocks),
    Cause(TABLE, SIZES, weigh=without_table),
    *ROOM,
    BINARY_ROOM,
)
