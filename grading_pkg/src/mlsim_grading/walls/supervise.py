"""Start what runs a notebook, listen to it, watch it, and end it in time with all it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from mlsim_grading.limits import Limits
from mlsim_grading.walls.tree import alive, beginning, descendants

MOST = 8_000_000  # bytes that a submission may send
_COMPLAINT = 4000  # bytes of its last errors that are kept
_STEP = 0.05  # seconds between two looks
_START = 60.0  # seconds for the first word
_GRACE = 3.0  # seconds beyond a cell's time in which its own clock should have ended it
_GONE = 5.0  # seconds in which what was killed must be gone


class Watcher(Protocol):
    """Says what a submission takes too much of."""

    def excess(self) -> str:
        """Return what it is, or ""."""
        ...


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
    watch: Callable[[int], Watcher] | None = None,
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
    channel: _Reader, errors: _Reader, limits: Limits, seconds: float, watcher: Watcher | None
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
