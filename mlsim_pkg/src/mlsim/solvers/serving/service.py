"""What is served, on what, and how it is laid out: what the phases of a service share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mlsim.equations import serving_counts
from mlsim.equations.software import device_scores
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import Calibration
from mlsim.precision import Precision
from mlsim.software import Software
from mlsim.solvers import calibrated
from mlsim.solvers.formats import WIDE, WIDE_BYTES, Formats
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.question import Known
from mlsim.solvers.serving import levels
from mlsim.solvers.serving.known import known_of
from mlsim.solvers.serving.routed import EXPERTS, MeasuredExperts, experts_of, marks
from mlsim.solvers.serving.scanned import MeasuredStates, columns_of, states_of
from mlsim.solvers.serving.switches import OFF, Switches
from mlsim.systems import Cluster, System
from mlsim.workloads.language import Transformer
from mlsim.workloads.operators import OperatorTable
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.steps import STEP_COLUMNS, UNLIMITED, StepOperator

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
# Columns that a given quantity takes the place of.
_REPLACEABLE = (
    "peak_flops",
    "bytes_per_parameter",
    "link_bandwidth",
    *calibrated.OF_DEVICE,
    *calibrated.OF_LINK,
)


@dataclass(frozen=True, eq=False)
class Service:
    """A question about a service, as all its phases see it.

    Sizes are floats, or arrays that broadcast together; `given` holds
    quantities that override what the data or the equations say.
    """

    model: Transformer
    device: Device
    system: System | Cluster | None
    parallelism: Parallelism
    formats: Formats
    estimate: str
    batch_size: Any
    prompt_tokens: Any
    output_tokens: Any
    block_tokens: float
    chunk_tokens: float
    reserve_share: float
    given: Mapping[str, Any]
    # What runs it; of the calibrated estimate only.
    software: Software | None = None
    # What is switched on: cached prefixes, speculation, memory of the host.
    switches: Switches = OFF
    # Tokens of the busiest device with experts over the mean: a number, or "uniform".
    expert_imbalance: float | str = 1.0
    # The operators on one device, with its peaks; all that no request changes.
    table: OperatorTable[StepOperator] = field(init=False)
    # What is known of model, device and layout, whatever the request.
    base: Known = field(init=False)

    def __post_init__(self) -> None:
        given = self.given
        replaced = tuple(name for name in _REPLACEABLE if name in given) if given else ()
        table = _table(self, replaced)
        object.__setattr__(self, "table", table)
        if "base" not in table.cache:
            table.cache["base"] = known_of(self)
            table.cache["variant"] = _variant(self)
        object.__setattr__(self, "base", table.cache["base"])

    @property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        found: frozenset[str] = self.table.cache["variant"]
        return found | self.switches.variant if self.switches.on else found

    def with_batch(self, batch_size: Any) -> Service:
        """Return the same request for another batch: nothing is checked or made again."""
        found = object.__new__(Service)
        # As a copy of one that is frozen is made.
        found.__dict__.update(self.__dict__, batch_size=batch_size)
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
        names = (each.name for each in self.formats.all_computing(self.device))
        return calibrated.constants(self.device, names, self.given)

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
            **self.switched,
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
    def hardware_name(self) -> str:
        """The devices that are used, and the system that they are in."""
        count = self.parallelism.devices
        if count == 1:
            alone = f"1 of the {self.system.devices} of {self.system.name}: " if self.system else ""
            return f"{alone}{self.device.name}"
        where = f" of {self.system.name}" if self.system else ""
        return f"{count} x {self.device.name}{where} ({self.parallelism})"


def _variant(service: Service) -> frozenset[str]:
    """Return what decides which equations hold, but for what is switched on."""
    model, made_by, cache = service.model, service.software, service.table.cache
    flags = {
        "latent": model.latent,
        "encoder": not model.decoder,
        "bound": service.estimate == "bound",
        "sends": cache["sends"],
        "windowed": model.window > 0,
        CALIBRATED: service.calibrated,
        "recurrent": model.state_bytes_per_sequence > 0,
        "shared": model.shares_cache,
        "hosted": made_by is not None and made_by.hosted,
        "unfused": made_by is not None and made_by.unfused,
        "worked": cache["worked"],
        "spread": service.spread,
        levels.UNIFORM: service.expert_imbalance == levels.UNIFORM,
        "routed": cache["routed"] is not None,
        "scanned": cache["scanned"] is not None,
        "ahead": made_by is not None and made_by.ahead,
    }
    return frozenset(name for name, holds in flags.items() if holds)


_TABLES: dict[Any, OperatorTable[StepOperator]] = {}


def _table(service: Service, replaced: tuple[str, ...]) -> OperatorTable[StepOperator]:
    """Return the operators' table, made once for all that no request changes."""
    parallelism, formats = service.parallelism, service.formats
    key = (
        service.model,
        parallelism,
        service.device,
        service.system,
        formats,
        service.estimate,
        service.software,
        service.switches.of_table,
        service.expert_imbalance,
        replaced,
    )
    found = _TABLES.get(key)
    if found is None:
        if len(_TABLES) >= 1024:
            _TABLES.clear()
        found = _TABLES[key] = _new_table(service, replaced)
    return found


def _new_table(service: Service, replaced: tuple[str, ...]) -> OperatorTable[StepOperator]:
    """Make the operators' table with columns of the device's own, but those replaced."""
    parallelism, formats, system = service.parallelism, service.formats, service.system
    operators, adapted = service.switches.lowered(service.model, parallelism)
    operators = levels.placed(service, operators)
    bound = service.estimate == "bound"
    if bound:
        # Activations could stay on chip, and sending could hide behind computing.
        operators = tuple(each.compulsory() for each in operators if each.kind != "network")
    routed = experts_of(service) if service.calibrated else None
    if routed:
        # What experts bring and take crosses the memory in passes of its own.
        operators = tuple(
            replace(each, token_elements=0) if each.kind == EXPERTS else each for each in operators
        )
    states = states_of(service) if service.calibrated else None
    columns = levels.columns(service, operators)
    if adapted:
        sizes = (adapted.get(each.name, 0.0) for each in operators)
        columns["served_adapter_parameters"] = tuple(sizes)
    if "peak_flops" not in replaced:
        columns["peak_flops"] = _peaks(operators, service.device, formats, service.estimate)
    if "bytes_per_parameter" not in replaced:
        narrow = formats.weights.bits < WIDE and not bound
        columns["bytes_per_parameter"] = tuple(
            _bytes_per_parameter(each, formats) if narrow else formats.weights.bytes
            for each in operators
        )
    if service.model.shares_cache:
        columns["written_elements"] = tuple(float(each.written_elements) for each in operators)
    sending = [each for each in operators if each.link_group]
    if system and sending and "link_bandwidth" not in replaced:
        columns["link_bandwidth"] = tuple(
            levels.link_rate(system, each if each.link_group else sending[0]) for each in operators
        )
    if sending:
        columns["bytes_per_sent_element"] = tuple(
            levels.sent_bytes(formats, each) for each in operators
        )
    if service.calibrated:
        columns |= _calibrated_columns(service, operators, replaced, routed, states)
    # What is the same for all operators is one number.
    mixed = {name: values for name, values in columns.items() if len(set(values)) > 1}
    table = OperatorTable(operators, STEP_COLUMNS, mixed)
    table.cache["sends"] = bool(sending)
    table.cache["worked"] = "core_weight_rate" in columns
    table.cache["routed"] = routed
    # Cores that limit how fast weights are read have a term of their own in its place.
    table.cache["scanned"] = None if table.cache["worked"] else states
    table.cache["uniform"] = {
        name: values[0] for name, values in columns.items() if name not in mixed
    }
    return table


def _bytes_per_parameter(operator: StepOperator, formats: Formats) -> float:
    """Return the bytes that an operator's parameters take on average, quantised or not."""
    own = formats.of(operator.name)
    narrow = WIDE_BYTES if operator.unquantised and not own else (own or formats.weights).bytes
    # Biases and norms stay as they are; experts that hold no parameters have none either.
    if not operator.wide_parameters or narrow == WIDE_BYTES:
        return narrow
    return float(
        serving_counts.mixed_bytes_per_parameter(
            float(operator.parameters), float(operator.wide_parameters), narrow, WIDE_BYTES
        )
    )


def _peaks(
    operators: tuple[StepOperator, ...], device: Device, formats: Formats, estimate: str
) -> tuple[float, ...]:
    """Return the peak rate at which each operator computes.

    The bound takes the highest of them for all: no program is faster.
    """
    used = _computing(operators, formats, device)
    peaks = {each: device.compute.figure(each).si for each in dict.fromkeys(used)}
    if estimate == "bound":
        return (max(peaks.values()),) * len(operators)
    return tuple(peaks[each] for each in used)


def _computing(
    operators: tuple[StepOperator, ...], formats: Formats, device: Device
) -> tuple[Precision, ...]:
    """Return the format in which each operator computes."""
    linear, attention, unquantised = formats.computing(device)
    own = {"attention": attention, "output": unquantised, "router": unquantised}
    own_weights = formats.computing_apart(device)
    return tuple(
        own_weights.get(each.name, own.get(each.kind, unquantised if each.unquantised else linear))
        for each in operators
    )


def _calibrated_columns(
    service: Service,
    operators: tuple[StepOperator, ...],
    replaced: tuple[str, ...],
    routed: MeasuredExperts | None,
    states: MeasuredStates | None,
) -> dict[str, tuple[float, ...]]:
    """Return what was measured for each operator, but what is given in its place.

    Sending has a start of its own, in place of that of an operator that computes.
    """
    used = [each.name for each in _computing(operators, service.formats, service.device)]
    experts = service.model.experts
    chosen = experts.per_token if experts else 1
    columns: dict[str, tuple[float, ...]] = {
        # A token's experts lie side by side, as if they were one wide product; measured ones
        # have tiles of their own.
        "outputs": tuple(
            0.0
            if routed
            else float(serving_counts.side_by_side_outputs(each.outputs, chosen))
            if each.kind == EXPERTS
            else float(each.outputs)
            for each in operators
        ),
        "product_depth": tuple(
            float(serving_counts.depth_of_product(each.token_multiply_adds, each.outputs))
            for each in operators
        ),
    }
    found = service.calibrations
    for name in calibrated.OF_DEVICE if found else ():
        columns[name] = tuple(
            0.0
            if name == "kernel_overhead" and each.link_group
            else _reached(service, found[format_], name, each, routed)
            for each, format_ in zip(operators, used, strict=True)
        )
    columns |= _program_columns(service, operators, routed)
    if routed:
        columns |= marks(service, operators)
    if states and "core_weight_rate" not in columns:
        columns |= columns_of(states, operators, columns.get("compute_fraction"))
    sending = any(each.link_group for each in operators)
    if service.system and sending:
        columns |= _exchange_columns(service, service.system, operators)
    return {name: values for name, values in columns.items() if name not in replaced}


def _exchange_columns(
    service: Service, system: System | Cluster, operators: tuple[StepOperator, ...]
) -> dict[str, tuple[float, ...]]:
    """Return what was measured of exchanges: starts, rates, and the ramp between them."""
    # Whoever gives a start and a rate means a line through them.
    given = set(calibrated.MAIN_OF_LINK) <= set(service.given)
    found = [
        levels.constants(system, each, graph=service.in_graph)
        if each.link_group and not given
        else None
        for each in operators
    ]
    return {
        **{
            name: tuple(getattr(each or levels.NOTHING_SENT, name) for each in found)
            for name in calibrated.OF_LINK
        },
        "link_fraction": tuple(
            calibrated.sent(each.link_fraction, service.software) if each else 1.0 for each in found
        ),
        "group_size": tuple(float(max(each.link_group, 2)) for each in operators),
    }


def _reached(
    service: Service,
    found: Calibration,
    name: str,
    operator: StepOperator,
    routed: MeasuredExperts | None,
) -> float:
    """Return what was measured of an operator, inside the program that runs it."""
    value = calibrated.reached(found, name, attention=operator.kind == "attention")
    made_by = service.software
    own = routed is not None and operator.kind == EXPERTS
    if own and routed and name != "kernel_overhead":
        value = routed.constants[name]
    if made_by is None:
        return value
    if name == "compute_fraction":
        return calibrated.in_program(value, made_by, operator.kind, service.device, found.precision)
    if name == "memory_fraction":
        return calibrated.streamed(value, made_by)
    if operator.kind == EXPERTS:
        weights = service.formats.weights.name
        start = calibrated.expert_start(service.device, made_by, weights)
        if start is not None:
            return start
    return calibrated.start_of(value, made_by, operator.kind)


def _started_kind(service: Service, operator: StepOperator) -> str:
    """Return the kind of an operator as its kernels are counted: latent attention is its own."""
    latent = operator.kind == "attention" and service.model.latent
    return "latent_attention" if latent else operator.kind


def _program_columns(
    service: Service, operators: tuple[StepOperator, ...], routed: MeasuredExperts | None
) -> dict[str, tuple[float, ...]]:
    """Return what a program adds to each operator: starts, scores, and work on weights."""
    made_by, columns = service.software, {}
    if made_by is None:
        return {}
    if made_by.value("host_launch_time"):
        columns["launches"] = tuple(
            0.0 if each.link_group else made_by.started(_started_kind(service, each))
            for each in operators
        )
    if made_by.unfused:
        heads = device_scores(service.model.attention.heads, service.parallelism.tensor)
        columns["scores_per_pair"] = tuple(
            float(heads) if each.kind == "attention" else 0.0 for each in operators
        )
    narrow = service.formats.weights.bits < service.formats.activations.bits
    rates = tuple(
        math.inf
        if routed and each.kind == EXPERTS
        else calibrated.weight_rate(service.device, made_by, narrow=narrow and not each.unquantised)
        for each in operators
    )
    if min(rates) < math.inf:
        columns["core_weight_rate"] = rates
    return columns
