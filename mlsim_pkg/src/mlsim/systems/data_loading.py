"""Workers that prepare batches, and a device that takes them in order: event by event."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlsim.errors import InvalidValueError, check_whole


@dataclass(frozen=True, slots=True)
class Work:
    """A stretch of work: who did it (0 is the program itself), on which batch, from when to when.

    Times are in seconds from the start.
    """

    who: int
    batch: int
    start: float
    end: float


@dataclass(frozen=True)
class LoaderRun:
    """What workers and device did, in the order of the batches."""

    prepared: tuple[Work, ...]
    computed: tuple[Work, ...]

    @property
    def seconds(self) -> float:
        """When the last batch was done."""
        return self.computed[-1].end

    @property
    def batches_per_second(self) -> float:
        """The pace once the pipeline is full: over the second half of the batches."""
        half = len(self.computed) // 2
        return (len(self.computed) - half) / (self.seconds - self.computed[half - 1].end)

    @property
    def waited(self) -> float:
        """Seconds in which the device had nothing to work on, the start included."""
        return self.seconds - sum(work.end - work.start for work in self.computed)


def load_and_compute(
    *,
    workers: int,
    prepare_time: float,
    compute_time: float,
    batches: int,
    ahead: int = 2,
) -> LoaderRun:
    """Play how workers prepare batches ahead of a device, which takes them in order.

    A worker has at most `ahead` batches that the device has not begun. With no workers the
    program prepares each batch itself and then computes, as PyTorch's loader does by default.

    Raises
    ------
    InvalidValueError
        If a time is not positive, or a count is not a whole number from 1 up (workers from 0,
        batches from 2).

    >>> load_and_compute(workers=0, prepare_time=2, compute_time=1, batches=4).seconds
    12.0
    >>> load_and_compute(workers=2, prepare_time=2, compute_time=1, batches=4).seconds
    6.0
    """
    for name, value, least in (
        ("workers", workers, 0),
        ("batches", batches, 2),
        ("ahead", ahead, 1),
    ):
        check_whole(name, value, least)
    for name, time in {"prepare_time": prepare_time, "compute_time": compute_time}.items():
        if not (isinstance(time, (int, float)) and math.isfinite(time) and time > 0):
            raise InvalidValueError(f"{name} must be a positive number of seconds, not {time!r}.")
    prepared: list[Work] = []
    computed: list[Work] = []
    free = [0.0] * workers
    for batch in range(batches):
        done = computed[-1].end if computed else 0.0
        if workers:
            who = batch % workers
            start = free[who]
            if batch >= workers * ahead:  # its places are taken until an old batch is begun
                start = max(start, computed[batch - workers * ahead].start)
            free[who] = start + prepare_time
        else:
            who, start = -1, done
        ready = start + prepare_time
        prepared.append(Work(who + 1, batch, start, ready))
        begin = max(done, ready)
        computed.append(Work(0, batch, begin, begin + compute_time))
    return LoaderRun(tuple(prepared), tuple(computed))
