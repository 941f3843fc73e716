"""What was measured of each operator of a service: on its device, its links, in its program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlsim.equations import kernels, serving
from mlsim.equations.calibration import device_scores
from mlsim.hardware.device_calibration import Calibration, expert_constants, state_constants
from mlsim.hardware.kernel_constants import Relatives
from mlsim.hardware.kernel_times import SCAN_CHUNK
from mlsim.precision import Precision
from mlsim.solvers import calibrated
from mlsim.solvers.formats import WIDE_BYTES
from mlsim.solvers.question import Known
from mlsim.systems import Cluster, System
from mlsim.systems.link_calibration import ExchangeConstants, exchange_or_roofline
from mlsim.systems.system import BETWEEN
from mlsim.workloads.blocks import DeltaRule
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service
    from mlsim.workloads.blocks import Experts


# The kind of operators that experts are.
EXPERTS = "experts"
# Of an operator that sends nothing.
NOTHING_SENT = ExchangeConstants(link_fraction=1.0, link_latency=0.0)
# Of the constants, those that a whole step shares.
_SHARED = (
    *("imbalance", "spread", "data_passes", "half_width"),
    *("expert_tile", "elsewhere_share"),
)
# Formats whose scales make them another path than their values alone.
_SCALED = ("mxfp4", "nvfp4")


@dataclass(frozen=True)
class MeasuredKind:
    """Constants of a device's kernels of one kind by name, and whose they are."""

    constants: Mapping[str, float]
    words: str
    kin: Relatives


def experts_of(service: Service) -> MeasuredKind | None:
    """Return what a service's experts were measured to reach; None if it has none, or nobody did.

    Whoever gives the shares of peak and bandwidth means all products.
    """
    made_by, given = service.software, {"compute_fraction", "memory_fraction"}
    experts = service.model.experts
    if not experts or made_by is None or given & set(service.given):
        return None
    formats = service.formats
    found = expert_constants(
        *(service.device.key, made_by.key, _path(formats.weights), _path(formats.activations)),
        own_path=made_by.expert_path(formats.weights.name, formats.activations.bits),
        sliced=_width(service) < float(experts.size),
    )
    return MeasuredKind(*found) if found else None


def _path(chosen: Precision) -> str:
    return chosen.name if chosen.name in _SCALED else chosen.computes_as


def marks(service: Service, operators: tuple[StepOperator, ...]) -> dict[str, tuple[float, ...]]:
    """Return which operators are experts, and the bytes that a token brings to one of them."""
    experts, width = service.model.experts, _width(service)
    assert experts is not None
    branches = {"experts, up": float(experts.expert.branches)}
    hidden = float(experts.width(service.model.hidden))
    return {
        "routed_mark": tuple(float(each.kind == EXPERTS) for each in operators),
        "passed_bytes": tuple(
            float(kernels.passed_bytes(WIDE_BYTES, hidden, branches.get(each.name, 1.0), width))
            if each.kind == EXPERTS
            else 0.0
            for each in operators
        ),
    }


def _width(service: Service) -> float:
    experts, parallelism = service.model.experts, service.parallelism
    size = float(experts.size) if experts else 0.0
    return float(kernels.expert_width(size, parallelism.tensor, parallelism.expert))


def _add_experts(known: Known, service: Service, experts: Experts) -> None:
    """Add what the equations of measured experts ask for."""
    measured, parallelism = service.table.cache["routed"], service.parallelism
    if measured is None:
        return
    own = kernels.own_experts(float(experts.count), parallelism.expert)
    known.add(
        f"layout: {parallelism}",
        expert_parallel=float(parallelism.expert),
        own_experts=float(own),
        expert_width=_width(service),
    )
    known.add(measured.words, **{name: measured.constants[name] for name in _SHARED})
    if service.beyond_one_node:
        # The kernels were measured with choices that are more uneven on more devices. Between
        # nodes, services even them out, with copies of busy experts: `expert_imbalance` tells.
        known.add("between nodes, as expert_imbalance says", imbalance=0.0)
        known.add("between nodes, only tokens that chose its experts come", elsewhere_share=0.0)
    known.columns("which operators are experts", "routed_mark")
    known.columns("widths of the model and of an expert", "passed_bytes")


# The kind of operators that states are.
STATE = "state"


def states_of(service: Service) -> MeasuredKind | None:
    """Return what a service's states were measured to reach; None if it has none, or nobody did.

    Whoever gives the shares of peak and bandwidth means all operators.
    """
    made_by, given = service.software, {"compute_fraction", "memory_fraction"}
    ruled = any(isinstance(each, DeltaRule) for _, each in service.model.mixers)
    if not ruled or made_by is None or given & set(service.given):
        return None
    found = state_constants(service.device.key, made_by.key)
    return MeasuredKind(*found) if found else None


def columns_of(
    states: MeasuredKind,
    operators: tuple[StepOperator, ...],
    fractions: tuple[float, ...] | None,
) -> dict[str, tuple[float, ...]]:
    """Return how long states wait for a chunk, and the parts of the peak, with theirs in them."""
    own, step = (states.constants[name] for name in ("compute_fraction", "scan_step_time"))
    marked = [each.kind == STATE for each in operators]
    found = {"scan_step_time": tuple(step if state else 0.0 for state in marked)}
    if fractions:
        pairs = zip(marked, fractions, strict=True)
        found["compute_fraction"] = tuple(own if state else each for state, each in pairs)
    return found


def _add_states(known: Known, service: Service) -> None:
    """Add what the equations of measured states ask for."""
    measured = service.table.cache["scanned"]
    if measured is not None:
        known.add("convention: tokens of a chunk in engines' code", scan_chunk=SCAN_CHUNK)
        known.columns(measured.words, "scan_step_time")


def calibrated_columns(
    service: Service,
    operators: tuple[StepOperator, ...],
    replaced: tuple[str, ...],
    routed: MeasuredKind | None,
    states: MeasuredKind | None,
) -> dict[str, tuple[float, ...]]:
    """Return what was measured for each operator, but what is given in its place.

    Sending has a start of its own, in place of that of an operator that computes.
    """
    used = [each.name for each in service.formats.of_operators(operators, service.device)]
    experts = service.model.experts
    chosen = experts.per_token if experts else 1
    columns: dict[str, tuple[float, ...]] = {
        # A token's experts lie side by side, as if they were one wide product; measured ones
        # have tiles of their own.
        "outputs": tuple(
            0.0
            if routed
            else float(serving.side_by_side_outputs(each.outputs, chosen))
            if each.kind == EXPERTS
            else float(each.outputs)
            for each in operators
        ),
        "product_depth": tuple(
            float(serving.depth_of_product(each.token_multiply_adds, each.outputs))
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
        constants(system, each, graph=service.in_graph) if each.link_group and not given else None
        for each in operators
    ]
    return {
        **{
            name: tuple(getattr(each or NOTHING_SENT, name) for each in found)
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
    routed: MeasuredKind | None,
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
    service: Service, operators: tuple[StepOperator, ...], routed: MeasuredKind | None
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


_OF_STEPS = ("host_launch_time", "captured_tokens", "step_host_time", "sequence_host_time")


def _add_program(known: Known, service: Service) -> None:
    """Add what the program adds to its kernels."""
    made_by = service.software
    if made_by is None:
        return
    if made_by.unfused:
        calibrated.add_software(known, made_by, "activation_passes", "score_passes")
    if made_by.hosted:
        calibrated.add_software(known, made_by, *_OF_STEPS)
        if not made_by.value("host_launch_time"):
            known.add("starts of kernels hide behind the device", launch_count=0.0)


def add_measured(known: Known, service: Service) -> None:
    """Add what was measured of device, links, program, experts and states, with its origins."""
    calibrated.add_tiling(known, service.device)
    calibrated.add_origins(known, service.device, service.calibrations, service.software)
    system = service.system
    sending = [each for each in service.table if each.link_group]
    if system and sending and not set(calibrated.MAIN_OF_LINK) <= set(service.given):
        found = [constants(system, each, graph=service.in_graph) for each in sending]
        words = "; or ".join(dict.fromkeys(each.origin for each in found))
        for name in calibrated.OF_LINK:
            known.columns(f"{system.name}, {words}", name)
        known.columns("layout: devices that exchange", "group_size")
    _add_program(known, service)
    if service.model.experts:
        _add_experts(known, service, service.model.experts)
    _add_states(known, service)


def constants(
    system: System | Cluster, operator: StepOperator, *, graph: bool
) -> ExchangeConstants:
    """Return what was measured of an exchange; of one between nodes, what is assumed.

    No exchange between nodes is on record that starts and rates could be made of. So a library's
    exchange inside a node stands for it, at the rate of the link between nodes at most.
    """
    if not isinstance(system, Cluster):
        return exchange_or_roofline(system, operator.link_group, operator.name, graph=graph)
    name = operator.name.removesuffix(BETWEEN)
    if not operator.between_nodes:
        return exchange_or_roofline(system.node, operator.link_group, name, graph=graph)
    found = exchange_or_roofline(system.node, min(operator.link_group, system.node.devices), name)
    if graph:
        found = exchange_or_roofline(
            system.node, min(operator.link_group, system.node.devices), name, graph=False
        )
    return replace(
        found,
        link_fraction=min(found.link_fraction, 1.0),
        # What a device keeps never leaves its node.
        own_steps=0.0,
        origin=f"between nodes the same is assumed: {found.origin}",
    )
