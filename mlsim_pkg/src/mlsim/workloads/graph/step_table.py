"""The kernels of a training step of a network as columns, and what they hold in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.graph.passes import both_ways
from mlsim.workloads.graph.training import TrainingStep
from mlsim.workloads.model import Network
from mlsim.workloads.operators import Operator, OperatorTable

# A mean and a variance are kept in 32 bits whatever the format of the weights.
_STATISTIC_BYTES = 4
_COLUMNS = ("multiply_adds", "parameters", "activations_read", "activations_written", "outputs")
_PASSES = ("forward_repeats", "backward_repeats", "all_repeats")


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that a step holds of gradients, and of activations with their errors, at its peak."""

    gradients: float
    activations: float


@lru_cache(maxsize=64)
def step_table(graph: Graph) -> OperatorTable[Operator]:
    """Return the kernels of a micro-batch, equal ones in one row, counted for one sample.

    Columns beside their counts say how often a row runs forward, and on the way back.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> table = step_table(graph_of(Models.ResNet18))
    >>> sum(table.columns["forward_repeats"]), len(table) < sum(table.columns["all_repeats"])
    (43.0, True)
    """
    rows: dict[Operator, Operator] = {}
    counts: dict[Operator, list[float]] = {}
    for way, operators in enumerate(both_ways(graph)):
        for operator in operators:
            # What is alive beside it is no count of its own.
            same = replace(operator, name="", activations_live=0, repeats=1)
            rows.setdefault(same, operator)
            counts.setdefault(same, [0.0, 0.0])[way] += operator.repeats
    merged = tuple(replace(rows[same], repeats=int(sum(count))) for same, count in counts.items())
    columns = [(forward, back, forward + back) for forward, back in counts.values()]
    return OperatorTable(
        merged, _COLUMNS, dict(zip(_PASSES, zip(*columns, strict=True), strict=True))
    )


@lru_cache(maxsize=256)
def held(
    graph: Graph, batch_size: int, element_bytes: float, gradient_bytes: float, *, whole: bool
) -> Held:
    """Return what a step holds at its peak, beside weights and states.

    Parameters
    ----------
    graph
        The network, described closely enough: without notes.
    batch_size, element_bytes, gradient_bytes
        Samples of a micro-batch; bytes of each activation and of each gradient.
    whole
        Whether gradients of all weights are there all the time: as where they are added up
        over micro-batches, or lie in buckets to be sent.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> lenet = graph_of(Models.LeNet5_Variant)
    >>> held(lenet, 1, 4.0, 4.0, whole=True).gradients
    165128.0
    """
    step = TrainingStep(
        graph, batch_size=batch_size, element_bytes=element_bytes, gradient_bytes=gradient_bytes
    )
    moments = [
        Held(
            gradient_bytes * graph.parameters if whole else moment.held["gradients"],
            moment.held["outputs"] + moment.held["errors"],
        )
        for moment in step.moments
    ]
    return max(moments, key=lambda each: each.gradients + each.activations)


def read_parameters(network: Network) -> float:
    """Return the parameters that every step reads: all but tables, of which it reads rows.

    >>> from mlsim import Models
    >>> read_parameters(Models.ResNet50)
    25557032.0
    """
    return float(network.parameter_count - network.operators.table_parameters)


def statistics_bytes(graph: Graph) -> float:
    """Return the bytes of the running statistics of all batch norms.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> statistics_bytes(graph_of(Models.ResNet50))
    212480.0
    """
    return float(_STATISTIC_BYTES * sum(node.buffers for node in graph))
