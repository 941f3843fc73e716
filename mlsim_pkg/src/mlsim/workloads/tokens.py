"""What works on a sequence of tokens: layers and stages of a transformer with a fixed input.

The operators are those that a language model's step has (see `blocks`), counted
for a whole sample: a projection with its bias, its activation function and the
residual that it adds is one operator, and so are attention and a norm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.equations import transformer as count
from mlsim.errors import InvalidValueError
from mlsim.workloads.model import Convolution, Lowered, Shape, one_kernel

# Vectors of learned numbers in a norm: a scale, or a scale and a shift.
NORM_VECTORS = {"rms": 1, "layer": 2}


def product(
    name: str,
    shape: Shape,
    outputs: int,
    *,
    bias: int = 0,
    branches: int = 1,
    adds: bool = False,
    also_live: int = 0,
) -> Lowered:
    """Return the matrix product of each token with a matrix.

    It holds `bias` more numbers. Of two `branches` one gates the other, so that
    only `outputs` are written. `adds` says whether it adds a residual of the
    shape that it writes.
    """
    output = Shape(outputs, shape.size, 1)
    weights = int(count.projection_parameters(shape.channels, branches * outputs))
    read = shape.elements + adds * output.elements
    return one_kernel(
        name,
        "projection",
        read,
        output,
        also_live,
        multiply_adds=int(count.token_multiply_adds(weights)) * shape.size,
        parameters=weights + bias,
        outputs=outputs,
    )


def elementwise(
    name: str, kind: str, shape: Shape, parameters: int = 0, also_live: int = 0
) -> Lowered:
    """Return what reads all elements and writes as many, such as a norm."""
    return one_kernel(name, kind, shape.elements, shape, also_live, parameters=parameters)


def attention(
    name: str,
    queries: Shape,
    seen: int,
    heads: int,
    *,
    causal: bool = False,
    bias: int = 0,
    also_live: int = 0,
) -> Lowered:
    """Return attention of queries over `seen` tokens, whose keys and values are as wide.

    Scores stay on chip. `bias` is a small table of numbers that are added to them.
    In `causal` attention a token sees itself and those before it.
    """
    pairs = queries.size * (queries.size + 1) // 2 if causal else queries.size * seen
    read = queries.elements + 2 * queries.channels * seen
    each = int(count.pair_multiply_adds(heads, queries.channels // heads))
    moved, done = (read, queries, also_live), pairs * each
    return one_kernel(name, "attention", *moved, multiply_adds=done, parameters=bias)


def check_sequence(name: str, shape: Shape) -> None:
    """Refuse a picture where tokens are wanted.

    Raises
    ------
    InvalidValueError
        If the input is no sequence; says what makes one of it.
    """
    if shape.rank != 1:
        raise InvalidValueError(
            f"layer {name}: it works on tokens, but its input is a map of {shape.channels} "
            f"channels and {shape.size}x{shape.size} pixels. Put a patch_embedding before it, "
            "or give the input a length in place of a size."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEmbedding:
    """A picture cut into patches, each of which becomes a token, as in ViT.

    A convolution whose windows don't overlap. It puts a learned token in front
    (`class_token`), and adds a learned position to each.
    """

    name: str
    width: int
    patch: int
    class_token: bool = True

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator.

        Raises
        ------
        InvalidValueError
            If patches don't fill the picture.
        """
        if shape.size % self.patch or shape.rank != 2:
            raise InvalidValueError(
                f"layer {self.name}: patches of {self.patch} pixels don't fill an input of "
                f"{shape.size} pixels."
            )
        cut = Convolution(
            name=self.name, out_channels=self.width, kernel=self.patch, stride=self.patch, bias=True
        ).lower(shape, also_live)
        tokens = Shape(self.width, cut.output.places + self.class_token, 1)
        (patches,) = cut.operators
        return one_kernel(
            self.name,
            "convolution",
            patches.activations_read,
            tokens,
            also_live,
            multiply_adds=patches.multiply_adds,
            parameters=patches.parameters + self.class_token * self.width + tokens.elements,
            outputs=self.width,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEmbedding:
    """Rows of a table, one for each token that comes in, as numbers of words.

    A sample reads the rows of its tokens, not the table. `own_table` is false
    where the table is that of the output layer, or of another embedding.
    """

    name: str
    vocabulary: int
    width: int
    own_table: bool = True

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator.

        Raises
        ------
        InvalidValueError
            If the input is no sequence.
        """
        check_sequence(self.name, shape)
        output = Shape(self.width, shape.size, 1)
        table = self.own_table * int(count.projection_parameters(self.vocabulary, self.width))
        moved = (output.elements, output, also_live)
        return one_kernel(self.name, "embedding", *moved, table_parameters=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotInteraction:
    """Rows of tables, one of each, multiplied with one another, as in DLRM.

    The input is a vector of dense features. A sample looks one row of each table
    up, as wide as that vector ("lookups": it reads and writes these rows, while
    `rows` of each table lie in memory). A row that several samples look up is read
    for each of them: no cache is counted. The product of each pair of all vectors,
    counted once, goes behind the dense vector ("interaction").
    """

    name: str
    rows: tuple[int, ...]

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to two operators.

        Raises
        ------
        InvalidValueError
            If the input is more than one vector.
        """
        if shape.places != 1:
            raise InvalidValueError(
                f"layer {self.name}: its input must be one vector, not {shape.places} places: put "
                "a linear layer before it."
            )
        width, vectors = shape.channels, len(self.rows) + 1
        looked_up, pairs = Shape(len(self.rows) * width, 1), vectors * (vectors - 1) // 2
        output = Shape(width + pairs, 1)
        rows = one_kernel(
            f"{self.name}.lookups",
            "embedding",
            looked_up.elements,
            looked_up,
            shape.elements + also_live,
            table_parameters=int(count.projection_parameters(sum(self.rows), width)),
        )
        name, moved = f"{self.name}.interaction", (vectors * width, output, also_live)
        joined = one_kernel(name, "interaction", *moved, multiply_adds=pairs * width)
        return Lowered((*rows.operators, *joined.operators), output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """A learned vector for each place of a sequence, which is added."""

    name: str

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        return elementwise(self.name, "elementwise", shape, shape.elements, also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstToken:
    """The first token of a sequence, on which a classifier works; costs nothing."""

    name: str

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to no operator."""
        return Lowered((), Shape(shape.channels, 1, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLinear:
    """A matrix that each token is multiplied with, such as an output layer."""

    name: str
    out_features: int
    bias: bool = True

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator.

        Raises
        ------
        InvalidValueError
            If the input is no sequence.
        """
        check_sequence(self.name, shape)
        outputs = self.out_features
        return product(self.name, shape, outputs, bias=self.bias * outputs, also_live=also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a transformer with its norms in front: the parts of a stage.

    `bias` says whether something is added to queries and values and to what matrices put out,
    `key_bias` whether to keys; `gated` whether the feed-forward network has a second matrix,
    which gates the first.
    """

    heads: int
    head_size: int
    feed_forward: int
    norm: str = "layer"
    bias: bool = True
    key_bias: bool = True
    gated: bool = False

    @property
    def inner(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_size

    @property
    def output_bias(self) -> bool:
        """Whether something is added to the output of attention, and in the feed-forward."""
        return self.bias

    def normed(self, name: str, shape: Shape, also_live: int) -> Lowered:
        """Return a norm; the residual is what it reads.

        Raises
        ------
        InvalidValueError
            If there is no such norm.
        """
        if self.norm not in NORM_VECTORS:
            raise InvalidValueError(
                f"layer {name}: norm must be one of {', '.join(NORM_VECTORS)}, not {self.norm!r}."
            )
        return elementwise(name, "norm", shape, NORM_VECTORS[self.norm] * shape.channels, also_live)

    def self_attention(
        self, prefix: str, shape: Shape, live: int, *, causal: bool = False, bias_table: int = 0
    ) -> Iterator[Lowered]:
        """Yield the half of a block in which tokens look at one another."""
        # What came in waits until the output is added to it.
        waiting, inner = live + shape.elements, self.inner
        yield self.normed(f"{prefix}.norm", shape, live)
        bias = (2 * self.bias + self.key_bias) * inner
        yield product(f"{prefix}.qkv", shape, 3 * inner, bias=bias, also_live=waiting)
        met, name = (Shape(inner, shape.size, 1), shape.size, self.heads), f"{prefix}.attention"
        yield attention(name, *met, causal=causal, bias=bias_table, also_live=waiting)
        yield self._output(prefix, shape, live)

    def cross_attention(
        self, prefix: str, shape: Shape, memory: Shape, also_live: int, *, last: bool = False
    ) -> Iterator[Lowered]:
        """Yield the part of a block in which tokens look at those of another sequence.

        `also_live` includes the memory, which later blocks read again, unless this is the last.
        """
        waiting, inner = also_live + shape.elements, self.inner
        yield self.normed(f"{prefix}.norm", shape, also_live)
        yield product(f"{prefix}.queries", shape, inner, bias=self.bias * inner, also_live=waiting)
        bias = (self.bias + self.key_bias) * inner
        queries = Shape(inner, shape.size, 1)
        # The memory is counted among what is kept already.
        kept_now = waiting + queries.elements - memory.elements
        yield product(f"{prefix}.keys_values", memory, 2 * inner, bias=bias, also_live=kept_now)
        if last:
            waiting, also_live = waiting - memory.elements, also_live - memory.elements
        yield attention(f"{prefix}.attention", queries, memory.size, self.heads, also_live=waiting)
        yield self._output(prefix, shape, also_live)

    def _output(self, prefix: str, shape: Shape, also_live: int) -> Lowered:
        width = shape.channels
        mixed, bias = Shape(self.inner, shape.size, 1), self.output_bias * width
        return product(f"{prefix}.out", mixed, width, bias=bias, adds=True, also_live=also_live)

    def feed(self, prefix: str, shape: Shape, also_live: int) -> Iterator[Lowered]:
        """Yield the half of a block in which each token is by itself."""
        width, branches = shape.channels, 1 + self.gated
        yield self.normed(f"{prefix}.norm", shape, also_live)
        inner, waiting = self.feed_forward, also_live + shape.elements
        bias = self.output_bias * branches * inner
        up = product(f"{prefix}.up", shape, inner, bias=bias, branches=branches, also_live=waiting)
        yield up
        bias = self.output_bias * width
        yield product(f"{prefix}.down", up.output, width, bias=bias, adds=True, also_live=also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage(Block):
    """What both kinds of stages say besides."""

    name: str
    blocks: int
    relative_positions: int = 0
    activation: str = "gelu"

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
        for number in range(1, self.blocks + 1):
            prefix = f"{self.name}.{number}"
            table = self.bias_table(number)
            yield from self.self_attention(f"{prefix}.self", shape, also_live, bias_table=table)
            yield from self.feed(f"{prefix}.feed", shape, also_live)
        yield self.normed(f"{self.name}.norm", shape, also_live)


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
        for number in range(1, self.blocks + 1):
            prefix = f"{self.name}.{number}"
            table = self.bias_table(number)
            yield from self.self_attention(
                f"{prefix}.self", shape, also_live, causal=True, bias_table=table
            )
            last = number == self.blocks
            yield from self.cross_attention(f"{prefix}.cross", shape, memory, also_live, last=last)
            # Nobody reads the encoder's tokens after the last block has.
            also_live -= last * memory.elements
            yield from self.feed(f"{prefix}.feed", shape, also_live)
        yield self.normed(f"{self.name}.norm", shape, also_live)


def _gathered(parts: Iterator[Lowered], output: Shape) -> Lowered:
    return Lowered(tuple(operator for part in parts for operator in part.operators), output)
