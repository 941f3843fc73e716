"""The ceilings of a GPU through PyTorch: CUDA, ROCm (which PyTorch calls cuda), or MPS.

`torch` is an argument, so that a test can stand in for it. A GPU works on after a call has
returned: times are of many calls, from one wait for the device to the next.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

from mlsim.errors import NotMeasuredError
from mlsim.hardware.this_machine import this_machine
from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement, lacking
from mlsim.profiling.measuring.parts import STEPS_PER_DOUBLING
from mlsim.profiling.measuring.rounds import (
    Measure,
    best_curves,
    judged,
    level_figures,
    middle_curve,
    run_rounds,
)
from mlsim.profiling.measuring.samples import Clock, product_flops

SIDES = (1024, 2048, 4096, 8192)
LONG_ENOUGH, SAMPLE = 0.02, 0.01
# Arrays of four bytes an element; three of them are a working set.
ELEMENT, ARRAYS = 4, 3
SMALLEST, LARGEST = 2 * 2**20, 3 * 2**30
MEMORY_PART = 1 / 4
LAUNCHES, COPIED = 500, 256 * 2**20
_HOW = {
    "memory.bandwidth": "Sum of one array and a multiple of another into a third, {size:.0f} MiB "
    "together; 12 B for each element.",
    "starts.kernel": "Additions to a single number, launched one after another; the wait at the "
    "end is shared by all.",
    "links.pcie": "Copies of 256 MiB from pinned memory of the host.",
}


@dataclass
class Gpu:
    """One device of PyTorch, and what its work takes."""

    torch: Any
    backend: str
    clock: Clock = perf_counter
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def module(self) -> Any:
        """`torch.cuda` or `torch.mps`."""
        return getattr(self.torch, self.backend)

    @property
    def name(self) -> str:
        """What the driver calls it."""
        if self.backend == "cuda":
            return str(self.module.get_device_name(0))
        return f"{this_machine().processor} GPU"

    @property
    def capacity(self) -> int:
        """Its memory in B, as the driver lists it."""
        if self.backend == "cuda":
            return int(self.module.get_device_properties(0).total_memory)
        return int(self.module.recommended_max_memory())

    @property
    def cache(self) -> int:
        """Its last cache in B, where the driver says; else 0."""
        if self.backend != "cuda":
            return 0
        return int(getattr(self.module.get_device_properties(0), "L2_cache_size", 0) or 0)

    def seconds(self, key: str, call: Callable[[], object], samples: int = 3) -> float:
        """Return the least time of a call, of samples of many calls each."""
        if key not in self.calls:
            call()
            calls = 1
            while self._sample(call, calls) < SAMPLE and calls < 2**20:
                calls *= 2
            self.calls[key] = calls
        calls = self.calls[key]
        return min(self._sample(call, calls) for _ in range(samples)) / calls

    def _sample(self, call: Callable[[], object], calls: int) -> float:
        self.module.synchronize()
        begin = self.clock()
        for _ in range(calls):
            call()
        self.module.synchronize()
        return self.clock() - begin


def find_gpu(torch: Any, clock: Clock = perf_counter) -> Gpu:
    """Return the first GPU that PyTorch sees.

    Raises
    ------
    NotMeasuredError
        If it sees none; says what to try.
    """
    if torch.cuda.is_available():
        return Gpu(torch, "cuda", clock)
    mps = getattr(getattr(torch, "backends", None), "mps", None)
    if mps is not None and mps.is_available():
        return Gpu(torch, "mps", clock)
    raise NotMeasuredError(
        f"PyTorch {torch.__version__} sees no GPU here. A build for the processor alone has +cpu "
        "in its version: install one for CUDA or ROCm. Without a GPU: mlsim measure, and "
        "mlsim.lab for measured kernels of others."
    )


def makers(gpu: Gpu) -> Mapping[str, Callable[[int], Callable[[], object]]]:
    """Return what makes a product of square matrices, by format."""
    torch, where = gpu.torch, gpu.backend

    def plain(kind: str, *, tf32: bool = False) -> Callable[[int], Callable[[], object]]:
        def make(side: int) -> Callable[[], object]:
            a, b = (
                torch.randn(side, side, device=where, dtype=torch.float32).to(getattr(torch, kind))
                for _ in range(2)
            )
            out = torch.empty_like(a)

            def call() -> object:
                if where == "cuda":
                    torch.backends.cuda.matmul.allow_tf32 = tf32
                return torch.matmul(a, b, out=out)

            return call

        return make

    def int8(side: int) -> Callable[[], object]:
        a, b = (torch.ones(side, side, device=where, dtype=torch.int8) for _ in range(2))
        return lambda: torch._int_mm(a, b)

    def fp8(side: int) -> Callable[[], object]:
        a, b = (torch.ones(side, side, device=where).to(torch.float8_e4m3fn) for _ in range(2))
        scale = torch.ones((), device=where)
        # The second matrix is taken by columns.
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
        )

    found = {"fp64": plain("float64"), "fp32": plain("float32")}
    if where == "cuda":
        found["tf32"] = plain("float32", tf32=True)
    found |= {"bf16": plain("bfloat16"), "fp16": plain("float16")}
    return found | ({"fp8": fp8, "int8": int8} if where == "cuda" else {})


# What PyTorch and drivers raise for what a device can't do.
_REFUSALS = (RuntimeError, TypeError, AttributeError, ValueError, NotImplementedError)


def choose(
    gpu: Gpu, make: Callable[[int], Callable[[], object]]
) -> tuple[Callable[[], object], int] | str:
    """Return the product with the highest rate, and its side; or why there is none."""
    best: tuple[float, Callable[[], object], int] | None = None
    for side in SIDES:
        try:
            call = make(side)
            seconds = gpu.seconds(f"try {side}", call, 1)
        except _REFUSALS as error:
            said = str(error).splitlines()
            if best is None:
                return f"not there: {said[0] if said else type(error).__name__}"
            break
        finally:
            gpu.calls.pop(f"try {side}", None)
        rate = product_flops(side) / seconds
        if best is None or rate > best[0]:
            best = (rate, call, side)
        if seconds > LONG_ENOUGH:
            break
    return best[1:] if best else "not there"


def measure_gpu(
    torch: Any,
    *,
    seconds: float,
    say: Callable[[str], None],
    clock: Clock = perf_counter,
    now: Clock = monotonic,
    accept_noisy: bool | None = False,
) -> Measurement:
    """Measure the GPU that PyTorch sees; see `mlsim.profiling.measure`.

    Raises
    ------
    NotMeasuredError
        If there is none.
    """
    began = now()
    gpu = find_gpu(torch, clock)
    sizes, streams = _streams(gpu)
    curves: list[list[float]] = []
    refused: dict[str, str] = {}
    hows = {"memory.bandwidth": _HOW["memory.bandwidth"].format(size=sizes[-1] / 2**20)}
    parts: dict[str, Measure] = {}

    def memory() -> Mapping[str, float]:
        each = zip(sizes, streams, strict=True)
        curves.append([size / gpu.seconds(f"stream {size}", call, 2) for size, call in each])
        return {"memory.bandwidth": curves[-1][-1]}

    parts["memory"] = memory
    products: dict[str, tuple[Callable[[], object], int]] = {}
    for name, make in makers(gpu).items():
        say(f"products in {name}")
        chosen = choose(gpu, make)
        if isinstance(chosen, str):
            refused[f"compute.{name}"] = chosen
        else:
            products[f"compute.{name}"] = chosen
            hows[f"compute.{name}"] = (
                f"Product of two matrices of {chosen[1]} x {chosen[1]}, "
                f"PyTorch {torch.__version__}."
            )
    parts["products"] = lambda: {
        name: product_flops(side) / gpu.seconds(name, call)
        for name, (call, side) in products.items()
    }
    one = torch.ones(1, device=gpu.backend)

    def launches() -> None:
        for _ in range(LAUNCHES):
            one.add_(1.0)

    parts["starts"] = lambda: {"starts.kernel": gpu.seconds("starts", launches) / LAUNCHES}
    if gpu.backend == "cuda":
        there = torch.empty(COPIED, dtype=torch.uint8, device=gpu.backend)
        here = torch.empty(COPIED, dtype=torch.uint8).pin_memory()
        parts["copies"] = lambda: {
            "links.pcie": COPIED
            / gpu.seconds("copies", lambda: there.copy_(here, non_blocking=True))
        }
    rounds = run_rounds(parts, now, began + seconds, say, accept_noisy=bool(accept_noisy))
    values = rounds.stretches()
    if gpu.cache:
        levels, lost = level_figures("memory", sizes, best_curves(curves), {2: gpu.cache})
        values, refused = values | levels, refused | lost
    how = {**_HOW, **hows}

    def found(*, keep: bool) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
        return judged(
            values,
            lambda name: how.get(name, "Working sets from small to large, as for memory."),
            rounds.count,
            wanted=rounds.wanted,
            accept_noisy=keep,
        )

    figures, noisy = found(keep=bool(accept_noisy))
    if accept_noisy is None and lacking(figures):
        figures, noisy = found(keep=True)
    return Measurement(
        machine=this_machine(),
        kind="gpu",
        name=gpu.name,
        date=datetime.datetime.now(tz=datetime.UTC).date(),
        figures=figures,
        refused=refused | noisy,
        curves={"GPU": (sizes, middle_curve(curves))},
        versions={"PyTorch": f"{torch.__version__}, {gpu.backend}"},
        rounds=rounds.count,
        seconds=now() - began,
        capacity=gpu.capacity,
    )


def _streams(gpu: Gpu) -> tuple[list[int], list[Callable[[], object]]]:
    """Return working sets in B, and a pass over each."""
    torch = gpu.torch
    largest = min(LARGEST, int(gpu.capacity * MEMORY_PART))
    a, b, c = (
        torch.ones(largest // ARRAYS // ELEMENT, device=gpu.backend, dtype=torch.float32)
        for _ in range(ARRAYS)
    )
    counts, size = [], float(SMALLEST)
    while size < largest:
        counts.append(int(size) // ARRAYS // ELEMENT)
        size *= 2 ** (1 / STEPS_PER_DOUBLING)
    counts = sorted({*counts, largest // ARRAYS // ELEMENT})

    def make(count: int) -> Callable[[], object]:
        x, y, z = a[:count], b[:count], c[:count]
        return lambda: torch.add(x, y, alpha=3.0, out=z)

    return [each * ARRAYS * ELEMENT for each in counts], [make(each) for each in counts]
