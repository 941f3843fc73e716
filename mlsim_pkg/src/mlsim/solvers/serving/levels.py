"""What a service's devices send, by level of links; and what changes where they share sequences.

A model's operators know groups of devices, but not where these lie. Here each exchange
becomes one row for the links inside a node and one for those between nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import links, serving
from mlsim.solvers.formats import Formats, kept_bytes
from mlsim.solvers.question import Origin, recorded
from mlsim.systems import Cluster, Placement, System
from mlsim.systems.link_calibration import ExchangeConstants, exchange_or_roofline
from mlsim.systems.system import Spread, spread
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service

RING = "keys and values round the ring"
_BETWEEN = ", between nodes"
_EXPERTS, _STAGES = "tokens to their experts and back", "stage to stage"

# Of an operator that sends nothing.
NOTHING_SENT = ExchangeConstants(link_fraction=1.0, link_latency=0.0)

# A rule of the vocabulary, and what decides it, where the number is not given.
UNIFORM = "uniform"


def placed(service: Service, operators: tuple[StepOperator, ...]) -> tuple[StepOperator, ...]:
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
    return replace(operator, name=f"{operator.name}{_BETWEEN}", between_nodes=True, **changed)


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


def sent_bytes(formats: Formats, operator: StepOperator) -> float:
    """Return the bytes of an element that is sent: sums in 16 bits, tokens as they are read."""
    kept = kept_bytes(formats.activations)
    if not operator.name.startswith(_EXPERTS):
        return kept
    return float(serving.exchanged_bytes_per_element(formats.activations.bytes, kept))


def link_rate(system: System | Cluster, operator: StepOperator) -> float:
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


def constants(
    system: System | Cluster, operator: StepOperator, *, graph: bool
) -> ExchangeConstants:
    """Return what was measured of an exchange; of one between nodes, what is assumed.

    No exchange between nodes is on record that starts and rates could be made of. So a library's
    exchange inside a node stands for it, at the rate of the link between nodes at most.
    """
    if not isinstance(system, Cluster):
        return exchange_or_roofline(system, operator.link_group, operator.name, graph=graph)
    name = operator.name.removesuffix(_BETWEEN)
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


def columns(service: Service, operators: tuple[StepOperator, ...]) -> dict[str, tuple[float, ...]]:
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
