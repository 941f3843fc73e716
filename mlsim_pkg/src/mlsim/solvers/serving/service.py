"""What is served, on what, and how it is laid out: what the phases of a service share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations import serving
from mlsim.errors import InvalidValueError, Suggesting
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.solvers.formats import Formats, kept_bytes
from mlsim.solvers.question import Known, of_context, of_device, of_hardware
from mlsim.solvers.serving.operators_table import (
    UNIFORM,
    link_origin,
    operators_table,
    variant_of,
)
from mlsim.solvers.serving.switches import OFF, Switches
from mlsim.systems import Cluster, System
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, OperatorTable
from mlsim.workloads.steps import UNLIMITED, Parallelism, StepOperator

if TYPE_CHECKING:
    from mlsim.hardware.device_calibration import Calibration
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.precision import Precision
    from mlsim.software import Software
    from mlsim.systems.link_calibration import ExchangeConstants


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
        return self.switches.prefill(self.prompt_tokens)

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
        return self.switches.known(self) if self.switches.on else Known()

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
        sizes = (self.batch_size, self.prompt_tokens, self.output_tokens)
        if self.switches is OFF and not (self.given or asked) and {*map(type, sizes)} == {float}:
            return ()  # the usual case, first
        named = {
            "batch_size": self.batch_size,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "prefix_share": self.switches.prefix_share,
            **self.given,
            **asked,
        }
        values = {name: value for name, value in named.items() if getattr(value, "ndim", 0)}
        if not values:
            return ()
        import numpy as np

        try:
            return np.broadcast_shapes(*(np.shape(value) for value in values.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in values.items())
            raise InvalidValueError(f"these shapes don't broadcast: {shapes}.") from None

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
