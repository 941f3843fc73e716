"""Tell of progress: plain lines, and below them a bar where a person looks at a terminal."""

from __future__ import annotations

import shutil
import sys
import threading

_WIDTH = 24  # of the bar


def bar(done: int, total: int, what: str, columns: int = 80) -> str:
    """Return a bar that fits a line.

    >>> bar(3, 12, "intro.qmd")
    '[######------------------]  3/12  intro.qmd'
    """
    filled = _WIDTH * done // max(1, total)
    count = f"{done}/{total}".rjust(2 * len(str(total)) + 1)
    return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {count}  {what}"[: columns - 1]


class Teller:
    """Prints lines; called with one, it keeps the bar below it.

    A log, a file or a pipe gets the lines alone. `terminal` says which it is; standard
    output is asked when it is None.
    """

    def __init__(self, *, terminal: bool | None = None) -> None:
        self._terminal = terminal
        self._bar = ""
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        """Print a line."""
        with self._lock:
            self._wipe()
            print(line, flush=True)
            self._draw()

    def step(self, done: int, total: int, what: str) -> None:
        """Show how far something is; the bar goes when all is done."""
        if not (sys.stdout.isatty() if self._terminal is None else self._terminal):
            return
        with self._lock:
            self._wipe()
            columns = shutil.get_terminal_size().columns
            self._bar = bar(done, total, what, columns) if done < total else ""
            self._draw()

    def clear(self) -> None:
        """Remove the bar: what it showed has ended, well or not."""
        with self._lock:
            self._wipe()
            self._bar = ""

    def _wipe(self) -> None:
        if self._bar:
            print("\r\x1b[K", end="", flush=True)

    def _draw(self) -> None:
        if self._bar:
            print(self._bar, end="", flush=True)


def step(progress: object, done: int, total: int, what: str) -> None:
    """Tell a teller how far something is; other kinds of progress take lines only."""
    if isinstance(progress, Teller):
        progress.step(done, total, what)


def clear(progress: object) -> None:
    """Take a teller's bar away."""
    if isinstance(progress, Teller):
        progress.clear()
