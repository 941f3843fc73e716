"""Ctrl-C for a command that runs until it is told to end.

Python raises KeyboardInterrupt wherever the main thread happens to be: in a library's
cleaning up it is printed and lost, in a `finally` it cuts the tidying short. So the
signal is only noted, and the command ends at its next look. A long build, which has
none, is broken off where it says that it may be.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupt:
    """A wish to end, by Ctrl-C or by a request of the system.

    >>> interrupt = Interrupt()
    >>> with interrupt.listening():
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupt.wished.is_set()
    True
    """

    def __init__(self) -> None:
        self.wished = threading.Event()
        self._breaking = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take signals as wishes; a thread other than the main one gets none."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Let a wish raise KeyboardInterrupt here; at once if there is one already."""
        self._breaking = True
        try:
            if self.wished.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._breaking = False

    def _note(self, *_: object) -> None:
        again = self.wished.is_set()  # whoever asks twice doesn't want to wait
        self.wished.set()
        if self._breaking or again:
            raise KeyboardInterrupt
