"""What a page's code opens: noted inside its kernel, from the first cell to the last.

Python announces every file that it opens, every folder that it lists and every program
that it starts to an audit hook. Modules that were loaded before the hook stand in
`sys.modules`. What another program or a compiled library opens by itself isn't announced:
a page that starts a program counts as one that opened everything, and a file that only
a compiled library reads should be named by itself under `mlsim-book: depends:`.

This module runs in the kernel and uses the standard library alone.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from typing import Any

EVERYTHING = "*"  # another program ran, and may have opened any file
_LISTS = {"os.listdir", "os.scandir"}
_STARTS = {
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile",
    "os.system", "pty.spawn", "subprocess.Popen",
}  # fmt: skip
# Matplotlib lists the machine's fonts with these, once on each machine.
_LIST_FONTS = {"fc-list", "system_profiler"}
_WRITES = os.O_WRONLY | os.O_RDWR
_noted: set[str] = set()


def watch() -> None:
    """Note from now on what this process opens."""
    sys.addaudithook(_note)


def opened() -> str:
    """Return what was opened until now, and the files of all loaded modules, as JSON.

    A sorted list of absolute paths; that of a folder ends in a slash.
    """
    files = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
    paths = {_name(each) for each in files if isinstance(each, str)} - {None}
    return json.dumps(sorted(str(each) for each in paths | _noted))


def _note(event: str, given: tuple[Any, ...]) -> None:
    """Note one event; it must never raise, since that would stop what was begun."""
    if event in _STARTS:
        program = (_name(given[0]) or "").rpartition(os.sep)[2] if given else ""
        if program not in _LIST_FONTS:
            _noted.add(EVERYTHING)
    elif event == "open":
        path, mode, flags = given
        reads = set(mode) & set("r+") if isinstance(mode, str) else not (flags or 0) & _WRITES
        if reads and (name := _name(path)):
            with suppress(ValueError):  # of a compiled file, the module's source
                name = source_from_cache(name) if name.endswith(".pyc") else name
            _noted.add(name)
    elif event in _LISTS:
        name = _name(given[0] if given[0] is not None else ".")
        if name:
            _noted.add(name.rstrip("/") + "/")
    elif event == "sqlite3.connect" and (name := _name(given[0])):
        _noted.add(name)


def _name(path: object) -> str | None:
    """Return a path as absolute text; None for a file that is open already."""
    try:
        return os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # noqa: PTH100 - links stay
    except (TypeError, ValueError, OSError):
        return None
