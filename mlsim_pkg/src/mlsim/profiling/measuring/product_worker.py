"""The process that multiplies matrices: a line of JSON in, a line of JSON out.

It is started by `mlsim.profiling.measuring.products` with the name of a library and a number of
threads, and ends with its input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, TextIO

from mlsim.profiling.measuring.waiting import Waits, disturbed, thread_waits

# Threads wake up and a processor's clock settles within some 20 ms of work; then all products of a
# while are taken. If other programs disturbed all of them, a few more.
WARM_SECONDS, SAMPLE_SECONDS, MORE_PRODUCTS = 0.03, 0.04, 2
# Short products follow one another without a pause for so long; then it is asked who was disturbed.
BLOCK_SECONDS = 0.01
# A format's name in a library.
NUMPY = {"fp64": "float64", "fp32": "float32"}
TORCH = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

Product = Callable[[], object]
Maker = Callable[[str, int], Product]


def numpy_products(threads: int) -> tuple[str, Maker]:
    """Return NumPy's version with that of its library, and what makes a product."""
    import numpy as np

    def make(number_format: str, side: int) -> Product:
        kind = NUMPY[number_format]
        # Random numbers, since a core that multiplies zeros stays cool; few, since they take time.
        few = np.random.default_rng(0).random(2**16 + 1).astype(kind)
        a, b = (np.resize(few, (side, side)) for _ in range(2))
        out = np.empty((side, side), dtype=kind)
        return lambda: np.matmul(a, b, out=out)

    return f"NumPy {np.__version__}{_blas(np)}", make


def _blas(numpy: Any) -> str:
    try:
        found = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        version = found.get("version", "")
        return f" with {found['name']} {version}".rstrip()
    except (AttributeError, KeyError, TypeError):
        return ""


def torch_products(threads: int) -> tuple[str, Maker]:
    """Return PyTorch's version, and what makes a product on the processor."""
    import torch

    torch.set_num_threads(threads)

    def make(number_format: str, side: int) -> Product:
        if number_format == "int8":
            whole = [torch.ones((side, side), dtype=torch.int8) for _ in range(2)]
            return lambda: torch._int_mm(*whole)
        kind = getattr(torch, TORCH[number_format])
        a, b = (torch.rand((side, side)).to(kind) for _ in range(2))
        out = torch.empty((side, side), dtype=kind)
        return lambda: torch.matmul(a, b, out=out)

    return f"PyTorch {torch.__version__}", make


LIBRARIES: dict[str, Callable[[int], tuple[str, Maker]]] = {
    "numpy": numpy_products,
    "torch": torch_products,
}


def answer(
    make: Maker,
    question: Any,
    clock: Callable[[], float] = perf_counter,
    waits: Waits = thread_waits,
) -> dict[str, Any]:
    """Time the products of one question; return seconds, or why there are none."""
    try:
        product = make(question["format"], question["side"])
        seconds, marks = _timed(product, question["times"], clock, waits)
    except KeyError as error:
        return {"error": f"there is no product in {error}"}
    except (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
    return {"seconds": seconds, "disturbed": marks}


def _timed(
    product: Product, times: int, clock: Callable[[], float], waits: Waits
) -> tuple[list[float], list[bool]]:
    """Warm up, then time products; return seconds of each, and whether others disturbed it."""
    begin = last = clock()
    taken = 0.0
    while not taken or last - begin < WARM_SECONDS:
        product()
        now = clock()
        last, taken = now, now - last
    block = max(1, int(BLOCK_SECONDS / taken)) if taken else 1
    seconds: list[float] = []
    marks: list[bool] = []
    begin = clock()
    while (
        len(seconds) < times
        or clock() - begin < SAMPLE_SECONDS
        or (all(marks) and len(seconds) < times + MORE_PRODUCTS)
    ):
        before, first = waits(), clock()
        last = first
        for _ in range(block):
            product()
            now = clock()
            seconds.append(now - last)
            last = now
        marks += [disturbed(before, waits(), last - first)] * block
    return seconds, marks


def serve(library: str, threads: int, questions: Iterable[str], out: TextIO) -> None:
    """Answer one question after the other, until there are no more."""

    def say(what: dict[str, Any]) -> None:
        print(json.dumps(what), file=out, flush=True)

    try:
        version, make = LIBRARIES[library](threads)
    except ImportError as error:
        say({"error": f"not installed: {error}"})
        return
    say({"version": version})
    for line in questions:
        say(answer(make, json.loads(line)))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.stdin, sys.stdout)
