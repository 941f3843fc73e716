"""Many points at once, in blocks of arrays that stay in the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mlsim.equations import Plan

# Points in a block: with some 30 operators a column block is under a megabyte,
# and the handful that are alive at a time stay in a level-2 cache.
BLOCK = 3072


def evaluate_blocks(
    steps: Plan,
    known: Mapping[str, Any],
    columns_2d: Mapping[str, Any],
    shape: tuple[int, ...],
    into: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run a plan on arrays of points; `into` names flat arrays to fill.

    Columns of operators have the shape (operators, 1); what is known has that of the
    points, or is one number for all.
    """
    import numpy as np

    size = int(np.prod(shape))
    # Arrays are laid out flat, so that a block is a slice of each.
    flat = {
        name: np.broadcast_to(value, shape).reshape(-1)
        for name, value in known.items()
        if getattr(value, "ndim", 0)
    }
    # What is the same for all points is computed once.
    once, each = steps.split(flat)
    columns = once.run({**known, **columns_2d})

    def run(block: slice) -> dict[str, Any]:
        return each.run({**columns, **{name: value[block] for name, value in flat.items()}})

    # One point shows the form of each answer: per operator, or one for all.
    first = run(slice(0, 1))
    results = into or {name: _room(np, first[name], size) for name in steps.wanted}

    def fill(start: int, stop: int) -> None:
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            values = run(block)
            for name, result in results.items():
                result[..., block] = values[name]

    _in_parallel(fill, size)
    return {name: value.reshape(*value.shape[:-1], *shape) for name, value in results.items()}


def _room(np: Any, value: Any, size: int) -> Any:
    """Make the array for an answer: rows per operator, if it has them, then points."""
    value = np.asarray(value)
    return np.empty((*(value.shape[:-1] if value.ndim > 1 else ()), size), dtype=value.dtype)


def _in_parallel(fill: Callable[[int, int], None], size: int) -> None:
    """Fill all points, large arrays in as many threads as there are processors.

    NumPy lets go of the interpreter while it computes, so threads help.
    """
    workers = min(os.cpu_count() or 1, size // (8 * BLOCK))
    if workers < 2:
        fill(0, size)
        return
    step = -(-size // (workers * BLOCK)) * BLOCK
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(fill, start, min(start + step, size)) for start in range(0, size, step)
        ]
        for future in futures:
            future.result()
