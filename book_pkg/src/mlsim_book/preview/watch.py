"""See which files of a book change, by looking at them again and again.

Looking costs a few milliseconds for some hundred files, works on every system
and file share, and needs no library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_SKIPPED = frozenset({"__pycache__", "node_modules"})
_SCRATCH = ("~", ".swp", ".swx", ".tmp", ".part", ".crswap")  # what editors leave while they save
_WRITTEN = frozenset(
    {".qmd", ".md", ".ipynb", ".yml", ".yaml", ".bib", ".csl", ".css", ".py", ".toml"}
)
PAUSE = 0.1  # seconds between two looks
_SETTLE = 0.03  # an editor that saves in steps is done after this

Stamps = dict[str, tuple[int, int]]


def scan(root: Path, skip: Iterable[Path] = ()) -> Stamps:
    """Return time and size of the files of a book by path, leaving out what people don't write.

    Hidden files and folders, virtual environments and the folders in `skip` don't count.
    """
    barred = {str(path) for path in skip}
    found: Stamps = {}
    queue = [str(root)]
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue  # gone, or not readable
        if any(each.name == "pyvenv.cfg" for each in listed):
            continue
        for each in listed:
            if each.name.startswith((".", "#")) or each.name.endswith(_SCRATCH):
                continue
            try:
                if each.is_dir(follow_symlinks=False):
                    if each.name not in _SKIPPED and each.path not in barred:
                        queue.append(each.path)
                elif each.is_file():
                    stat = each.stat()
                    found[os.path.relpath(each.path, root)] = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                continue
    return found


def differing(old: Stamps, new: Stamps) -> list[str]:
    """Return what changed, came or went, by path.

    >>> differing({"a": (1, 1), "b": (1, 1)}, {"a": (2, 1), "c": (1, 1)})
    ['a', 'b', 'c']
    """
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


class Watcher:
    """Finds what changed in a folder since the last call."""

    def __init__(self, root: Path, skip: Iterable[Path] = ()) -> None:
        self.root, self.skip = root, tuple(skip)
        self.seen = scan(root, self.skip)
        self.cost = 0.0  # seconds of a look

    def changes(self) -> list[str]:
        """Return what changed since the last call, once it has settled."""
        new = self._look()
        if new == self.seen:
            return []
        while True:
            time.sleep(_SETTLE)
            again = self._look()
            if again == new:
                break
            new = again
        found, self.seen = differing(self.seen, new), new
        return found

    def overlook_made(self) -> None:
        """Take what a build's own cells have written for seen, but not what people write."""
        new = self._look()
        for name in differing(self.seen, new):
            if Path(name).suffix.lower() in _WRITTEN:
                continue
            if name in new:
                self.seen[name] = new[name]
            else:
                del self.seen[name]

    def pause(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Wait until the next look is due: never more than a tenth of the time is spent."""
        wait(max(PAUSE, 10 * self.cost))

    def _look(self) -> Stamps:
        started = time.perf_counter()
        found = scan(self.root, self.skip)
        self.cost = time.perf_counter() - started
        return found
