"""What is switched on in a service, and what is known because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, equations_of, switches as equations
from mlsim.solvers.question import Known
from mlsim.workloads.steps import Offload, Parallelism, Speculation, StepOperator

if TYPE_CHECKING:
    from mlsim.records import Figure
    from mlsim.solvers.serving.service import Service
    from mlsim.workloads.adapters import LoRA
    from mlsim.workloads.language import Transformer


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Switches:
    """What is switched on; by default nothing.

    Attributes
    ----------
    prefix_share
        Share of a prompt's tokens that is in the cache: a float, or an array.
    prefix_count
        Different prefixes among the sequences of a copy; None where nobody shares.
    speculation, draft
        Speculative decoding; the draft as a service of its own, if it is a model.
    offload, host_link
        What lies on the host; the figure of the device's link to it.
    adapters, adapter_count
        Adapters that are served together: of one kind, and how many.
    scored
        Tokens of each sequence for which the output layer works: more than one in a check.
    """

    prefix_share: Any = 0.0
    prefix_count: float | None = None
    speculation: Speculation | None = None
    draft: Service | None = None
    offload: Offload | None = None
    host_link: Figure | None = None
    adapters: LoRA | None = None
    adapter_count: int = 1
    scored: int = 1

    @property
    def has_prefix(self) -> bool:
        """Whether a part of the prompts is in the cache."""
        share = self.prefix_share
        return bool(share.any() if getattr(share, "ndim", 0) else share)

    @property
    def on(self) -> bool:
        """Whether anything is switched on that changes what is known or computed."""
        if self is OFF:  # the usual case, first
            return False
        others = (self.speculation, self.offload, self.adapters)
        return self.has_prefix or any(each is not None for each in others)

    @property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        flags = {
            "switched": self.on,
            "sharing": self.has_prefix and self.prefix_count is not None,
            "offloading": self.offload is not None,
            "moved": self.offload is not None or self.draft is not None,
            "drafted": self.draft is not None,
            "adapters": self.adapters is not None,
        }
        return frozenset(name for name, holds in flags.items() if holds)

    @property
    def of_table(self) -> Any:
        """What decides which operators there are."""
        return (self.scored, self.adapters, self.adapter_count)

    @property
    def results(self) -> tuple[str, ...]:
        """What can be asked for beside the results of any service."""
        found = {
            "prefix_tokens": self.has_prefix,
            "cache_saved": self.prefix_count is not None,
            "host_memory": self.offload is not None,
            "adapter_memory": self.adapters is not None,
        }
        return tuple(name for name, there in found.items() if there)

    def picked(self, pick: Callable[[Any], float]) -> Switches:
        """Return them at one point of many."""
        return replace(self, prefix_share=pick(self.prefix_share)) if self.on else self

    def checking(self) -> Switches:
        """Return them for the step that checks drafted tokens: each of them has scores."""
        assert self.speculation is not None
        return replace(self, scored=self.speculation.checked)

    def draft_of(self, service: Service) -> Service | None:
        """Return the draft, as it serves the same sequences."""
        if self.draft is None:
            return None
        return replace(
            self.draft,
            batch_size=service.batch_size,
            prompt_tokens=service.prompt_tokens,
            output_tokens=service.output_tokens,
            switches=Switches(prefix_share=self.prefix_share),
        )

    def known(self, service: Service) -> Known:
        """Return what is known of a service because of them, with its origins."""
        known = Known()
        offload = self.offload or Offload()
        if self.has_prefix:
            known.add("given", prefix_share=self.prefix_share)
        if self.prefix_count is not None:
            known.add("given", prefixes=self.prefix_count)
        words = "given" if self.offload else "nothing is offloaded"
        known.add(words, offloaded_weights=offload.weights, offloaded_cache=offload.cache)
        if self.offload:
            known.add("given", offload_overlap=offload.overlap)
        if self.adapters:
            known.add("given", served_adapters=float(self.adapter_count))
            known.columns(f"{service.model.name}, {self.adapters}", "served_adapter_parameters")
        if self.host_link is not None:
            known.add(_origin(service, self.host_link), **{HOST_LINK: one_way(self.host_link)})
        if self.speculation:
            logits = equations.checked_logits(
                service.base["logits"], float(self.speculation.tokens)
            )
            known.add("each drafted token has scores", logits=logits)
        if self.draft is None:
            none = "no draft, or one of which only the cost is known"
            known.add(none, draft_weight_memory=0.0, draft_cache_per_sequence=0.0)
        return known

    def lowered(
        self, model: Transformer, layout: Parallelism
    ) -> tuple[tuple[StepOperator, ...], dict[str, float]]:
        """Return the operators of a step, and what one adapter holds in each of its own."""
        operators = model.operators(layout)
        if self.scored > 1:
            operators = tuple(each.scoring(self.scored) for each in operators)
        if self.adapters is None:
            return operators, {}
        from mlsim.workloads.adapters import adapter_operators

        rows = adapter_operators(model, self.adapters, self.adapter_count, layout)
        sizes = {each.name: size for each, size in rows}
        return (*operators, *(each for each, _ in rows)), sizes

    def prefill(self, prompt_tokens: Any) -> tuple[Any, Any]:
        """Return how many tokens of a prompt prefill works on, and how many are cached."""
        if not self.has_prefix:
            return prompt_tokens, 0.0
        cached = equations.prefix_tokens(self.prefix_share, prompt_tokens)
        return equations.uncached_tokens(prompt_tokens, cached), cached

    def words(self) -> Mapping[str, str]:
        """Return what is switched on, in words, by name."""
        found = {}
        if self.has_prefix:
            many = getattr(self.prefix_share, "ndim", 0)
            share = "several shares" if many else f"{self.prefix_share:.0%}"
            kept = (
                "each sequence keeps its own"
                if self.prefix_count is None
                else f"{self.prefix_count:,.0f} different, kept once each"
            )
            found["prefix"] = f"{share} of each prompt from the cache; {kept}"
        if self.speculation:
            found["speculation"] = str(self.speculation)
        if self.offload:
            found["offload"] = str(self.offload)
        if self.adapters:
            found["adapters"] = f"{self.adapter_count:,} x {self.adapters}"
        return found


def one_way(figure: Figure) -> float:
    """Return the rate of a link in one direction, in B/s."""
    both = figure.direction == "both ways"
    return float(equations.one_way_rate(figure.si) if both else figure.si)


def _origin(service: Service, figure: Figure) -> Callable[[], str]:
    both = ", half of it each way" if figure.direction == "both ways" else ""
    return lambda: f"{service.device.name}: {figure.origin()}{both}"


OFF = Switches()


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
