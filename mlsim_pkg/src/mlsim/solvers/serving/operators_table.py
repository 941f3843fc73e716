"""The operators of a service on one device: which there are, their formats and peaks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import serving
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.solvers.formats import WIDE, WIDE_BYTES, Formats
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.steps import STEP_COLUMNS, StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service


# A rule of the vocabulary, and what decides it, where the number is not given.
UNIFORM = "uniform"


def variant_of(service: Service) -> frozenset[str]:
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
        UNIFORM: service.expert_imbalance == UNIFORM,
        "routed": cache["routed"] is not None,
        "scanned": cache["scanned"] is not None,
        "ahead": made_by is not None and made_by.ahead,
    }
    return frozenset(name for name, holds in flags.items() if holds)


_TABLES: dict[Any, OperatorTable[StepOperator]] = {}


def operators_table(service: Service) -> OperatorTable[StepOperator]:
    """Return the operators' table, made once for all that no request changes."""
    given = service.given
    replaced = _replaced(service) if given else ()
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


def _replaced(service: Service) -> tuple[str, ...]:
    """Return the columns that a given quantity takes the place of."""
    names: tuple[str, ...] = ("peak_flops", "bytes_per_parameter", "link_bandwidth")
    if service.calibrated:
        from mlsim.solvers.calibrated import OF_DEVICE, OF_LINK

        names = (*names, *OF_DEVICE, *OF_LINK)
    return tuple(name for name in names if name in service.given)


def _new_table(service: Service, replaced: tuple[str, ...]) -> OperatorTable[StepOperator]:
    """Make the operators' table with columns of the device's own, but those replaced."""
    parallelism, formats = service.parallelism, service.formats
    operators, adapted = service.switches.lowered(service.model, parallelism)
    columns: dict[str, tuple[float, ...]] = {}
    alone = parallelism.devices == 1
    if not alone:
        from mlsim.solvers.serving import layouts

        operators = layouts.placed(service, operators)
    bound = service.estimate == "bound"
    if bound:
        # Activations could stay on chip, and sending could hide behind computing.
        operators = tuple(each.compulsory() for each in operators if each.kind != "network")
    routed = states = None
    if service.calibrated:
        from mlsim.solvers.serving.measured_columns import (
            calibrated_columns,
            experts_of,
            states_of,
        )

        routed, states = experts_of(service), states_of(service)
    if routed:
        # What experts bring and take crosses the memory in passes of its own.
        operators = tuple(
            replace(each, token_elements=0) if each.kind == "experts" else each
            for each in operators
        )
    if not alone:
        columns |= layouts.spread_columns(service, operators)
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
    if not alone:
        columns |= layouts.link_columns(service, operators, replaced)
    if service.calibrated:
        columns |= calibrated_columns(service, operators, replaced, routed, states)
    # What is the same for all operators is one number.
    mixed = {name: values for name, values in columns.items() if len(set(values)) > 1}
    table = OperatorTable(operators, STEP_COLUMNS, mixed)
    table.cache["sends"] = any(each.link_group for each in operators)
    table.cache["worked"] = "core_weight_rate" in columns
    table.cache["routed"] = routed
    # Cores that limit how fast weights are read have a term of their own in its place.
    table.cache["scanned"] = None if table.cache["worked"] else states
    table.cache["uniform"] = {
        name: values[0] for name, values in columns.items() if name not in mixed
    }
    return table


def _bytes_per_parameter(operator: StepOperator, formats: Formats) -> float:
    """Return the bytes that an operator's parameters take on average, quantized or not."""
    own = formats.of(operator.name)
    narrow = WIDE_BYTES if operator.unquantised and not own else (own or formats.weights).bytes
    # Biases and norms stay as they are; experts that hold no parameters have none either.
    if not operator.wide_parameters or narrow == WIDE_BYTES:
        return narrow
    return float(
        serving.mixed_bytes_per_parameter(
            float(operator.parameters), float(operator.wide_parameters), narrow, WIDE_BYTES
        )
    )


def _peaks(
    operators: tuple[StepOperator, ...], device: Device, formats: Formats, estimate: str
) -> tuple[float, ...]:
    """Return the peak rate at which each operator computes.

    The bound takes the highest of them for all: no program is faster.
    """
    used = formats.of_operators(operators, device)
    peaks = {each: device.compute.figure(each).si for each in dict.fromkeys(used)}
    if estimate == "bound":
        return (max(peaks.values()),) * len(operators)
    return tuple(peaks[each] for each in used)
