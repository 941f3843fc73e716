"""Zips as course platforms make them, and as nobody should."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """A zip with these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def write(path: Path, files: Mapping[str, bytes | str]) -> Path:
    """The same as a file."""
    path.write_bytes(zipped(files))
    return path


def special(name: str, mode: int, data: bytes = b"/etc/passwd") -> bytes:
    """A zip with an entry of this kind, such as `stat.S_IFLNK`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = (mode | 0o777) << 16
        archive.writestr(info, data)
    return out.getvalue()


def link(name: str) -> bytes:
    """A zip with a symbolic link."""
    return special(name, stat.S_IFLNK)


def patched(data: bytes, at: int, value: int, form: str = "<H", local: int | None = None) -> bytes:
    """A zip whose first entry says something else at this place of its directory's record."""
    changed = bytearray(data)
    struct.pack_into(form, changed, data.index(b"PK\x01\x02") + at, value)
    if local is not None:
        struct.pack_into(form, changed, local, value)
    return bytes(changed)


def encrypted(name: str) -> bytes:
    """A zip whose only entry says that it is encrypted."""
    return patched(zipped({name: "{}"}), 8, 1, local=6)


def damaged(name: str) -> bytes:
    """A zip whose only entry isn't what its checksum says."""
    return patched(zipped({name: '{"cells": []}'}), 16, 0x1234, "<L")


def with_raw_name(name: bytes, data: bytes = b"{}") -> bytes:
    """A zip whose entry has these bytes for a name, and no flag that they are UTF-8."""
    stand_in = b"x" * len(name)
    return zipped({stand_in.decode(): data}).replace(stand_in, name)


def overlapping(count: int, size: int) -> bytes:
    """A bomb: a directory of many entries that all point at the same bytes."""
    data = zipped({"a.ipynb": b"0" * size})
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    record = data[start:end]
    tail = bytearray(data[end:])
    struct.pack_into("<HHL", tail, 8, count, count, count * len(record))
    return data[:start] + record * count + bytes(tail)


def wide_lies(name: str) -> bytes:
    """A zip whose entry says in the field of 64 bits that it has 2**60 bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.extra = struct.pack("<HHQQ", 1, 16, 2**60, 2**60)
        archive.writestr(info, b"{}")
    data = bytearray(out.getvalue())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<LL", data, at + 20, 0xFFFF_FFFF, 0xFFFF_FFFF)
    return bytes(data)
