"""What is kept to be used again: texts by content hash, and the last results of a process.

Separate from the results of cells (`run.page_cache`), which are costly; what is kept
here can always be made again within a second.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from mlsim_book.errors import ToolError

_DAYS = 30.0
T = TypeVar("T")


def content_hash(*parts: str | bytes) -> str:
    """Return a hash of texts that doesn't confuse ("ab", "c") with ("a", "bc").

    >>> content_hash("ab", "c") == content_hash("a", "bc")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


@contextmanager
def filled(folder: Path, *, holds: str = ".") -> Iterator[Path]:
    """Give a scratch folder that becomes `folder` once it is filled: nobody sees half of it.

    Of processes that fill it at the same time the first one wins: what it made has a folder
    `holds`.

    Raises
    ------
    ToolError
        If nothing can be written there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    except OSError as error:
        raise ToolError(
            f"can't write to the cache folder {folder.parent}: {error.strerror}",
            hint="Set XDG_CACHE_HOME to a folder you can write to.",
        ) from None
    try:
        yield scratch
        try:
            scratch.replace(folder)
        except OSError:
            if not (folder / holds).is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class TextCache:
    """A folder of texts, one file a key."""

    folder: Path

    def load(self, key: str) -> str | None:
        """Return what is kept under a key, if anything."""
        try:
            return (self.folder / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def store(self, key: str, text: str) -> None:
        """Keep a text, whole or not at all; a cache that can't be written is no error."""
        part: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.folder, prefix=".", delete=False
            ) as file:
                part = Path(file.name)
                file.write(text)
            part.replace(self.folder / key)
        except OSError:
            if part is not None:  # on a full disk every byte counts
                part.unlink(missing_ok=True)

    def prune(self, days: float = _DAYS) -> None:
        """Drop what was written so many days ago, or earlier."""
        limit = time.time() - days * 86400
        try:
            for path in self.folder.iterdir():
                if path.stat().st_mtime < limit:
                    path.unlink(missing_ok=True)
        except OSError:
            return


class Memo:
    """Results by name, each with what it was made from.

    A preview holds one from build to build, so that only changed pages are
    finished again. It compares what a step is given, not the files that the step
    looks at: drop the memo when any of those changes.

    >>> memo = Memo()
    >>> memo.get("a", hex, 16), memo.get("a", oct, 16), memo.get("a", oct, 8)
    ('0x10', '0x10', '0o10')
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, Any]] = {}

    def get(
        self, name: Hashable, make: Callable[..., T], *given: object, beside: object = None
    ) -> T:
        """Return what was made under a name from equal things, or make it now.

        `beside` is what the result depends on but `make` isn't given.
        """
        kept = self._kept.get(name)
        if kept is not None and kept[0] == (given, beside):
            return cast(T, kept[1])
        result = make(*given)
        self._kept[name] = ((given, beside), result)
        return result


def cache_folder() -> Path:
    """Return the user's cache folder for books, which need not exist."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "mlsim-book"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mlsim-book"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "mlsim-book"
    return Path.home() / ".cache" / "mlsim-book"


def assets_folder() -> Path:
    """Return where the npm packages of this version of the builder are, or will be."""
    lock = (Path(__file__).parent / "render" / "node" / "package-lock.json").read_bytes()
    return cache_folder() / "assets" / content_hash(lock)[:16]
