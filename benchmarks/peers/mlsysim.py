"""What mlsysim 0.3.0 assumes, as engine/solvers/serving.py has it."""

from __future__ import annotations

from peers.causes import (
    BINARY_ROOM,
    EIGHT_BITS,
    FEED_FORWARD,
    LOGITS,
    ROOM,
    SIZES,
    SQUARE,
    Asked,
    Cause,
    all_experts,
    in_each_layer,
    tokens,
    vocabulary,
)
from peers.sheet import DECODE, EMBEDDING, PREFILL, UP, Row, Sheet

ROUNDED = {"Llama-2-7B": 7e9, "Llama-3-8B": 8.03e9, "Llama-3-70B": 70.6e9, "Mixtral-8x7B": 46.7e9}
DISPATCH = {"A100-80GB": 15e-6, "H100": 10e-6}
LAYER_TAX = 10e-6


def half_peak(row: Row, asked: Asked) -> Asked:
    """Take half of the peak, unless told otherwise."""
    share = float(row["compute_eff"])
    return asked if share == 1 else {**asked, "peak_flops": row.peak * share}


def no_memory(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let prefill wait for no memory."""
    return sheet.but(counts_memory=False)


def no_compute(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let decode wait for no arithmetic."""
    return sheet.but(counts_compute=False)


def all_parameters_work(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Multiply each token by all experts, chosen or not."""
    experts = row.model.experts
    if not experts:
        return sheet
    more = experts.count / experts.per_token
    return sheet.change(FEED_FORWARD, lambda line: line.but(flops=line.flops * more))


def table_counts(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Count the embedding table as weights that each token meets, and each step reads."""
    table, peak = vocabulary(row), sheet.line(*UP).peak
    return sheet.change(
        EMBEDDING,
        lambda line: line.but(
            flops=2 * table * tokens(row, phase), weights=table * row.weight_bytes, peak=peak
        ),
    )


def rounded(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Take the number of parameters from the model's name."""
    more, peak = ROUNDED[row["model"]] - row.model.parameter_count, sheet.line(*UP).peak
    return sheet.add(
        in_each_layer(
            row,
            "rounded",
            repeats=1.0,
            flops=2 * more * tokens(row, phase),
            weights=more * row.weight_bytes,
            peak=peak,
        )
    )


def dispatch(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Add 15 us (A100) or 10 us (H100) to prefill."""
    return sheet.but(extra=sheet.extra + DISPATCH[row["gpu"]])


def layer_tax(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Add 10 us for each layer to a decode step."""
    return sheet.but(extra=sheet.extra + LAYER_TAX * row.model.layers)


def no_activations(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Move weights and cache only."""
    return sheet.but(lines=tuple(line.but(activations=0.0) for line in sheet.lines))


def rounded_weights(row: Row, weights: float) -> float:
    """Take the number of parameters from the model's name."""
    return ROUNDED[row["model"]] * row.weight_bytes


CAUSES = (
    EIGHT_BITS,
    Cause("half the peak by default", (PREFILL,), ask=half_peak, figures=True),
    SQUARE,
    LOGITS,
    Cause("embedding table counted as weights", edit=table_counts),
    Cause("parameters rounded", edit=rounded),
    Cause("all experts work on each token", (PREFILL,), edit=all_parameters_work),
    Cause("all experts read at any batch", (DECODE,), ask=all_experts),
    Cause("no memory in prefill", (PREFILL,), edit=no_memory),
    Cause("no arithmetic in decode", (DECODE,), edit=no_compute),
    Cause("no activations", (DECODE,), edit=no_activations),
    Cause("10 to 15 us of dispatch", (PREFILL,), edit=dispatch),
    Cause("10 us for each layer", (DECODE,), edit=layer_tax),
    Cause("parameters rounded, all in 8 bits", SIZES, weigh=rounded_weights),
    *ROOM,
    BINARY_ROOM,
)
