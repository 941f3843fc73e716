"""Where the groups of a served model lie in the nodes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mlsim.systems.cluster import Placement, placement
from mlsim.workloads.steps import Parallelism


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the groups of a layout lie, and how many nodes that takes.

    Attributes
    ----------
    tensor, context
        The devices that share each matrix; those that share each sequence.
    copies
        The copies of the model that share one set of experts.
    crossings
        Steps from one stage of a pipeline to the next that leave a node.
    nodes
        Nodes that the whole layout takes.
    """

    tensor: Placement
    context: Placement
    copies: Placement
    crossings: int
    nodes: int


@lru_cache(maxsize=1024)
def spread(parallelism: Parallelism, node_devices: int) -> Spread:
    """Tell where the groups of a layout lie, in nodes of so many devices.

    Devices are numbered as vLLM does: those of tensor parallelism are neighbors, then come
    context parallelism, the stages of a pipeline, and copies. What fits in a node
    is not torn, even if devices stay idle for it.

    >>> found = spread(Parallelism(tensor=8, pipeline=4, data=2), 8)
    >>> found.tensor, found.crossings, found.nodes
    (Placement(members=8, groups=1), 3, 8)
    """
    size, stages = parallelism.tensor, parallelism.pipeline
    tensor = placement(size, 1, node_devices)
    context = placement(parallelism.context, size, node_devices)
    stage, stage_nodes = size * parallelism.context, tensor.groups * context.groups
    replica = stage * stages
    copies = placement(parallelism.expert_replicas, replica, node_devices)
    if replica <= node_devices:
        nodes = -(-parallelism.data // (node_devices // replica))
        return Spread(tensor, context, copies, 0, nodes)
    together = 1 if stage_nodes > 1 else max(1, node_devices // stage)
    parts = -(-stages // together)
    return Spread(tensor, context, copies, parts - 1, parallelism.data * parts * stage_nodes)
