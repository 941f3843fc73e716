"""A service on several devices: which layouts there can be, and where its exchanges lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import links, serving
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.solvers.formats import kept_bytes
from mlsim.solvers.question import Origin, recorded
from mlsim.systems import Cluster, Placement, System
from mlsim.systems.system import BETWEEN, Spread, check_exchange, spread
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism, StepOperator

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service


RING = "keys and values round the ring"
_EXPERTS, _STAGES = "tokens to their experts and back", "stage to stage"

_LARGER: dict[type, str] = {
    System: "a larger system or a cluster: one of the zoo, a .toml file, or "
    "Cluster('mine', node, nodes=..., link_bandwidth='400 Gb/s')",
    Cluster: "a larger cluster",
}


def check_layout(
    parallelism: Parallelism, model: Transformer, hardware: Device | System | Cluster
) -> None:
    """Refuse sizes that don't divide the model, or need more devices than there are.

    Raises
    ------
    InvalidValueError, WrongKindError
        Saying what would do.
    """
    sizes = parallelism.sizes
    model.operators(parallelism)  # refuses what does not divide the model
    check_context_parallel(parallelism, model)
    there = 1 if isinstance(hardware, Device) else hardware.devices
    if parallelism.devices > there:
        del sizes["expert_parallel"]  # within the others
        product = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        have = (
            f"{hardware.name} has {there:,}. Use fewer, or {_LARGER[type(hardware)]}."
            if not isinstance(hardware, Device)
            else f"{hardware.name} is one device. Give a system of them: one of the zoo, a "
            f".toml file, or System('my node', device, devices={parallelism.devices}, "
            "link_bandwidth='450 GB/s')."
        )
        raise InvalidValueError(f"{product} needs {parallelism.devices} devices; {have}")
    if isinstance(hardware, Cluster):
        check_nodes(hardware, parallelism)
    check_exchange(hardware, parallelism.expert, parallelism.tensor)


def check_nodes(cluster: Cluster, parallelism: Parallelism) -> None:
    """Refuse a layout whose groups would have to be torn to find room.

    Raises
    ------
    InvalidValueError
        If it takes more nodes than there are.
    """
    each = cluster.node.devices
    lies = spread(parallelism, each)
    if lies.nodes > cluster.nodes:
        raise InvalidValueError(
            f"{parallelism} on nodes of {each} takes {lies.nodes:,} nodes, since what fits in a "
            f"node is not torn; {cluster.name} has {cluster.nodes:,}. Choose sizes that divide "
            f"{each}, such as tensor_parallel={math.gcd(parallelism.tensor, each)}, or use fewer "
            "devices."
        )


def check_context_parallel(parallelism: Parallelism, model: Transformer) -> None:
    """Refuse to share the sequences of a model where that is not modeled.

    Raises
    ------
    WrongKindError
        If the model is an encoder, keeps states, or has layers that share a cache.
    """
    if parallelism.context == 1:
        return
    why = ""
    if not model.decoder:
        why = "is an encoder, which keeps no cache"
    elif model.state_bytes_per_sequence:
        why = "has layers with a state, which goes through a sequence in order"
    elif model.shares_cache:
        why = "has layers that read the cache of an earlier layer"
    if why:
        raise WrongKindError(
            f"context_parallel = {parallelism.context}: {model.name} {why}. How devices would "
            "share its sequences is not modeled: use tensor_parallel or data_parallel."
        )


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
    whole = service.model.operators(service.parallelism)
    rings = iter([each for each in whole if each.kind == "attention"])
    passed = [next(rings) if each.name == RING else None for each in operators]
    return {
        "ring_cached_elements": tuple(
            float(each.cached_elements) if each else 0.0 for each in passed
        ),
        "ring_query_elements": tuple(
            float(each.token_elements) if each else 0.0 for each in passed
        ),
        "routed_share": tuple(
            float(each.kind == "experts" or each.name.startswith(_EXPERTS)) for each in operators
        ),
    }


def link_columns(
    service: Service, operators: tuple[StepOperator, ...], replaced: tuple[str, ...]
) -> dict[str, tuple[float, ...]]:
    """Return what an exchange sends for each element, and at which rate, but what is replaced."""
    system, sending = service.system, [each for each in operators if each.link_group]
    columns = {}
    if system and sending and "link_bandwidth" not in replaced:
        columns["link_bandwidth"] = tuple(
            _link_rate(system, each if each.link_group else sending[0]) for each in operators
        )
    if sending:
        # Sums are sent in 16 bits, tokens as they are read.
        kept = kept_bytes(service.formats.activations)
        read = service.formats.activations.bytes
        token = float(serving.exchanged_bytes_per_element(read, kept))
        columns["bytes_per_sent_element"] = tuple(
            token if each.name.startswith(_EXPERTS) else kept for each in operators
        )
    return columns
