"""Layers: what an architecture is written in, and how each is lowered.

A layer takes the shape of its input and yields operators and the shape of its
output. Shapes are (channels, size): feature maps are square, and a sequence has a
length only. Stages of blocks, which are made of these, stand in `stages`, and what
works on sequences of tokens in `tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mlsim.equations import convolution
from mlsim.errors import InvalidValueError
from mlsim.workloads.operators import Operator


@dataclass(frozen=True, slots=True)
class Shape:
    """A feature map for one sample: channels, and pixels along one side.

    With `rank=1` it is a sequence instead: `channels` numbers of `size` tokens, or
    of as many moments of a sound.

    >>> Shape(64, 56).elements
    200704
    >>> Shape(768, 197, rank=1).elements
    151296
    """

    channels: int
    size: int
    rank: int = 2

    @property
    def places(self) -> int:
        """Pixels of the map, or tokens of the sequence."""
        return int(self.size**self.rank)

    @property
    def elements(self) -> int:
        """Numbers that it holds."""
        return self.channels * self.places


class Layer(Protocol):
    """What an architecture is a list of: a layer, or a stage of several."""

    @property
    def name(self) -> str:
        """What its operators are called, or what their names begin with."""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Return its operators for an input, and the shape that it puts out."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """The operators of a layer and the shape that it puts out.

    Of one layer by itself, also which it is and the shape that it took in.
    """

    operators: tuple[Operator, ...]
    output: Shape
    layer: Layer | None = None
    input: Shape | None = None


def _output_size(shape: Shape, kernel: int, stride: int, padding: int, name: str) -> int:
    size = int(convolution.output_size(shape.size, padding, kernel, stride))
    if size < 1:
        raise InvalidValueError(
            f"layer {name}: a window of {kernel} does not fit in an input of "
            f"{shape.size} pixels with padding {padding}."
        )
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution, with what runs in the same kernel.

    Batch normalisation is folded at inference: it adds a scale and a shift per
    channel to the parameters. `adds_residual` reads a second input of the
    output's shape. An `activation` function, such as "relu", costs no traffic of its own.
    `joined` counts the pairs of an input map and an output map that have a
    window between them, where not all have (0: all).
    """

    name: str
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = False
    batch_norm: bool = False
    adds_residual: bool = False
    joined: int = 0
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it; `also_live` elements stay alive for others meanwhile.

        Raises
        ------
        InvalidValueError
            If the window does not fit, the groups don't divide the channels, or
            more maps are joined than there are pairs of.
        """
        if shape.channels % self.groups or self.out_channels % self.groups:
            raise InvalidValueError(
                f"layer {self.name}: {self.groups} groups don't divide "
                f"{shape.channels} input and {self.out_channels} output channels."
            )
        pairs = shape.channels * self.out_channels
        if self.joined and (self.groups > 1 or not self.out_channels <= self.joined <= pairs):
            raise InvalidValueError(
                f"layer {self.name}: joined = {self.joined} pairs of maps can't be, with "
                f"{self.groups} groups. It is from {self.out_channels}, one for each output, to "
                f"{pairs}, all, and has no groups. Leave it out if all maps are joined."
            )
        size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(self.out_channels, size, shape.rank)
        weights, multiply_adds = self._count(shape, size)
        read = shape.elements + (output.elements if self.adds_residual else 0)
        operator = Operator(
            name=self.name,
            kind="convolution",
            multiply_adds=multiply_adds,
            parameters=weights + self.out_channels * (self.bias + 2 * self.batch_norm),
            activations_read=read,
            activations_written=output.elements,
            activations_live=read + output.elements + also_live,
            # Groups of channels are products of their own, too narrow to be run as such.
            outputs=self.out_channels if self.groups == 1 and not self.joined else 0,
        )
        return Lowered((operator,), output, self, shape)

    def _count(self, shape: Shape, size: int) -> tuple[int, int]:
        """Return the weights, and the multiply-adds for an output of `size`."""
        if shape.rank == 1:
            from mlsim.equations import transformer

            # Along a sequence a window is a row of numbers: a matrix product.
            window = self.kernel * shape.channels // self.groups
            weights = int(transformer.projection_parameters(window, self.out_channels))
            return weights, int(transformer.token_multiply_adds(weights)) * size
        out, kernel, channels = self.out_channels, self.kernel, shape.channels
        if self.joined:
            # As many windows as one output would have that sees so many maps.
            out, channels = 1, self.joined
        weights = convolution.parameters(kernel, channels, out, self.groups)
        done = convolution.multiply_adds(size, out, kernel, channels, self.groups)
        return int(weights), int(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pooling layer: no FLOPs that count, but traffic.

    `kernel=0` pools over the whole feature map, of which it takes the mean; a window gives
    its maximum unless `mean` says otherwise. It has no parameters unless it is `trained`:
    then it adds up its window, and has a factor and a bias for each map, as in 1998.
    The `activation` function after it, such as "relu", is part of it.
    """

    name: str
    kernel: int = 0
    stride: int = 1
    padding: int = 0
    trained: bool = False
    mean: bool = False
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        size = 1
        if self.kernel:
            size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(shape.channels, size, shape.rank)
        live = shape.elements + output.elements + also_live
        held = 2 * shape.channels * self.trained
        operator = Operator(self.name, "pooling", 0, held, shape.elements, output.elements, live)
        return Lowered((operator,), output, self, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseNorm:
    """A local response normalisation over neighbouring channels, as in AlexNet.

    No parameters, and a few FLOP for each element that we don't count; it is a
    kernel of its own, which reads and writes all of them.
    """

    name: str

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        elements = shape.elements
        live = 2 * elements + also_live
        operator = Operator(self.name, "normalisation", 0, 0, elements, elements, live)
        return Lowered((operator,), shape, self, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Dropout: in training some numbers, or with `maps` whole maps, are set to zero.

    At inference it does nothing, so that it is no operator; what it keeps for the way back
    stands in the computation graph.

    >>> Dropout(name="drop").lower(Shape(20, 8)).operators
    ()
    """

    name: str
    maps: bool = False

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to nothing: it puts out what came in."""
        return Lowered((), shape, self, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer over all elements of its input, flattened.

    The `activation` function after it, such as "relu", is part of it.
    """

    name: str
    out_features: int
    bias: bool = True
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator: a convolution of one pixel."""
        inputs = shape.elements
        operator = Operator(
            name=self.name,
            kind="linear",
            multiply_adds=int(convolution.multiply_adds(1, self.out_features, 1, inputs, 1)),
            parameters=int(convolution.parameters(1, inputs, self.out_features, 1))
            + self.out_features * self.bias,
            activations_read=inputs,
            activations_written=self.out_features,
            activations_live=inputs + self.out_features + also_live,
            outputs=self.out_features,
        )
        return Lowered((operator,), Shape(self.out_features, 1), self, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """How far its input is from a fixed vector of each class, squared.

    The radial basis functions at the end of LeNet-5. The vectors are drawn by
    hand, not learned, but held like parameters; a difference that is squared and
    added counts as one multiply-add.
    """

    name: str
    classes: int

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        inputs = shape.elements
        operator = Operator(
            name=self.name,
            kind="distances",
            multiply_adds=int(convolution.multiply_adds(1, self.classes, 1, inputs, 1)),
            parameters=int(convolution.parameters(1, inputs, self.classes, 1)),
            activations_read=inputs,
            activations_written=self.classes,
            activations_live=inputs + self.classes + also_live,
        )
        return Lowered((operator,), Shape(self.classes, 1), self, shape)
