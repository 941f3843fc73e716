"""What is switched on in a service, and what is known because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, equations_of, switches as equations
from mlsim.solvers.question import Known
from mlsim.workloads.steps import Offload

if TYPE_CHECKING:
    from mlsim.records import Figure
    from mlsim.solvers.serving.service import Service


def known_of(service: Service) -> Known:
    """Return what is known of a service because of them, with its origins."""
    on, known = service.switches, Known()
    offload = on.offload or Offload()
    if on.has_prefix:
        known.add("given", prefix_share=on.prefix_share)
    if on.prefix_count is not None:
        known.add("given", prefixes=on.prefix_count)
    words = "given" if on.offload else "nothing is offloaded"
    known.add(words, offloaded_weights=offload.weights, offloaded_cache=offload.cache)
    if on.offload:
        known.add("given", offload_overlap=offload.overlap)
    if on.adapters:
        known.add("given", served_adapters=float(on.adapter_count))
        known.columns(f"{service.model.name}, {on.adapters}", "served_adapter_parameters")
    if on.host_link is not None:
        known.add(_origin(service, on.host_link), **{HOST_LINK: one_way(on.host_link)})
    if on.speculation:
        logits = equations.checked_logits(service.base["logits"], float(on.speculation.tokens))
        known.add("each drafted token has scores", logits=logits)
    if on.draft is None:
        none = "no draft, or one of which only the cost is known"
        known.add(none, draft_weight_memory=0.0, draft_cache_per_sequence=0.0)
    return known


def prefix_of(share: Any, prompt_tokens: Any) -> tuple[Any, Any]:
    """Return how many tokens of a prompt prefill works on, and how many are cached."""
    cached = equations.prefix_tokens(share, prompt_tokens)
    return equations.uncached_tokens(prompt_tokens, cached), cached


def one_way(figure: Figure) -> float:
    """Return the rate of a link in one direction, in B/s."""
    both = figure.direction == "both ways"
    return float(equations.one_way_rate(figure.si) if both else figure.si)


def _origin(service: Service, figure: Figure) -> Callable[[], str]:
    both = ", half of it each way" if figure.direction == "both ways" else ""
    return lambda: f"{service.device.name}: {figure.origin()}{both}"


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
    for each in equations_of(equations.SPECULATION)
    if each.name not in ("drafted_first_token", "checked_logits")
)
_SWITCHED = tuple(
    each
    for each in equations_of(
        equations.OFFLOAD, equations.PREFIX_CACHE, equations.SERVED_ADAPTERS, equations.SPECULATION
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
