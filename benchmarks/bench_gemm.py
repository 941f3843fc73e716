"""How fast layers in low precision are predicted, beside torchao's SymPy, in one run.

    python benchmarks/bench_gemm.py torchao-0.18.0-...whl [--shapes 1000] [--theirs 10]

torchao builds an expression in M, K and N for each recipe, and puts each shape into it: as its
own benchmark of float8 does. It takes shape after shape, so its time for all is that of
`--theirs` of them, scaled. PyTorch itself is not needed: the file uses its names of formats
alone, which stand in for it here. Every number is compared with ours before the clock counts.
"""

from __future__ import annotations

import argparse
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import sympy
from tables import lay_out

from mlsim import Engine
from mlsim.workloads.recipes import recipes

MODULE = "torchao/testing/training/roofline_utils.py"
GPU, DEVICE, NAME = "NVIDIA B200", "B200", "torchao-0.18.0"
FLOAT8 = ("tensorwise", "rowwise", "rowwise_with_gw_hp")
BLOCKWISE = "blockwise_fp8_128"
GOAL, REPEATS = 100_000, 7


def their_module(wheel: Path) -> Any:
    """Return torchao's roofline, with names in place of PyTorch's formats."""
    if "torch" not in sys.modules:
        torch = types.ModuleType("torch")
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"):
            setattr(torch, name, name)
        sys.modules["torch"] = torch
    source = (
        zipfile.ZipFile(wheel).read(MODULE).decode()
        if wheel.suffix == ".whl"
        else wheel.read_text()
    )
    module = types.ModuleType("roofline_utils")
    exec(compile(source, MODULE, "exec"), module.__dict__)
    return module


def cases() -> Iterator[tuple[str, str, bool]]:
    """Yield each recipe with its phase, fused and not."""
    for key, each in recipes("torchao").items():
        if each.source == "pytorch2026torchao":
            for phase in each.phases:
                fusing = each.fuses(phase)
                yield from (
                    (key, phase, fused) for fused in ((False, True) if fusing else (False,))
                )


def their_expression(theirs: Any, key: str, phase: str, fused: bool) -> Any:
    """Return torchao's time of products and passes in symbols."""
    m, k, n = sympy.symbols("M K N")
    low = "float4_e2m1fn_x2" if "fp4" in key else "float8_e4m3fn"
    scaled = None if key in (*FLOAT8, BLOCKWISE) else key
    if phase == "inference":
        return theirs.get_inference_gemm_time_sympy(
            m, k, n, low, scaled, GPU
        ) + theirs.get_inference_float8_mem_sympy(m, k, n, key, GPU)
    if key == BLOCKWISE:
        return theirs.get_blockwise_gemm_time_sympy(
            m, k, n, GPU
        ) + theirs.get_blockwise_float8_mem_sympy(m, k, n, fused, GPU)
    float8 = key if key in FLOAT8 else None
    return theirs.get_gemm_time_sympy(
        m, k, n, low, float8, scaled, GPU
    ) + theirs.get_float8_mem_sympy(m, k, n, float8, scaled, fused, GPU)


def timed(function: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the median time in s of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = function()
        times.append(time.perf_counter() - start)
    return median(times), found


def all_ours(shapes: np.ndarray) -> dict[tuple[str, bool], Any]:
    """Return our times of all recipes, by phase and by whether passes are fused."""
    found = {}
    for phase, fused in (("training", False), ("training", True), ("inference", False)):
        found[phase, fused] = Engine.compare_formats(
            *shapes, hardware=DEVICE, constants=NAME, training=phase == "training", fused=fused
        )
    for each in found.values():
        _ = each.format_speedup
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("wheel", type=Path, help="torchao's wheel, or its roofline_utils.py")
    options.add_argument("--shapes", type=int, default=1000)
    options.add_argument("--theirs", type=int, default=10, help="shapes that torchao is timed on")
    given = options.parse_args()
    theirs = their_module(given.wheel)
    shapes = np.random.default_rng(7).integers(1, 16385, (3, given.shapes))
    ours_time, ours = timed(lambda: all_ours(shapes))

    their_time, worst, count = 0.0, 0.0, 0
    symbols = sympy.symbols("M K N")
    for key, phase, fused in cases():
        table = ours[phase, fused]
        own = table.latency[table.formats.index(key)]
        start = time.perf_counter()
        drawn = their_expression(theirs, key, phase, fused)
        values = []
        for m, n, k in shapes[:, : given.theirs].T.tolist():
            found = drawn
            for symbol, size in zip(symbols, (m, k, n), strict=True):
                found = found.subs(symbol, size)
            values.append(float(found))
        their_time += (time.perf_counter() - start) * given.shapes / given.theirs
        worst = max(worst, float(np.max(np.abs(own[: given.theirs] / values - 1))))
        count += 1
    assert worst < 1e-9, worst

    million = np.random.default_rng(8).integers(1, 513, (3, 10**6)) * 32
    rows = [
        (
            f"{given.shapes:,} shapes, {count} recipes",
            f"{ours_time * 1e3:.1f} ms",
            f"{their_time:,.0f} s",
            f"{their_time / ours_time:,.0f}x",
            f">= {GOAL:,}x",
            "yes" if their_time / ours_time >= GOAL else "NO",
        )
    ]
    for words, asked in (
        ("a million shapes, FP8", {"precision": "fp8"}),
        ("a million, FP8 by rows, training", {"recipe": "fp8_rowwise", "training": True}),
        ("a million, torchao's rowwise",
         {"recipe": "rowwise", "training": True, "constants": NAME}),
        ("a million, calibrated, trtllm",
         {"precision": "fp8", "estimate": "calibrated", "backend": "trtllm"}),
        ("a million, calibrated, fastest", {"precision": "fp8", "estimate": "calibrated"}),
    ):  # fmt: skip
        spent, _ = timed(
            lambda asked=asked: (
                Engine.gemm(*million, hardware=DEVICE, check_memory=False, **asked).format_speedup
            ),
            3,
        )
        reached = "yes" if spent <= 1 else "NO"
        rows.append((words, f"{spent:.2f} s", "", "", "<= 1 s", reached))
    print(lay_out(("what", "mlsim", "torchao", "ratio", "target", "reached"), rows))
    print(f"\nLargest difference of any number that was compared: {worst:.1e}.")


if __name__ == "__main__":
    main()
