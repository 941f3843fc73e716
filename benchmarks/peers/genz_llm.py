"""What genz-llm 0.0.16 assumes, as its operators and collective_times.py have it."""

from __future__ import annotations

from peers.causes import (
    BINARY_ROOM,
    EIGHT_BITS,
    FEED_FORWARD,
    GIB,
    LOGITS,
    ROOM,
    SIZES,
    SQUARE,
    TABLE,
    Asked,
    Cause,
    own_bandwidth,
    tokens,
    vocabulary,
    without_quantised_table,
)
from peers.sheet import (
    ATTENTION,
    DECODE,
    DOWN,
    EMBEDDING,
    PREFILL,
    PROJECTION,
    QUERIES,
    UP,
    Row,
    Sheet,
)

BINARY = GIB / 1e9  # a GiB in GB
# Start of a collective and of each of its hops, s, and its links, GB/s, of its systems.
GENZ_START, GENZ_HOP = 5e-6, 1e-6
GENZ_LINKS = {"A100-80GB": 150.0, "H100": 450.0}
GENZ_ON_CHIP = 18_000.0  # GB/s, read as GiB/s too


def binary_bandwidth(row: Row, asked: Asked) -> Asked:
    """Read the GB/s of the data sheet as GiB/s."""
    return {**asked, "memory_bandwidth": asked["memory_bandwidth"] * BINARY}


def float8_everywhere(row: Row, asked: Asked) -> Asked:
    """Let an A100, which has no FP8 arithmetic, compute in it at twice its 16-bit rate."""
    if "activations" not in asked or not row.peak:
        return asked
    # Its 8-bit integers are as fast as FP8 would be, and as small.
    asked = {name: value for name, value in asked.items() if name != "activations"}
    return {**asked, "precision": "int8", "peak_flops": row.peak}


def chosen_experts_at_any_batch(row: Row, asked: Asked) -> Asked:
    """Read k experts in a decode step, whatever the batch."""
    experts = row.model.experts
    return {**asked, "expert_share": experts.per_token / experts.count} if experts else asked


def embedding_as_product(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Multiply one-hot tokens by the embedding table, as if it were a matrix product."""
    table = vocabulary(row) / row.tp
    each = row.model.vocabulary / row.tp + row.model.hidden
    peak = sheet.line(*UP).peak
    return sheet.change(
        EMBEDDING,
        lambda line: line.but(
            flops=2 * table * row.tokens,
            weights=table * row.weight_bytes,
            activations=each * row.activation_bytes * row.tokens,
            peak=peak,
        ),
    )


def genz_collectives(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let a collective take a start, a time for each hop, and each token's scores."""
    others = row.tp - 1
    if not others:
        return sheet
    links = GENZ_LINKS[row["gpu"]] * GIB
    size = tokens(row, phase) * row.activation_bytes / row.tp
    reduce = GENZ_START + 2 * others * (GENZ_HOP + size * row.model.hidden / links)
    gather = GENZ_START + others * (GENZ_HOP + size * row.model.vocabulary / links)
    count = 2 * row.model.layers + (phase == PREFILL)
    sheet = sheet.change("all-reduce", lambda line: line.but(sent=reduce, repeats=count))
    return sheet.change("gather of the output", lambda line: line.but(sent=gather))


def genz_activations(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Count no norms and no residual; keep a decode step's activations on chip."""
    if phase == DECODE:
        near = sheet.bandwidth / (GENZ_ON_CHIP * GIB)
        sheet = sheet.change(
            (QUERIES, ATTENTION, PROJECTION, *FEED_FORWARD),
            lambda line: line.but(activations=line.activations * near),
        )
    else:
        residual = row.model.hidden * row.activation_bytes * row.tokens
        sheet = sheet.change(
            (PROJECTION, *DOWN), lambda line: line.but(activations=line.activations - residual)
        )
    return sheet.change("norms", lambda line: line.share(0.0))


CAUSES = (
    Cause("GB/s read as GiB/s", ask=binary_bandwidth, figures=True),
    Cause("3,400 GB/s for an H100", ask=own_bandwidth(3400), figures=True),
    Cause("FP8 arithmetic on an A100", ask=float8_everywhere, figures=True),
    EIGHT_BITS,
    SQUARE,
    LOGITS,
    Cause("embedding counted as a product", (PREFILL,), edit=embedding_as_product),
    Cause("k experts at any batch", (DECODE,), ask=chosen_experts_at_any_batch),
    Cause("start and hops of collectives", edit=genz_collectives),
    Cause("no norms; decode's activations on chip", edit=genz_activations),
    Cause(TABLE, SIZES, weigh=without_quantised_table),
    *ROOM,
    BINARY_ROOM,
)
