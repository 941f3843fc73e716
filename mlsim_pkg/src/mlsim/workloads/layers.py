"""Layers: what an architecture is written in, and how each is lowered.

A layer takes the shape of its input and yields operators and the shape of its
output. Shapes are (channels, size): feature maps are square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlsim.equations import convolution
from mlsim.errors import InvalidValueError
from mlsim.workloads.operators import Operator


@dataclass(frozen=True, slots=True)
class Shape:
    """A feature map for one sample: channels, and pixels along one side.

    >>> Shape(64, 56).elements
    200704
    """

    channels: int
    size: int

    @property
    def elements(self) -> int:
        """Numbers that it holds."""
        return self.channels * self.size**2


@dataclass(frozen=True, slots=True)
class Lowered:
    """The operators of a layer and the shape that it puts out."""

    operators: tuple[Operator, ...]
    output: Shape


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
    output's shape. An activation function costs no traffic of its own.
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

    def lower(self, shape: Shape, kept: int = 0) -> Lowered:
        """Lower it; `kept` elements stay alive for others meanwhile.

        Raises
        ------
        InvalidValueError
            If the window does not fit, or the groups don't divide the channels.
        """
        if shape.channels % self.groups or self.out_channels % self.groups:
            raise InvalidValueError(
                f"layer {self.name}: {self.groups} groups don't divide "
                f"{shape.channels} input and {self.out_channels} output channels."
            )
        size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(self.out_channels, size)
        weights = convolution.parameters(
            self.kernel, shape.channels, self.out_channels, self.groups
        )
        read = shape.elements + (output.elements if self.adds_residual else 0)
        operator = Operator(
            name=self.name,
            kind="convolution",
            multiply_adds=int(
                convolution.multiply_adds(
                    size, self.out_channels, self.kernel, shape.channels, self.groups
                )
            ),
            parameters=int(weights) + self.out_channels * (self.bias + 2 * self.batch_norm),
            activations_read=read,
            activations_written=output.elements,
            activations_live=read + output.elements + kept,
        )
        return Lowered((operator,), output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pooling layer: no parameters, no FLOPs that count, but traffic.

    `kernel=0` pools over the whole feature map.
    """

    name: str
    kernel: int = 0
    stride: int = 1
    padding: int = 0

    def lower(self, shape: Shape, kept: int = 0) -> Lowered:
        """Lower it to one operator."""
        size = 1
        if self.kernel:
            size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(shape.channels, size)
        live = shape.elements + output.elements + kept
        operator = Operator(self.name, "pooling", 0, 0, shape.elements, output.elements, live)
        return Lowered((operator,), output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer over all elements of its input."""

    name: str
    out_features: int
    bias: bool = True

    def lower(self, shape: Shape, kept: int = 0) -> Lowered:
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
            activations_live=inputs + self.out_features + kept,
        )
        return Lowered((operator,), Shape(self.out_features, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class BottleneckStage:
    """A stage of bottleneck residual blocks, as in ResNet-50.

    Each block reduces to `width` channels (a 1x1 convolution, "a"), convolves
    3x3 ("b"), and widens to `expansion * width` (1x1, "c"), which adds the
    shortcut. The first block's shortcut is a convolution of its own ("down").
    `stride_at` names the convolution that halves the size: "a" as published in
    2015, "b" in version 1.5.
    """

    name: str
    blocks: int
    width: int
    stride: int = 1
    expansion: int = 4
    stride_at: str = "b"

    def lower(self, shape: Shape, kept: int = 0) -> Lowered:
        """Lower all blocks, in the order in which they run.

        Raises
        ------
        InvalidValueError
            If `stride_at` is neither "a" nor "b".
        """
        if self.stride_at not in ("a", "b"):
            raise InvalidValueError(
                f"layer {self.name}: stride_at must be 'a' or 'b', not {self.stride_at!r}."
            )
        operators: list[Operator] = []
        for number in range(1, self.blocks + 1):
            operators.extend(self._block(shape, number, kept))
            size = convolution.output_size(shape.size, 0, 1, self.stride if number == 1 else 1)
            shape = Shape(self.expansion * self.width, int(size))
        return Lowered(tuple(operators), shape)

    def _block(self, shape: Shape, number: int, kept: int) -> Iterator[Operator]:
        prefix, stride = f"{self.name}.{number}", self.stride if number == 1 else 1
        wide = self.expansion * self.width
        first = stride if self.stride_at == "a" else 1
        # The block's input stays alive until its shortcut has been read.
        a = Convolution(
            name=f"{prefix}.a", out_channels=self.width, kernel=1, stride=first, batch_norm=True
        ).lower(shape, kept)
        yield from a.operators
        b = Convolution(
            name=f"{prefix}.b",
            out_channels=self.width,
            kernel=3,
            stride=stride // first,
            padding=1,
            batch_norm=True,
        ).lower(a.output, kept + shape.elements)
        yield from b.operators
        if number == 1:
            down = Convolution(
                name=f"{prefix}.down", out_channels=wide, kernel=1, stride=stride, batch_norm=True
            ).lower(shape, kept + b.output.elements)
            yield from down.operators
        c = Convolution(
            name=f"{prefix}.c", out_channels=wide, kernel=1, batch_norm=True, adds_residual=True
        ).lower(b.output, kept)
        yield from c.operators


Layer = Convolution | Pool | Linear | BottleneckStage

LAYERS: dict[str, type[Layer]] = {
    "convolution": Convolution,
    "pool": Pool,
    "linear": Linear,
    "bottleneck_stage": BottleneckStage,
}
