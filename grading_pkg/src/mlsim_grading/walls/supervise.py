"""Start what runs a notebook, listen to it, watch it, and end it in time with all it started.

A submission can end its parents and change its names, but not leave its namespace: all of its
processes descend from the one that built the walls. What they take is what the system tells
(Linux).
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LONGEST = 5000  # characters of an answer that is a text; escaped, a line of the channel holds them


@dataclass(frozen=True)
class Limits:
    """What a submission may take, with everything that it starts.

    Seconds for a cell and in all; bytes of memory (of all its processes and of its files, which
    lie in memory), of its home and of one file; processes and threads; files.
    """

    cell_seconds: int = 10
    seconds: int = 30
    memory: int = 4 * 2**30
    file_size: int = 64 * 2**20
    home: int = 256 * 2**20
    processes: int = 32
    files: int = 2000


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


MOST = 8_000_000  # bytes that a submission may send
_COMPLAINT = 4000  # bytes of its last errors that are kept
_STEP = 0.05  # seconds between two looks
_START = 60.0  # seconds for the first word
_GRACE = 3.0  # seconds beyond a cell's time in which its own clock should have ended it
_GONE = 5.0  # seconds in which what was killed must be gone


@dataclass(frozen=True)
class Heard:
    """What came out: bytes of the channel, the last errors, and why it was ended, if it was.

    `seconds` is how long it took after its first word: how long an interpreter needs to start is
    nobody's fault.
    """

    channel: bytes
    complaint: str
    ended: str = ""
    seconds: float = 0.0


class _Reader(threading.Thread):
    """Reads a pipe to its end, and keeps its beginning or its end."""

    def __init__(self, pipe: IO[bytes], most: int, *, end: bool = False) -> None:
        super().__init__(daemon=True)
        self._pipe, self._most, self._end = pipe, most, end
        self.kept = bytearray()
        self.total = 0
        self.first: float | None = None
        self.last = time.monotonic()
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(self._pipe.fileno(), 65536):
                self.last = time.monotonic()
                self.first = self.first or self.last
                self.total += len(piece)
                if self._end:
                    self.kept = (self.kept + piece)[-self._most :]
                elif len(self.kept) < self._most:
                    self.kept += piece[: self._most - len(self.kept)]


def listen(
    command: Sequence[str],
    task: bytes,
    limits: Limits,
    seconds: float,
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    watch: Callable[[int], Watch] | None = None,
    after: Callable[[], None] = lambda: None,
) -> Heard:
    """Run a command that reads a task and answers on its standard output; end it in time.

    Parameters
    ----------
    seconds
        How long it may run after its first word.
    watch
        Makes what looks at the command's process, whose number it is given.
    after
        Called when the process is gone, however it went.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(env), cwd=cwd, pass_fds=pass_fds, start_new_session=True,
    )  # fmt: skip
    pipes = [each for each in (process.stdin, process.stdout, process.stderr) if each is not None]
    given, answers, said = pipes
    threads = [threading.Thread(target=_feed, args=(given, task), daemon=True)]
    try:
        channel, errors = _Reader(answers, MOST), _Reader(said, _COMPLAINT, end=True)
        threads[0].start()
        threads += [channel, errors]
        watcher = watch(process.pid) if watch else None
        ended = _follow(channel, errors, limits, seconds, watcher)
        took = time.monotonic() - (channel.first or time.monotonic())
        if not ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
    finally:
        end(process)
        after()
        for thread in threads:
            thread.join(_GONE)
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.close()
    return Heard(bytes(channel.kept), errors.kept.decode(errors="replace"), ended, took)


def _feed(pipe: IO[bytes], task: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        pipe.write(task)
        pipe.close()


def _follow(
    channel: _Reader, errors: _Reader, limits: Limits, seconds: float, watcher: Watch | None
) -> str:
    """Wait until the channel is closed; return why that was not waited for, or ""."""
    while channel.is_alive():
        channel.join(_STEP)
        now = time.monotonic()
        if channel.total >= MOST or errors.total >= MOST:
            return f"wrote more than {MOST // 10**6} MB"
        if channel.first is not None and now > channel.first + seconds:
            return f"ran for more than {limits.seconds} s"
        # a cell ends itself in its time; one that can't be ended is silent for longer
        if now - channel.last > (limits.cell_seconds + _GRACE if channel.total else _START):
            return "did not end"
        if watcher is not None and (excess := watcher.excess()):
            return f"took {excess}"
    return ""


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process with whatever it started, and see that all of it is gone."""
    left = {pid: beginning(pid) for pid in descendants(process.pid)}
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    deadline = time.monotonic() + _GONE
    while (there := alive(left)) and time.monotonic() < deadline:
        for pid in there:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
