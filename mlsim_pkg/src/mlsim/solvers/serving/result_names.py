"""What a service can be asked for by name, and what a caller may give in place of it."""

from __future__ import annotations

from mlsim.solvers import calibrated
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.serving.phase import SERVING

# Quantities of a whole generation, from the times of its steps.
WHOLE = (
    "time_per_output_token",
    "generation_latency",
    "user_token_rate",
    "decode_throughput",
    "output_throughput",
)
# Quantities of memory: the same in each phase.
MEMORY = (
    "weight_memory",
    "activation_memory",
    "cache_memory",
    "cache_per_sequence",
    "cache_bytes_per_token",
    "cache_tokens",
    "memory_required",
    "memory_free",
    "usable_memory",
    "largest_batch",
)
RESULTS = ("time_to_first_token", *WHOLE, *MEMORY)

# What a caller may give in place of what the data or the equations say.
SERVING_GIVABLE = (
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "link_bandwidth",
    "bytes_per_parameter",
    "bytes_per_element",
    "bytes_per_cached_element",
    "expert_share",
    # With offload only.
    "host_link_bandwidth",
    *dict.fromkeys(
        each.yields
        for each in SERVING
        if each.yields not in (*WHOLE, "time_to_first_token", "latency")
    ),
)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (
    *SERVING_GIVABLE,
    *calibrated.OF_DEVICE,
    *calibrated.OF_LINK,
    "waves",
    "filled_share",
)


def givable(estimate: str) -> tuple[str, ...]:
    """Return what a caller may give of an estimate."""
    return CALIBRATED_GIVABLE if estimate == CALIBRATED else SERVING_GIVABLE
