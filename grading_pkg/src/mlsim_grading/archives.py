"""Zips that strangers made: what is in them, and the bytes of one file, never more than that.

Nothing is unpacked to a disk, so no name leads anywhere. Sizes are those that come out, not those
that are said, and whatever is odd about a file is said of that file alone.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from mlsim_grading.directory import LEADS_OUT, STORED, ArchiveError, Listed, directory

__all__ = ["LARGEST_INSIDE", "Archive", "ArchiveError", "Entry", "open_archive"]

LARGEST_INSIDE = 64_000_000  # bytes of a zip in a zip, which is held in memory
_PIECE = 65_536
_DEEPEST = 40  # folders in folders


@dataclass(frozen=True)
class Entry:
    """A file in a zip: its number, the parts of its path, what tells it from others, its size.

    `saved_at` is when it was put in, by the clock of whoever did. `trouble` says why it can't be
    read, if the directory shows it.
    """

    number: int
    parts: tuple[str, ...]
    key: bytes
    size: int
    saved_at: str
    trouble: str = ""


class Archive:
    """A zip; `entries` are its files, without its folders.

    Raises
    ------
    ArchiveError
        It is no zip that can be read.
    """

    def __init__(self, source: Path | bytes) -> None:
        self._source = source
        try:
            with self._open() as file:
                self._listed = directory(file)
        except (OSError, ValueError, struct.error) as error:
            said = getattr(error, "strerror", None)
            why = f": {said}" if said else ""
            raise ArchiveError(f"the file is no zip that can be read{why}") from error
        self.entries = tuple(self._entries())

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if isinstance(self._source, bytes):
            yield io.BytesIO(self._source)
            return
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(self._source, flags | getattr(os, "O_CLOEXEC", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ArchiveError("this is no file")
            yield file

    def _entries(self) -> Iterator[Entry]:
        times = Counter(each.name for each in self._listed)
        for number, each in enumerate(self._listed):
            if each.name.endswith("/"):
                continue
            twice = times[each.name] > 1
            trouble = each.trouble or ("the zip holds two files of this name" if twice else "")
            parts = tuple(part for part in each.name.split("/") if part not in {"", ".", ".."})
            if len(parts) > _DEEPEST:
                trouble = trouble or "too many folders in folders"
            if each.trouble == LEADS_OUT or len(parts) > _DEEPEST:
                parts = parts[-1:]  # its folders are no folders of this zip
            key = each.name.encode("utf-8", "surrogateescape") + (b"#%d" % number if twice else b"")
            yield Entry(number, parts or ("?",), key, each.size, each.saved_at, trouble)

    def read(self, number: int, most: int) -> bytes:
        """Return the bytes of a file.

        Raises
        ------
        ArchiveError
            They can't be had: packed in an odd way, damaged, or more than `most`.
        """
        listed = self._listed[number]
        if listed.trouble:
            raise ArchiveError(listed.trouble)
        if listed.size > most:
            raise ArchiveError(f"the file is larger than {most // 1_000_000} MB")
        try:
            with self._open() as file:
                data = _unpack(file, listed)
        except (OSError, ValueError, OverflowError, MemoryError, struct.error, zlib.error) as error:
            raise ArchiveError("the zip is damaged at this file") from error
        if len(data) != listed.size or zlib.crc32(data) != listed.check:
            raise ArchiveError("the zip is damaged at this file: it isn't what its checksum says")
        return data


def _unpack(file: BinaryIO, listed: Listed) -> bytes:
    """Return what a file holds, at most a byte more than it is said to."""
    file.seek(listed.start)
    signature, names, extra = struct.unpack("<4s22xHH", file.read(30))
    if signature != b"PK\x03\x04":
        raise ArchiveError("the zip is damaged at this file")
    file.seek(names + extra, os.SEEK_CUR)
    left, most = listed.packed, listed.size + 1
    if listed.method == STORED:
        return file.read(min(left, most))
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    found = io.BytesIO()
    while left > 0 and not inflate.eof and found.tell() < most:
        piece = file.read(min(left, _PIECE))
        if not piece:
            break
        left -= len(piece)
        while piece and not inflate.eof and found.tell() < most:
            found.write(inflate.decompress(piece, most - found.tell()))
            piece = inflate.unconsumed_tail
    return found.getvalue()


def open_archive(path: Path, inside: tuple[int, ...] = ()) -> Archive:
    """Return a zip, or one that lies in it at these numbers, and in that one.

    Raises
    ------
    ArchiveError
        One of them can't be read.
    """
    try:
        about = path.lstat()
    except (OSError, ValueError) as error:
        raise ArchiveError("the file can't be read") from error
    return _opened(path, inside, (about.st_ino, about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=3)  # of a class's zip and those in it, one after the other
def _opened(path: Path, inside: tuple[int, ...], stamp: tuple[int, ...]) -> Archive:
    if not inside:
        return Archive(path)
    outer = _opened(path, inside[:-1], stamp)
    return Archive(outer.read(inside[-1], LARGEST_INSIDE))
