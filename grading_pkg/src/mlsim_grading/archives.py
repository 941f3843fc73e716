"""Zips that strangers made: what is in them, and the bytes of one file, never more than that.

Nothing is unpacked to a disk, so no name leads anywhere. Sizes are those that come out, not those
that are said, and whatever is odd about a file is said of that file alone.

Python's own reader gives up on a whole zip for one name that isn't UTF-8, and reads a directory of
any size. This one is bounded, and leaves what is odd about one file to that file.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

MOST = 100_000  # files
_LARGEST = 64_000_000  # bytes
_END, _END_64, _ENTRY = b"PK\x05\x06", b"PK\x06\x07", b"PK\x01\x02"
_HEAD = struct.Struct("<4s4xHHHHLLLHHH4xLL")
_UTF_8, _ENCRYPTED = 0x800, 0x41
STORED, DEFLATED = 0, 8
LEADS_OUT = "its name leads out of the zip"
_SWELLS = 200  # times; a notebook shrinks 3 to 50 times
_SMALL = 16_000_000  # bytes below which nobody minds


class ArchiveError(Exception):
    """A zip, or a file in it, can't be read; its text says why."""


@dataclass(frozen=True)
class Entry:
    """A file in a zip, as its directory has it: `packed` bytes at `start`, which become `size`.

    `saved_at` is when it was put in, by the clock of whoever did. `trouble` says why it can't be
    read, if the directory shows it. `number` is its place, `parts` are those of its path, and
    `key` tells it from others.
    """

    name: str
    start: int
    packed: int
    size: int
    check: int
    method: int
    saved_at: str
    trouble: str
    number: int = 0
    parts: tuple[str, ...] = ()
    key: bytes = b""


def directory(file: BinaryIO) -> list[Entry]:
    """Return what a zip's directory lists, folders (a name with `/` behind) included.

    Raises
    ------
    ArchiveError
        It is no zip, is cut off, has more files than a class hands in, or files in it share bytes.
    """
    data, shift = _bytes(file)
    found = list(_entries(data, shift))
    ordered = sorted(found, key=lambda each: each.start)
    for one, other in pairwise(ordered):
        if one.start + 30 + one.packed > other.start:  # as in a bomb, and in no honest zip
            raise ArchiveError("files in the zip overlap")
    return found


def _bytes(file: BinaryIO) -> tuple[bytes, int]:
    """Return the directory, and by how much all places are off, as where a zip has a prefix."""
    end = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, end - 65_557))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise ArchiveError("the file is no zip that can be read")
    size, said = struct.unpack_from("<LL", tail, at + 12)
    position = start + at - size
    if at >= 20 and tail[at - 20 : at - 16] == _END_64:
        (record,) = struct.unpack_from("<Q", tail, at - 12)
        file.seek(min(record, end))
        wide = file.read(56)
        if len(wide) == 56:
            size, said = struct.unpack_from("<QQ", wide, 40)
            position = start + at - 76 - size
    if size > _LARGEST:
        raise ArchiveError(f"the zip's directory has {size:,} bytes")
    if position < 0:
        raise ArchiveError("the zip is cut off")
    file.seek(position)
    return file.read(size), position - said


def _entries(data: bytes, shift: int) -> Iterator[Entry]:
    at = count = 0
    while at < len(data):
        if len(data) < at + _HEAD.size or data[at : at + 4] != _ENTRY:
            raise ArchiveError("the zip's directory is damaged")
        count += 1
        if count > MOST:
            raise ArchiveError(f"the zip holds more than {MOST:,} files")
        (_, flags, method, time, day, check, packed, size, names, extras, comments, mode, start) = (
            _HEAD.unpack_from(data, at)
        )
        at += _HEAD.size
        raw, extra = data[at : at + names], data[at + names : at + names + extras]
        at += names + extras + comments
        size, packed, start = _wide(extra, size, packed, start)
        name = _name(raw, extra, utf_8=bool(flags & _UTF_8))
        trouble = _trouble(name, mode >> 16, flags, method, packed, size)
        saved_at = (
            f"{(day >> 9) + 1980:04}-{day >> 5 & 15:02}-{day & 31:02}"
            f"T{time >> 11:02}:{time >> 5 & 63:02}:{(time & 31) * 2:02}"
        )
        yield Entry(name, start + shift, packed, size, check, method, saved_at, trouble)


def _fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        yield kind, extra[4 : 4 + size]
        extra = extra[4 + size :]


def _wide(extra: bytes, *values: int) -> tuple[int, int, int]:
    """Return size, packed size and place, those that don't fit in 32 bits from their own field."""
    found = list(values)
    data = next((data for kind, data in _fields(extra) if kind == 1), b"")
    for index, value in enumerate(values):
        if value == 0xFFFF_FFFF and len(data) >= 8:
            (found[index],) = struct.unpack_from("<Q", data)
            data = data[8:]
    return found[0], found[1], found[2]


def _name(raw: bytes, extra: bytes, *, utf_8: bool) -> str:
    r"""Return a path, its characters as whoever packed it most likely meant them.

    Names are UTF-8 if a flag says so, and CP437 if not; but many programs write UTF-8 without the
    flag, or what their system uses. Unicode's own field (0x7075) goes before a guess.

    >>> _name("J\u00f6rg".encode("cp437"), b"", utf_8=False)
    'Jörg'
    """
    raw = raw.split(b"\0")[0]
    text = raw.decode("utf-8", "replace") if utf_8 else _field(extra, raw) or _decoded(raw)
    return unicodedata.normalize("NFC", text.replace("\\", "/"))


def _field(extra: bytes, raw: bytes) -> str:
    for kind, data in _fields(extra):
        if kind == 0x7075 and len(data) > 5:
            version, check = struct.unpack_from("<BL", data)
            if version == 1 and check == zlib.crc32(raw):
                return data[5:].decode("utf-8", "replace")
    return ""


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    for encoding in ("cp437", "cp850", "cp1252"):
        text = raw.decode(encoding, "replace")
        odd = [char for char in text if ord(char) > 127]
        if all(unicodedata.name(char, "").startswith("LATIN") for char in odd):
            return text
    return raw.decode("cp437")


def _trouble(name: str, mode: int, flags: int, method: int, *sizes: int) -> str:
    """Return what is wrong with a file, as far as the directory shows it."""
    packed, size = sizes
    if name.startswith("/") or ".." in name.split("/") or name[1:2] == ":":
        return LEADS_OUT
    if stat.S_ISLNK(mode):
        return "a link is not followed: hand in the file itself"
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "this is no file"
    if flags & _ENCRYPTED:
        return "the zip is encrypted: hand in one without a password"
    if method not in {STORED, DEFLATED}:
        return "it is packed in an unusual way: make an ordinary zip"
    if size > _SMALL and size > _SWELLS * max(packed, 1):
        return "it swells more than any notebook does"
    return ""


LARGEST_INSIDE = 64_000_000  # bytes of a zip in a zip, which is held in memory
_PIECE = 65_536
_DEEPEST = 40  # folders in folders


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
            yield replace(each, number=number, parts=parts or ("?",), key=key, trouble=trouble)

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


def _unpack(file: BinaryIO, listed: Entry) -> bytes:
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
