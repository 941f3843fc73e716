"""What is simulated in steps: workers that feed a device, and updates that come late."""

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


def stale_descent(rate: float, delay: int, steps: int, *, curvature: float = 1.0) -> list[float]:
    """Return the weight after each update, from 1, with gradients `delay` updates old.

    Before there is an old weight, the first one stands for it.

    Raises
    ------
    InvalidValueError
        If the rate or the curvature is not a positive number, or a count is not whole.

    >>> stale_descent(0.5, 0, 3)
    [1.0, 0.5, 0.25, 0.125]
    >>> stale_descent(0.5, 1, 4)
    [1.0, 0.5, 0.0, -0.25, -0.25]
    """
    _positive("rate", rate)
    _positive("curvature", curvature)
    check_whole("steps", steps, 0)
    check_whole("delay", delay, 0)
    weights = [1.0]
    for step in range(steps):
        old = weights[max(step - delay, 0)]
        weights.append(weights[-1] - rate * curvature * old)
    return weights


def largest_stable_rate(delay: int, *, curvature: float = 1.0) -> float:
    r"""Return the learning rate above which stale updates grow without end.

    The weights obey x(t+1) = x(t) - η c x(t-d). They shrink if all roots of
    z^(d+1) - z^d + η c lie inside the unit circle. The first root reaches the circle at
    η c = 2 sin(π / (4d + 2)), at the angle π / (2d + 1).

    Raises
    ------
    InvalidValueError
        If the delay is not a whole number from 0 up, or the curvature is not positive.

    >>> largest_stable_rate(0), round(largest_stable_rate(1), 6)
    (2.0, 1.0)
    """
    check_whole("delay", delay, 0)
    _positive("curvature", curvature)
    return 2 * math.sin(math.pi / (4 * delay + 2)) / curvature


def _positive(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
        raise InvalidValueError(f"{name} must be a positive number, not {value!r}.")
