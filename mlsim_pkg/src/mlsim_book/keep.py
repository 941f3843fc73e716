"""Keep small results between builds: texts by content hash, in the user's cache.

Separate from the results of cells (`cache`), which are costly; what is kept
here can always be made again within a second.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_DAYS = 30.0


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


@dataclass(frozen=True)
class Keep:
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

    def prune(self) -> None:
        """Drop what was written more than a month ago."""
        limit = time.time() - _DAYS * 86400
        try:
            for path in self.folder.iterdir():
                if path.stat().st_mtime < limit:
                    path.unlink(missing_ok=True)
        except OSError:
            return
