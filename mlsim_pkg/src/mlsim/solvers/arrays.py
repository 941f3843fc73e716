"""Many points at once, in blocks of arrays that stay in the cache."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mlsim.equations import Plan
from mlsim.equations.graph import fold
from mlsim.errors import InvalidValueError, need
from mlsim.quantities import term

if TYPE_CHECKING:
    import pandas


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


def evaluate_blocks(
    steps: Plan,
    known: Mapping[str, Any],
    columns_2d: Mapping[str, Any],
    shape: tuple[int, ...],
    wide: Mapping[str, Any] = MappingProxyType({}),
    *,
    into: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run a plan on arrays of points.

    Columns of operators have the shape (operators, 1), wide ones (operators, points); what is
    known has that of the points, or is one number for all. Flat arrays of `into` are filled.
    """
    import numpy as np

    results, size = dict(into or {}), math.prod(shape)
    # Arrays are laid out flat, so that a block is a slice of each.
    flat = {
        name: np.broadcast_to(value, shape).reshape(-1)
        for name, value in known.items()
        if getattr(value, "ndim", 0)
    } | dict(wide)
    # What is the same for all points is computed once.
    folded = fold(steps, {**known, **columns_2d}, flat)

    def run(block: slice) -> dict[str, Any]:
        return folded({name: value[..., block] for name, value in flat.items()})

    # One point shows the form of each answer: per operator, or one for all.
    first = run(slice(0, 1))
    for name in steps.wanted:
        if name not in results:
            value = np.asarray(first[name])
            rows = value.shape[:-1] if value.ndim > 1 else ()
            results[name] = np.empty((*rows, size), dtype=value.dtype)

    def fill(start: int, stop: int) -> None:
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            values = run(block)
            for name in steps.wanted:
                results[name][..., block] = values[name]

    # NumPy lets go of the interpreter while it computes, so threads help. Tasks are short, so
    # that all threads finish at one time.
    task = BLOCKS_A_TASK * BLOCK
    workers = min(os.cpu_count() or 1, size // (2 * task))
    if workers < 2 or _ALONE.get():
        fill(0, size)
    else:
        starts = range(0, size, task)
        stops = (min(start + task, size) for start in starts)
        list(_threads(os.getpid()).map(fill, starts, stops))
    return {name: value.reshape(*value.shape[:-1], *shape) for name, value in results.items()}


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process, which wait for further points; a fork has none of them."""
    return ThreadPoolExecutor(os.cpu_count())


# Points over a range, enough to see each operator change sides; halvings of a bracket, more
# than a float can tell.
SCAN = 2001
STEPS = 80


def scan(low: float, high: float, *, whole: bool) -> Any:
    """Return points over a range, evenly spread on a logarithmic scale.

    Raises
    ------
    InvalidValueError
        If the limits are not two positive values in order.
    """
    numpy = need("numpy", "a search", "arrays")
    if not 0 < low < high:
        raise InvalidValueError(f"between must be two positive values in order, not {low}, {high}.")
    points = numpy.geomspace(low, high, SCAN)
    return numpy.unique(numpy.round(points)) if whole else points


def bisect(
    at: Callable[[Any], Any], value: float, low: float, high: float, *, whole: bool
) -> float:
    """Halve the bracket until it is as narrow as numbers allow."""
    numpy = need("numpy", "a search", "arrays")

    def beyond(point: float) -> bool:
        return bool(at(numpy.array([point]))[0] > value)

    start = beyond(low)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if whole:
            middle = float(int(middle))
        if middle in (low, high):
            break
        if beyond(middle) == start:
            low = middle
        else:
            high = middle
    return high


# By how much an input is changed, to either side.
STEP = 0.01
# An input: its name and value, the result where it is so many times as large, and the step.
Input = tuple[str, float, Callable[[float], float], float]


def elasticities(
    inputs: Iterable[Input], unit_of: Callable[[str], str] = lambda name: term(name).unit
) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table, the most first.

    `elasticity` is the percent by which the result changes when the input changes by one
    percent: the slope of the logarithms, so that units don't matter.
    """
    need("numpy", "a sensitivity", "arrays")
    library = need("pandas", "a sensitivity", "arrays")
    rows = []
    for name, value, at, step in inputs:
        # What is counted goes by whole steps, down to one.
        below, above = (max(1 + sign * step, 1 / value if step > STEP else 0) for sign in (-1, 1))
        low, high = at(below), at(above)
        moved = low > 0 and high > 0 and low != high
        slope = math.log(high / low) / math.log(above / below) if moved else 0.0
        found = {"value": value, "unit": unit_of(name), "elasticity": round(slope, 6) + 0.0}
        rows.append({"input": name, **found})
    table: pandas.DataFrame = library.DataFrame(rows)
    order = table["elasticity"].abs().sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)
