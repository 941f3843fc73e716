"""What LLM-Viewer (commit 472f71f) assumes, as model_analyzer.py and configs/Llama.py have it."""

from __future__ import annotations

import math

from peers.causes import (
    DECIMAL_ROOM,
    EIGHT_BITS,
    ROOM,
    SIZES,
    SQUARE,
    TABLE,
    Cause,
    in_each_layer,
    own_bandwidth,
    tokens,
    without_quantised_table,
)
from peers.sheet import ATTENTION, DOWN, OUTPUT, PREFILL, PROJECTION, QUERIES, UP, Row, Sheet


def viewer_kernels(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Make a kernel of each product, sum and activation function, with its own traffic."""
    model, size = row.model, row.activation_bytes * tokens(row, phase)
    hidden, inner = model.hidden * size, model.feed_forward.size * size
    written = {QUERIES: 4 * hidden, PROJECTION: 2 * hidden}
    written |= dict.fromkeys(UP, 2 * (hidden + inner))
    written |= dict.fromkeys(DOWN, hidden + inner)
    for name, activations in written.items():
        sheet = sheet.change(name, lambda line, a=activations: line.but(activations=a))
    # Two sums read and write one vector each, and the activation function three.
    return sheet.add(in_each_layer(row, "sums and activation", activations=7 * hidden))


def viewer_output(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Count one operation for each weight of the output layer, instead of two."""
    each = (row.model.hidden + row.model.vocabulary) * row.activation_bytes
    return sheet.change(OUTPUT, lambda line: line.but(flops=line.flops / 2, activations=each))


def scores(row: Row, phase: str) -> float:
    """Bytes of the attention scores of one layer."""
    seen = row.prompt if phase == PREFILL else row.context
    heads = row.model.attention.heads
    return heads * tokens(row, phase) * seen * row.activation_bytes


def viewer_scores(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Write the scores to memory, read them for softmax, write and read them again."""
    if row.flash:
        return sheet
    each, line = scores(row, phase), sheet.line(ATTENTION)
    half = line.share(0.5)
    half = half.but(name="scores, values", activations=half.activations + each)
    softmax = line.but(
        name="softmax",
        flops=5 * each / row.activation_bytes,
        cache=0.0,
        activations=2 * each,
    )
    kept = [other for other in sheet.lines if other.name != ATTENTION]
    return sheet.but(lines=(*kept, half, half, softmax))


def flash_heads(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Read a key and a value for each query head, although heads share them."""
    heads = row.model.attention
    if not row.flash:
        return sheet
    more = heads.heads / heads.kv_heads
    return sheet.change(ATTENTION, lambda line: line.but(cache=line.cache * more))


def flash_output(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Write an output as large as the scores, twice."""
    if not row.flash:
        return sheet
    each = 2 * scores(row, phase)
    return sheet.change(ATTENTION, lambda line: line.but(activations=line.activations + each))


def flash_blocks(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Read all keys and values again for each block of queries, as many as a head is wide."""
    if not row.flash:
        return sheet
    blocks = math.ceil(row.prompt / row.model.attention.head_size)
    # mlsim writes them once and reads them once.
    return sheet.change(ATTENTION, lambda line: line.but(cache=line.cache * blocks / 2))


CAUSES = (
    Cause("3,072 GB/s for an H100", ask=own_bandwidth(3072), figures=True),
    EIGHT_BITS,
    SQUARE,
    Cause("scores written to memory", edit=viewer_scores),
    Cause("'flash': cache of all query heads", edit=flash_heads),
    Cause("'flash': cache read for each block", (PREFILL,), edit=flash_blocks),
    Cause("'flash': output as large as the scores", edit=flash_output),
    Cause("a kernel for each small operation", edit=viewer_kernels),
    Cause("output layer: 1 FLOP per weight", edit=viewer_output),
    Cause(TABLE, SIZES, weigh=without_quantised_table),
    DECIMAL_ROOM,
    *ROOM,
)
