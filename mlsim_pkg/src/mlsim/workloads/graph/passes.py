"""The kernels of a training step: forward, the way back of each, and the update of the weights.

The way back of a product is two products of the same size: one for the error of what it read,
one for the gradient of its weights. Every other kernel reads the error of what it put out, what
was kept, and writes the error of what it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.workloads.graph.counting import backward_multiply_adds
from mlsim.workloads.graph.fuse import BATCH_NORM, Fused, fused
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.graph.training import keeps_input, keeps_output, learning
from mlsim.workloads.layers import Lowered, Shape
from mlsim.workloads.model import Model, Network
from mlsim.workloads.operators import Operator

BACKWARD, UPDATE = "backward", "update"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Operators that are known as they are, as a layer of a network."""

    name: str
    operators: tuple[Operator, ...]

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Return the operators."""
        return Lowered(self.operators, shape)


def network_of(
    graph: Graph, *, like: Model | None = None, name: str = "", samples: int = 0
) -> Network:
    """Return a network whose operators are those of a graph, fused.

    With `samples` its parameters are those that so many samples read, to be timed: of
    experts, those that some token is expected to choose.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> network_of(graph_of(Models.ResNet18), name="mine").parameter_count
    11689512
    """
    kernels = tuple(_for_samples(each, samples) for each in fused(graph))
    return _network(kernels, like, name)


def _for_samples(kernel: Fused, samples: int) -> Operator:
    """Return an operator with the parameters that so many samples read; all of them for 0."""
    if not samples or not any(node.chosen for node in kernel.nodes):
        return kernel.operator
    read = sum(node.parameters_read(samples) for node in kernel.nodes)
    return replace(kernel.operator, parameters=round(read))


def training_network(graph: Graph, states: int, *, like: Model | None = None) -> Network:
    """Return the kernels of one training step as a network, to be timed.

    Its "parameters" are what each kernel moves of weights, gradients and the optimizer's
    states, and not what the network holds.
    """
    forward, back = both_ways(graph)
    return _network((*forward, *back, _update(graph.parameters, states)), like, "")


def both_ways(graph: Graph) -> tuple[tuple[Operator, ...], tuple[Operator, ...]]:
    """Return the kernels of a training step forward, and those of the way back, in order.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> [len(way) for way in both_ways(graph_of(Models.LeNet5_Variant))]
    [7, 7]
    """
    kernels, learns = fused(graph, training=True), learning(graph)
    back = (_backward(graph, each, learns) for each in reversed(kernels))
    return tuple(each.operator for each in kernels), tuple(each for each in back if each)


def _network(operators: tuple[Operator, ...], like: Model | None, name: str) -> Network:
    name = name or (like.name if like else "network")
    return Network(
        key=like.key if like else name,
        name=name,
        architecture=like.architecture if like else "computation graph",
        source=like.source if like else "",
        figures=like.figures if like else {},
        input=Shape(1, 1),
        layers=(Recorded("graph", operators),),
    )


def _backward(graph: Graph, kernel: Fused, learns: frozenset[str]) -> Operator | None:
    """Return the way back of a kernel, both products of it in one row; None if it has none."""
    operator, nodes = kernel.operator, kernel.nodes
    if not any(node.name in learns for node in nodes):
        return None
    multiply_adds = sum(backward_multiply_adds(graph, node, learns) for node in nodes)
    kept = sum(_kept(graph, kernel))
    errors = sum(count for name, count in graph.taken(nodes).items() if name in learns)
    products = 2 if operator.multiply_adds and errors else 1
    moved = products * operator.activations_written + kept + errors
    if kernel.anchor.kind == BATCH_NORM:
        # First the sums over the whole batch of errors and of errors times inputs, then the rest.
        moved += operator.activations_written + kept
    return Operator(
        name=f"{operator.name}: {BACKWARD}",
        kind=operator.kind,
        multiply_adds=multiply_adds,
        # Weights are read for the error of the input, and their gradient is written.
        parameters=operator.parameters * (2 if errors else 1) + operator.table_parameters,
        # Of what is moved, so much is written that its rows are those of the way forward.
        activations_read=moved - operator.activations_written,
        activations_written=operator.activations_written,
        activations_live=operator.activations_live,
        # A first layer's way back writes no map: the gradient of its weights counts as full.
        outputs=operator.outputs if errors else 0,
    )


def _kept(graph: Graph, kernel: Fused) -> Iterator[int]:
    """Yield the elements that the way back reads again."""
    own = {node.name for node in kernel.nodes}
    for node in kernel.nodes:
        if keeps_output(node):
            yield node.elements
        if keeps_input(node):
            yield sum(
                count
                for name, count in graph.taken((node,)).items()
                if name not in own or node.weights
            )


def _update(parameters: int, states: int) -> Operator:
    """Return what reads weights, gradients and states, and writes weights and states."""
    moved = parameters * (3 + 2 * states)
    return Operator(UPDATE, "elementwise", 0, moved, 0, 0, 0)
