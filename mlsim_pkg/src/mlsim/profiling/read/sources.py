"""A file of a profiler as text: gzipped or not, in whatever encoding, never more than a limit.

What cannot be a text is refused with what to do: a binary report has a command that exports it.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from mlsim.errors import DataFileError

# The most that is read of a file, unpacked; and the longest line, since a table has short ones.
MOST_BYTES = 2**30
LONGEST_LINE = 4 * 2**20
# Text packs by a factor of 10 to 50. What packs better by far is no profile.
_PACKED, _SUSPICIOUS = 200, 4 * 2**20
_CHUNK = 2**18
SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"
# Endings of binary reports, and how each becomes text.
_EXPORTS = {
    ".ncu-rep": "ncu --import {name} --csv --page raw > profile.csv",
    ".nsight-cuprof-report": "ncu --import {name} --csv --page raw > profile.csv",
    ".nsys-rep": "nsys export --type sqlite {name}",
    ".qdrep": "nsys export --type sqlite {name}",
    ".qdstrm": "nsys export --type sqlite {name}",
    ".nvvp": "nvprof --import-profile {name} --csv",
    ".pftrace": "rocprofv3 --output-format csv ...",
    ".proto": "rocprofv3 --output-format csv ...",
    ".data": "perf stat -o profile.txt ... (perf record samples, it does not count)",
    ".zip": "unzip {name}",
    ".zst": "unzstd {name}",
    ".xz": "unxz {name}",
    ".bz2": "bunzip2 {name}",
}
_REPORTS = (".ncu-rep", ".nsight-cuprof-report", ".nsys-rep", ".qdrep", ".qdstrm", ".nvvp")
_MAGIC = {
    b"PK\x03\x04": ".zip",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\xfd7zXZ": ".xz",
    b"BZh": ".bz2",
    b"PERFILE2": ".data",
    b"NVR\x00": ".ncu-rep",
}


@dataclass(frozen=True)
class Source:
    """A file to read: where it is, and what its first bytes say.

    Attributes
    ----------
    path
        The file.
    head
        Its first bytes, unpacked.
    packed
        Whether it is gzipped.
    encoding
        As found out from the first bytes.
    """

    path: Path
    head: bytes
    packed: bool
    encoding: str

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    @property
    def start(self) -> str:
        """The first characters as text."""
        return self.head.decode(self.encoding, "replace").lstrip("\ufeff")

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes, unpacked, within the limits.

        Raises
        ------
        DataFileError
            If it is damaged, or unpacks to more than `MOST_BYTES`.
        """
        size = max(self.path.stat().st_size, 1)
        seen = 0
        with self._opened() as file:
            try:
                while chunk := file.read(_CHUNK):
                    seen += len(chunk)
                    if seen > MOST_BYTES:
                        raise DataFileError(
                            f"{self.path}: it holds more than {MOST_BYTES / 2**30:g} GiB. Profile "
                            "fewer steps or kernels, or export a summary."
                        )
                    if self.packed and seen > _SUSPICIOUS and seen > _PACKED * size:
                        raise DataFileError(
                            f"{self.path}: it unpacks to more than {_PACKED} times its size, as no "
                            "profile does. Unpack it and look at it."
                        )
                    yield chunk
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataFileError(
                    f"{self.path}: the gzip file is damaged or cut off ({error}). Copy it again."
                ) from error

    def _opened(self) -> IO[bytes]:
        # The one who reads it closes it.
        opened = gzip.open if self.packed else open
        return cast("IO[bytes]", opened(self.path, "rb"))

    def text(self) -> Iterator[str]:
        """Yield pieces of its text.

        Raises
        ------
        DataFileError
            If its bytes are no text of the encoding.
        """
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        first = True
        try:
            for chunk in self.chunks():
                piece = decoder.decode(chunk)
                yield piece.lstrip("\ufeff") if first else piece
                first = first and not piece
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise DataFileError(
                f"{self.path}: it is no text in {self.encoding} ({error.reason}). Save it as UTF-8."
            ) from error

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """Yield its lines: number from 1, text without its end, and whether it had one.

        Raises
        ------
        DataFileError
            If a line is longer than `LONGEST_LINE`, or holds a NUL.
        """
        number, rest = 0, ""
        for piece in self.text():
            # Not splitlines(): an application may print a form feed or a line separator.
            *whole, rest = (rest + piece).split("\n")
            for line in whole:
                number += 1
                yield number, self._checked(line.removesuffix("\r"), number), True
            if len(rest) > LONGEST_LINE:
                self._checked(rest, number + 1)
        if rest:
            yield number + 1, self._checked(rest, number + 1), False

    def _checked(self, line: str, number: int) -> str:
        if len(line) > LONGEST_LINE:
            raise DataFileError(
                f"{self.path}:{number}: a line has more than {LONGEST_LINE:,} characters. This is "
                "no table of a profiler."
            )
        if "\0" in line:
            raise DataFileError(
                f"{self.path}:{number}: the line holds a NUL character, so the file is damaged or "
                "binary. Export it as text again."
            )
        return line


def open_source(path: str | Path) -> Source:
    """Look at a file's first bytes.

    Raises
    ------
    DataFileError
        If there is no such file, it is empty, or a binary report that must be exported first.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        kind = "is a folder, not a file" if file.is_dir() else "there is no such file"
        raise DataFileError(f"{file}: {kind}. Give a file that a profiler wrote.")
    head = _head(file, packed=False)
    packed = head.startswith(_GZIP)
    if packed:
        head = _head(file, packed=True)
    if not head.strip(b"\0 \t\r\n"):
        raise DataFileError(f"{file}: the file is empty. Profile again.")
    _refuse_binary(file, head)
    return Source(file, head, packed, _encoding(head))


def _head(file: Path, *, packed: bool, size: int = 2**16) -> bytes:
    try:
        if not packed:
            with file.open("rb") as plain:
                return plain.read(size)
        with gzip.open(file) as unpacked:
            return unpacked.read(size)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataFileError(f"{file}: it can't be read ({error}). Copy it again.") from error


def _refuse_binary(file: Path, head: bytes) -> None:
    ending = next((end for magic, end in _MAGIC.items() if head.startswith(magic)), "")
    name = file.name.removesuffix(".gz")
    if not ending and not head.startswith(SQLITE) and b"\0" in head[:4096] and not _wide(head):
        ending = "binary"
    ending = next((end for end in _REPORTS if name.endswith(end)), ending)
    if ending in _EXPORTS:
        command = _EXPORTS[ending].format(name=file.name)
        raise DataFileError(f"{file}: this is a binary report. Export it first: {command}")
    if ending:
        raise DataFileError(
            f"{file}: this is no text, and no SQLite file. Export the profile as CSV, JSON or text."
        )


def _wide(head: bytes) -> str:
    """Return the encoding if the bytes are of two or four each, else ""."""
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return encoding
    sample = head[:4096]
    odd, even = sample[1::2], sample[::2]
    # ASCII in two bytes has a zero in every second one.
    if len(sample) > 3 and odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if len(sample) > 3 and even.count(0) > 0.9 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return ""


def _encoding(head: bytes) -> str:
    if wide := _wide(head):
        return wide
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"
