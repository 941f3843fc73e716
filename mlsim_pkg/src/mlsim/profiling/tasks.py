"""Which part of a program decides how long it takes: tasks, what they wait for, the longest chain.

`Trace` records tasks of a program that runs, in any of its threads; `critical_path` takes
those, or tasks that somebody wrote down.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from time import perf_counter

from mlsim.equations.machines import load_balance
from mlsim.errors import InvalidValueError, unknown_name


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
    order = _in_order(known)
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


def _in_order(known: Mapping[str, Task]) -> list[str]:
    """Return the names so that each stands after all that it waits for."""
    order: dict[str, None] = {}
    left = dict(known)
    while left:
        ready = [name for name, task in left.items() if all(each in order for each in task.after)]
        if not ready:
            raise InvalidValueError(
                f"these tasks wait for each other in a circle: {', '.join(sorted(left))}."
            )
        for name in ready:
            order[name] = None
            del left[name]
    return list(order)


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
