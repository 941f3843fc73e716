"""What came out of each notebook, kept one by one, so that a run that was stopped goes on.

It is judged anew at each grading: a longer class list, a mended key or another rule runs nothing
again. The files lie in a folder that only its owner can open. A submission behind walls can't reach
it; one that is trusted could, so nothing is kept of those or read back for them.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import SourceError
from mlsim_grading.process import Ran

_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class Kept:
    """A folder of what came out of notebooks, by where these lay."""

    folder: Path

    def prepare(self) -> None:
        """Make the folder, for its owner alone.

        Raises
        ------
        SourceError
            It can't be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
        except OSError as error:
            raise SourceError(
                f"results can't be written: {error.strerror}",
                file=self.folder,
                hint="Name another folder: --out DIR.",
            ) from error

    def load(self, key: bytes, digest: str) -> Ran | None:
        """Return what came out of a submission, if it is of these very bytes."""
        try:
            number = os.open(self._path(key), os.O_RDONLY | _CAREFUL)
            with os.fdopen(number, encoding="utf-8") as file:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    return None
                data = json.load(file)
            if data.pop("digest") != digest:
                return None
            lists = {name: tuple(map(str, data[name])) for name in ("trouble", "told")}
            return Ran(**{**data, **lists})
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def store(self, key: bytes, digest: str, ran: Ran) -> None:
        """Keep it, whole or not at all; a full disk costs time at the next run, no more."""
        text = json.dumps({**asdict(ran), "digest": digest}, ensure_ascii=True)
        TextCache(self.folder).store(self._path(key).name, text)

    def _path(self, key: bytes) -> Path:
        return self.folder / f"{content_hash(key)}.json"
