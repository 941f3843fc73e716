"""One build of a site's folder at a time: a lock beside it that says who holds it.

The preview and the writing of notebooks take the same lock, since they run the same cells.

The lock is the operating system's own (`flock`, or Windows' kin), so that of a
process that is gone is free at once, however it went. What the file holds is only for
people: which process builds there, and since when.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from mlsim_book.errors import BookError

WAIT = 900.0  # seconds: longer than any one cell may run, unless a book says otherwise


class BusyError(BookError):
    """Another build holds the folder, and went on holding it."""


def lock_path(target: Path) -> Path:
    """Return the lock of a site's folder, which stands beside it.

    >>> lock_path(Path("book/_book")).as_posix()
    'book/._book.lock'
    """
    return target.parent / f".{target.name}.lock"


@contextmanager
def hold(
    target: Path, *, wait: float = WAIT, progress: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Hold a site's folder; wait until it is free, and say so.

    Raises
    ------
    BusyError
        It was still held after `wait` seconds.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_path(target))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"waiting for {_holder(target)}, which builds {target.name} too")
        try:
            lock.acquire(timeout=wait, poll_interval=0.1)
        except Timeout:
            raise BusyError(
                f"{_holder(target)} has been building {target} for more than {wait:g} s",
                hint="Wait for it or stop it, or build elsewhere with --output-dir.",
            ) from None
    try:
        _sign(target)
        yield
    finally:
        with suppress(OSError):  # while it is held: who opened it meanwhile sees that it is gone
            lock_path(target).unlink()
        lock.release()


@contextmanager
def take_turns(target: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Run a book's cells while no other command does; a book nobody can write needs no turns."""
    if os.access(target.parent, os.W_OK):
        with hold(target, progress=progress):
            yield
    else:
        yield


def _sign(target: Path) -> None:
    """Write who holds the lock; a full disk is reported where it matters, not here."""
    who = {"process": os.getpid(), "host": platform.node(), "since": time.time()}
    with suppress(OSError):
        lock_path(target).write_text(json.dumps(who), encoding="utf-8")


def _holder(target: Path) -> str:
    """Return who holds the lock, in words."""
    try:
        who = json.loads(lock_path(target).read_text(encoding="utf-8"))
        since = time.strftime("%H:%M:%S", time.localtime(who["since"]))
        return f"process {who['process']} on {who['host']} (since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
