"""Which equations answer a question about training."""

from __future__ import annotations

from functools import lru_cache

from mlsim.equations import (
    Equation,
    calibration,
    collective,
    equations_of,
    pipeline,
    roofline,
    run,
    service,
    step,
    step_parts,
    training,
    training_memory,
)

_OWN = equations_of(training, collective, pipeline, step_parts, training_memory, run)
# What holds of a kernel, of pairs of tokens and of memory whatever they are for.
_SHARED = (
    "bytes_moved",
    "compute_time",
    "calibrated_compute_time",
    "memory_time",
    "calibrated_memory_time",
    "waves",
    "filled_share",
    "roofline_time",
    "arithmetic_intensity",
    "unclipped_tokens",
    "attention_pairs",
    "bidirectional_pairs",
    "usable_memory",
    "usable_memory_free",
)
_BY_NAME = {each.name: each for each in equations_of(roofline, calibration, step, service)}
TRAINING = (*(_BY_NAME[name] for name in _SHARED), *_OWN)
COLLECTIVES = ("ring", "hierarchical", "tree")


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of run and of answer."""
    measured = "calibrated" in variant
    chosen = {
        "compute_time": "calibrated_compute_time" if measured else "compute_time",
        "memory_time": "calibrated_memory_time" if measured else "memory_time",
        "kernel_time": "started_kernel_time" if measured else "ideal_kernel_time",
        "attention_pairs": "attention_pairs" if "causal" in variant else "bidirectional_pairs",
        "pass_rate": f"{collective_kind}_pass_rate",
        "pass_latency": f"{collective_kind}_pass_latency",
        "memory_free": "usable_memory_free",
        "recomputed_flops": (
            "full_recomputed_flops" if "recomputed" in variant else "selective_recomputed_flops"
        ),
        "micro_batches": "training_micro_batches",
    }
    return tuple(each for each in TRAINING if chosen.get(each.yields, each.name) == each.name)
