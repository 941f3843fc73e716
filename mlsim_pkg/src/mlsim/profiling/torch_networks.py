"""Networks of the zoo as PyTorch runs them: a chain of steps with weights drawn by chance.

`torch` is an argument: this room imports it for nobody. A step is what is one operator in the
zoo, so that its time can be held against its counts. PyTorch runs it as a program would that
compiles nothing: a convolution, its batch normalization and its ReLU are three kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mlsim.errors import UnsupportedLayerError
from mlsim.workloads import model
from mlsim.workloads.model import Lowered, Network, Shape
from mlsim.workloads.stages import ResidualStage
from mlsim.workloads.tokens import EncoderStage, FirstToken, PatchEmbedding

Call = Callable[..., Any]
INPUT = "input"


@dataclass(frozen=True, slots=True)
class Step:
    """One operator: what it reads, by name, and the call that computes it."""

    name: str
    inputs: tuple[str, ...]
    call: Call


@dataclass
class TorchNetwork:
    """The steps of a network, in the order in which they run, and its weights.

    Attributes
    ----------
    torch, device, dtype
        The library, where numbers lie, and their format.
    network
        Of the zoo.
    """

    torch: Any
    network: Network
    device: str
    dtype: Any
    steps: list[Step] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape, source = self.network.input, INPUT
        for layer in self.network.layers:
            source = self._layer(layer, shape, source)
            shape = layer.lower(shape).output

    def sample(self, batch_size: int) -> Any:
        """Return a batch of inputs, drawn by chance."""
        shape = self.network.input
        sides = (shape.size,) * shape.rank
        return self.torch.rand(
            (batch_size, shape.channels, *sides), device=self.device, dtype=self.dtype
        )

    def run(self, sample: Any, after: Callable[[str], object] = lambda _: None) -> Any:
        """Return the output for a batch; `after` is told the name of each step that has run."""
        last_use = {name: number for number, step in enumerate(self.steps) for name in step.inputs}
        values = {INPUT: sample}
        for number, step in enumerate(self.steps):
            values[step.name] = step.call(*(values[name] for name in step.inputs))
            for name in step.inputs:
                # What nobody reads again is freed, as a program would.
                if last_use[name] == number:
                    values.pop(name, None)
            after(step.name)
        return values[self.steps[-1].name]

    def _add(self, name: str, call: Call, *inputs: str) -> str:
        self.steps.append(Step(name, inputs, call))
        return name

    def _weight(self, *sides: int, scale: float = 1.0) -> Any:
        drawn = self.torch.randn(sides, device=self.device, dtype=self.dtype) * scale
        self.weights.append(drawn)
        return drawn

    def _matrix(self, outputs: int, inputs: int) -> Any:
        # Numbers keep their size from layer to layer: neither zeros nor infinities are timed.
        return self._weight(outputs, inputs, scale=(2 / inputs) ** 0.5)

    def _activation(self, name: str) -> Call:
        if not name:
            return lambda x: x
        found = getattr(self.torch.nn.functional, name)
        if name.endswith("softmax"):
            return lambda x: found(x, dim=1)
        call: Call = found
        return call

    def _layer(self, layer: Any, shape: Shape, source: str) -> str:
        if isinstance(layer, ResidualStage):
            return self._residual_stage(layer, shape, source)
        if isinstance(layer, PatchEmbedding):
            return self._add(layer.name, self._patches(layer, shape), source)
        if isinstance(layer, EncoderStage):
            return self._encoder(layer, shape, source)
        if isinstance(layer, FirstToken):
            return self._add(layer.name, lambda x: x[:, 0], source)
        if isinstance(layer, model.Dropout):
            return source
        return self._leaf(layer, shape, source)

    def _leaf(self, layer: Any, shape: Shape, source: str, shortcut: str = "") -> str:
        make = _LEAVES.get(type(layer))
        if make is None or (shape.rank != 2 and type(layer) is not model.Linear):
            raise self._unsupported(layer)
        call = make(self, layer, shape)
        return self._add(layer.name, call, source, *((shortcut,) if shortcut else ()))

    def _unsupported(self, layer: Any) -> UnsupportedLayerError:
        return UnsupportedLayerError(
            f"{self.network.name}: time_network can't run its layer {layer.name} "
            f"({type(layer).__name__}). It runs convolutions, pooling, linear layers, residual "
            "blocks and encoders over patches: AlexNet, VGG16, ResNet18 to ResNet152, "
            "MobileNetV2, EfficientNet_B0, ViT_B16. Time others by time_function."
        )

    def _convolution(self, layer: model.Convolution, shape: Shape) -> Call:
        if layer.joined:
            raise self._unsupported(layer)
        f, torch = self.torch.nn.functional, self.torch
        depth, out, kernel = shape.channels // layer.groups, layer.out_channels, layer.kernel
        scale = (2 / (depth * kernel**2)) ** 0.5
        weight = self._weight(out, depth, kernel, kernel, scale=scale)
        bias = self._weight(out) if layer.bias else None
        norm = [self._weight(out), self._weight(out)] if layer.batch_norm else []
        mean = torch.zeros(out, device=self.device, dtype=self.dtype)
        variance = torch.ones(out, device=self.device, dtype=self.dtype)
        act = self._activation(layer.activation)

        def call(x: Any, shortcut: Any = None) -> Any:
            x = f.conv2d(x, weight, bias, layer.stride, layer.padding, 1, layer.groups)
            if norm:
                x = f.batch_norm(x, mean, variance, *norm)
            return act(x if shortcut is None else x + shortcut)

        return call

    def _pool(self, layer: model.Pool, shape: Shape) -> Call:
        f, act = self.torch.nn.functional, self._activation(layer.activation)
        window = (layer.kernel, layer.stride, layer.padding)
        factor, shift = (
            (self._weight(shape.channels, 1, 1), self._weight(shape.channels, 1, 1))
            if layer.trained
            else (None, None)
        )

        def call(x: Any) -> Any:
            if not layer.kernel:
                return act(f.adaptive_avg_pool2d(x, 1))
            if factor is not None:
                return act(f.avg_pool2d(x, *window) * factor + shift)
            return act((f.avg_pool2d if layer.mean else f.max_pool2d)(x, *window))

        return call

    def _linear(self, layer: model.Linear, shape: Shape) -> Call:
        f, act = self.torch.nn.functional, self._activation(layer.activation)
        weight = self._matrix(layer.out_features, shape.elements)
        bias = self._weight(layer.out_features) if layer.bias else None
        return lambda x: act(f.linear(x.flatten(1), weight, bias))

    def _response_norm(self, layer: model.ResponseNorm, shape: Shape) -> Call:
        f = self.torch.nn.functional
        return lambda x: f.local_response_norm(x, 5)

    def _residual_stage(self, stage: ResidualStage, shape: Shape, source: str) -> str:
        """Chain the blocks: a few layers beside a shortcut, which may be a convolution."""
        for number in range(1, stage.blocks + 1):
            block = shortcut = wide = source
            for part in stage.block(shape, number):
                name = part.operators[0].name
                if part.layer is None:  # channels weighed by a function of their means
                    source = self._add(name, lambda x, w: x * w[..., None, None], wide, source)
                    continue
                assert part.input is not None
                if name.endswith(".down"):
                    shortcut = self._leaf(part.layer, part.input, block)
                    continue
                adds = getattr(part.layer, "adds_residual", False)
                source = self._leaf(part.layer, part.input, source, shortcut if adds else "")
                if name.endswith(".depthwise"):
                    wide = source
            shape = part.output
        return source

    def _patches(self, layer: PatchEmbedding, shape: Shape) -> Call:
        f, torch, width = self.torch.nn.functional, self.torch, layer.width
        sides = (width, shape.channels, layer.patch, layer.patch)
        weight = self._weight(*sides, scale=(2 / (shape.channels * layer.patch**2)) ** 0.5)
        bias, first = self._weight(width), self._weight(1, 1, width) if layer.class_token else None
        places = self._weight(1, layer.lower(shape).output.size, width)

        def call(x: Any) -> Any:
            x = f.conv2d(x, weight, bias, layer.patch).flatten(2).transpose(1, 2)
            if first is not None:
                x = torch.cat([first.expand(len(x), -1, -1), x], dim=1)
            return x + places

        return call

    def _encoder(self, stage: EncoderStage, shape: Shape, source: str) -> str:
        if stage.norm != "layer" or stage.relative_positions or stage.gated:
            raise self._unsupported(stage)
        stream = last = source
        for name, part in _named(stage.parts(shape)):
            end, width = name.rpartition(".")[2], part.operators[0].outputs
            if end == "norm":
                last = self._add(name, self._norm(shape.channels), stream)
            elif end == "attention":
                last = self._add(name, self._attention(stage), last)
            elif end in ("out", "down"):
                inputs = stage.inner if end == "out" else stage.feed_forward
                last = stream = self._add(
                    name, self._added(width, inputs, biased=stage.output_bias), last, stream
                )
            else:
                act = self._activation(stage.activation if end == "up" else "")
                bias = stage.output_bias if end == "up" else stage.bias
                last = self._add(name, self._product(width, shape.channels, act, biased=bias), last)
        return last

    def _norm(self, width: int) -> Call:
        f, scale, shift = self.torch.nn.functional, self._weight(width), self._weight(width)
        return lambda x: f.layer_norm(x, (width,), scale, shift)

    def _product(self, outputs: int, inputs: int, act: Call, *, biased: bool) -> Call:
        f, weight = self.torch.nn.functional, self._matrix(outputs, inputs)
        bias = self._weight(outputs) if biased else None
        return lambda x: act(f.linear(x, weight, bias))

    def _added(self, outputs: int, inputs: int, *, biased: bool) -> Call:
        product = self._product(outputs, inputs, lambda x: x, biased=biased)
        return lambda x, stream: product(x) + stream

    def _attention(self, stage: EncoderStage) -> Call:
        attend = self.torch.nn.functional.scaled_dot_product_attention
        heads = (3, stage.heads, stage.head_size)

        def call(x: Any) -> Any:
            queries, keys, values = x.unflatten(2, heads).permute(2, 0, 3, 1, 4)
            return attend(queries, keys, values).transpose(1, 2).flatten(2)

        return call


def _named(parts: Iterator[Lowered]) -> Iterator[tuple[str, Lowered]]:
    return ((part.operators[0].name, part) for part in parts)


_LEAVES: dict[type[Any], Callable[[TorchNetwork, Any, Shape], Call]] = {
    model.Convolution: TorchNetwork._convolution,
    model.Linear: TorchNetwork._linear,
    model.Pool: TorchNetwork._pool,
    model.ResponseNorm: TorchNetwork._response_norm,
}
