"""Where submissions are run: processes of this machine, or a cluster that somebody names.

Any `concurrent.futures.Executor` will do. A few tasks are sent ahead of what is done, not all of
them: ten thousand notebooks need not lie in memory. Of a pool whose worker was killed, what was
lost is run again, one by one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from mlsim_book.errors import SourceError
from mlsim_grading.process import Ran, clean, run_notebook
from mlsim_grading.walls.choose import NoWallsError

_AHEAD = 2  # tasks that are sent for each that runs
_LOOK = 0.5  # seconds between two looks at whoever started a worker

Key = TypeVar("Key")


@dataclass(frozen=True)
class Task(Generic[Key]):
    """A notebook to run: what it is known by, and what `run_notebook` is given."""

    key: Key
    given: tuple[Any, ...]


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
                waiting[executor.submit(run_notebook, *task.given)] = task
            if not waiting:
                break
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                task = waiting.pop(future)
                ran = _result(future)
                if ran is None:
                    lost.append(task)
                else:
                    yield task.key, ran
            if lost and not waiting:
                for task in lost:
                    executor = _again(executor, make)
                    ran = _alone(executor, task)
                    yield task.key, ran
                lost.clear()
                executor = _again(executor, make)
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
        found = _result(executor.submit(run_notebook, *task.given))
    except BrokenExecutor:
        found = None
    return found or Ran(failed="the process that watched it was killed, twice")


def _again(executor: Executor, make: Callable[[], Executor]) -> Executor:
    end(executor)
    return make()


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
