"""Assumptions about a language model's service that are switched on in mlsim.

A cause changes mlsim's prediction by one assumption of one tool: through a
quantity that is given to `Engine.serve`, or by a correction reckoned from the
operators. Each was read in the tool's code, at the version of the grid. No
constant is fitted: those here stand in that code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers.sheet import (
    ATTENTION,
    BATCH,
    DECODE,
    DOWN,
    OUTPUT,
    PREFILL,
    UP,
    WEIGHTS,
    Line,
    Row,
    Sheet,
)

Asked = dict[str, Any]
Edit = Callable[[Row, str, Sheet], Sheet]
TIMES = (PREFILL, DECODE)
SIZES = (WEIGHTS, BATCH)
FEED_FORWARD = (*UP, *DOWN)
GIB = 2.0**30


@dataclass(frozen=True)
class Cause:
    """One assumption: in words, the answers that it changes, and the switch.

    A switch is `ask` (it changes the question), `edit` (a step's operators) or
    `weigh` (bytes of the weights on a device). `figures` marks those that are no
    assumption about the model, but another figure for the device.
    """

    name: str
    answers: tuple[str, ...] = TIMES
    ask: Callable[[Row, Asked], Asked] | None = None
    edit: Edit | None = None
    weigh: Callable[[Row, float], float] | None = None
    figures: bool = False


def tokens(row: Row, phase: str) -> int:
    """Tokens of a step, of all sequences."""
    return row.tokens if phase == PREFILL else row.batch


def in_each_layer(row: Row, name: str, **fields: float) -> Line:
    """Return a line that stands in each layer; without work, unless it is said."""
    empty = {"flops": 0.0, "weights": 0.0, "cache": 0.0, "activations": 0.0, "sent": 0.0}
    values = {"repeats": float(row.model.layers), "peak": 1.0, **empty, **fields}
    return Line(name=name, kind="extra", **values)


def vocabulary(row: Row) -> float:
    """Elements of the embedding table."""
    return float(row.model.vocabulary * row.model.hidden)


# Assumptions that more than one tool makes.


def full_square(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Count each query with each key, those that a causal mask hides too."""
    more = 2 * row.prompt / (row.prompt + 1)
    return sheet.change(ATTENTION, lambda line: line.but(flops=line.flops * more))


def every_logit(row: Row, phase: str, sheet: Sheet) -> Sheet:
    """Let the output layer work on each token of the prompt, not on the last only."""
    return sheet.change(
        OUTPUT,
        lambda line: line.but(
            flops=line.flops * row.prompt, activations=line.activations * row.prompt
        ),
    )


def all_in_eight_bits(row: Row, asked: Asked) -> Asked:
    """Quantise all there is; mlsim leaves norms, router and output layer in 16 bits."""
    if row["precision"] == "bf16":
        return asked
    asked = {**asked, "bytes_per_parameter": 1.0}
    computes = row.eight_bit and row.peak and "activations" not in asked
    return {**asked, "peak_flops": row.peak} if computes else asked


def all_experts(row: Row, asked: Asked) -> Asked:
    """Read all experts, however few tokens there are."""
    return {**asked, "expert_share": 1.0} if row.model.experts else asked


def own_bandwidth(gigabytes: float) -> Callable[[Row, Asked], Asked]:
    """Take another figure for the memory of an H100 than 3,350 GB/s."""

    def ask(row: Row, asked: Asked) -> Asked:
        if row["gpu"] != "H100":
            return asked
        return {**asked, "memory_bandwidth": asked["memory_bandwidth"] * gigabytes / 3350}

    return ask


def without_quantised_table(row: Row, weights: float) -> float:
    """Leave the embedding table out, of as many bits as all weights have."""
    return weights - row.weight_bytes * vocabulary(row) / row.tp


def nothing_reserved(row: Row, asked: Asked) -> Asked:
    """Let weights and cache fill the memory to the last byte, without blocks."""
    return {**asked, "reserve": 0.0, "block_tokens": 1}


def only_weights_and_cache(row: Row, asked: Asked) -> Asked:
    """Keep no room for the activations of prompts."""
    return {**asked, "chunk_tokens": 1}


def binary_capacity(row: Row, asked: Asked) -> Asked:
    """Read 80 GB as 80 GiB, of which the driver of an H100 lists less."""
    return {**asked, "memory_capacity": 80 * GIB}


def decimal_capacity(row: Row, asked: Asked) -> Asked:
    """Take 80 GB for 80 billion bytes."""
    return {**asked, "memory_capacity": 80e9}


EIGHT_BITS = Cause("output layer in 8 bits too", (*TIMES, *SIZES), ask=all_in_eight_bits)
SQUARE = Cause("full square of attention, not the causal half", (PREFILL,), edit=full_square)
LOGITS = Cause("output layer on each token of the prompt", (PREFILL,), edit=every_logit)
ROOM = (
    Cause("no reserve, no blocks", (BATCH,), ask=nothing_reserved),
    Cause("no activations of prompts in memory", (BATCH,), ask=only_weights_and_cache),
)
BINARY_ROOM = Cause("80 GB read as 80 GiB", (BATCH,), ask=binary_capacity, figures=True)
DECIMAL_ROOM = Cause("80 GB of a billion bytes", (BATCH,), ask=decimal_capacity, figures=True)
TABLE = "no embedding table in memory"
