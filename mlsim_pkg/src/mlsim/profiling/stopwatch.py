"""A stopwatch, what repeated measurements say, and the tasks that decide how long a program takes.

A clock on the wall says how long a run took. The operating system says how much of that its
cores worked, in the program's own code and in the system's. What is left is waiting: for a
disk, a network, another device. Runs after a warm-up differ; their median, with an interval,
is the figure.

    >>> from mlsim.profiling import Stopwatch
    >>> with Stopwatch() as watch:
    ...     total = sum(range(10_000))
    >>> watch.last.wall > 0
    True

Times of a computer are not normal: most are close to the least, a few are far above it. The
median does not follow those few. The interval around it is made of the values themselves: the
true median lies outside the k-th least and the k-th greatest of n with the chance that fewer
than k of n coins show heads, on either side. Coins must not know of one another. Values that
follow each other on one machine do: it drifts, and the next minute finds another median.
`Spread.across` is for values from stretches of time, and its interval reaches beyond them.

`Trace` records tasks of a program that runs, in any of its threads; `critical_path` takes those,
or tasks that somebody wrote down, and finds the longest chain.
"""

from __future__ import annotations

import math
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import isfinite
from time import perf_counter
from types import ModuleType
from typing import Any, Self

from mlsim.equations import counters
from mlsim.equations.machines import load_balance
from mlsim.errors import InvalidValueError, unknown_name
from mlsim.units import text

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of one thing, measured several times.

    Attributes
    ----------
    values
        As they were measured, in order.
    median
        The middle one, or the mean of the two in the middle.
    low, high
        Between which the true median lies, with the chance `confidence`.
    confidence
        At least 0.95 from six values on; with fewer, that of the whole range.
    """

    values: tuple[float, ...]
    median: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Return the spread of values.

        Raises
        ------
        InvalidValueError
            If there is none, or one is not finite.

        >>> found = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0, 100.0])
        >>> found.median, found.low, found.high, found.confidence
        (4.0, 1.0, 100.0, 0.984375)
        """
        taken = tuple(float(each) for each in values)
        if not taken or not all(map(math.isfinite, taken)):
            raise InvalidValueError(f"a spread needs finite values, at least one, not {taken}.")
        ranked, count = sorted(taken), len(taken)
        middle = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
        # The greatest rank from either end that covers enough; 1 where none does.
        ranks = range(1, (count + 1) // 2 + 1)
        rank = max((k for k in ranks if coverage(count, k) >= CONFIDENCE), default=1)
        return cls(taken, middle, ranked[rank - 1], ranked[-rank], coverage(count, rank))

    @classmethod
    def across(cls, values: Iterable[float], resolution: float = 0.0) -> Spread:
        """Return the spread of values of which each is from another stretch of time.

        The interval reaches from the median as far to either side as the values differ. As far as
        a machine drifted within these stretches, it may drift again until the next run: more
        stretches of the same minute don't bring its long-run value nearer.

        Parameters
        ----------
        resolution
            What can't be told apart, as a part of the median: the interval is never narrower to
            either side.

        Returns
        -------
        Spread
            Its `confidence` is that of the values' own range if no stretch knew of another. The
            rest of the width is for the drift: where it is forgotten in a third of the time
            measured, the long-run value lies inside in more than nine of ten runs. A drift that
            takes longer than a run does not show in it.

        Raises
        ------
        InvalidValueError
            If there is no value, or one is not finite.

        >>> found = Spread.across([100.0, 101.0, 99.0, 100.0, 100.0, 102.0])
        >>> found.median, found.low, found.high
        (100.0, 97.0, 103.0)
        >>> Spread.across([100.0] * 6, resolution=0.015).high
        101.5
        """
        inner = cls.of(values)
        reach = max(max(inner.values) - min(inner.values), resolution * abs(inner.median))
        middle, sure = inner.median, coverage(len(inner.values), 1)
        return cls(inner.values, middle, middle - reach, middle + reach, sure)

    @property
    def range(self) -> float:
        """How far the values differ, over the median: 0.1 is 10 %.

        >>> Spread.of([90.0, 100.0, 110.0]).range
        0.2
        """
        found = max(self.values) - min(self.values)
        return found / abs(self.median) if self.median else math.inf

    def agrees(self, other: Spread) -> bool:
        """Whether the two intervals have a value in common.

        That two measurements of one thing agree. It doesn't show that two things are alike: for
        two versions of a program, run them in turns and take the spread of the ratio.

        >>> Spread.of([1.0, 2.0, 3.0]).agrees(Spread.of([3.0, 4.0])), Spread.of([1]).agrees(
        ...     Spread.of([2]))
        (True, False)
        """
        return self.low <= other.high and other.low <= self.high


def coverage(count: int, rank: int) -> float:
    """Return the chance that the median lies between the k-th least and the k-th greatest value.

    >>> coverage(9, 2), coverage(2, 1)
    (0.9609375, 0.5)
    """
    outside: int = sum(math.comb(count, below) for below in range(rank))
    return 1 - outside / int(2 ** (count - 1))


resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

PARTS = ("wall", "user", "system", "waiting")


@dataclass(frozen=True, slots=True)
class Run:
    """Times of one run in s; `user` and `system` are of all cores together.

    What the clocks show at a moment is the run since they began.
    """

    wall: float
    user: float
    system: float

    @property
    def waiting(self) -> float:
        """Time in which no core worked for it; 0 where several did at once.

        >>> Run(wall=2.5, user=0.25, system=0.25).waiting
        2.0
        """
        return float(counters.waiting_time(self.wall, self.user, self.system))

    @property
    def cores(self) -> float:
        """Cores that worked for it, on average.

        >>> Run(wall=2.0, user=3.5, system=0.5).cores
        2.0
        """
        return float(counters.cores_busy(self.wall, self.user, self.system)) if self.wall else 0.0

    def since(self, before: Run) -> Run:
        """Return the run from an earlier moment to this one."""
        return Run(self.wall - before.wall, self.user - before.user, self.system - before.system)

    def __str__(self) -> str:
        parts = "; ".join(f"{part} {text(getattr(self, part), 's', 3)}" for part in PARTS)
        return f"{parts}; cores {self.cores:.2g}"


def now() -> Run:
    """Read the clocks: of this process with all its threads, and of programs that it ended.

    >>> now().since(now()).wall <= 0
    True
    """
    wall = time.perf_counter()
    if resource is None:
        # Coarser: Windows counts in ticks of 16 ms.
        taken = os.times()
        return Run(wall, taken.user + taken.children_user, taken.system + taken.children_system)
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return Run(wall, own.ru_utime + ended.ru_utime, own.ru_stime + ended.ru_stime)


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
            names = ("median", "low", "high", "confidence")
            parts[part] = {name: getattr(found, name) for name in names}
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
    clock: Callable[[], Run] = now
    runs: list[Run] = field(default_factory=list)
    _began: Run | None = field(default=None, repr=False)

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
    clock: Callable[[], Run] = now,
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


def time_command(
    command: Sequence[str],
    *,
    repeat: int = 1,
    warm_up: int = 0,
    quiet: bool = False,
    clock: Callable[[], Run] = now,
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


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a program.

    Attributes
    ----------
    name
        Its own; no other task has it.
    seconds
        How long it takes.
    after
        Names of the tasks that must end before it begins.
    lane
        The thread, process or device that it runs on; a lane does one task at a time.
    start
        When it began, in s from the beginning; None if that was not recorded.
    """

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    lane: str = ""
    start: float | None = None


class Trace:
    """Records when parts of a program begin and end.

    `after=` names what a part waited for. What ran before it in the same thread is known.

    >>> ticks = iter([0.0, 2.0, 2.0, 5.0])
    >>> trace = Trace(clock=lambda: next(ticks))
    >>> with trace("load"):
    ...     pass
    >>> with trace("compute"):
    ...     pass
    >>> [(task.name, task.seconds, task.after) for task in trace.tasks]
    [('load', 2.0, ()), ('compute', 3.0, ('load',))]
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: list[Task] = []
        self._last: dict[str, str] = {}
        self._names: set[str] = set()

    @contextmanager
    def __call__(self, name: str, after: str | Sequence[str] = ()) -> Iterator[None]:
        """Record a part of a program while it runs; an error in it passes through.

        Raises
        ------
        InvalidValueError
            If another part has the name.
        """
        waited = (after,) if isinstance(after, str) else tuple(after)
        lane = threading.current_thread().name
        with self._lock:
            if name in self._names:
                raise InvalidValueError(f"two tasks are called {name!r}; give each its own name.")
            self._names.add(name)
        start = self._clock()
        try:
            yield
        finally:
            end = self._clock()
            with self._lock:
                before = self._last.get(lane)
                after_all = dict.fromkeys((*waited, *((before,) if before else ())))
                self._found.append(Task(name, end - start, tuple(after_all), lane, start))
                self._last[lane] = name

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What was recorded, by its beginning; the first begins at 0."""
        first = min((task.start or 0.0 for task in self._found), default=0.0)
        moved = (replace(task, start=(task.start or 0.0) - first) for task in self._found)
        return tuple(sorted(moved, key=lambda task: task.start or 0.0))


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest chain of tasks that wait for each other.

    Attributes
    ----------
    tasks
        The chain, from the first task to the last.
    seconds
        What it takes: no plan with the same tasks is shorter, however many processors it has.
    slack
        By task, how much longer it could take without making the whole longer; 0 on the chain.
    """

    tasks: tuple[Task, ...]
    seconds: float
    slack: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the chain."""
        return tuple(task.name for task in self.tasks)

    def __str__(self) -> str:
        """Return the chain and its time."""
        return f"{' -> '.join(self.names)}: {self.seconds:.3g} s"


def critical_path(
    tasks: Sequence[Task], *, faster: Mapping[str, float] | None = None
) -> CriticalPath:
    """Find the longest chain of tasks.

    Parameters
    ----------
    tasks
        All tasks of a program, in any order.
    faster
        By name, a factor for the time of a task: 0.5 asks what halving it would bring, 0 what
        it costs at all.

    Raises
    ------
    InvalidValueError
        If there is none, two have one name, a time is negative or no number, or tasks wait
        for each other in a circle.
    UnknownNameError
        If one waits for a task that is not there, or `faster` names one.

    >>> plan = [Task("load", 1), Task("left", 4, ("load",)), Task("right", 2, ("load",)),
    ...         Task("join", 1, ("left", "right"))]
    >>> path = critical_path(plan)
    >>> print(path, path.slack["right"])
    load -> left -> join: 6 s 2.0
    >>> critical_path(plan, faster={"left": 0.25}).names
    ('load', 'right', 'join')
    """
    known = _checked(tasks, faster or {})
    try:
        order = list(TopologicalSorter({each.name: each.after for each in tasks}).static_order())
    except CycleError as error:
        raise InvalidValueError(
            f"these tasks wait for each other in a circle: {' -> '.join(error.args[1])}."
        ) from error
    ends: dict[str, float] = {}
    for name in order:
        begin = max((ends[each] for each in known[name].after), default=0.0)
        ends[name] = begin + known[name].seconds
    whole = max(ends.values())
    latest = dict.fromkeys(order, whole)
    for name in reversed(order):
        for each in known[name].after:
            latest[each] = min(latest[each], latest[name] - known[name].seconds)
    slack = {name: float(latest[name] - ends[name]) for name in order}
    chain = [max(order, key=lambda name: ends[name])]
    while known[chain[0]].after:
        chain.insert(0, max(known[chain[0]].after, key=lambda name: ends[name]))
    return CriticalPath(tuple(known[name] for name in chain), whole, slack)


def _checked(tasks: Sequence[Task], faster: Mapping[str, float]) -> dict[str, Task]:
    """Return tasks by name, with times as they would be."""
    known: dict[str, Task] = {}
    for task in tasks:
        if task.name in known:
            raise InvalidValueError(f"two tasks are called {task.name!r}; give each its own name.")
        known[task.name] = task
    if not known:
        raise InvalidValueError("a critical path needs at least one task.")
    for name, factor in faster.items():
        if name not in known:
            raise unknown_name("task", name, known)
        known[name] = replace(known[name], seconds=known[name].seconds * factor)
    for task in known.values():
        if not (isfinite(task.seconds) and task.seconds >= 0):
            raise InvalidValueError(
                f"{task.name} takes {task.seconds} s; a time is 0 or more, and finite."
            )
        for each in task.after:
            if each not in known:
                raise unknown_name("task", each, known)
    return known


def lanes(tasks: Sequence[Task]) -> dict[str, float]:
    """Return how long each lane was busy, in s.

    >>> lanes([Task("a", 1.0, lane="1"), Task("b", 2.0, lane="2"), Task("c", 2.0, lane="1")])
    {'1': 3.0, '2': 2.0}
    """
    found: dict[str, float] = {}
    for task in tasks:
        found[task.lane] = found.get(task.lane, 0.0) + task.seconds
    return found


def balance(times: Sequence[float]) -> float:
    """Return the balance of lanes that share a job, from how long each was busy: 1 is perfect.

    Raises
    ------
    InvalidValueError
        If there is none, or none was busy.

    >>> balance([4.0, 2.0, 2.0])
    0.6666666666666666
    """
    if not times or max(times) <= 0:
        raise InvalidValueError("a balance needs times of lanes, and one above 0.")
    return float(load_balance(sum(times) / len(times), max(times)))
