"""From the architecture of a network to its computation graph: how each layer is wired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mlsim.workloads import model
from mlsim.workloads.graph import Graph, Node
from mlsim.workloads.stages import ResidualStage
from mlsim.workloads.tokens import (
    DecoderStage,
    EncoderStage,
    FirstToken,
    PatchEmbedding,
    Positions,
    TokenEmbedding,
    TokenLinear,
)

# What makes probabilities of scores, or their logarithms.
SOFTMAX = ("softmax", "log_softmax")


def sides(shape: model.Shape) -> tuple[int, ...]:
    """Return a shape as frameworks write it: channels first in a map, tokens first in a sequence.

    >>> from mlsim.workloads.model import Shape
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
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, name: str, kind: str, shape: tuple[int, ...], *inputs: str, **fields: Any) -> str:
        """Add a node."""
        self.nodes.append(Node(name=name, kind=kind, shape=shape, inputs=inputs, **fields))
        self.shapes[name] = shape
        return name

    def activation(self, function: str, name: str, source: str) -> str:
        """Add an activation function, if there is one."""
        if not function:
            return source
        kind, shape = "softmax" if function in SOFTMAX else "activation", self.shapes[source]
        return self.add(f"{name}_{function}", kind, shape, source, function=function)

    def graph(self) -> Graph:
        """Return all nodes."""
        return Graph(tuple(self.nodes), tuple(self.notes))


def wire_leaf(wiring: Wiring, lowered: model.Lowered, source: str, shortcut: str = "") -> str:
    """Wire a layer that was lowered by itself; `shortcut` is added to what it puts out."""
    layer, out = lowered.layer, sides(lowered.output)
    assert layer is not None
    name = last = wiring.add(layer.name, LEAVES[type(layer)], out, source, **_counts(lowered))
    if isinstance(layer, model.Convolution):
        if layer.batch_norm:
            width = layer.out_channels
            fields = {"weights": width, "biases": width, "buffers": 2 * width}
            last = wiring.add(f"{name}_bn", "batch norm", out, last, **fields)
        if layer.adds_residual:
            last = wiring.add(f"{name}_add", "add", out, last, shortcut)
    return wiring.activation(getattr(layer, "activation", ""), name, last)


def _counts(lowered: model.Lowered) -> dict[str, Any]:
    """Return what the node of a layer counts."""
    layer, shape = lowered.layer, lowered.input
    if isinstance(layer, model.Dropout):
        return {"function": "maps" if layer.maps else ""}
    if isinstance(layer, model.Pool) and shape is not None:
        whole, learned = not layer.kernel, layer.trained * shape.channels
        return {
            "function": "sum" if layer.trained else "mean" if whole or layer.mean else "max",
            "weights": learned,
            "biases": learned,
            "window": shape.places if whole else layer.kernel**shape.rank,
        }
    if not isinstance(layer, (model.Convolution, model.Linear, model.Distances)):
        return {}
    (operator,), columns, biases, norms = lowered.operators, 0, 0, 0
    if isinstance(layer, model.Distances):
        columns = layer.classes
    else:
        columns = layer.out_features if isinstance(layer, model.Linear) else layer.out_channels
        biases = layer.bias * columns
    if isinstance(layer, model.Convolution):
        norms = 2 * layer.batch_norm * columns
    weights = operator.parameters - biases - norms
    return {
        "weights": weights,
        "biases": biases,
        "multiply_adds": operator.multiply_adds,
        "window": weights // columns,
        "outputs": operator.outputs,
    }


LEAVES: dict[type[Any], str] = {
    model.Convolution: "convolution",
    model.Linear: "linear",
    model.Pool: "pooling",
    model.Dropout: "dropout",
    model.ResponseNorm: "response norm",
    model.Distances: "distances",
}


def _patches(wiring: Wiring, layer: PatchEmbedding, shape: model.Shape, source: str) -> str:
    lowered = layer.lower(shape)
    (operator,) = lowered.operators
    tokens, width = lowered.output, layer.width
    weights = layer.patch**2 * shape.channels * width
    patches = tokens.size - layer.class_token
    last = wiring.add(
        layer.name,
        "convolution",
        (patches, width),
        source,
        weights=weights,
        biases=width,
        multiply_adds=operator.multiply_adds,
        window=layer.patch**2 * shape.channels,
        outputs=width,
    )
    out = sides(tokens)
    if layer.class_token:
        fields: dict[str, Any] = {"weights": width, "function": "learned token"}
        last = wiring.add(f"{layer.name}_class", "concatenation", out, last, **fields)
    return wiring.add(f"{layer.name}_positions", "positions", out, last, weights=tokens.elements)


def _look_up(wiring: Wiring, operator: model.Operator, output: model.Shape, *inputs: str) -> str:
    return wiring.add(
        operator.name,
        "embedding",
        sides(output),
        *inputs,
        table=operator.table_parameters,
        read=operator.activations_read,
    )


def _product(
    wiring: Wiring, operator: model.Operator, tokens: int, source: str, columns: int = 0
) -> str:
    """Add a matrix that each token is multiplied with; `columns`, where not all are put out."""
    weights = operator.multiply_adds // tokens
    columns = columns or operator.outputs
    return wiring.add(
        operator.name,
        "linear",
        (tokens, columns) if tokens > 1 else (columns,),
        source,
        weights=weights,
        biases=operator.parameters - weights,
        multiply_adds=operator.multiply_adds,
        window=weights // columns,
        outputs=operator.outputs,
    )


class _Blocks:
    """Blocks of a transformer: what each part reads follows from its name."""

    def __init__(
        self, wiring: Wiring, stage: EncoderStage | DecoderStage, source: str, memory: str
    ) -> None:
        self.wiring, self.stage, self.memory = wiring, stage, memory
        # The stream that blocks add to, and the last node.
        self.stream = self.last = source
        self.queries = ""

    def wire(self, parts: Iterator[model.Lowered], tokens: int) -> str:
        """Wire all parts; return the last node."""
        for part in parts:
            (operator,) = part.operators
            self.last = self._part(operator, part.output, tokens)
        return self.last

    def _part(self, operator: model.Operator, output: model.Shape, tokens: int) -> str:
        add, name = self.wiring.add, operator.name
        end = name.rpartition(".")[2]
        if operator.kind == "embedding":
            self.stream = _look_up(self.wiring, operator, output, self.last)
            return self.stream
        if operator.kind == "elementwise":
            fields = {"weights": operator.parameters, "table": operator.table_parameters}
            self.stream = add(name, "positions", sides(output), self.last, **fields)
            return self.stream
        if operator.kind == "norm":
            fields = self._norm(operator.parameters, output.channels)
            return add(name, "norm", sides(output), self.stream, **fields)
        if operator.kind == "attention":
            return self._attention(operator, output)
        if end == "queries":
            self.queries = _product(self.wiring, operator, output.size, self.last)
            return self.queries
        if end == "keys_values":
            return _product(self.wiring, operator, output.size, self.memory)
        if end == "up":
            return self._up(operator, output, tokens)
        last = _product(self.wiring, operator, tokens, self.last)
        if end in ("out", "down"):
            last = self.stream = add(f"{name}_add", "add", sides(output), last, self.stream)
        return last

    def _norm(self, parameters: int, width: int) -> dict[str, Any]:
        return {"weights": width, "biases": parameters - width, "function": self.stage.norm}

    def _attention(self, operator: model.Operator, output: model.Shape) -> str:
        causal = operator.name.endswith(".self.attention") and bool(self.memory)
        hidden = 0
        if causal:  # of n (n + 1) / 2 pairs, (n - 1) / (n + 1) more
            hidden = operator.multiply_adds * (output.size - 1) // (output.size + 1)
        inputs = (self.queries, self.last) if self.queries else (self.last,)
        self.queries = ""
        return self.wiring.add(
            operator.name,
            "attention",
            sides(output),
            *inputs,
            function="causal" if causal else "",
            weights=operator.parameters,
            multiply_adds=operator.multiply_adds,
            masked_multiply_adds=hidden,
            # A number for each query and head, in 32 bits: what its scores add up to.
            kept_bytes=4 * self.stage.heads * output.size,
        )

    def _up(self, operator: model.Operator, output: model.Shape, tokens: int) -> str:
        columns = (1 + self.stage.gated) * operator.outputs
        last = _product(self.wiring, operator, tokens, self.last, columns)
        function = self.stage.activation
        name = f"{operator.name}_{function}"
        fields = {"function": f"{function}, gated" if self.stage.gated else function}
        return self.wiring.add(name, "activation", sides(output), last, **fields)


INPUT = "input"
# What operators are called, and nodes.
_KINDS = {"projection": "linear", "normalisation": "response norm"}


def graph_of(network: model.Network) -> Graph:
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


def _wire(
    wiring: Wiring, layer: model.Layer, shape: model.Shape, source: str
) -> tuple[str, model.Shape]:
    """Wire one layer or stage; return its last node and the shape that it puts out."""
    lowered = layer.lower(shape)
    if isinstance(layer, ResidualStage):
        return _residual_stage(wiring, layer, shape, source), lowered.output
    if type(layer) in LEAVES:
        return wire_leaf(wiring, lowered, source), lowered.output
    return _wire_tokens(wiring, layer, shape, lowered, source), lowered.output


def _wire_tokens(
    wiring: Wiring, layer: model.Layer, shape: model.Shape, lowered: model.Lowered, source: str
) -> str:
    """Wire what works on tokens; return its last node."""
    if isinstance(layer, PatchEmbedding):
        return _patches(wiring, layer, shape, source)
    if isinstance(layer, TokenEmbedding):
        return _look_up(wiring, lowered.operators[0], lowered.output, source)
    if isinstance(layer, Positions):
        return wiring.add(layer.name, "positions", sides(shape), source, weights=shape.elements)
    if isinstance(layer, FirstToken):
        fields = {"function": "first token"}
        return wiring.add(layer.name, "reshape", (shape.channels,), source, **fields)
    if isinstance(layer, TokenLinear):
        return _product(wiring, lowered.operators[0], shape.size, source)
    if isinstance(layer, EncoderStage):
        return _Blocks(wiring, layer, source, memory="").wire(layer.parts(shape), shape.size)
    if isinstance(layer, DecoderStage):
        words = wiring.add(f"{layer.name}.words", "input", (layer.tokens,), element_bytes=8)
        return _Blocks(wiring, layer, words, memory=source).wire(layer.parts(shape), layer.tokens)
    return _whole(wiring, layer, lowered, source)


def _residual_stage(wiring: Wiring, stage: ResidualStage, shape: model.Shape, source: str) -> str:
    """Wire residual blocks: a chain beside a shortcut, which may be a convolution of its own."""
    for number in range(1, stage.blocks + 1):
        parts = list(stage.block(shape, number))
        block = shortcut = wide = source
        for part in parts:
            (operator,) = part.operators
            if part.layer is None:  # channels weighed by a function of their means
                source = wiring.add(operator.name, "multiply", sides(part.output), wide, source)
            elif operator.name.endswith(".down"):
                shortcut = wire_leaf(wiring, part, block)
            else:
                source = wire_leaf(wiring, part, source, shortcut)
            if operator.name.endswith(".depthwise"):
                wide = source
        shape = parts[-1].output
    return source


def _whole(wiring: Wiring, layer: model.Layer, lowered: model.Lowered, source: str) -> str:
    """Wire a layer of which only operators are known, one after another."""
    wiring.notes.append(
        f"{layer.name}: its operators are counted as they run, one after another; "
        "what training keeps of them is not known."
    )
    for operator in lowered.operators:
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
