"""The computation graph of layers that work on sequences of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlsim.workloads.graph.wiring import Wiring, sides
from mlsim.workloads.layers import Lowered, Shape
from mlsim.workloads.operators import Operator
from mlsim.workloads.tokens import (
    FirstToken,
    PatchEmbedding,
    Positions,
    TokenEmbedding,
    TokenLinear,
)
from mlsim.workloads.transformer_stages import DecoderStage, EncoderStage


def _patches(wiring: Wiring, layer: PatchEmbedding, shape: Shape, source: str) -> str:
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
        told: dict[str, Any] = {"weights": width, "function": "learned token"}
        last = wiring.add(f"{layer.name}_class", "concatenation", out, last, **told)
    return wiring.add(f"{layer.name}_positions", "positions", out, last, weights=tokens.elements)


def _embedding(wiring: Wiring, layer: TokenEmbedding, shape: Shape, source: str) -> str:
    (operator,) = layer.lower(shape).operators
    return _look_up(wiring, operator, Shape(layer.width, shape.size, 1), source)


def _look_up(wiring: Wiring, operator: Operator, output: Shape, *inputs: str) -> str:
    return wiring.add(
        operator.name,
        "embedding",
        sides(output),
        *inputs,
        table=operator.table_parameters,
        read=operator.activations_read,
    )


def _positions(wiring: Wiring, layer: Positions, shape: Shape, source: str) -> str:
    return wiring.add(layer.name, "positions", sides(shape), source, weights=shape.elements)


def _first(wiring: Wiring, layer: FirstToken, shape: Shape, source: str) -> str:
    return wiring.add(layer.name, "reshape", (shape.channels,), source, function="first token")


def _projection(wiring: Wiring, layer: TokenLinear, shape: Shape, source: str) -> str:
    (operator,) = layer.lower(shape).operators
    return _product(wiring, operator, shape.size, source)


def _product(wiring: Wiring, operator: Operator, tokens: int, source: str, columns: int = 0) -> str:
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


def _encoder(wiring: Wiring, stage: EncoderStage, shape: Shape, source: str) -> str:
    return _Blocks(wiring, stage, source, memory="").wire(stage.parts(shape), shape.size)


def _decoder(wiring: Wiring, stage: DecoderStage, shape: Shape, source: str) -> str:
    words = wiring.add(f"{stage.name}.words", "input", (stage.tokens,), element_bytes=8)
    return _Blocks(wiring, stage, words, memory=source).wire(stage.parts(shape), stage.tokens)


class _Blocks:
    """Blocks of a transformer: what each part reads follows from its name."""

    def __init__(
        self, wiring: Wiring, stage: EncoderStage | DecoderStage, source: str, memory: str
    ) -> None:
        self.wiring, self.stage, self.memory = wiring, stage, memory
        # The stream that blocks add to, and the last node.
        self.stream = self.last = source
        self.queries = ""

    def wire(self, parts: Iterator[Lowered], tokens: int) -> str:
        """Wire all parts; return the last node."""
        for part in parts:
            (operator,) = part.operators
            self.last = self._part(operator, part.output, tokens)
        return self.last

    def _part(self, operator: Operator, output: Shape, tokens: int) -> str:
        add, name = self.wiring.add, operator.name
        end = name.rpartition(".")[2]
        if operator.kind == "embedding":
            self.stream = _look_up(self.wiring, operator, output, self.last)
            return self.stream
        if operator.kind == "elementwise":
            told = {"weights": operator.parameters, "table": operator.table_parameters}
            self.stream = add(name, "positions", sides(output), self.last, **told)
            return self.stream
        if operator.kind == "norm":
            told = self._norm(operator.parameters, output.channels)
            return add(name, "norm", sides(output), self.stream, **told)
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

    def _attention(self, operator: Operator, output: Shape) -> str:
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

    def _up(self, operator: Operator, output: Shape, tokens: int) -> str:
        columns = (1 + self.stage.gated) * operator.outputs
        last = _product(self.wiring, operator, tokens, self.last, columns)
        function = self.stage.activation
        name = f"{operator.name}_{function}"
        told = {"function": f"{function}, gated" if self.stage.gated else function}
        return self.wiring.add(name, "activation", sides(output), last, **told)


WIRES: dict[type[Any], Callable[..., str]] = {
    PatchEmbedding: _patches,
    TokenEmbedding: _embedding,
    Positions: _positions,
    FirstToken: _first,
    TokenLinear: _projection,
    EncoderStage: _encoder,
    DecoderStage: _decoder,
}
