"""A PyTorch that has one GPU, whose work only moves a clock when it is waited for."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

MIB = 2**20
CACHE, MEMORY = 32 * MIB, 2048 * MIB
CACHED, RATE, LINK, LAUNCH = 8e12, 2e12, 20e9, 3e-6
PRODUCTS = {
    "float64": 30e12,
    "float32": 60e12,
    "tf32": 400e12,
    "bfloat16": 800e12,
    "float16": 800e12,
}
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "uint8": 1, "int8": 1}


class Tensor:
    """Numbers that are not there: a count, a side and a kind."""

    def __init__(self, torch: MadeTorch, count: int, kind: str, side: int = 0) -> None:
        self.torch, self.count, self.kind, self.side = torch, count, kind, side

    def __getitem__(self, part: slice) -> Tensor:
        return Tensor(self.torch, part.stop, self.kind)

    def to(self, kind: str) -> Tensor:
        if kind not in BYTES:
            raise TypeError(f"no {kind} here")
        return Tensor(self.torch, self.count, kind, self.side)

    def add_(self, _: float) -> Tensor:
        self.torch.work(0.0)
        return self

    def copy_(self, other: Tensor, *, non_blocking: bool) -> Tensor:
        self.torch.work(other.count / LINK)
        return self

    def pin_memory(self) -> Tensor:
        return self


class MadeTorch:
    """The part of PyTorch that a measurement uses."""

    __version__ = "9.9"
    float64, float32, bfloat16, float16 = "float64", "float32", "bfloat16", "float16"
    uint8, int8 = "uint8", "int8"

    def __init__(self, *, there: bool = True, backend: str = "cuda", noise: float = 0.01) -> None:
        self.now, self.queued, self._random, self._noise = 0.0, 0.0, Random(0), noise
        matmul = SimpleNamespace(allow_tf32=False)
        self.backends = SimpleNamespace(
            cuda=SimpleNamespace(matmul=matmul),
            mps=SimpleNamespace(is_available=lambda: there and backend == "mps"),
        )
        facts = SimpleNamespace(total_memory=MEMORY, L2_cache_size=CACHE)
        self.cuda = SimpleNamespace(
            is_available=lambda: there and backend == "cuda",
            get_device_name=lambda _: "Made GPU",
            get_device_properties=lambda _: facts,
            synchronize=self.wait,
        )
        self.mps = SimpleNamespace(recommended_max_memory=lambda: MEMORY, synchronize=self.wait)

    def clock(self) -> float:
        """Return the time of the host."""
        return self.now

    def work(self, seconds: float) -> None:
        """Queue work: the host goes on at once."""
        self.queued += max(LAUNCH, seconds) * (1 + self._noise * self._random.random())

    def wait(self) -> None:
        """Wait until the queue is empty."""
        self.now, self.queued = self.now + self.queued, 0.0

    def ones(self, *shape: int, device: str = "", dtype: str = "float32") -> Tensor:
        return Tensor(self, shape[0] if shape and isinstance(shape[0], int) else 1, dtype, 0)

    def empty(self, count: int, *, dtype: str, device: str = "") -> Tensor:
        return Tensor(self, count, dtype)

    def randn(self, side: int, _: int, *, device: str, dtype: str) -> Tensor:
        return Tensor(self, side * side, dtype, side)

    def empty_like(self, other: Tensor) -> Tensor:
        return other

    def add(self, a: Tensor, b: Tensor, *, alpha: float, out: Tensor) -> Tensor:
        size = 12 * a.count
        self.work(size / (CACHED if size <= CACHE else RATE))
        return out

    def matmul(self, a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        tf32 = a.kind == "float32" and self.backends.cuda.matmul.allow_tf32
        self.work(2 * a.side**3 / PRODUCTS["tf32" if tf32 else a.kind])
        return out

    def _int_mm(self, a: Tensor, b: Tensor) -> Any:
        raise RuntimeError("int8 products need another GPU\nwith more of it")
