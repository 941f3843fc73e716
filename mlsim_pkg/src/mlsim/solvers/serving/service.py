"""What is served, on what, and how it is laid out: what the phases of a service share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations import serving
from mlsim.errors import InvalidValueError, Suggesting
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.solvers.formats import Formats, kept_bytes
from mlsim.solvers.question import Known, of_context, of_device, of_hardware, shape_of
from mlsim.solvers.serving.operators_table import (
    UNIFORM,
    operators_table,
    variant_of,
)
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, OperatorTable
from mlsim.workloads.steps import UNLIMITED, Offload, Parallelism, Speculation, StepOperator

if TYPE_CHECKING:
    from mlsim.hardware.device_calibration import Calibration
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.precision import Precision
    from mlsim.records import Figure
    from mlsim.software import Software
    from mlsim.systems import Cluster, System
    from mlsim.systems.link_calibration import ExchangeConstants
    from mlsim.workloads.adapters import LoRA


def known_of(service: Service) -> Known:
    """Return all that no request changes, in base units, and the origins of the columns."""
    known = Known().add("definition", tokens_per_step=1.0)
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    _add_formats(known, service)
    _add_model(known, service)
    _add_device(known, service)
    _add_layout(known, service)
    if service.calibrated:
        from mlsim.solvers.serving.measured_columns import add_measured

        add_measured(known, service)
    # Columns that are the same for all operators.
    known.update(service.table.cache["uniform"])
    return known


def _add_formats(known: Known, service: Service) -> None:
    def words(kind: str, chosen: Precision) -> str:
        return f"{kind} in {chosen.name}: {chosen.bits:g} bits"

    formats = service.formats
    cache = words("KV cache", formats.kv_cache)
    known.columns(words("weights", formats.weights), "bytes_per_parameter")
    known.add(
        words("activations", formats.activations), bytes_per_element=formats.activations.bytes
    )
    known.add(cache, bytes_per_cached_element=formats.kv_cache.bytes)


def _add_model(known: Known, service: Service) -> None:
    model, parallelism = service.model, service.parallelism
    words = f"{model.name}, from its architecture ({model.source})"
    operators = model.operators(parallelism)
    live = "token_live_elements" if service.spread else "live_elements"
    logits = serving.sharded_logits(float(model.vocabulary), parallelism.tensor)
    known.add(
        words,
        model_cached_elements=float(model.model_cached_elements if model.decoder else 0),
        **{live: float(max(operator.live_elements for operator in operators))},
        logits=logits if model.output_layer else 0.0,
    )
    if model.experts:
        experts = model.experts
        known.add(words, experts=float(experts.count), experts_per_token=float(experts.per_token))
    else:
        known.add(words, expert_share=1.0)


def _add_device(known: Known, service: Service) -> None:
    device, system = service.device, service.system
    known.add_memory(device)

    def peak() -> str:
        used = dict.fromkeys(service.formats.all_computing(device))
        found = [device.compute.figure(each) for each in used]
        if service.estimate == "bound":
            found = [max(found, key=lambda figure: figure.si)]
        return f"{device.name}: {'; or '.join(each.origin() for each in found)}"

    known.columns(peak, "peak_flops")
    if system:
        from mlsim.solvers.serving.layouts import link_origin

        known.columns(link_origin(system, service.table.operators), "link_bandwidth")
        known.columns("sums in 16 bits or more; tokens as experts read them", _SENT)


def _add_layout(known: Known, service: Service) -> None:
    parallelism = service.parallelism
    words = f"layout: {parallelism}"
    known.add(
        words,
        data_parallel=float(parallelism.data),
        pipeline_parallel=float(parallelism.pipeline),
    )
    if service.model.experts:
        known.add(words, expert_replicas=float(parallelism.expert_replicas))
    if service.spread:
        _add_spread(known, service)
    if not service.table.cache["sends"]:
        known.add("definition", total_network_time=0.0)
        kept = kept_bytes(service.formats.activations)
        known.add("sums in 16 bits or more", bytes_per_sent_element=kept)


def _add_spread(known: Known, service: Service) -> None:
    """Add who shares a sequence, and how much more the busiest device has to do."""
    parallelism, imbalance = service.parallelism, service.expert_imbalance
    words = f"layout: {parallelism}"
    known.add(words, context_parallel=float(parallelism.context))
    known.columns(f"{service.model.name}, from its attention", "ring_cached_elements")
    known.columns(f"{service.model.name}, from its attention", "ring_query_elements")
    known.columns("definition: 1 for experts, and for sending to them", "routed_share")
    if service.estimate == "bound":
        known.add("the bound: all devices have as much to do", expert_imbalance=1.0)
    elif imbalance == UNIFORM:
        known.add(words, expert_parallel=float(parallelism.expert))
    else:
        known.add("given", expert_imbalance=float(imbalance))


_SENT = "bytes_per_sent_element"


def too_long(model: Transformer, tokens: float) -> str:
    """Say that a sequence of so many tokens is longer than a model can read."""
    return (
        f"a sequence of {tokens:,.0f} tokens (prompt and output) is longer than the context "
        f"of {model.name}, {model.context:,}. Shorten it; if you know that the model was "
        "extended, give a config.json that says so, or dataclasses.replace(model, context=...)."
    )


# What a request says; all else that is known belongs to model, device and layout.
ASKED = (
    "batch_size",
    "prompt_tokens",
    "output_tokens",
    "new_tokens",
    "cached_tokens",
    "block_tokens",
    "chunk_tokens",
    "reserve_share",
)


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


OFF = Switches()


@dataclass(frozen=True, eq=False)
class Service(Suggesting):
    """A question about a service, as all its phases see it.

    Sizes are floats, or arrays that broadcast together; `given` holds
    quantities that override what the data or the equations say.
    """

    model: Transformer
    device: Device
    system: System | Cluster | None
    parallelism: Parallelism
    formats: Formats
    estimate: str = "roofline"
    # What runs it; of the calibrated estimate only.
    software: Software | None = None
    # Tokens of the busiest device with experts over the mean: a number, or "uniform".
    expert_imbalance: float | str = 1.0
    batch_size: Any = 1.0
    prompt_tokens: Any = 1.0
    output_tokens: Any = 1.0
    block_tokens: float = 16.0
    chunk_tokens: float = 8192.0
    reserve_share: float = 0.1
    given: Mapping[str, Any] = field(default_factory=dict)
    # What is switched on: cached prefixes, speculation, memory of the host.
    switches: Switches = OFF

    def calibrated_as(self, made_by: str | None = None) -> Service:
        """Return the calibrated question to a roofline's, of a class of software."""
        from mlsim.solvers.calibrated import software_of

        draft, switches = self.switches.draft, self.switches
        if draft is not None:
            switches = replace(switches, draft=draft.calibrated_as(made_by))
        program = software_of(made_by, CALIBRATED, "serve")
        return replace(self, estimate=CALIBRATED, software=program, switches=switches)

    @cached_property
    def table(self) -> OperatorTable[StepOperator]:
        """The operators on one device, with its peaks; all that no request changes."""
        return operators_table(self)

    @cached_property
    def base(self) -> Known:
        """What is known of model, device and layout, whatever the request."""
        cache = self.table.cache
        if "base" not in cache:
            cache["base"] = known_of(self)
        found: Known = cache["base"]
        return found

    @property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        cache = self.table.cache
        if "variant" not in cache:
            cache["variant"] = variant_of(self)
        found: frozenset[str] = cache["variant"]
        return found | self.switches.variant if self.switches.on else found

    def requested(self, **sizes: Any) -> Service:
        """Return the same configuration for another request of its kind, as `replace` would.

        What no request changes is not looked up again, which takes as long as all answers.
        """
        found = object.__new__(Service)
        found.__dict__.update(self.__dict__, **sizes)
        return found

    @property
    def prefill(self) -> tuple[Any, Any]:
        """Tokens of each prompt that prefill works on, and those that are cached."""
        if not self.switches.has_prefix:
            return self.prompt_tokens, 0.0
        from mlsim.solvers.serving.switches import prefix_of

        return prefix_of(self.switches.prefix_share, self.prompt_tokens)

    @property
    def checking(self) -> tuple[Service, float]:
        """The service whose steps check drafted tokens, and how many of them a step works on."""
        speculation = self.switches.speculation
        assert speculation is not None
        scored = replace(self.switches, scored=speculation.checked)
        return replace(self, switches=scored), float(speculation.checked)

    def check_length(self) -> None:
        """Refuse a sequence that is longer than the model can read.

        Raises
        ------
        InvalidValueError
            Saying how long it may be.
        """
        total = self.prompt_tokens + self.output_tokens
        longest = float(total.max() if getattr(total, "ndim", 0) else total)
        if longest > self.model.context:
            raise InvalidValueError(too_long(self.model, longest))

    @property
    def spread(self) -> bool:
        """Whether devices share sequences, or have unevenly much to do."""
        return self.parallelism.context > 1 or self.expert_imbalance != 1.0

    @property
    def beyond_one_node(self) -> bool:
        """Whether something is sent between nodes, or devices share sequences."""
        return self.spread or any(each.between_nodes for each in self.table)

    @property
    def calibrated(self) -> bool:
        """Whether the rates are those that were measured."""
        return self.estimate == CALIBRATED

    @property
    def calibrations(self) -> dict[str, Calibration]:
        """What the device was measured to reach, by number format; empty if all is given.

        Raises
        ------
        NotMeasuredError
            If there are no measurements of the device.
        """
        from mlsim.solvers import calibrated

        names = (each.name for each in self.formats.all_computing(self.device))
        return calibrated.constants(self.device, names, self.given)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which constants were measured on other devices; of links also whether on none."""
        if not self.calibrated:
            return ()
        from mlsim.hardware.kernel_constants import loans
        from mlsim.solvers.calibrated import MAIN_OF_LINK, farthest, without_given

        lent = [loan for each in self.calibrations.values() for loan in each.loans]
        kinds = {"experts": self.table.cache["routed"], "state": self.table.cache["scanned"]}
        lent.extend(loans({name: each.kin for name, each in kinds.items() if each}))
        if not set(MAIN_OF_LINK) <= set(self.given):
            for each in self.exchanges:
                lent.extend(loans({"exchange": each.kin} if each.kin else {}))
        return farthest(without_given(lent, self.given))

    @property
    def exchanges(self) -> tuple[ExchangeConstants, ...]:
        """What was measured of each exchange of a step."""
        sending = [each for each in self.table if each.link_group]
        if not self.system:
            return ()
        from mlsim.solvers.serving.measured_columns import constants

        return tuple(constants(self.system, each, graph=self.in_graph) for each in sending)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer."""
        between = any(each.between_nodes for each in self.table)
        cache = self.formats.cache_follows if self.model.decoder else ""
        longest = self.prompt_tokens + self.output_tokens
        return (
            *of_device(self.device),
            *of_hardware(self.system if between else None),
            *((cache,) if cache else ()),
            *of_context(self.model, getattr(longest, "max", lambda: longest)()),
        )

    @property
    def in_graph(self) -> bool:
        """Whether devices add up by kernels of an engine, in a captured graph."""
        return self.software is None or self.software.exchanges == "graph"

    @property
    def request(self) -> dict[str, Any]:
        """What is asked: sizes, and given quantities."""
        return {
            "batch_size": self.batch_size,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "block_tokens": self.block_tokens,
            # An encoder reads its batch at once.
            "chunk_tokens": self.chunk_tokens if self.model.decoder else float(UNLIMITED),
            "reserve_share": self.reserve_share,
            **(self.switched if self.switches is not OFF else {}),
            **self.given,
        }

    @cached_property
    def switched(self) -> Known:
        """What is known because of what is switched on."""
        if not self.switches.on:
            return Known()
        from mlsim.solvers.serving.switches import known_of as known_of_switches

        return known_of_switches(self)

    @property
    def known(self) -> Known:
        """Everything known of all phases but the columns, in base units."""
        found = self.base.joined(Known().add("given", **self.request))
        origins = self.switched.origins.items()
        found.origins.update((name, each) for name, each in origins if name not in self.given)
        return found

    def shape_with(self, asked: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape of an answer, () for one point, with more that is asked.

        Raises
        ------
        InvalidValueError
            If arrays don't broadcast.
        """
        one = self.batch_size.__class__ is self.prompt_tokens.__class__ is float
        one = one and self.output_tokens.__class__ is float
        if one and self.switches is OFF and not (self.given or asked):
            return ()  # the usual case, first
        sizes = {
            "batch_size": self.batch_size,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "prefix_share": self.switches.prefix_share,
        }
        return shape_of({**sizes, **self.given, **asked})

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": self.model.name,
            "model_source": self.model.source,
            "hardware": self.hardware_name,
            "precision": self.formats.name,
            "estimate": self.estimate,
            **({"software": self.software.key} if self.software else {}),
        }

    @property
    def title(self) -> str:
        """Model, devices, formats and estimate in words."""
        return f"{self.model.name} on {self.hardware_name}, {self.formats.name}, {self.estimate}"

    @property
    def hardware_name(self) -> str:
        """The devices that are used, and the system that they are in."""
        count = self.parallelism.devices
        if count == 1:
            alone = f"1 of the {self.system.devices} of {self.system.name}: " if self.system else ""
            return f"{alone}{self.device.name}"
        where = f" of {self.system.name}" if self.system else ""
        return f"{count} x {self.device.name}{where} ({self.parallelism})"
