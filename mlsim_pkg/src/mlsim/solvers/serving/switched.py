"""Which equations hold of a service where something is switched on."""

from __future__ import annotations

from collections.abc import Iterable

from mlsim.equations import Equation, equations_of, switches

# The plain equation of each quantity that a switch may have another one for.
_PLAIN = {
    "memory_time": "memory_time",
    "parameters_read": "parameters_read",
    "cache_memory": "cache_memory",
    "weight_memory": "resident_weights",
    "cache_per_sequence": "cache_per_sequence",
    "time_to_first_token": "time_to_first_token",
    "distinct_adapters": "distinct_adapters",
}
# What is worked out beside the plan: for memory, for lengths, and rounds of speculation.
BESIDE = ("memory_beside_prefixes", "layers_cache_on_device", "checked_logits", "one_way_rate")
ROUND = tuple(
    each
    for each in equations_of(switches.SPECULATION)
    if each.name not in ("drafted_first_token", "checked_logits")
)
_SWITCHED = tuple(
    each
    for each in equations_of(
        switches.OFFLOAD, switches.PREFIX_CACHE, switches.SERVED_ADAPTERS, switches.SPECULATION
    )
    if each.name not in BESIDE and each not in ROUND
)

# What a caller may give where the cache or weights lie on the host.
HOST_LINK = "host_link_bandwidth"


def choose(variant: frozenset[str], chosen: dict[str, str]) -> tuple[Equation, ...]:
    """Add the choices of what is switched on, and return the equations that come with it."""
    for name, plain in _PLAIN.items():
        chosen.setdefault(name, plain)
    chosen.update(_choices(variant, chosen["memory_time"]))
    return _SWITCHED


def _choices(variant: frozenset[str], memory_time: str) -> Iterable[tuple[str, str]]:
    """Yield quantities and the equations that hold of them."""
    bound = "bound" in variant
    if "sharing" in variant:
        yield "cache_memory", "shared_cache_memory"
        yield "largest_batch", "largest_sharing_batch"
    if "moved" in variant:
        yield "weight_memory", "weights_on_device"
        yield "cache_per_sequence", "cache_on_device"
    if "offloading" in variant:
        plain = memory_time == "memory_time"
        local = "local_memory_time" if bound else "offloaded_memory_time"
        yield "memory_time", local if plain else "offloaded_calibrated_memory_time"
        if bound:
            yield "latency", "offloaded_bound_latency"
    if "adapters" in variant:
        yield "parameters_read", "parameters_and_adapters_read"
        yield "distinct_adapters", "compulsory_adapters" if bound else "distinct_adapters"
    if "drafted" in variant:
        yield "time_to_first_token", "drafted_first_token"
