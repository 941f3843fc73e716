"""Many points at once, in blocks of arrays that stay in the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mlsim.equations import Plan
from mlsim.equations.graph import fold

# Points in a block: with some 30 operators a column block is under a megabyte,
# and the handful that are alive at a time stay in a level-2 cache.
BLOCK = 3072
# Blocks that a thread fills before it takes the next.
BLOCKS_A_TASK = 4

# Whether others have the rest of the processors.
_ALONE = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Compute in this thread only, as one of several workers does."""
    before = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(before)


@dataclass(frozen=True, slots=True)
class Job:
    """Points to fill in: `fill` takes where to begin and where to stop."""

    fill: Callable[[int, int], None]
    size: int


def evaluate_blocks(
    steps: Plan,
    known: Mapping[str, Any],
    columns_2d: Mapping[str, Any],
    shape: tuple[int, ...],
) -> dict[str, Any]:
    """Run a plan on arrays of points.

    Columns of operators have the shape (operators, 1); what is known has that of the
    points, or is one number for all.
    """
    results: dict[str, Any] = {}
    run_jobs([prepare(steps, known, columns_2d, shape, results)])
    return {name: value.reshape(*value.shape[:-1], *shape) for name, value in results.items()}


def prepare(
    steps: Plan,
    known: Mapping[str, Any],
    columns_2d: Mapping[str, Any],
    shape: tuple[int, ...],
    results: dict[str, Any],
) -> Job:
    """Return the work that fills `results`, flat arrays; those that are missing are made."""
    import numpy as np

    size = int(np.prod(shape))
    # Arrays are laid out flat, so that a block is a slice of each.
    flat = {
        name: np.broadcast_to(value, shape).reshape(-1)
        for name, value in known.items()
        if getattr(value, "ndim", 0)
    }
    # What is the same for all points is computed once.
    folded = fold(steps, {**known, **columns_2d}, flat)

    def run(block: slice) -> dict[str, Any]:
        return folded({name: value[block] for name, value in flat.items()})

    # One point shows the form of each answer: per operator, or one for all.
    first = run(slice(0, 1))
    for name in steps.wanted:
        if name not in results:
            results[name] = _room(np, first[name], size)

    def fill(start: int, stop: int) -> None:
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            values = run(block)
            for name in steps.wanted:
                results[name][..., block] = values[name]

    return Job(fill, size)


def _room(np: Any, value: Any, size: int) -> Any:
    """Make the array for an answer: rows per operator, if it has them, then points."""
    value = np.asarray(value)
    return np.empty((*(value.shape[:-1] if value.ndim > 1 else ()), size), dtype=value.dtype)


def run_jobs(jobs: Sequence[Job]) -> None:
    """Fill all points, large arrays in as many threads as there are processors.

    NumPy lets go of the interpreter while it computes, so threads help. Tasks are
    short, so that all threads finish at one time.
    """
    task = BLOCKS_A_TASK * BLOCK
    workers = min(os.cpu_count() or 1, sum(job.size for job in jobs) // (2 * task))
    if workers < 2 or _ALONE.get():
        for job in jobs:
            job.fill(0, job.size)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(job.fill, start, min(start + task, job.size))
            for job in jobs
            for start in range(0, job.size, task)
        ]
        for future in futures:
            future.result()
