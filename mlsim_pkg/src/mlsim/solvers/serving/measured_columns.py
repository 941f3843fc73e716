"""What was measured of each operator of a service: on its device, its links, in its program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlsim.equations import serving
from mlsim.equations.calibration import device_scores
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import Calibration
from mlsim.precision import Precision
from mlsim.solvers import calibrated
from mlsim.solvers.formats import Formats
from mlsim.solvers.serving import levels
from mlsim.solvers.serving.routed import EXPERTS, MeasuredKind, marks
from mlsim.solvers.serving.scanned import columns_of
from mlsim.systems import Cluster, System
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service


def computing(
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
    used = [each.name for each in computing(operators, service.formats, service.device)]
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
