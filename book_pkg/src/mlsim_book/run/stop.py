"""Stop the pages that other threads run: Ctrl-C ends a build now, not when its cells end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """A wish, of one run of pages, that they end.

    It may come at any moment: a page may be in its cells, but also on its way to them
    (its cache is read, the kernel's client is imported) or about to run again after its
    kernel died. So a wish is kept, and a page that comes late finds it.

    >>> stop = Stop()
    >>> with stop.by(lambda: print("ended")):
    ...     stop.wish()
    ended
    >>> with stop.by(lambda: print("ended before it began")):
    ...     pass
    ended before it began
    """

    def __init__(self) -> None:
        self.wished = False
        self._lock = threading.Lock()
        self._ends: dict[object, Callable[[], object]] = {}

    def wish(self) -> None:
        """End what runs, and what is still to come."""
        with self._lock:
            self.wished = True
            for end in self._ends.values():
                end()

    @contextmanager
    def by(self, end: Callable[[], object]) -> Iterator[None]:
        """Have `end` called by a wish, from its thread; at once if there is one already."""
        key = object()
        with self._lock:
            self._ends[key] = end
            if self.wished:
                end()
        try:
            yield
        finally:
            with self._lock:
                del self._ends[key]
