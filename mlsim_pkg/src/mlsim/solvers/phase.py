"""One step of a language model on its devices: prefill, or a decode step.

A phase is turned into known quantities; a plan of equations is run on the
operators of one device, as for a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mlsim.equations import Equation, Plan, equations_of, plan, roofline, service, step
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.formats import WIDE, Formats
from mlsim.systems import System
from mlsim.workloads import FLOPS_PER_MULTIPLY_ADD, Layout, StepTable, Transformer
from mlsim.workloads.steps import STEP_COLUMNS

# A step has its own counts of work and traffic, and its own sum of times.
_OWN = {each.yields for each in equations_of(step, service)} | {"throughput"}
_SHARED = tuple(each for each in equations_of(roofline) if each.yields not in _OWN)
_ROOFLINE_LATENCY = tuple(each for each in equations_of(roofline) if each.yields == "latency")

SERVING = (*_SHARED, *equations_of(step, service), *_ROOFLINE_LATENCY)


@lru_cache(maxsize=64)
def equations_for(kinds: frozenset[str]) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of model and of answer."""
    bound, alone = "bound" in kinds, "alone" in kinds
    chosen = {
        "multiply_adds": (
            "latent_multiply_adds" if "latent" in kinds else "token_and_pair_multiply_adds"
        ),
        "attention_pairs": "bidirectional_pairs" if "encoder" in kinds else "attention_pairs",
        "positions_read": "cached_positions_read" if bound else "positions_read",
        "latency": "bound_latency" if bound else "latency" if alone else "step_latency",
    }
    return tuple(each for each in SERVING if chosen.get(each.yields, each.name) == each.name)


@lru_cache(maxsize=512)
def find_plan(kinds: frozenset[str], known: frozenset[str], wanted: tuple[str, ...]) -> Plan:
    """Return the plan from known names to wanted ones, made once."""
    return plan(equations_for(kinds), known, wanted)


@dataclass(frozen=True, eq=False)
class Service:
    """What is served, on what, and how it is laid out: all that both phases share."""

    model: Transformer
    device: Device
    system: System | None
    layout: Layout
    formats: Formats
    estimate: str
    batch_size: Any
    prompt_tokens: Any
    output_tokens: Any
    block_tokens: float
    chunk_tokens: float
    reserve_share: float
    given: Mapping[str, Any]

    @property
    def kinds(self) -> frozenset[str]:
        """What decides which equations hold."""
        return _kinds(
            self.model.latent,
            not self.model.decoder,
            self.estimate == "bound",
            self.layout.devices == 1,
        )

    @cached_property
    def table(self) -> StepTable:
        """The operators on one device, with its peaks."""
        return _table(self.model, self.layout, self.device, self.formats, self.estimate)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """Everything known of both phases but the columns, in base units."""
        layout, formats, device = self.layout, self.formats, self.device
        model = self.model
        known: dict[str, Any] = {
            "batch_size": self.batch_size,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "block_tokens": self.block_tokens,
            "chunk_tokens": self.chunk_tokens,
            "reserve_share": self.reserve_share,
            "tokens_per_step": 1.0,
            "data_parallel": float(layout.data),
            "pipeline_parallel": float(layout.pipeline),
            "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
            "bytes_per_element": formats.activations.bytes,
            "bytes_per_cached_element": formats.kv_cache.bytes,
            "model_cached_elements": float(model.model_cached_elements if model.decoder else 0),
            "live_elements": _live(model, layout),
            "logits": float(-(-model.vocabulary // layout.tensor) * model.output_layer),
            "memory_bandwidth": device.bandwidth_si,
            "memory_capacity": device.capacity_si,
        }
        if not model.experts:
            known["expert_share"] = 1.0
        elif self.estimate == "bound":
            # Tokens may all choose the same experts: k of them are compulsory.
            known["expert_share"] = model.experts.per_token / model.experts.count
        else:
            known["experts"] = float(model.experts.count)
            known["experts_per_token"] = float(model.experts.per_token)
            known["expert_replicas"] = float(layout.expert_replicas)
        if self.system and layout.devices > 1:
            known["link_bandwidth"] = self.system.link_bandwidth(layout.devices)
        else:
            known["total_network_time"] = 0.0
        return {**known, **self.given}

    def shape_with(self, asked: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape of an answer, () for one point, with more that is asked.

        Raises
        ------
        InvalidValueError
            If arrays don't broadcast.
        """
        named = {
            "batch_size": self.batch_size,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
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

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        device = self.device
        figures = {"memory_bandwidth": "memory.bandwidth", "memory_capacity": "memory.capacity"}
        model = f"{self.model.name}, from its architecture ({self.model.source})"
        if name in self.given or name in ASKED:
            return "given"
        if name in figures:
            return f"{device.name}: {device.figures[figures[name]].origin()}"
        if name == "link_bandwidth" and self.system:
            return f"{self.system.name}: {self.system.figure.origin()}"
        for kind in ("weights", "activations", "kv_cache"):
            if name == _BYTES[kind]:
                found = getattr(self.formats, kind)
                return f"{kind.replace('_', ' ')} in {found.name}: {found.bits:g} bits"
        if name in ("data_parallel", "pipeline_parallel", "expert_replicas"):
            return f"layout: {self.layout}"
        return model if name in _OF_MODEL else "definition"


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
_OF_MODEL = (
    "experts",
    "experts_per_token",
    "expert_share",
    "live_elements",
    "logits",
    "model_cached_elements",
)
_BYTES = {
    "weights": "bytes_per_parameter",
    "activations": "bytes_per_element",
    "kv_cache": "bytes_per_cached_element",
}


@lru_cache(maxsize=16)
def _kinds(latent: bool, encoder: bool, bound: bool, alone: bool) -> frozenset[str]:
    flags = {"latent": latent, "encoder": encoder, "bound": bound, "alone": alone}
    return frozenset(name for name, holds in flags.items() if holds)


@lru_cache(maxsize=1024)
def _live(model: Transformer, layout: Layout) -> float:
    return float(max(operator.live_elements for operator in model.operators(layout)))


@lru_cache(maxsize=1024)
def _table(
    model: Transformer, layout: Layout, device: Device, formats: Formats, estimate: str
) -> StepTable:
    """Make the operators' table, once for each model, layout, device and formats."""
    operators = model.operators(layout)
    linear, attention, kept = formats.computing(device)
    bound = estimate == "bound"
    kinds = {"attention": attention, "output": kept, "router": kept}
    peaks, sizes = [], []
    for operator in operators:
        computes = linear if bound or not operator.kept else kept
        computes = kinds.get(operator.kind, computes) if not bound else linear
        peaks.append(device.compute.figure(computes).si)
        wide = operator.kept and formats.weights.bits < WIDE and not bound
        sizes.append(WIDE / 8 if wide else formats.weights.bytes)
    if bound:
        # Activations could stay on chip, and sending could hide behind computing.
        operators = tuple(each.compulsory() for each in operators if each.kind != "network")
        count = len(operators)
        peaks, sizes = peaks[:count], sizes[:count]
    return StepTable(operators, {"peak_flops": tuple(peaks), "bytes_per_parameter": tuple(sizes)})


@dataclass(frozen=True, eq=False)
class Phase:
    """A step of a service: so many new tokens of each sequence, so many cached."""

    service: Service
    name: str
    new_tokens: Any
    cached_tokens: Any

    @cached_property
    def known(self) -> dict[str, Any]:
        """Everything known but the operators' columns, in base units."""
        return {
            **self.service.shared,
            "new_tokens": self.new_tokens,
            "cached_tokens": self.cached_tokens,
        }

    @cached_property
    def table(self) -> StepTable:
        """The operators, without the columns that a given quantity replaces."""
        table = self.service.table
        replaced = set(table.extra) & set(self.service.given)
        if not replaced:
            return table
        kept = {name: values for name, values in table.extra.items() if name not in replaced}
        return StepTable(table.operators, kept)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        asked = {"cached_tokens": self.cached_tokens, "new_tokens": self.new_tokens}
        return self.service.shape_with(asked)

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        # The table stands for model, layout, device and formats.
        key = (wanted, tuple(self.service.given))
        found: Plan | None = self.service.table.cache.get(key)
        if found is None:
            known = frozenset((*self.known, *STEP_COLUMNS, *self.table.extra))
            found = find_plan(self.service.kinds, known, wanted)
            self.service.table.cache[key] = found
        return found

    def at_once(self, wanted: tuple[str, ...], new: Any, cached: Any) -> Mapping[str, Any]:
        """Run several steps of one point as the columns of one table: the shortest way.

        What does not depend on the request is reckoned once for a table.
        """
        service = self.service
        values = {**self.known, "new_tokens": new, "cached_tokens": cached}
        if service.given:
            return self.plan(*wanted).compute({**values, **self.table.columns_2d})
        cache = service.table.cache
        if ("once", *wanted) not in cache:
            once, each = self.plan(*wanted).split(ASKED)
            cache["once", *wanted] = once.run({**values, **self.table.columns_2d}), each
        fixed, each = cache["once", *wanted]
        found: Mapping[str, Any] = each.compute({**fixed, **values})
        return found

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        service = self.service
        return {
            "model": service.model.name,
            "model_source": service.model.source,
            "hardware": hardware_name(service),
            "precision": service.formats.name,
            "estimate": f"{service.estimate}, {self.name}",
        }

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        return self.service.origin(name)


def hardware_name(service: Service) -> str:
    """Name the devices that are used, and the system that they are in."""
    count = service.layout.devices
    if count == 1:
        return service.device.name
    where = f" of {service.system.name}" if service.system else ""
    return f"{count} x {service.device.name}{where} ({service.layout})"


_NO_OPERATORS = StepTable((), {})


@dataclass(frozen=True, eq=False)
class Whole:
    """A whole generation: the times of its steps are known, and are put together."""

    service: Service
    known: Mapping[str, Any]
    shape: tuple[int, ...]

    @property
    def table(self) -> StepTable:
        """No operators: their times have been added up."""
        return _NO_OPERATORS

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        return find_plan(frozenset(), frozenset(self.known), wanted)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        service = self.service
        return {
            "model": service.model.name,
            "model_source": service.model.source,
            "hardware": hardware_name(service),
            "precision": service.formats.name,
            "estimate": service.estimate,
        }

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        steps = {
            "time_to_first_token": "prefill",
            "first_token_time": "decode, the first step",
            "middle_token_time": "decode, the middle step",
            "last_token_time": "decode, the last step",
        }
        return (
            f"{steps[name]}: explained on its own" if name in steps else self.service.origin(name)
        )
