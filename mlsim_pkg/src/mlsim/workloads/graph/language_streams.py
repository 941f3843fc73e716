"""Residuals that are more than a sum, as nodes: several streams, and a path through few numbers.

A token is then several vectors. Layers work on the first one, which is called the stream
here as elsewhere; the others are what each layer predicts, and corrects.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.equations.transformer import stream_multiply_adds
from mlsim.workloads.graph.fuse import BY_ROW
from mlsim.workloads.graph.language_wiring import TokenWiring
from mlsim.workloads.language import Transformer


@dataclass
class Streams:
    """The vectors of a token that layers don't work on, and what changes them."""

    sequence: TokenWiring
    model: Transformer
    # Nodes that hold the others, and the node that holds what all were predicted to be.
    others: tuple[str, ...] = ()
    predicted: str = ""

    @property
    def count(self) -> int:
        """How many vectors a token is."""
        return self.model.residual_streams

    @property
    def shape(self) -> tuple[int, int, int]:
        """Sides of all of them."""
        return self.count, self.sequence.tokens, self.model.hidden

    def make(self, embedding: str) -> str:
        """Make the others of the embedding, each as long as it is; return the first."""
        length = self._length("streams.made.length", embedding)
        made = [
            self._turned(f"streams.made.{number}", embedding, length)
            for number in range(1, self.count)
        ]
        if made:
            both = self.sequence.add(
                "streams.made.stacked", "concatenation", self.shape, embedding, *made
            )
            self.others = (self._others("streams.made.others", both),)
            return self._first("streams.made.first", both)
        return embedding

    def join(self, stream: str) -> str:
        """Bring the others back, and return the mean of all."""
        wide, found = self.model.hidden, []
        length = self._length("streams.joined.length", stream)
        for number in range(1, self.count):
            name = f"streams.joined.part_{number}"
            one = self.sequence.part(name, self.others[0], wide, f"stream {number}")
            found.append(self._turned(f"streams.joined.{number}", one, length))
        if not found:
            return stream
        both = self.sequence.add(
            "streams.joined.stacked", "concatenation", self.shape, stream, *found
        )
        shape = (self.sequence.tokens, wide)
        return self.sequence.add("streams.mean", "pooling", shape, both, function="mean")

    def _length(self, name: str, first: str) -> str:
        """Add what finds how long the first stream is, of each token."""
        shape = (self.sequence.tokens, 1)
        return self.sequence.add(name, "elementwise", shape, first, function=BY_ROW)

    def _turned(self, name: str, source: str, length: str) -> str:
        """Add a matrix, and what makes its result as long as the first stream."""
        sequence, wide = self.sequence, self.model.hidden
        made = sequence.linear(name, source, wide, wide)
        shape = (sequence.tokens, wide)
        told = {"function": BY_ROW}
        return sequence.add(f"{name}.length", "elementwise", shape, made, length, **told)

    def predict(self, name: str, stream: str) -> str:
        """Predict all streams; return the first, on which the layer works."""
        weights = self._weights(f"{name}.predict", stream, self.count**2, learned=True)
        each = int(stream_multiply_adds(self.model.hidden, self.count))
        self.predicted = self.sequence.add(
            f"{name}.predict.predicted",
            "product",
            self.shape,
            stream,
            *self.others,
            weights,
            function="weighted sum",
            multiply_adds=self.sequence.tokens * each,
            window=self.count,
            outputs=self.count,
        )
        return self._first(f"{name}.predict.first", self.predicted)

    def correct(self, name: str, stream: str) -> tuple[str, str]:
        """Correct the predictions by the layer's output; return the first stream, and scaled."""
        weights = self._weights(f"{name}.correct", stream, self.count, learned=False)
        first = self._first(f"{name}.correct.first_predicted", self.predicted)
        missed = self.sequence.sum(f"{name}.correct.missed", [stream, first])
        told = {"function": "corrected"}
        made = (self.predicted, missed, weights)
        corrected = self.sequence.add(
            f"{name}.correct.corrected", "elementwise", self.shape, *made, **told
        )
        self.others = (self._others(f"{name}.correct.others", corrected),)
        first = self._first(f"{name}.correct.first", corrected)
        wide = self.model.hidden
        shape = (self.sequence.tokens, wide)
        told = {"function": "scale"}
        scale = f"{name}.correct.scale"
        return first, self.sequence.add(scale, "elementwise", shape, first, weights=wide, **told)

    def add(self, name: str, source: str) -> None:
        """Add what a layer's embedding made to the others."""
        shape = (self.count - 1, *self.shape[1:])
        self.others = (self.sequence.add(name, "add", shape, *self.others, source),)

    def _first(self, name: str, source: str) -> str:
        return self.sequence.part(name, source, self.model.hidden, "the first stream")

    def _others(self, name: str, source: str) -> str:
        shape = (self.count - 1, *self.shape[1:])
        return self.sequence.add(name, "reshape", shape, source, function="the other streams")

    def _weights(self, name: str, source: str, outputs: int, *, learned: bool) -> str:
        """Add the router, and a matrix that makes so many weights of its scores.

        Its norm and matrix run twice in a layer; the node that runs first holds them.
        """
        sequence, wide, scores = self.sequence, self.model.hidden, self.count
        source = sequence.inner_norm(f"{name}.norm", source, wide, wide * learned)
        router = sequence.linear(f"{name}.router", source, wide, scores, learned=learned)
        shape = (sequence.tokens, scores)
        router = sequence.add(f"{name}.tanh", "activation", shape, router, function="tanh")
        return sequence.linear(f"{name}.weights", router, scores, outputs)


def low_rank(sequence: TokenWiring, model: Transformer, name: str, source: str) -> str:
    """Add the path through few numbers, and its input; return the node that holds both."""
    wide, rank = model.hidden, model.residual_rank
    narrow = sequence.linear(f"{name}.in", source, wide, rank)
    made = sequence.norm(f"{name}.norm", sequence.linear(f"{name}.out", narrow, rank, wide))
    return sequence.sum(f"{name}.sum", [source, made])
