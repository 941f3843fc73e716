"""Many points at once, in blocks of arrays that stay in the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mlsim.equations import Plan
from mlsim.equations.graph import fold
from mlsim.errors import InvalidValueError, need
from mlsim.quantities import term
from mlsim.units import text

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
    wide: Mapping[str, Any] = MappingProxyType({}),
    *,
    into: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run a plan on arrays of points.

    Columns of operators have the shape (operators, 1), wide ones (operators, points); what is
    known has that of the points, or is one number for all.
    """
    results = dict(into or {})
    run_jobs([prepare(steps, known, columns_2d, shape, results, wide=wide)])
    return {name: value.reshape(*value.shape[:-1], *shape) for name, value in results.items()}


def prepare(
    steps: Plan,
    known: Mapping[str, Any],
    columns_2d: Mapping[str, Any],
    shape: tuple[int, ...],
    results: dict[str, Any],
    *,
    wide: Mapping[str, Any] = MappingProxyType({}),
) -> Job:
    """Return the work that fills `results`, flat arrays; those that are missing are made."""
    import numpy as np

    size = int(np.prod(shape))
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


def not_reached(vary: str, target: str, value: float, points: Any, results: Any) -> str:
    """Say that a result does not reach a value, and which it has."""
    unit, base = term(target).printed, term(vary).printed
    return (
        f"{target} does not reach {text(value, unit)}: for {vary} from "
        f"{text(float(points[0]), base)} to {text(float(points[-1]), base)} it runs from "
        f"{text(float(results.min()), unit)} to {text(float(results.max()), unit)}."
    )


def elasticities(
    inputs: Iterable[tuple[str, float]], function: Callable[[str], Callable[[Any], Any]]
) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table, the most first.

    `elasticity` is the per cent by which the result changes when the input changes by one
    per cent; it is taken one per cent to either side.
    """
    numpy = need("numpy", "a sensitivity", "arrays")
    library = need("pandas", "a sensitivity", "arrays")
    rows = []
    for name, known in inputs:
        around = numpy.array([known * 0.99, known, known * 1.01])
        below, here, above = function(name)(around)
        # Logarithms, so that the input's and the result's units don't matter.
        elasticity = numpy.log(above / below) / numpy.log(1.01 / 0.99) if here > 0 else 0.0
        rows.append(
            {
                "input": name,
                "value": known,
                "unit": term(name).unit,
                "elasticity": float(numpy.round(elasticity, 6)) + 0.0,
            }
        )
    table: pandas.DataFrame = library.DataFrame(rows)
    order = table["elasticity"].abs().sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)
