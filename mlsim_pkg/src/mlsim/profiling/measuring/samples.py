"""Samples of time: one call long enough for the clock, on one core or on several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Self

from mlsim.profiling.measuring.waiting import Waits, disturbed, thread_waits

Clock = Callable[[], float]
# A job gets the number of its worker and how many passes to make.
Job = Callable[[int, int], object]

# A sample takes this long at least: the clock and the start of threads are small beside it.
LEAST_SECONDS = 0.005
MOST_PASSES = 2**40
# If other programs disturbed all samples, so many more are taken.
MORE_SAMPLES = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """The best of some samples.

    Attributes
    ----------
    seconds
        How long a pass took.
    clean
        Whether no other program took a core from it.
    """

    seconds: float
    clean: bool


class Workers:
    """So many threads that start together; a sample lasts from the first start to the last end.

    One worker runs in the calling thread.
    """

    def __init__(
        self, count: int, clock: Clock = perf_counter, waits: Waits = thread_waits
    ) -> None:
        self.count, self._clock, self._waits = count, clock, waits
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

    def sample(self, job: Job, passes: int) -> Sample:
        """Return how long so many passes took, and whether no other program took a core."""
        before = self._waits()
        seconds = self.seconds(job, passes)
        return Sample(seconds, not disturbed(before, self._waits(), seconds))

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


def best_sample(workers: Workers, job: Job, passes: int, samples: int) -> Sample:
    """Return the best of some samples, for one pass: of those that nobody disturbed, if any.

    Where all were disturbed, a few more are taken, until one is not.
    """
    found: list[Sample] = []
    while len(found) < samples or (
        len(found) < samples + MORE_SAMPLES and not any(each.clean for each in found)
    ):
        found.append(workers.sample(job, passes))
    clean = [each for each in found if each.clean]
    least = min(each.seconds for each in clean or found)
    return Sample(least / passes, bool(clean))
