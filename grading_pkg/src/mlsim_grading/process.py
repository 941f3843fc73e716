"""Run one notebook behind walls, and take in what comes out, trusting nothing in it.

This is what a worker does, on this machine or on another: it is given the bytes of a notebook and
the names to look at, and returns plain values. No key and no answer goes with it.

Where submissions are run: processes of this machine, or a cluster that somebody names. Any
`concurrent.futures.Executor` will do. A few tasks are sent ahead of what is done, not all of them:
ten thousand notebooks need not lie in memory. Of a pool whose worker was killed, what was lost is
run again, one by one.
"""

from __future__ import annotations

import builtins
import importlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from mlsim_book.errors import SourceError
from mlsim_grading.walls.choose import NoWallsError, Walls, choose
from mlsim_grading.walls.supervise import LONGEST, Heard, Limits

_ATTEMPTS = 3
_LINE = 65_536  # bytes of a line that is read
_TEXT = 300  # characters
_ITEMS, _ITEM = 50, 100
_CELLS = 10_000
_NOTES = 20
_LINES = 100_000  # that are taken in: each cell sends two, and one for each value that is new
_TAKING = 20.0  # seconds for that, far more than so many lines need
_KINDS = {name for name in vars(builtins) if isinstance(vars(builtins)[name], type)} | {
    "CellTimeout", "WallError", "error",
}  # fmt: skip


@dataclass
class Ran:
    """What became of a notebook: the last value of each name that wasn't blank.

    `told` is what its owner may read of what went wrong, `trouble` the same with the texts of
    errors, for whoever grades. `student` is what the notebook says of itself, `sources` the
    fingerprint of its code. `failed` says why it could not be run, where that is not its own fault.
    """

    values: dict[str, Any] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    student: str = ""
    failed: str = ""
    sources: str = ""


def clean(text: Any, longest: int = _TEXT) -> str:
    r"""Return a text that can be written anywhere: no halves of characters, nothing unprintable.

    >>> clean("a\ud800\x1b[31mb", 5)
    'a? [3'
    """
    whole = str(text)[: 4 * longest].encode("utf-8", "replace").decode()
    return "".join(each if each.isprintable() else " " for each in whole)[:longest]


def clean_lines(text: str, longest: int = LONGEST) -> str:
    r"""Return a text of several lines that can be written anywhere.

    >>> clean_lines(" a\ud800 \r\n\x1b[31mb\t ")
    'a?\n [31mb'
    """
    lines = text[: 2 * longest].replace("\r\n", "\n").split("\n")
    return "\n".join(clean(line, longest).rstrip() for line in lines).strip()[: longest + 1]


def run_notebook(
    notebook: bytes,
    answers: Mapping[str, str],
    limits: Limits,
    walls: Walls | str = "auto",
    hidden: Sequence[str] = (),
) -> Ran:
    """Run a notebook, and return what the names of `answers` held.

    A cell that ends the process is left out, and the others run again.

    Parameters
    ----------
    notebook
        The file as it was handed in.
    answers
        The unit in which each name is answered.
    walls
        Those of this machine, or their kind as for `choose`.
    hidden
        What stays out of sight, as for `Walls.run`.

    Raises
    ------
    NoWallsError
        No walls work on this machine.
    """
    around = choose(walls) if isinstance(walls, str) else walls
    found = _Found(dict(answers))
    skip: list[int] = []
    left = float(limits.seconds)
    for _ in range(_ATTEMPTS):
        if left <= 0:
            break
        task = {"answers": dict(answers), "skip": skip}
        try:
            heard = around.run(task, notebook, limits, left, hidden)
        except OSError as error:  # no process or memory to be had just now
            found.failed = f"{type(error).__name__}: {error.strerror}"
            break
        left -= heard.seconds
        if not found.take_in(heard):
            break
        if heard.ended and found.running is None:
            found.note(f"the notebook {heard.ended}")
        if found.running is None or found.running in skip:
            break
        why = heard.ended or "ended the process"
        found.note(f"code cell {found.running + 1} {why}; it was left out")
        skip.append(found.running)
    return found.ran()


class _Found:
    """What came out so far. `running` is the cell that began last and did not end."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers
        self._values: dict[str, Any] = {}
        self._student = self._sources = ""
        self._told: list[str] = []
        self._full: list[str] = []
        self._began = False
        self.running: int | None = None
        self.failed = ""

    def ran(self) -> Ran:
        """Return all of it."""
        told, full = tuple(self._told), tuple(self._full)
        return Ran(self._values, full, told, self._student, self.failed, self._sources)

    def note(self, told: str, full: str = "") -> None:
        """Note what went wrong, and how it reads for whoever grades."""
        if len(self._full) == _NOTES:
            told, full = "and more", ""
        if len(self._full) <= _NOTES and (full or told) not in self._full:
            self._told.append(told)
            self._full.append(full or told)

    def take_in(self, heard: Heard) -> bool:
        """Take in what was sent; say whether the program inside had started at all."""
        self.running = None
        lines = _lines(heard.channel)
        deadline = time.monotonic() + _TAKING
        if next(filter(None, lines), {}).get("ready") is not True:
            if self._began:  # what an attempt before this one found stays
                return False
            said = heard.complaint.strip().splitlines()
            self.failed = clean(heard.ended or (said[-1] if said else "it did not start"))
            return False
        self._began = True
        # said before any of the notebook ran; whatever looks like it later is the notebook's
        about = next(filter(None, lines), {})
        self._student = clean(about.get("student", ""))
        self._sources = clean(about.get("sources", ""), 64)
        if about.get("trouble"):
            self.note(clean(about["trouble"]))
        for number, line in enumerate(lines):
            if number == _LINES or time.monotonic() > deadline:
                self.running = None
                self.note("it sent more than is read")
                break
            self._take(line)
        return True

    def _take(self, line: Mapping[str, Any]) -> None:
        begins, ends, name = line.get("begins"), line.get("ends"), line.get("name")
        if _is_cell(begins):
            self.running = begins
        elif _is_cell(ends):
            self.running = None
            if line.get("kind"):
                kind = str(line["kind"]) if str(line["kind"]) in _KINDS else "error"
                where, told = f"code cell {ends + 1}", kind
                if kind == "CellTimeout":
                    told = "took too long"
                self.note(f"{where}: {told}", f"{where}: {clean(line.get('text') or kind)}")
        elif isinstance(name, str) and name in self._answers:
            self._values[name] = _plain(line.get("value"))


def _is_cell(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _CELLS


def _plain(sent: Any) -> dict[str, Any]:
    """Return a value that was sent as `{"number": 2.0}`, `text`, `list`, `unit` or `other`."""
    kind, value = next(iter(sent.items()), ("other", "")) if isinstance(sent, dict) else ("", "")
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return {"number": float(value)}
        except OverflowError:
            return {"other": "a number of too many digits"}
    if kind == "list" and isinstance(value, list):
        return {"list": [clean(each, _ITEM) for each in value[:_ITEMS]]}
    if kind == "text" and isinstance(value, str):
        return {"text": clean_lines(value)}
    if kind == "unit" and isinstance(value, str):
        return {"unit": clean(value)}
    return {"other": clean(value, 40)}


def _lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield what each line says, {} for one that can't be read: a submission may write any."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start) % (len(text) + 1)  # without one, the end
        line, start = text[start:end], end + 1
        if len(line) > _LINE:
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        yield data if isinstance(data, dict) else {}


def available_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_AHEAD = 2  # tasks that are sent for each that runs
_LOOK = 0.5  # seconds between two looks at whoever started a worker

Key = TypeVar("Key")


Task = tuple[Key, tuple[Any, ...]]  # what a notebook is known by, and what `run_notebook` is given


def run_all(
    tasks: Iterable[Task[Key]], make: Callable[[], Executor], jobs: int
) -> Iterator[tuple[Key, Ran]]:
    """Run notebooks; yield each one's result as it ends, also of those that could not be run.

    Parameters
    ----------
    make
        Makes the executor, and another in place of one that broke.
    jobs
        How many run at a time.

    Raises
    ------
    NoWallsError
        A worker's machine has no walls.
    """
    queue = iter(tasks)
    waiting: dict[Future[Ran], Task[Key]] = {}
    lost: list[Task[Key]] = []
    executor = make()
    try:
        while True:
            while not lost and len(waiting) < _AHEAD * jobs:
                task = next(queue, None)
                if task is None:
                    break
                waiting[executor.submit(run_notebook, *task[1])] = task
            if not waiting:
                break
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                task = waiting.pop(future)
                ran = _result(future)
                if ran is None:
                    lost.append(task)
                else:
                    yield task[0], ran
            if lost and not waiting:
                for task in lost:
                    end(executor)
                    executor = make()
                    yield task[0], _alone(executor, task)
                lost.clear()
                end(executor)
                executor = make()
    except BaseException:
        end(executor)
        raise
    executor.shutdown()


def _result(future: Future[Ran]) -> Ran | None:
    """Return what came of a task; None if its worker, or the whole pool, was lost."""
    try:
        return future.result()
    except NoWallsError:
        raise
    except (BrokenExecutor, CancelledError):
        return None
    except Exception as error:  # noqa: BLE001 - one submission must not end the others
        return Ran(failed=clean(f"{type(error).__name__}: {error}"))


def _alone(executor: Executor, task: Task[Any]) -> Ran:
    """Run what was lost with a pool of its own; if it breaks that, too, it is the reason."""
    try:
        found = _result(executor.submit(run_notebook, *task[1]))
    except BrokenExecutor:
        found = None
    return found or Ran(failed="the process that watched it was killed, twice")


def end(executor: Executor) -> None:
    """End an executor at once; what its own workers run dies with them."""
    workers = getattr(executor, "_processes", None) or {}
    for worker in list(workers.values()):
        worker.terminate()
    executor.shutdown(wait=True, cancel_futures=True)


def processes(jobs: int) -> Executor:
    """Return an executor of processes on this machine."""
    # not forked: a copy of the grader would hold its key and its threads' locks; and not from a
    # server of forks, which outlives a grader that is killed
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, context, _worker, (os.getpid(),))


def _worker(parent: int) -> None:
    """Leave Ctrl-C to whoever started this process, and end when that one is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


def named(text: str) -> Callable[[], Executor]:
    """Return the function that `MODULE:FUNCTION` names, which returns an executor.

    The module is looked for in the current folder, too.

    Raises
    ------
    SourceError
        There is no such module or function, or it returns something else.
    """
    module, colon, function = text.partition(":")
    if not (module and colon and function):
        raise SourceError(f"'{text}' names no function", hint="Write --executor module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        made: Callable[[], Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise SourceError(
            f"--executor {text}: {error}",
            hint=f"Write a file {module}.py in this folder, with a function {function}().",
        ) from error

    def make() -> Executor:
        executor = made()
        if not callable(getattr(executor, "submit", None)):
            raise SourceError(
                f"--executor {text} returned a {type(executor).__name__}, not an executor",
                hint="Return one of concurrent.futures, or a client's: get_executor().",
            )
        return executor  # type: ignore[no-any-return]

    return make
