"""A stopwatch: wall, user, system and waiting time, of one run or of several.

A clock on the wall says how long a run took. The operating system says how much of that its
cores worked, in the program's own code and in the system's. What is left is waiting: for a
disk, a network, another device. Runs after a warm-up differ; their median, with an interval,
is the figure.

    >>> from mlsim.profiling import Stopwatch
    >>> with Stopwatch() as watch:
    ...     total = sum(range(10_000))
    >>> watch.last.wall > 0
    True
"""

from __future__ import annotations

import functools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ParamSpec, Self, TypeVar

from mlsim.equations import timing
from mlsim.errors import InvalidValueError
from mlsim.profiling.spread import Spread
from mlsim.units import text

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

P = ParamSpec("P")
R = TypeVar("R")

PARTS = ("wall", "user", "system", "waiting")


@dataclass(frozen=True, slots=True)
class Run:
    """Times of one run in s; `user` and `system` are of all cores together."""

    wall: float
    user: float
    system: float

    @property
    def waiting(self) -> float:
        """Time in which no core worked for it; 0 where several did at once.

        >>> Run(wall=2.5, user=0.25, system=0.25).waiting
        2.0
        """
        return float(timing.waiting_time(self.wall, self.user, self.system))

    @property
    def cores(self) -> float:
        """Cores that worked for it, on average.

        >>> Run(wall=2.0, user=3.5, system=0.5).cores
        2.0
        """
        return float(timing.cores_busy(self.wall, self.user, self.system)) if self.wall else 0.0

    def __str__(self) -> str:
        parts = "; ".join(f"{part} {text(getattr(self, part), 's', 3)}" for part in PARTS)
        return f"{parts}; cores {self.cores:.2g}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the clocks show at one moment, in s."""

    wall: float
    user: float
    system: float

    def since(self, before: Reading) -> Run:
        """Return the run from an earlier moment to this one."""
        return Run(self.wall - before.wall, self.user - before.user, self.system - before.system)


def now() -> Reading:
    """Read the clocks: of this process with all its threads, and of programs that it ended.

    >>> now().since(now()).wall <= 0
    True
    """
    wall = time.perf_counter()
    if resource is None:
        # Coarser: Windows counts in ticks of 16 ms.
        taken = os.times()
        return Reading(wall, taken.user + taken.children_user, taken.system + taken.children_system)
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return Reading(wall, own.ru_utime + ended.ru_utime, own.ru_stime + ended.ru_stime)


@dataclass(frozen=True)
class Timing:
    """Several runs of one thing.

    Attributes
    ----------
    runs
        Those that count, in order.
    warm_up
        Those before, which don't: they load files and fill caches.
    name
        What was run.
    """

    runs: tuple[Run, ...]
    warm_up: tuple[Run, ...] = ()
    name: str = ""

    def spread(self, part: str = "wall") -> Spread:
        """Return the median of a part of the time, with its interval.

        Raises
        ------
        InvalidValueError
            If the part is none of "wall", "user", "system" and "waiting".

        >>> Timing(tuple(Run(wall, 1.0, 0.0) for wall in (2.0, 3.0, 2.5))).spread().median
        2.5
        """
        if part not in PARTS:
            raise InvalidValueError(f"part must be one of {', '.join(PARTS)}, not {part!r}.")
        return Spread.of(getattr(run, part) for run in self.runs)

    @property
    def wall(self) -> float:
        """The median of the wall times, in s."""
        return self.spread().median

    def to_dict(self) -> dict[str, Any]:
        """Return medians, intervals and all runs as plain data, in s."""
        parts: dict[str, Any] = {}
        for part in PARTS:
            found = self.spread(part)
            parts[part] = {
                "median": found.median, "low": found.low, "high": found.high,
                "confidence": found.confidence,
            }  # fmt: skip
        return {
            "name": self.name,
            "unit": "s",
            **parts,
            "runs": [_plain(run) for run in self.runs],
            "warm_up": [_plain(run) for run in self.warm_up],
        }

    def __str__(self) -> str:
        runs = f"{len(self.runs)} run{'s' if len(self.runs) != 1 else ''}"
        first = f" after {len(self.warm_up)} to warm up" if self.warm_up else ""
        lines = [f"{self.name or 'timed'}: {runs}{first}"]
        for part in PARTS:
            found = self.spread(part)
            low, high = text(found.low, "s", 3), text(found.high, "s", 3)
            between = f"{low} to {high}" if len(self.runs) > 1 else ""
            lines.append(f"  {part:<8} {text(found.median, 's', 3):>9}   {between}".rstrip())
        if len(self.runs) > 1:
            sure = self.spread().confidence
            lines.append(f"  The true median lies in an interval with a chance of {sure:.0%}.")
        return "\n".join(lines)


def _plain(run: Run) -> Mapping[str, float]:
    return {part: getattr(run, part) for part in PARTS}


@dataclass
class Stopwatch:
    """A watch around a block of code; each block is a run, and a block may be timed again.

    Parameters
    ----------
    wait
        What waits until a device is done, such as `torch.cuda.synchronize`. A GPU works on
        after a call has returned: without it, a watch sees the start of the work only.
    clock
        Reads the clocks; for tests.

    >>> watch = Stopwatch()
    >>> for _ in range(3):
    ...     with watch:
    ...         pass
    >>> len(watch.runs), watch.timing.wall >= 0
    (3, True)
    """

    wait: Callable[[], object] | None = None
    clock: Callable[[], Reading] = now
    runs: list[Run] = field(default_factory=list)
    _began: Reading | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        if self._began is not None:
            raise InvalidValueError(
                "this stopwatch runs already: give the inner block a Stopwatch() of its own."
            )
        if self.wait:
            self.wait()
        self._began = self.clock()
        return self

    def __exit__(self, kind: object, error: object, where: object) -> None:
        began, self._began = self._began, None
        # A block that failed did not do its work, so its time is none.
        if kind is None and began is not None:
            if self.wait:
                self.wait()
            self.runs.append(self.clock().since(began))

    @property
    def last(self) -> Run:
        """The last run.

        Raises
        ------
        InvalidValueError
            If there was none yet.
        """
        if not self.runs:
            raise InvalidValueError("nothing was timed yet: use `with watch:` around a block.")
        return self.runs[-1]

    @property
    def timing(self) -> Timing:
        """All runs."""
        _ = self.last
        return Timing(tuple(self.runs))

    def __str__(self) -> str:
        return str(self.last) if len(self.runs) == 1 else str(self.timing)


def time_function(
    function: Callable[..., object],
    *arguments: Any,
    repeat: int = 7,
    warm_up: int = 1,
    wait: Callable[[], object] | None = None,
    clock: Callable[[], Reading] = now,
    **named: Any,
) -> Timing:
    """Call a function several times, and return the times.

    Parameters
    ----------
    function, arguments, named
        What is called, with what.
    repeat
        Runs that count; from six on, the interval holds the true median with 95 %.
    warm_up
        Runs before, which don't count.
    wait, clock
        As of a `Stopwatch`.

    Raises
    ------
    InvalidValueError
        If `repeat` is not a whole number from 1 up, or `warm_up` from 0 up.

    >>> len(time_function(sorted, [3, 1, 2], repeat=3).runs)
    3
    """
    _check_counts(repeat, warm_up)
    watch = Stopwatch(wait=wait, clock=clock)
    for _ in range(warm_up + repeat):
        with watch:
            function(*arguments, **named)
    name = getattr(function, "__qualname__", type(function).__name__)
    return Timing(tuple(watch.runs[warm_up:]), tuple(watch.runs[:warm_up]), name)


def _check_counts(repeat: Any, warm_up: Any) -> None:
    for name, value, least in (("repeat", repeat, 1), ("warm_up", warm_up, 0)):
        if type(value) is not int or value < least:
            raise InvalidValueError(f"{name} is a whole number from {least} up, not {value!r}.")


def timed(function: Callable[P, R]) -> Callable[P, R]:
    """Time every call of a function: its `watch` has the runs.

    >>> @timed
    ... def double(x):
    ...     return 2 * x
    >>> double(4), len(double.watch.runs)
    (8, 1)
    """
    watch = Stopwatch()

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        # A call within a call belongs to the outer one.
        if watch._began is not None:
            return function(*arguments, **named)
        with watch:
            return function(*arguments, **named)

    call.watch = watch  # type: ignore[attr-defined]
    return call


def time_command(
    command: Sequence[str],
    *,
    repeat: int = 1,
    warm_up: int = 0,
    quiet: bool = False,
    clock: Callable[[], Reading] = now,
) -> Timing:
    """Run a program several times, and return its times, those of its own programs included.

    Parameters
    ----------
    command
        The program and its arguments; no shell reads them.
    quiet
        Whether to throw away what it prints.

    Raises
    ------
    InvalidValueError
        If there is no such program, or a run failed: a failed run is no measurement.

    >>> import sys
    >>> time_command([sys.executable, "-c", "pass"]).runs[0].wall > 0
    True
    """
    _check_counts(repeat, warm_up)
    if not command:
        raise InvalidValueError("there is no command to time: mlsim time -- python train.py")
    watch = Stopwatch(clock=clock)
    out = subprocess.DEVNULL if quiet else None
    for number in range(warm_up + repeat):
        with watch:
            try:
                status = subprocess.run(
                    list(command), stdout=out, stderr=out, check=False
                ).returncode
            except OSError as error:
                raise InvalidValueError(
                    f"{command[0]!r} can't be run: {error.strerror}."
                ) from error
        if status:
            raise InvalidValueError(
                f"{command[0]!r} ended with status {status} in run {number + 1}: a failed run is "
                "no measurement."
            )
    return Timing(tuple(watch.runs[warm_up:]), tuple(watch.runs[:warm_up]), " ".join(command))
