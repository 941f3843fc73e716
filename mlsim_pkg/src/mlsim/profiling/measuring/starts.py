"""What it costs to begin: a call that does almost nothing."""

from __future__ import annotations

from typing import Any

from mlsim.profiling.measuring.samples import Workers, best_sample, enough_passes


class CallStart:
    """Calls of NumPy on a single number: all that they take is the start."""

    def __init__(self, numpy: Any, workers: Workers) -> None:
        self._workers = workers
        one, out = numpy.ones(1), numpy.ones(1)
        add = numpy.add

        def calls(_: int, passes: int) -> None:
            for _ in range(passes):
                add(one, one, out=out)

        self._job = calls
        self._passes, _ = enough_passes(workers, calls, begin=100)

    def seconds(self, samples: int) -> float | None:
        """Return the least time of a call; None where other programs disturbed all samples."""
        found = best_sample(self._workers, self._job, self._passes, samples)
        return found.seconds if found.clean else None
