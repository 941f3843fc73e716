"""What a step of training really holds in PyTorch on this processor, and networks to try."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402


class LiveMemory(TorchDispatchMode):
    """Counts the bytes of all tensors' memory that is alive, each piece once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._sizes: dict[int, int] = {}

    def see(self, tensor: torch.Tensor) -> None:
        """Count the memory of a tensor until it is freed."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.now += storage.nbytes()
            weakref.finalize(storage, self._drop, key)
            self.peak = max(self.peak, self.now)

    def _drop(self, key: int) -> None:
        self.now -= self._sizes.pop(key)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for each in tree_leaves(out):
            if isinstance(each, torch.Tensor):
                self.see(each)
        return out


def peak_of_a_step(
    module: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, optimizer: torch.optim.Optimizer
) -> int:
    """Return the most bytes that are alive in a step of training, the second one."""

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        out = module(inputs)
        loss = nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), targets.reshape(-1))
        loss.backward()
        optimizer.step()

    module.train()
    step()  # makes the optimizer's states
    optimizer.zero_grad(set_to_none=True)
    gc.collect()
    memory = LiveMemory()
    for each in tree_leaves([list(state.values()) for state in optimizer.state.values()]):
        if isinstance(each, torch.Tensor):
            memory.see(each)
    for each in (*module.parameters(), *module.buffers(), inputs, targets):
        memory.see(each)
    with memory:
        step()
    return memory.peak


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = (
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class SmallTransformer(nn.Module):
    """Four causal blocks, with learned positions and an output for each token."""

    def __init__(self, width: int = 128, vocabulary: int = 1000, tokens: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(tokens, width))
        self.blocks = nn.ModuleList(_Block(width, 4) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, vocabulary, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x))


# Each optimizer, and how many numbers it keeps of a parameter.
OPTIMIZERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], int]] = {
    "momentum": (lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9), 1),
    "Adam": (lambda parameters: torch.optim.Adam(parameters, lr=0.001), 2),
}


def cases() -> Iterator[tuple[str, nn.Module, torch.Tensor, torch.Tensor, dict[str, Any]]]:
    """Yield networks: name, module, inputs, targets, and what the reader is told."""
    from pytorch_parts import torchvision_models
    from zoo_modules import lenet

    torch.manual_seed(17)
    one = torch.zeros(128, dtype=torch.int64)
    yield "LeNet, 128 pictures", lenet(), torch.randn(128, 1, 28, 28), one, {"shape": (1, 28, 28)}
    pictures, few = torch.randn(8, 3, 224, 224), torch.zeros(8, dtype=torch.int64)
    resnet = torchvision_models().resnet18()
    yield "ResNet-18, 8 pictures", resnet, pictures, few, {"shape": (3, 224, 224)}
    words = torch.randint(0, 1000, (16, 64))
    yield "small transformer, 16 x 64 tokens", SmallTransformer(), words, words, {"tokens": 64}
