"""From the architecture of a network to its computation graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlsim.workloads.graph import tokens
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.graph.wiring import LEAVES, Wiring, sides, wire_leaf
from mlsim.workloads.layers import Layer, Shape
from mlsim.workloads.operators import Operator
from mlsim.workloads.stages import BasicStage, BottleneckStage, InvertedStage
from mlsim.workloads.tokens import TokenEmbedding

if TYPE_CHECKING:
    from mlsim.workloads.model import Network

INPUT = "input"
# What operators are called, and nodes.
_KINDS = {"projection": "linear", "normalisation": "response norm"}


def graph_of(network: Network) -> Graph:
    """Return the computation graph of a network, for one sample.

    >>> from mlsim import Models
    >>> [node.name for node in graph_of(Models.LeNet5_Variant)][:4]
    ['input', 'conv1', 'conv1_relu', 'pool1']
    """
    wiring = Wiring()
    shape = network.input
    words = 8 * isinstance(network.layers[0], TokenEmbedding)
    source = wiring.add(INPUT, "input", sides(shape), element_bytes=words)
    for layer in network.layers:
        source, shape = _wire(wiring, layer, shape, source)
    if network.modules:
        wiring.nodes = [
            replace(node, functional=node.name not in network.modules) for node in wiring.nodes
        ]
    return wiring.graph()


def _wire(wiring: Wiring, layer: Layer, shape: Shape, source: str) -> tuple[str, Shape]:
    """Wire one layer or stage; return its last node and the shape that it puts out."""
    lowered = layer.lower(shape)
    if isinstance(layer, (BottleneckStage, BasicStage, InvertedStage)):
        return _residual_stage(wiring, layer, shape, source), lowered.output
    if type(layer) in LEAVES:
        return wire_leaf(wiring, lowered, source), lowered.output
    wire = tokens.WIRES.get(type(layer), _whole)
    return wire(wiring, layer, shape, source), lowered.output


def _residual_stage(
    wiring: Wiring, stage: BottleneckStage | BasicStage | InvertedStage, shape: Shape, source: str
) -> str:
    """Wire residual blocks: a chain beside a shortcut, which may be a convolution of its own."""
    for number in range(1, stage.blocks + 1):
        parts = list(stage.block(shape, number))
        block = shortcut = wide = source
        for part in parts:
            (operator,) = part.operators
            if part.layer is None:  # channels weighed by a function of their means
                source = _scale(wiring, operator, part.output, wide, source)
            elif operator.name.endswith(".down"):
                shortcut = wire_leaf(wiring, part, block)
            else:
                source = wire_leaf(wiring, part, source, shortcut)
            if operator.name.endswith(".depthwise"):
                wide = source
        shape = parts[-1].output
    return source


def _scale(wiring: Wiring, operator: Operator, shape: Shape, wide: str, weights: str) -> str:
    return wiring.add(operator.name, "multiply", sides(shape), wide, weights)


def _whole(wiring: Wiring, layer: Layer, shape: Shape, source: str) -> str:
    """Wire a layer of which only operators are known, one after another."""
    wiring.notes.append(
        f"{layer.name}: its operators are counted as they run, one after another; "
        "what training keeps of them is not known."
    )
    for operator in layer.lower(shape).operators:
        source = wiring.add(
            operator.name,
            _KINDS.get(operator.kind, operator.kind),
            (operator.activations_written,),
            source,
            function=operator.kind,
            weights=operator.parameters,
            table=operator.table_parameters,
            multiply_adds=operator.multiply_adds,
            outputs=operator.outputs,
            read=operator.activations_read,
        )
    return source
