"""The operators of a service on one device: which there are, their formats, peaks and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import links, serving
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.solvers.formats import WIDE, WIDE_BYTES, Formats, kept_bytes
from mlsim.solvers.question import Origin, recorded
from mlsim.systems import Cluster, Placement, System
from mlsim.systems.system import BETWEEN, Spread, spread
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.steps import STEP_COLUMNS, StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service


RING = "keys and values round the ring"
_EXPERTS, _STAGES = "tokens to their experts and back", "stage to stage"

# A rule of the vocabulary, and what decides it, where the number is not given.
UNIFORM = "uniform"


def _placed(service: Service, operators: tuple[StepOperator, ...]) -> tuple[StepOperator, ...]:
    """Return a step's operators with those of shared sequences, each exchange on its links."""
    if service.parallelism.context > 1:
        operators = (*map(_shared(service), operators), *_rings(service, operators))
    if not isinstance(service.system, Cluster):
        return operators
    lies = spread(service.parallelism, service.system.node.devices)
    return tuple(row for each in operators for row in _by_level(service, each, lies))


def _shared(service: Service) -> Any:
    """Return what gives each device its part of the cache."""
    sharing = float(service.parallelism.context)

    def share(operator: StepOperator) -> StepOperator:
        if not operator.cached_elements:
            return operator
        held = serving.context_cached_elements(operator.cached_elements, sharing)
        return replace(operator, cached_elements=float(held))

    return share


def _rings(service: Service, operators: tuple[StepOperator, ...]) -> Iterator[StepOperator]:
    """Yield what goes round, for each kind of attention."""
    for each in operators:
        if each.kind == "attention":
            yield StepOperator(
                name=RING,
                kind="network",
                # Columns of its own say how much.
                link_group=service.parallelism.context,
                attention_window=each.attention_window,
                repeats=each.repeats,
                resident_repeats=0.0,
            )


def _by_level(service: Service, operator: StepOperator, lies: Spread) -> Iterator[StepOperator]:
    """Yield an operator, or an exchange in the parts that it has inside and between nodes."""
    if not operator.link_group:
        yield operator
    elif operator.name == RING:
        # A ring is as fast as its slowest link.
        yield replace(operator, between_nodes=lies.context.groups > 1)
    elif operator.name == _STAGES:
        yield from _stages(operator, lies.crossings)
    elif operator.name == _EXPERTS:
        yield from _experts(service, operator, lies.copies)
    else:
        yield from _collective(operator, lies.tensor)


def _between(operator: StepOperator, **changed: Any) -> StepOperator:
    return replace(operator, name=f"{operator.name}{BETWEEN}", between_nodes=True, **changed)


def _stages(operator: StepOperator, crossings: int) -> Iterator[StepOperator]:
    inside = operator.repeats - crossings
    if inside:
        yield replace(operator, repeats=inside)
    if crossings:
        yield _between(operator, repeats=crossings)


def _collective(operator: StepOperator, lies: Placement) -> Iterator[StepOperator]:
    if lies.groups == 1:
        yield operator
        return
    ring = (operator.link_elements, float(lies.size), float(lies.members))
    if lies.members > 1:
        inside = links.inside_ring_elements(*ring)
        yield replace(operator, link_elements=float(inside), link_group=lies.members)
    outside = links.between_ring_elements(*ring, float(lies.groups))
    yield _between(operator, link_elements=float(outside), link_group=lies.groups)


def _experts(service: Service, operator: StepOperator, lies: Placement) -> Iterator[StepOperator]:
    if lies.groups == 1:
        yield operator
        return
    layout = service.parallelism
    near = float(links.near_share(float(lies.members), float(layout.expert_replicas)))
    if near:
        elements = links.near_exchange_elements(operator.link_elements, near)
        together = lies.members * layout.tensor
        yield replace(operator, link_elements=float(elements), link_group=together)
    elements = links.far_exchange_elements(operator.link_elements, near)
    yield _between(operator, link_elements=float(elements))


def _sent_bytes(formats: Formats, operator: StepOperator) -> float:
    """Return the bytes of an element that is sent: sums in 16 bits, tokens as they are read."""
    kept = kept_bytes(formats.activations)
    if not operator.name.startswith(_EXPERTS):
        return kept
    return float(serving.exchanged_bytes_per_element(formats.activations.bytes, kept))


def _link_rate(system: System | Cluster, operator: StepOperator) -> float:
    """Return what a device sends in an exchange, one way, in B/s."""
    if not isinstance(system, Cluster):
        return system.link_bandwidth(operator.link_group)
    if operator.between_nodes:
        return system.fabric_bandwidth
    return system.node.link_bandwidth(operator.link_group)


def link_origin(system: System | Cluster, operators: tuple[StepOperator, ...]) -> Origin:
    """Say where the rates of the links come from."""
    if not isinstance(system, Cluster):
        return recorded(system, system.figure)
    node, whole = system.node, system

    def words() -> str:
        inside = f"{node.name}: {node.figure.origin()}"
        if not any(each.between_nodes for each in operators):
            return inside
        return f"{inside}; between nodes {whole.name}: {whole.figure.origin()}"

    return words


def spread_columns(
    service: Service, operators: tuple[StepOperator, ...]
) -> dict[str, tuple[float, ...]]:
    """Return the columns of shared sequences, and of experts that are chosen unevenly."""
    if not service.spread:
        return {}
    attention = [each for each in service.model.operators(service.parallelism) if _attends(each)]
    rings = iter(attention)
    passed = [next(rings) if each.name == RING else None for each in operators]
    return {
        "ring_cached_elements": tuple(
            float(each.cached_elements) if each else 0.0 for each in passed
        ),
        "ring_query_elements": tuple(
            float(each.token_elements) if each else 0.0 for each in passed
        ),
        "routed_share": tuple(float(_routed(each)) for each in operators),
    }


def _attends(operator: StepOperator) -> bool:
    return operator.kind == "attention"


def _routed(operator: StepOperator) -> bool:
    return operator.kind == "experts" or operator.name.startswith(_EXPERTS)


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
    parallelism, formats, system = service.parallelism, service.formats, service.system
    operators, adapted = service.switches.lowered(service.model, parallelism)
    operators = _placed(service, operators)
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
    columns = spread_columns(service, operators)
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
            _link_rate(system, each if each.link_group else sending[0]) for each in operators
        )
    if sending:
        columns["bytes_per_sent_element"] = tuple(_sent_bytes(formats, each) for each in operators)
    if service.calibrated:
        columns |= calibrated_columns(service, operators, replaced, routed, states)
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
