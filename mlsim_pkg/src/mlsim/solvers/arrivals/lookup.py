"""Times and sizes between the entries of the tables of a service's steps."""

from __future__ import annotations

from mlsim.solvers.arrivals.step_times import CHUNKS, CONTEXTS, StepTimes

# Place of a context that a full cache never stops: a window keeps no more.
_NO_END = 2.0**40


def chunk_time(times: StepTimes, chunk: float, context: float) -> float:
    """Time of attention of a chunk of a prompt, with so many of its tokens before it."""
    place = (chunk - 1) / times.chunk_step
    low = min(int(place), CHUNKS - 2)
    at = context / times.context_step
    below, above = (between(times.reading_prompt[low + i], at) for i in (0, 1))
    return below + (above - below) * (place - low)


def between(row: list[float], place: float) -> float:
    """Look up a row at a place between its entries."""
    low = int(place)
    low = min(low, CONTEXTS - 2)
    start = row[low]
    return start + (row[low + 1] - start) * (place - low)


def inverse(row: list[float], value: float) -> float:
    """Return the place at which a rising row reaches a value."""
    from bisect import bisect_right

    low = min(max(bisect_right(row, value) - 1, 0), CONTEXTS - 2)
    rise = row[low + 1] - row[low]
    if rise <= 0:
        return _NO_END
    return low + (value - row[low]) / rise
