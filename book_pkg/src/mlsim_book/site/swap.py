"""A site's folder, which is whole at every moment, or has a whole sibling.

A site is written into `._book-work/new` beside `_book`, and put in its place by
two renames. A build that is killed between them leaves the old site whole in
`._book-work/old`; `restore` puts it back, which every build does first and the
other commands do through `recover`.

One build of a site's folder at a time: a lock beside it that says who holds it. The preview and
the writing of notebooks take the same lock, since they run the same cells.

The lock is the operating system's own (`flock`, or Windows' kin), so that of a process that is
gone is free at once, however it went. What the file holds is only for people: which process builds
there, and since when.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from mlsim_book.errors import BookError, SourceError
from mlsim_book.model import Project

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
    who = {"process": os.getpid(), "host": platform.node(), "since": time.time()}
    try:
        with suppress(OSError):  # a full disk is reported where it matters, not here
            lock_path(target).write_text(json.dumps(who), encoding="utf-8")
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


def _holder(target: Path) -> str:
    """Return who holds the lock, in words."""
    try:
        who = json.loads(lock_path(target).read_text(encoding="utf-8"))
        since = time.strftime("%H:%M:%S", time.localtime(who["since"]))
        return f"process {who['process']} on {who['host']} (since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


Progress = Callable[[str], None]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class DiskError(BookError):
    """The disk is full, or a folder can't be written."""


def work_folder(target: Path) -> Path:
    """Return the folder in which a build of a site works: on the same disk, beside it.

    >>> work_folder(Path("book/_book")).as_posix()
    'book/._book-work'
    """
    return target.parent / f".{target.name}-work"


@contextmanager
def fresh_folder(target: Path, *, progress: Progress = lambda _: None) -> Iterator[Path]:
    """Yield a new folder for a site, after mending what a killed build has left.

    The caller holds the lock, and calls `swap` when the site is whole.
    """
    restore(target, progress)
    new = work_folder(target) / "new"
    new.mkdir(parents=True)
    try:
        yield new
    finally:
        restore(target, progress)


def swap(target: Path) -> None:
    """Put the new site in the place of the old one, which is kept until that is done."""
    new, old = work_folder(target) / "new", work_folder(target) / "old"
    if target.exists():
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
    else:
        new.rename(target)


def carry(path: Path, into: Path) -> None:
    """Give a new folder what lay in the old one, which keeps it: whichever is lost, one has it."""
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, into / path.name, symlinks=True, copy_function=_link)
    else:
        _link(path, into / path.name)


def _link(path: str | Path, to: str | Path) -> None:
    """Link a file, which takes no room; copy it where the disk has no links."""
    try:
        os.link(path, to, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, to, follow_symlinks=False)


def restore(target: Path, progress: Progress = lambda _: None) -> None:
    """Put the old site back if a swap was cut short; drop what else a build has left."""
    work = work_folder(target)
    if not work.is_dir():
        return
    old = work / "old"
    if old.is_dir():
        if not os.path.lexists(target):
            old.rename(target)
            progress(f"restored {target.name}: the build before this one was killed")
        else:
            # renamed first: half of it, left by a kill, must not be taken for a site
            shutil.rmtree(work / "gone", ignore_errors=True)
            old.rename(work / "gone")
    shutil.rmtree(work, ignore_errors=True)


def recover(target: Path, progress: Progress = lambda _: None) -> None:
    """Restore a site for a command that only reads it; leave it to a build that is running."""
    if not work_folder(target).is_dir():
        return
    try:
        with hold(target, wait=0):
            restore(target, progress)
    except BusyError:
        return


def check_target(project: Project, target: Path) -> None:
    """Refuse a folder whose files the site would replace, though they are no site."""
    hint = "Name a new folder with `project: output-dir:` or --output-dir."
    if target.exists() and not target.is_dir():
        raise SourceError(f"the site can't go to {target}, which is a file", hint=hint)
    if os.path.ismount(target):
        raise SourceError(
            f"the site can't go to {target}, which is a mount point and can't be swapped",
            hint=f"Name a folder inside it, such as {target / 'book'}. {hint}",
        )
    inside = [
        each for each in project.chapters if (project.root / each.source).is_relative_to(target)
    ]
    if project.root.is_relative_to(target) or inside:
        raise SourceError(f"the site can't go to {target}: the book's sources are there", hint=hint)
    found = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if found and (not found & {"index.html", "site_libs"} or ".git" in found):
        raise SourceError(
            f"the site can't go to {target}, which holds files that are no site",
            hint=f"They would be lost. {hint}",
        )


@contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Tell what the disk refuses as a BookError."""
    try:
        yield
    except OSError as error:
        path = error.filename2 or error.filename
        why, place = error.strerror or str(error), os.fsdecode(path) if path else str(target)
        if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
            _, place, said = error.args[0][0]  # of many files, copied together
            why = re.sub(r"^\[Errno \d+\] |: '.*", "", str(said))
        hint = "The site that was there is as it was."
        if error.errno in _FULL or os.strerror(errno.ENOSPC) in why:
            hint = f"Free some space and build again. {hint}"
        elif error.errno in _REFUSED:
            hint = f"Make that folder writable, or name another with --output-dir. {hint}"
        raise DiskError(f"{why}: {place}", hint=hint) from error
