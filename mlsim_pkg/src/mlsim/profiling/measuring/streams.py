"""How fast memory is gone through, for working sets from a few kilobytes to far beyond caches.

Each worker has three arrays of its own within its share of the working set. Bytes are counted
as STREAM counts them: 24 for each element, two numbers read and one written, whatever else a
cache moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2
from pathlib import Path
from typing import Any

from mlsim.hardware.this_machine import Machine
from mlsim.profiling.measuring.other_kernels import Kernels
from mlsim.profiling.measuring.samples import Workers, best_sample, enough_passes

ELEMENT = 8
ARRAYS = 3
# Sizes grow by the fourth root of two; the first fits in any first level.
STEPS_PER_DOUBLING = 4
SMALLEST = 8 * 2**10
# A working set of main memory: each array is four times all the caches, as STREAM asks.
BEYOND_CACHES = 4
LEAST_BEYOND = 64 * 2**20
# No more than this part of the memory is taken.
MEMORY_PART = 1 / 4
# Arrays begin on lines of their own, apart by an odd number of lines: equal low bits of
# addresses would make the three fight for one place in a cache.
LINE = 64
APART = 9 * LINE
PAGE = 4096
GOLDEN = (5**0.5 - 1) / 2


def largest_set(machine: Machine) -> int:
    """Return the size in B of a working set of main memory: three arrays of four caches.

    >>> largest_set(Machine("chip", "", 2, 2**36, (), "")) == 3 * 2**26
    True
    """
    caches = max((each.total for each in machine.caches), default=0)
    wanted = ARRAYS * max(BEYOND_CACHES * caches, LEAST_BEYOND)
    return min(wanted, int(machine.memory * MEMORY_PART)) if machine.memory else wanted


def sweep_sizes(largest: int, workers: int = 1, caches: int = 0) -> list[int]:
    """Return the working sets of a sweep, of all workers together, in B.

    Beyond twice the caches (in B, where they are known) only every doubling is taken: there is
    nothing more to find, and a pass over them takes long.

    >>> sizes = sweep_sizes(2**20)
    >>> sizes[0], sizes[4], sizes[-1], len(sizes)
    (8064, 16320, 1048512, 29)
    >>> len(sweep_sizes(2**20, caches=2**17))
    23
    """
    first, grain = SMALLEST * workers, ARRAYS * LINE * workers
    steps = ceil(STEPS_PER_DOUBLING * log2(largest / first))
    sizes = [first * 2 ** (step / STEPS_PER_DOUBLING) for step in range(steps)]
    kept = [
        size
        for step, size in enumerate(sizes)
        if not caches or size <= 2 * caches or step % STEPS_PER_DOUBLING == 0
    ]
    return [int(size) // grain * grain for size in [*kept, largest]]


def one_memory() -> bool:
    """Whether all memory is as near to every core, as far as Linux says; true elsewhere."""
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) < 2


class Stream:
    """Memory for one team of workers, and passes over parts of it.

    With the `memory` of another team of as many workers or more, none is taken: to touch
    gigabytes for the first time takes seconds.
    """

    def __init__(
        self, numpy: Any, kernels: Kernels, workers: Workers, largest: int, memory: Any = None
    ) -> None:
        self._kernels, self._workers = kernels, workers
        share = (largest // workers.count + ARRAYS * (APART + LINE)) // ELEMENT + LINE
        fresh = memory is None
        self.memory = numpy.empty(workers.count * share, dtype=numpy.float64) if fresh else memory
        self._blocks = [self.memory[n * share :][:share] for n in range(workers.count)]
        if fresh:
            # Memory belongs to the core that touches it first.
            workers.each(lambda worker: self._blocks[worker].fill(1.0))
        self._place = 0.0

    def move(self) -> None:
        """Let the sets lie elsewhere: other pages fall on other places of a cache.

        By the golden ratio, so that no two rounds are near each other.
        """
        self._place = (self._place + GOLDEN) % 1

    def arrays(self, worker: int, size: int) -> list[Any]:
        """Return a worker's three arrays within a working set of all workers."""
        block = self._blocks[worker]
        count = size // self._workers.count // ARRAYS // ELEMENT
        begin = -block.ctypes.data % LINE // ELEMENT
        stride = count + (-count % (LINE // ELEMENT)) + APART // ELEMENT
        free = max(0, len(block) - begin - ARRAYS * stride)
        begin += int(self._place * free) // (PAGE // ELEMENT) * (PAGE // ELEMENT)
        return [block[begin + n * stride :][:count] for n in range(ARRAYS)]

    def moved(self, size: int) -> int:
        """Return the bytes of a pass over a working set, as STREAM counts them."""
        return (
            self._workers.count
            * ARRAYS
            * ELEMENT
            * (size // self._workers.count // ARRAYS // ELEMENT)
        )

    def sample(
        self, size: int, plan: Plan, seconds: float = 0.0, least: int = 1
    ) -> tuple[float, bool]:
        """Return the best rate in B/s of the samples that fit into some seconds, or of the least.

        The first call finds out how many passes make a sample. Beside the rate stands whether no
        other program took a core.
        """
        sets = [self.arrays(worker, size) for worker in range(self._workers.count)]

        def job(worker: int, passes: int) -> None:
            self._kernels.triad(sets[worker], passes)

        if size not in plan.passes:
            plan.passes[size], plan.taken[size] = enough_passes(self._workers, job, plan.least)
        times = max(least, int(seconds / plan.taken[size]))
        found = best_sample(self._workers, job, plan.passes[size], times)
        return self.moved(size) / found.seconds, found.clean


@dataclass
class Plan:
    """How many passes make a sample, for each size, and how long the first one took."""

    least: float
    passes: dict[int, int] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)
