"""Stages of a transformer with a fixed input: an encoder, and a decoder that looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.errors import InvalidValueError
from mlsim.workloads.layers import Lowered, Shape
from mlsim.workloads.tokens import Block, Positions, TokenEmbedding, check_sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """What both kinds of stages say of their blocks."""

    name: str
    blocks: int
    heads: int
    head_size: int
    feed_forward: int
    norm: str = "layer"
    bias: bool = True
    key_bias: bool = True
    gated: bool = False
    relative_positions: int = 0
    activation: str = "gelu"

    @property
    def block(self) -> Block:
        """One of its blocks."""
        return Block(
            heads=self.heads,
            inner=self.heads * self.head_size,
            feed_forward=self.feed_forward,
            norm=self.norm,
            bias=self.bias,
            key_bias=self.key_bias,
            output_bias=self.bias,
            feed_bias=self.bias,
            gated=self.gated,
        )

    def bias_table(self, number: int) -> int:
        """Return the learned numbers by distance, which the first block holds for all."""
        return self.relative_positions * self.heads if number == 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderStage(_Stage):
    """Blocks in which each token sees all others, and a norm after the last.

    The width is that of the tokens. `head_size` times `heads` may differ from it.
    `relative_positions` is the number of distances for which each head learns a
    number that is added to its scores: one small table for all blocks. `gated`
    and the biases are as in a language model. `activation` is the function between the
    two matrices of the feed-forward network.
    """

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower all blocks, in the order in which they run.

        Raises
        ------
        InvalidValueError
            If the input is no sequence, or the norm is unknown.
        """
        check_sequence(self.name, shape)
        return _gathered(self.parts(shape, also_live), shape)

    def parts(self, shape: Shape, also_live: int = 0) -> Iterator[Lowered]:
        """Yield what it consists of, in the order in which it runs."""
        block = self.block
        for number in range(1, self.blocks + 1):
            prefix = f"{self.name}.{number}"
            table = self.bias_table(number)
            yield from block.self_attention(f"{prefix}.self", shape, also_live, bias_table=table)
            yield from block.feed(f"{prefix}.feed", shape, also_live)
        yield block.normed(f"{self.name}.norm", shape, also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderStage(_Stage):
    """Blocks that write: each token sees earlier ones, and all of the encoder's.

    The input is what the encoder put out; `tokens` words are decoded at one time, as
    in training, or when a given text is judged. They come from a table of
    `vocabulary` rows, and `positions` is the number of learned positions, of which
    the first ones are added. See `EncoderStage` for the rest.
    """

    tokens: int
    vocabulary: int
    positions: int = 0
    own_table: bool = True

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower the embedding and all blocks, in the order in which they run.

        Raises
        ------
        InvalidValueError
            If the input is no sequence, or there are more tokens than positions.
        """
        check_sequence(self.name, shape)
        if self.positions and self.tokens > self.positions:
            raise InvalidValueError(
                f"layer {self.name}: {self.tokens} tokens are more than the {self.positions} "
                "positions that it learned."
            )
        output = Shape(shape.channels, self.tokens, 1)
        return _gathered(self.parts(shape, also_live), output)

    def parts(self, memory: Shape, also_live: int = 0) -> Iterator[Lowered]:
        """Yield what it consists of, in the order in which it runs."""
        width = memory.channels
        shape, also_live = Shape(width, self.tokens, 1), also_live + memory.elements
        yield TokenEmbedding(
            name=f"{self.name}.embedding",
            vocabulary=self.vocabulary,
            width=width,
            own_table=self.own_table,
        ).lower(Shape(1, self.tokens, 1), also_live)
        if self.positions:
            (added,) = Positions(name=f"{self.name}.positions").lower(shape, also_live).operators
            unread = (self.positions - self.tokens) * width
            yield Lowered((replace(added, table_parameters=unread),), shape)
        block = self.block
        for number in range(1, self.blocks + 1):
            prefix = f"{self.name}.{number}"
            table = self.bias_table(number)
            yield from block.self_attention(
                f"{prefix}.self", shape, also_live, causal=True, bias_table=table
            )
            last = number == self.blocks
            yield from block.cross_attention(f"{prefix}.cross", shape, memory, also_live, last=last)
            # Nobody reads the encoder's tokens after the last block has.
            also_live -= last * memory.elements
            yield from block.feed(f"{prefix}.feed", shape, also_live)
        yield block.normed(f"{self.name}.norm", shape, also_live)


def _gathered(parts: Iterator[Lowered], output: Shape) -> Lowered:
    return Lowered(tuple(operator for part in parts for operator in part.operators), output)
