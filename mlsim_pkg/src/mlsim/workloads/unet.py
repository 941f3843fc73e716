"""A U-Net that takes noise out of a picture, step by step: the backbone of diffusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.workloads.model import Convolution, Linear, Lowered, Operator, Shape, one_kernel
from mlsim.workloads.tokens import Block, elementwise, product


@dataclass(frozen=True, slots=True, kw_only=True)
class _PixelBlock(Block):
    """A gated block without biases of queries, keys and values."""

    bias: bool = False
    key_bias: bool = False
    gated: bool = True

    @property
    def output_bias(self) -> bool:
        """True: other matrices have one."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class UNet:
    """Residual blocks down to a small map and up again, with shortcuts between the two.

    Each level has `blocks` residual blocks on the way down, and one more on the way
    up, whose input is joined to what the way down left for it. The first
    `attention_levels` levels, and the middle, have a transformer block after each:
    it looks at the map itself, and at `context_tokens` tokens of a text. The time
    that a step stands for goes through two matrices, and then into each block.

    One sample is one step for one picture; a picture takes many steps.
    """

    name: str
    channels: tuple[int, ...]
    blocks: int
    attention_levels: int
    heads: int
    context_tokens: int
    context_width: int

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to operators, in the order in which they run.

        Raises
        ------
        InvalidValueError
            If the map can't be halved as often as there are levels, or the heads
            don't divide the channels.
        """
        halvings = 2 ** (len(self.channels) - 1)
        if shape.rank != 2 or shape.size % halvings:
            raise InvalidValueError(
                f"layer {self.name}: an input of {shape.size} pixels can't be halved "
                f"{len(self.channels) - 1} times; {halvings} must divide it."
            )
        if any(width % self.heads for width in self.channels):
            raise InvalidValueError(
                f"layer {self.name}: {self.heads} heads don't divide the channels "
                f"{', '.join(map(str, self.channels))}."
            )
        run = _Run(self, also_live)
        run.all(shape)
        return Lowered(tuple(run.operators), shape)


def _convolution(name: str, width: int, kernel: int = 3, **more: Any) -> Convolution:
    sizes = {"out_channels": width, "kernel": kernel, "padding": kernel // 2, **more}
    return Convolution(name=name, bias=True, **sizes)


class _Run:
    """The operators so far, the map, and the maps that are kept for the way up."""

    def __init__(self, net: UNet, also_live: int) -> None:
        self.net, self.operators = net, list[Operator]()
        self.skips: list[Shape] = []
        self.context = Shape(net.context_width, net.context_tokens, 1)
        self.time = Shape(4 * net.channels[0], 1)
        # The text and the time are read again and again.
        self._always = also_live + self.context.elements + self.time.elements
        self.shape = Shape(0, 0)

    @property
    def also_live(self) -> int:
        """Elements that wait for a later operator."""
        return self._always + sum(each.elements for each in self.skips)

    def add(self, lowered: Lowered) -> Shape:
        self.operators.extend(lowered.operators)
        return lowered.output

    def all(self, shape: Shape) -> None:
        net, (first, *_) = self.net, self.net.channels
        frequencies = Shape(first, 1)
        name = f"{net.name}.time"
        hidden = self.add(Linear(name=f"{name}.a", out_features=4 * first).lower(frequencies))
        self.add(Linear(name=f"{name}.b", out_features=4 * first).lower(hidden))
        self.shape = self.convolve(f"{net.name}.in", shape, first)
        self.skips.append(self.shape)
        self.down()
        name = f"{net.name}.middle"
        width = net.channels[-1]
        self.residual(f"{name}.1", width)
        self.attend(f"{name}.1")
        self.residual(f"{name}.2", width)
        self.up()
        last = self.add(self.norm(f"{net.name}.norm", self.shape, 0))
        self.convolve(f"{net.name}.out", last, shape.channels)

    def down(self) -> None:
        net, levels = self.net, len(self.net.channels)
        for level, width in enumerate(net.channels):
            for number in range(1, net.blocks + 1):
                name = f"{net.name}.down{level + 1}.{number}"
                self.residual(name, width)
                if level < net.attention_levels:
                    self.attend(name)
                self.skips.append(self.shape)
            if level < levels - 1:
                name = f"{net.name}.down{level + 1}.halve"
                self.shape = self.convolve(name, self.shape, width, stride=2)
                self.skips.append(self.shape)

    def up(self) -> None:
        net = self.net
        for level, width in reversed(list(enumerate(net.channels))):
            for number in range(1, net.blocks + 2):
                name = f"{net.name}.up{level + 1}.{number}"
                self.join(f"{name}.join")
                self.residual(name, width)
                if level < net.attention_levels:
                    self.attend(name)
            if level:
                name = f"{net.name}.up{level + 1}"
                wide = self.double(f"{name}.double")
                self.shape = self.convolve(f"{name}.smooth", wide, width)

    def convolve(self, name: str, shape: Shape, width: int, *, stride: int = 1) -> Shape:
        """Add a 3x3 convolution."""
        return self.add(_convolution(name, width, stride=stride).lower(shape, self.also_live))

    def norm(self, name: str, shape: Shape, waiting: int) -> Lowered:
        """Return a group norm with its activation function: a scale and a shift a channel."""
        return elementwise(name, "norm", shape, 2 * shape.channels, self.also_live + waiting)

    def join(self, name: str) -> None:
        """Add the copy of the map and of one from the way down into one."""
        other = self.skips.pop()
        joined = Shape(self.shape.channels + other.channels, self.shape.size)
        self.shape = self.add(elementwise(name, "concatenation", joined, 0, self.also_live))

    def double(self, name: str) -> Shape:
        """Add what writes each pixel four times."""
        shape = self.shape
        wide = Shape(shape.channels, 2 * shape.size)
        return self.add(one_kernel(name, "resampling", shape.elements, wide, self.also_live))

    def residual(self, name: str, width: int) -> None:
        """Add a residual block, to which the time is added in the middle."""
        shape = self.shape
        inner = Shape(width, shape.size)
        normed = self.add(self.norm(f"{name}.norm1", shape, 0))
        time = Linear(name=f"{name}.time", out_features=width)
        # The time is counted among what is kept already.
        self.add(time.lower(self.time, self.also_live - self.time.elements + 2 * shape.elements))
        # The block's input waits for the shortcut.
        a = _convolution(f"{name}.a", width)
        self.add(a.lower(normed, self.also_live + shape.elements + width))
        self.add(self.norm(f"{name}.norm2", inner, shape.elements))
        if shape.channels != width:
            shortcut = _convolution(f"{name}.shortcut", width, kernel=1)
            self.add(shortcut.lower(shape, self.also_live + inner.elements))
        b = _convolution(f"{name}.b", width, adds_residual=True)
        self.shape = self.add(b.lower(inner, self.also_live))

    def attend(self, name: str) -> None:
        """Add a transformer block over the pixels, between two matrices."""
        shape, heads = self.shape, self.net.heads
        width = shape.channels
        pixels = Shape(width, shape.places, 1)
        # What came in is added at the end.
        also_live = self.also_live + shape.elements
        self.add(self.norm(f"{name}.norm", shape, 0))
        self.add(product(f"{name}.in", pixels, width, bias=width, also_live=also_live))
        block = _PixelBlock(heads=heads, head_size=width // heads, feed_forward=4 * width)
        for part in (
            *block.self_attention(f"{name}.self", pixels, also_live),
            *block.cross_attention(f"{name}.cross", pixels, self.context, also_live),
            *block.feed(f"{name}.feed", pixels, also_live),
        ):
            self.add(part)
        last = {"bias": width, "also_live": self.also_live}
        self.add(product(f"{name}.out", pixels, width, adds=True, **last))
