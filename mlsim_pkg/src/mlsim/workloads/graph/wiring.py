"""What wires layers to a computation graph, and how single layers are wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsim.workloads.graph.nodes import Graph, Node
from mlsim.workloads.layers import (
    Convolution,
    Distances,
    Dropout,
    Linear,
    Lowered,
    Pool,
    ResponseNorm,
    Shape,
)

# What makes probabilities of scores, or their logarithms.
SOFTMAX = ("softmax", "log_softmax")


def sides(shape: Shape) -> tuple[int, ...]:
    """Return a shape as frameworks write it: channels first in a map, tokens first in a sequence.

    >>> sides(Shape(64, 56)), sides(Shape(768, 197, rank=1)), sides(Shape(10, 1))
    ((64, 56, 56), (197, 768), (10,))
    """
    if shape.size == 1:
        return (shape.channels,)
    if shape.rank == 1:
        return (shape.size, shape.channels)
    return (shape.channels, shape.size, shape.size)


class Wiring:
    """The nodes so far. Each wire of a layer returns the name of the node that it puts out."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.notes: list[str] = []

    def add(self, name: str, kind: str, shape: tuple[int, ...], *inputs: str, **told: Any) -> str:
        """Add a node."""
        self.nodes.append(Node(name=name, kind=kind, shape=shape, inputs=inputs, **told))
        return name

    def activation(self, function: str, name: str, source: str) -> str:
        """Add an activation function, if there is one."""
        if not function:
            return source
        shape = next(node.shape for node in reversed(self.nodes) if node.name == source)
        kind = "softmax" if function in SOFTMAX else "activation"
        return self.add(f"{name}_{function}", kind, shape, source, function=function)

    def graph(self) -> Graph:
        """Return all nodes."""
        return Graph(tuple(self.nodes), tuple(self.notes))


def wire_leaf(wiring: Wiring, lowered: Lowered, source: str, shortcut: str = "") -> str:
    """Wire a layer that was lowered by itself; `shortcut` is added to what it puts out."""
    found: str = LEAVES[type(lowered.layer)](wiring, lowered, source, shortcut)
    return found


def _convolution(wiring: Wiring, lowered: Lowered, source: str, shortcut: str) -> str:
    layer, (operator,) = lowered.layer, lowered.operators
    assert isinstance(layer, Convolution)
    name, out = layer.name, sides(lowered.output)
    width = layer.out_channels
    weights = operator.parameters - width * (layer.bias + 2 * layer.batch_norm)
    last = wiring.add(
        name,
        "convolution",
        out,
        source,
        weights=weights,
        biases=layer.bias * width,
        multiply_adds=operator.multiply_adds,
        window=weights // width,
        outputs=operator.outputs,
    )
    if layer.batch_norm:
        told = {"weights": width, "biases": width, "buffers": 2 * width}
        last = wiring.add(f"{name}_bn", "batch norm", out, last, **told)
    if layer.adds_residual:
        last = wiring.add(f"{name}_add", "add", out, last, shortcut)
    return wiring.activation(layer.activation, name, last)


def _linear(wiring: Wiring, lowered: Lowered, source: str, _: str) -> str:
    layer, (operator,) = lowered.layer, lowered.operators
    assert isinstance(layer, Linear)
    biases = layer.bias * layer.out_features
    last = wiring.add(
        layer.name,
        "linear",
        sides(lowered.output),
        source,
        weights=operator.parameters - biases,
        biases=biases,
        multiply_adds=operator.multiply_adds,
        window=operator.activations_read,
        outputs=operator.outputs,
    )
    return wiring.activation(layer.activation, layer.name, last)


def _pool(wiring: Wiring, lowered: Lowered, source: str, _: str) -> str:
    layer, shape = lowered.layer, lowered.input
    assert isinstance(layer, Pool)
    assert shape is not None
    whole = not layer.kernel
    function = "sum" if layer.trained else "mean" if whole or layer.mean else "max"
    last = wiring.add(
        layer.name,
        "pooling",
        sides(lowered.output),
        source,
        function=function,
        weights=layer.trained * shape.channels,
        biases=layer.trained * shape.channels,
        window=shape.places if whole else layer.kernel**shape.rank,
    )
    return wiring.activation(layer.activation, layer.name, last)


def _dropout(wiring: Wiring, lowered: Lowered, source: str, _: str) -> str:
    layer = lowered.layer
    assert isinstance(layer, Dropout)
    function = "maps" if layer.maps else ""
    return wiring.add(layer.name, "dropout", sides(lowered.output), source, function=function)


def _response_norm(wiring: Wiring, lowered: Lowered, source: str, _: str) -> str:
    (operator,) = lowered.operators
    return wiring.add(operator.name, "response norm", sides(lowered.output), source)


def _distances(wiring: Wiring, lowered: Lowered, source: str, _: str) -> str:
    (operator,) = lowered.operators
    return wiring.add(
        operator.name,
        "distances",
        sides(lowered.output),
        source,
        weights=operator.parameters,
        multiply_adds=operator.multiply_adds,
        window=operator.activations_read,
    )


LEAVES: dict[type[Any], Callable[[Wiring, Lowered, str, str], str]] = {
    Convolution: _convolution,
    Linear: _linear,
    Pool: _pool,
    Dropout: _dropout,
    ResponseNorm: _response_norm,
    Distances: _distances,
}
