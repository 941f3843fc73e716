"""How fast a file is written and read, past the system's own cache in memory."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Self

from mlsim.errors import MlsimError

SIZE = 128 * 2**20
BLOCK = 4 * 2**20
# macOS: F_NOCACHE of fcntl.
_NO_CACHE = 48


class DiskError(MlsimError, OSError):
    """A file can't be written here, or its cache can't be passed by."""


class DiskFile:
    """A file of our own in a folder, which is removed at the end."""

    def __init__(
        self, folder: Path, size: int = SIZE, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._clock, self.size = clock, size // BLOCK * BLOCK
        # A page-aligned block; random, since a file system may compress or leave out zeros.
        self._block = mmap.mmap(-1, BLOCK)
        self._block.write(os.urandom(BLOCK))
        try:
            handle, name = tempfile.mkstemp(prefix="mlsim-disk-", dir=folder)
        except OSError as error:
            raise DiskError(f"no file can be written in {folder}: {error.strerror}.") from error
        os.close(handle)
        self.path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()
        self.path.unlink(missing_ok=True)

    def write(self) -> float:
        """Return the seconds until the whole file is on the disk.

        Raises
        ------
        DiskError
            If it can't be written: the disk is full, or the folder is read-only.
        """
        try:
            begin = self._clock()
            handle = os.open(self.path, os.O_WRONLY | os.O_TRUNC)
            try:
                for _ in range(self.size // BLOCK):
                    self._write_block(handle)
                os.fsync(handle)
            finally:
                os.close(handle)
            return self._clock() - begin
        except OSError as error:
            raise DiskError(f"{self.path} can't be written: {error.strerror}.") from error

    def _write_block(self, handle: int) -> None:
        view = memoryview(self._block)
        while view:
            view = view[os.write(handle, view) :]

    def read(self) -> float:
        """Return the seconds in which the whole file is read from the disk.

        Raises
        ------
        DiskError
            If the system's cache can't be passed by: then a rate would be that of memory.
        """
        handle = self._open_past_cache()
        try:
            begin, left = self._clock(), self.size
            while left > 0:
                done = os.readv(handle, [self._block])
                if done <= 0:
                    raise DiskError(f"{self.path} is shorter than it was written.")
                left -= done
            return self._clock() - begin
        except OSError as error:
            raise DiskError(f"{self.path} can't be read: {error}.") from error
        finally:
            os.close(handle)

    def _open_past_cache(self) -> int:
        direct = getattr(os, "O_DIRECT", 0)
        try:
            handle = os.open(self.path, os.O_RDONLY | direct)
        except OSError as error:
            raise DiskError(
                f"{self.path.parent} lies in memory, or its system keeps every file there: what "
                f"is read does not come from a disk. Name another folder by --disk-folder."
            ) from error
        if direct:
            return handle
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(handle, _NO_CACHE, 1)
            return handle
        os.close(handle)
        raise DiskError("this system has no way to read a file past its cache in memory.")
