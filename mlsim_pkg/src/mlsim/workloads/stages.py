"""Stages: blocks of layers, repeated, whose shortcuts keep feature maps alive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.workloads.model import Convolution, Linear, Lowered, Operator, Pool, Shape, one_kernel


def _normed(name: str, channels: int, kernel: int, **more: Any) -> Convolution:
    """Return a convolution with batch norm and ReLU, padded so that its stride sets the size."""
    usual = {"padding": kernel // 2, "batch_norm": True, "activation": "relu"}
    return Convolution(name=name, out_channels=channels, kernel=kernel, **{**usual, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualStage:
    """Residual blocks one after another, the first of which may change size and channels."""

    name: str
    blocks: int
    width: int
    stride: int = 1

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower all blocks, in the order in which they run."""
        operators: list[Operator] = []
        for number in range(1, self.blocks + 1):
            for lowered in self.block(shape, number, also_live):
                operators.extend(lowered.operators)
            shape = lowered.output
        return Lowered(tuple(operators), shape)

    def block(self, shape: Shape, number: int, also_live: int = 0) -> Iterator[Lowered]:
        """Yield the layers of a block, in the order in which they run; the last one puts it out.

        `number` counts from 1, and `also_live` elements are kept alive meanwhile.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class BottleneckStage(ResidualStage):
    """A stage of bottleneck residual blocks, as in ResNet-50.

    Each block reduces to `width` channels (a 1x1 convolution, "a"), convolves
    3x3 ("b"), and widens to `expansion * width` (1x1, "c"), which adds the
    shortcut. The first block's shortcut is a convolution of its own ("down").
    `stride_at` names the convolution that halves the size: "a" as published in
    2015, "b" in version 1.5.
    """

    expansion: int = 4
    stride_at: str = "b"

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
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
        return super(BottleneckStage, self).lower(shape, also_live)

    def block(self, shape: Shape, number: int, also_live: int = 0) -> Iterator[Lowered]:
        """Yield the layers of a block, in the order in which they run."""
        prefix, stride = f"{self.name}.{number}", self.stride if number == 1 else 1
        wide = self.expansion * self.width
        first = stride if self.stride_at == "a" else 1
        # The block's input stays alive until its shortcut has been read.
        a = _normed(f"{prefix}.a", self.width, 1, stride=first).lower(shape, also_live)
        yield a
        b = _normed(f"{prefix}.b", self.width, 3, stride=stride // first).lower(
            a.output, also_live + shape.elements
        )
        yield b
        if number == 1:
            down = _normed(f"{prefix}.down", wide, 1, stride=stride, activation="")
            yield down.lower(shape, also_live + b.output.elements)
        yield _normed(f"{prefix}.c", wide, 1, adds_residual=True).lower(b.output, also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicStage(ResidualStage):
    """A stage of basic residual blocks, as in ResNet-18.

    Each block convolves 3x3 twice ("a" and "b"), and "b" adds the shortcut. The
    first block's shortcut is a convolution of its own ("down") where the block
    changes the size or the channels; else it is the block's input.
    """

    def block(self, shape: Shape, number: int, also_live: int = 0) -> Iterator[Lowered]:
        """Yield the layers of a block, in the order in which they run."""
        prefix, stride = f"{self.name}.{number}", self.stride if number == 1 else 1
        # The block's input stays alive until its shortcut has been read.
        a = _normed(f"{prefix}.a", self.width, 3, stride=stride).lower(shape, also_live)
        yield a
        if stride > 1 or shape.channels != self.width:
            down = _normed(f"{prefix}.down", self.width, 1, stride=stride, activation="")
            yield down.lower(shape, also_live + a.output.elements)
        yield _normed(f"{prefix}.b", self.width, 3, adds_residual=True).lower(a.output, also_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvertedStage(ResidualStage):
    """A stage of inverted residual blocks, as in MobileNetV2 and EfficientNet.

    Each block widens its input `expansion` times (a 1x1 convolution, "expand",
    which is left out where `expansion` is 1), convolves each channel by itself
    (`kernel` pixels wide, "depthwise"), and narrows to `width` (1x1, "project").
    Where a block changes neither size nor channels, "project" adds its input.

    With `squeeze` the channels are weighed before they are narrowed: their means
    go through two small matrices, between which there are `squeeze` times fewer
    channels than the block takes in. `activation` is the function in between.
    """

    expansion: int = 6
    kernel: int = 3
    squeeze: int = 0
    activation: str = "relu6"

    def block(self, shape: Shape, number: int, also_live: int = 0) -> Iterator[Lowered]:
        """Yield the layers of a block, in the order in which they run."""
        prefix, stride = f"{self.name}.{number}", self.stride if number == 1 else 1
        adds = stride == 1 and shape.channels == self.width
        wide = self.expansion * shape.channels
        # An input that is added at the end stays alive while it is not read.
        waiting = also_live + (shape.elements if adds else 0)
        inner = shape
        if self.expansion > 1:
            widening = _normed(f"{prefix}.expand", wide, 1, activation=self.activation)
            expand = widening.lower(shape, also_live)
            yield expand
            inner = expand.output
        each = {"stride": stride, "groups": wide, "activation": self.activation}
        depthwise = _normed(f"{prefix}.depthwise", wide, self.kernel, **each).lower(
            inner, waiting if self.expansion > 1 else also_live
        )
        yield depthwise
        if self.squeeze:
            narrow = max(1, shape.channels // self.squeeze)
            yield from _squeeze(
                prefix, depthwise.output, narrow, waiting, activation=self.activation
            )
        project = _normed(f"{prefix}.project", self.width, 1, adds_residual=adds, activation="")
        yield project.lower(depthwise.output, also_live)


def _squeeze(
    prefix: str, shape: Shape, narrow: int, also_live: int, *, activation: str
) -> Iterator[Lowered]:
    """Yield what weighs channels by a function of their means (squeeze and excitation)."""
    channels = shape.channels
    # The map itself waits until its channels are scaled.
    mean = Pool(name=f"{prefix}.mean").lower(shape, also_live)
    yield mean
    reduced = Linear(name=f"{prefix}.reduce", out_features=narrow, activation=activation)
    lowered = reduced.lower(mean.output, also_live + shape.elements)
    yield lowered
    weights = Linear(name=f"{prefix}.weigh", out_features=channels, activation="sigmoid")
    yield weights.lower(lowered.output, also_live + shape.elements)
    read = shape.elements + channels
    yield one_kernel(f"{prefix}.scale", "elementwise", read, shape, also_live)
