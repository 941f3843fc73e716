"""What a process and all that it started take, as the system tells it (Linux).

A submission can end its parents and change its names, but not leave its namespace: all of its
processes descend from the one that built the walls.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

from mlsim_grading.limits import Limits

_SPARE = 4  # processes that belong to the walls
_MANY = 8  # processes from which on others go first
_LAST = 19  # of the system's priorities
_SOCKET = Path("/proc/sys/net/core/wmem_default")  # bytes that may wait in one
_USUAL_SOCKET = 212_992


class Watch:
    """Looks at a tree of processes again and again, and says when it takes too much.

    `home` is where, inside its walls, the submission may write.
    """

    def __init__(self, root: int, limits: Limits, home: str) -> None:
        self._root, self._limits, self._home = root, limits, home
        self._slowed: set[int] = set()

    def excess(self) -> str:
        """Return what is taken too much of, or ""."""
        processes = descendants(self._root)
        threads = [tid for pid in processes for tid in _threads(pid)]
        if len(threads) > self._limits.processes + _SPARE:
            return f"more than {self._limits.processes} processes"
        if len(threads) > _MANY:
            self._slow(threads)
        used, files = _written(processes, self._home)
        if files > self._limits.files:
            return f"more than {self._limits.files} files"
        used += _waiting(processes)
        bound = self._limits.memory
        if used + sum(map(_private, processes)) > bound and (
            used + sum(map(_proportional, processes)) > bound
        ):
            return f"more than {bound // 2**20} MiB of memory"
        return ""

    def _slow(self, threads: list[int]) -> None:
        for tid in threads:
            if tid not in self._slowed:
                self._slowed.add(tid)
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, tid, _LAST)


def descendants(root: int) -> list[int]:
    """Return the processes that a process started, and those that these started."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        for pid in _children(waiting.pop()):
            if pid not in found:
                found.append(pid)
                waiting.append(pid)
    return found


def alive(processes: dict[int, str]) -> list[int]:
    """Return those of some processes, given with when they began, that are still there."""
    return [pid for pid, began in processes.items() if began and beginning(pid) == began]


def beginning(pid: int) -> str:
    """Return when a process began, in the system's own count; "" if it is gone or only a shell.

    A number is given to another process one day; both together are not. A process whose first
    thread has ended looks like one that is gone, and its other threads go on.
    """
    fields = _about(f"/proc/{pid}/stat")
    if not fields:
        return ""
    ended = fields[0] in "ZX" and all(
        (_about(f"/proc/{pid}/task/{tid}/stat") or "X")[0] in "ZX" for tid in _threads(pid)
    )
    return "" if ended else fields[19]


def _about(path: str) -> list[str]:
    """Return what the system says of a process or thread behind its name; nothing if it's gone."""
    try:
        return Path(path).read_text(encoding="latin-1").rpartition(")")[2].split()
    except OSError:
        return []


def _threads(pid: int) -> list[int]:
    try:
        return [int(each) for each in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    except OSError:
        return []


def _children(pid: int) -> Iterator[int]:
    for tid in _threads(pid):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{tid}/children").read_text(encoding="ascii")
            yield from map(int, text.split())


def _private(pid: int) -> int:
    """Return how many bytes of memory no file stands behind; what is shared counts each time."""
    return _sum(pid, "status", ("RssAnon", "RssShmem", "VmSwap"))


def _proportional(pid: int) -> int:
    """Return the same with what processes share divided among them; exact, and slow."""
    return _sum(pid, "smaps_rollup", ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _sum(pid: int, file: str, names: tuple[str, ...]) -> int:
    """Return the sum of some lines like `RssAnon:  123 kB` about a process, in bytes.

    A thread that has ended shows no memory, though it may be the first of a process that goes on:
    then another thread is asked, as all have the same.
    """
    for tid in dict.fromkeys([pid, *_threads(pid)]):
        found = []
        with (
            contextlib.suppress(OSError),
            Path(f"/proc/{tid}/{file}").open(encoding="latin-1") as f,
        ):
            for line in f:
                name, _, value = line.partition(":")
                if name in names:
                    found.append(int(value.split()[0]) * 1024)
        if found:
            return sum(found)
    return 0


def _written(processes: list[int], home: str) -> tuple[int, int]:
    """Return the bytes and files in a home that lies in memory."""
    for pid in reversed(processes):
        with contextlib.suppress(OSError):
            inside = f"/proc/{pid}/root{home}"
            seen = os.statvfs(inside)
            if seen.f_files and Path(inside).stat().st_dev != _device(home):
                size = (seen.f_blocks - seen.f_bfree) * seen.f_frsize
                return size, seen.f_files - seen.f_ffree
    return 0, 0


def _waiting(processes: list[int]) -> int:
    """Return the bytes that may wait in the sockets of their network, as no process has them."""
    for pid in reversed(processes):
        with contextlib.suppress(OSError, ValueError, IndexError):
            seen = Path(f"/proc/{pid}/net/sockstat").read_text(encoding="ascii")
            if Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
                return int(seen.split()[2]) * _of_a_socket()  # "sockets: used 12"
    return 0


@functools.cache
def _of_a_socket() -> int:
    try:
        return int(_SOCKET.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _USUAL_SOCKET


def _device(path: str) -> int:
    """Return on which device a place of this machine lies: walls that aren't up show the same."""
    try:
        return Path(path).stat().st_dev
    except OSError:
        return -1
