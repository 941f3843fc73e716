"""Samples of time: one call long enough for the clock, on one core or on several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Self

Clock = Callable[[], float]
# A job gets the number of its worker and how many passes to make.
Job = Callable[[int, int], object]

# A sample takes this long at least: the clock and the start of threads are small beside it.
LEAST_SECONDS = 0.005
MOST_PASSES = 2**40


class Workers:
    """So many threads that start together; a sample lasts from the first start to the last end.

    One worker runs in the calling thread.
    """

    def __init__(self, count: int, clock: Clock = perf_counter) -> None:
        self.count, self._clock = count, clock
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown()

    def each(self, job: Callable[[int], object]) -> None:
        """Let each worker do something once, such as touching its memory first."""
        self._spans(lambda worker, _: job(worker), 1)

    def seconds(self, job: Job, passes: int) -> float:
        """Return how long it took until all workers had made so many passes."""
        spans = self._spans(job, passes)
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def _spans(self, job: Job, passes: int) -> Sequence[tuple[float, float]]:
        if self._pool is None:
            begin = self._clock()
            job(0, passes)
            return [(begin, self._clock())]
        gate = threading.Barrier(self.count)

        def run(worker: int) -> tuple[float, float]:
            gate.wait()
            begin = self._clock()
            job(worker, passes)
            return begin, self._clock()

        return list(self._pool.map(run, range(self.count)))


def enough_passes(
    workers: Workers, job: Job, least: float = LEAST_SECONDS, begin: int = 1
) -> tuple[int, float]:
    """Return how many passes take `least` seconds, and how long the last try took.

    The first call also warms the caches up.
    """
    passes = begin
    while True:
        taken = workers.seconds(job, passes)
        if taken >= least or passes >= MOST_PASSES:
            return passes, taken
        # Aim a tenth beyond, at most ten times further: short times are not to be trusted.
        wanted = 1.1 * least / taken if taken > 0 else 10.0
        passes = max(passes + 1, int(passes * min(wanted, 10.0)))


def best_seconds(workers: Workers, job: Job, passes: int, samples: int) -> float:
    """Return the least time of some samples, for one pass."""
    return min(workers.seconds(job, passes) for _ in range(samples)) / passes
