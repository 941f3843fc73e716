"""A file of a profiler as text, and the tables and numbers in it.

A file may be gzipped, in whatever encoding; never more than a limit of it is read. What can't be a
text is refused with what to do: a binary report has a command that exports it. A header stands
somewhere after other output, then rows, each whole or refused. Numbers have thousands separators,
units have prefixes, and both are as the user's locale has them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import lzma
import math
import re
import tomllib
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any, cast

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.records import DATA

# Profiles that come with the package.
FOLDER = DATA / "profiles"

# Lines of a file: number from 1, text without its end, and whether it had one.
Lines = Iterator[tuple[int, str, bool]]

# The most that is read of a file, unpacked; and the longest line, since a table has short ones.
MOST_BYTES = 2**30
LONGEST_LINE = 4 * 2**20
# Text packs by a factor of 10 to 50. What packs better by far is no profile.
_PACKED, _SUSPICIOUS = 200, 4 * 2**20
_CHUNK = 2**18
SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"


def known(tool: str) -> dict[str, Any]:
    """Return what is known of a profiler, or of "files": `data/profilers/tools.toml`."""
    return dict(_tools()[tool])


@cache
def _tools() -> dict[str, Any]:
    return tomllib.loads((DATA / "profilers" / "tools.toml").read_text("utf-8"))


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
        opened = gzip.open if self.packed else open
        with cast("IO[bytes]", opened(self.path, "rb")) as file:
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

    def lines(self) -> Lines:
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
    files, name = known("files"), file.name.removesuffix(".gz")
    signs = (end for sign, end in files["magic"].items() if head.startswith(sign.encode("latin-1")))
    ending = next((end for end in files["reports"] if name.endswith(end)), "") or next(signs, "")
    if ending in files["exports"]:
        command = files["exports"][ending].format(name=file.name)
        raise DataFileError(f"{file}: this is a binary report. Export it first: {command}")
    if not head.startswith(SQLITE) and b"\0" in head[:4096] and not _wide(head):
        raise DataFileError(
            f"{file}: this is no text, and no SQLite file. Export the profile as CSV, JSON or text."
        )


def _wide(head: bytes) -> str:
    """Return the encoding if the bytes are of two or four each, else ""."""
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
    marks |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    marked = next((encoding for mark, encoding in marks.items() if head.startswith(mark)), "")
    sample = head[:4096]
    # ASCII in two bytes has a zero in every second one.
    odd, even = (each.count(0) / max(len(each), 1) for each in (sample[1::2], sample[::2]))
    if not marked and len(sample) > 3 and max(odd, even) > 0.9 and min(odd, even) < 0.1:
        return "utf-16-le" if odd > even else "utf-16-be"
    return marked


def _encoding(head: bytes) -> str:
    if wide := _wide(head):
        return wide
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


# What stands for "no value".
ABSENT = frozenset(
    {"", "-", "--", "n/a", "na", "nan", "none", "null", "(!) n/a", "<not supported>", "no data"}
    | {"<not counted>", "(!) nan", "-nan", "inf", "-inf", "infinity"}
)
_SPACES = " \u00a0\u202f\u2009'’"
_SHAPE = re.compile(rf"[+-]?\d[\d.,{_SPACES}]*([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Locale:
    """Which sign parts thousands, and which the fraction.

    >>> Locale(",", ".").number("1,862,653,056.5"), Locale(".", ",").number("1.862,5")
    (1862653056.5, 1862.5)
    """

    thousands: str
    decimal: str

    @property
    def grammar(self) -> re.Pattern[str]:
        """What a number is in this locale: whole part, fraction and power of ten."""
        return _grammar(self)

    def number(self, text: str) -> float | None:
        """Return a number; None where the text stands for no value.

        Raises
        ------
        InvalidValueError
            If it is no number in this locale.

        >>> Locale(",", ".").number("n/a")
        """
        plain = text.strip()
        if plain.lower() in ABSENT:
            return None
        if plain.isascii() and plain.isdigit():
            return float(plain)
        found = self.grammar.fullmatch(plain)
        if not found:
            raise InvalidValueError(f"{text!r} is no number")
        whole = re.sub(rf"[{re.escape(self.thousands + _SPACES)}]", "", found["whole"])
        value = float(f"{whole}{'.' if found['part'] else ''}{found['part'] or ''}{found['power']}")
        if not math.isfinite(value):
            raise InvalidValueError(f"{text!r} is too large for a number")
        return value


@cache
def _grammar(locale: Locale) -> re.Pattern[str]:
    group = re.escape(locale.thousands + _SPACES)
    # One sign throughout, and three digits after each.
    grouped = rf"[1-9]\d{{0,2}}(?:(?P<sign>[{group}])\d{{3}})(?:(?P=sign)\d{{3}})*"
    return re.compile(
        rf"(?P<whole>[+-]?(?:\d+|{grouped}))"
        rf"(?:{re.escape(locale.decimal)}(?P<part>\d*))?(?P<power>(?:[eE][+-]?\d+)?)"
    )


ENGLISH, GERMAN = Locale(",", "."), Locale(".", ",")


def find_locale(
    cells: Iterable[str], where: str, *, decimal: str | None = None, english: bool = False
) -> Locale:
    """Find out from many cells which sign parts the fraction.

    With `english` a point that could be either begins a fraction.

    Raises
    ------
    DataFileError
        If cells contradict one another, or all could be read both ways.

    >>> find_locale(["24,880,256", "24.98"], "file"), find_locale(["1.862", "24,98"], "file")
    (Locale(thousands=',', decimal='.'), Locale(thousands='.', decimal=','))
    """
    if decimal is not None:
        if decimal not in (".", ","):
            raise InvalidValueError(f'decimal is "." or ",", not {decimal!r}.')
        return ENGLISH if decimal == "." else GERMAN
    sure, either = dict[Locale, str](), dict[str, str]()
    for text in map(str.strip, cells):
        sign = next((each for each in ".," if each in text), "")
        if sign and _SHAPE.fullmatch(text):
            fits = [each for each in (ENGLISH, GERMAN) if each.grammar.fullmatch(text)]
            if len(fits) == 1:
                sure.setdefault(fits[0], text)
            elif fits:
                either.setdefault(sign, text)
    if len(sure) == 2:
        raise DataFileError(
            f"{where}: {sure[ENGLISH]!r} and {sure[GERMAN]!r} are numbers of two locales. Export "
            "the file again with LC_ALL=C."
        )
    # Profilers print English unless something says otherwise.
    if "." in either and not (sure or english):
        raise DataFileError(
            f"{where}: {either['.']!r} could be a fraction or thousands, and nothing in the file "
            'decides. Say decimal="." or decimal=",".'
        )
    return GERMAN if GERMAN in sure else ENGLISH


_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
_SECOND_WORDS = ("seconds", "second", "secs", "sec", "s")
_BYTE_WORDS = ("bytes", "byte", "B")
_COUNT_WORDS = (
    *("inst", "op", "ops", "cycle", "cycles", "sector", "sectors", "request", "warp"),
    *("thread", "block", "branches", "cluster", "pass", "register", "sample", "SM"),
)


@lru_cache(maxsize=256)
def unit_scale(unit: str) -> tuple[str, float] | None:
    """Return what a unit measures and its scale; None if it is unknown.

    Kinds are "s", "B", "1" (things that are counted), "B/s", "1/s", "1/cycle" and "%".

    >>> unit_scale("Mbyte"), unit_scale("usecond"), unit_scale("Gbyte/second")
    (('B', 1000000.0), ('s', 1e-06), ('B/s', 1000000000.0))
    >>> unit_scale("cycle/nsecond"), unit_scale("Ghz"), unit_scale("inst/cycle")
    (('1/s', 1000000000.0), ('1/s', 1000000000.0), ('1/cycle', 1.0))
    >>> unit_scale("furlong")
    """
    text = unit.strip()
    if text in ("", "1", "#"):
        return "1", 1.0
    if text == "%":
        return "%", 1.0
    top, slash, below = (each.strip() for each in text.partition("/"))
    if slash:
        above, under = unit_scale(top), unit_scale(below)
        if above is None or under is None or above[0] not in ("B", "1"):
            return None
        if below == "cycle":
            return (f"{above[0]}/cycle", above[1]) if above[0] == "1" else None
        rate = (f"{above[0]}/s", float(f"{above[1] / under[1]:.12g}"))
        return rate if under[0] == "s" else None
    if text.lower().endswith("hz"):
        scale = _PREFIX.get(text[:-2], _PREFIX.get(text[:-2].upper()))
        return None if scale is None else ("1/s", scale)
    for words, prefixes, kind in (
        (_SECOND_WORDS, _SECONDS, "s"),
        (_BYTE_WORDS, _PREFIX | _BINARY, "B"),
        (_COUNT_WORDS, _PREFIX, "1"),
    ):
        for word in words:
            if text.endswith(word) and text.removesuffix(word) in prefixes:
                return kind, prefixes[text.removesuffix(word)]
    return None


_SIGNS = ",;\t|"
# Rows of which the numbers are looked at.
_MOST_ROWS = 20_000


@dataclass
class Table:
    """Rows below one header.

    Attributes
    ----------
    source, line
        Where the header stands.
    header
        Names of the columns, as printed.
    sign
        What parts the cells.
    quoted
        Whether the cells stand in quotation marks, so that other lines can be told apart.
    columns
        Place of each column.
    locale
        How numbers are written, once `locale_of` found it out.
    """

    source: Source
    line: int
    header: list[str]
    sign: str
    quoted: bool
    columns: dict[str, int] = field(default_factory=dict)
    locale: Locale = ENGLISH

    def __post_init__(self) -> None:
        for place, name in enumerate(self.header):
            if name in self.columns and name:
                raise DataFileError(
                    f"{self.source.path}:{self.line}: two columns are called {name!r}."
                )
            self.columns[name] = place

    def filled(self, cells: list[str] | None) -> list[str] | None:
        """Return cells with those added that ncu leaves out of a row without a rule.

        Its header names the columns of rules behind the metrics; a metric's row ends with one
        empty cell for all of them.
        """
        first = self.columns.get("Rule Name")
        if cells is None or first is None or len(cells) != first + 1 or cells[first]:
            return cells
        return cells + [""] * (len(self.header) - len(cells))

    def at(self, line: int) -> str:
        """Say where a line is, for a message."""
        return f"{self.source.path}:{line}"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one line.

    Attributes
    ----------
    cut
        Whether its last cell may be cut off: the file ends behind a digit, without a line's end.
    """

    table: Table
    line: int
    cells: list[str]
    cut: bool = False

    @property
    def where(self) -> str:
        """File and line, for a message."""
        return self.table.at(self.line)

    def __getitem__(self, column: str) -> str:
        return self._cell(self.table.columns[column])

    def _cell(self, place: int) -> str:
        # A share or a deviation at the end does no harm, since nobody asks for it.
        if self.cut and place == len(self.cells) - 1:
            raise DataFileError(
                f"{self.where}: the file ends within the line, so its last number "
                "may be cut off. If it is whole, end the line."
            )
        return self.cells[place]

    def get(self, *columns: str) -> str:
        """Return the cell of the first of these columns that is there, else ""."""
        for column in columns:
            if column in self.table.columns:
                return self._cell(self.table.columns[column])
        return ""

    def number(self, column: str) -> float | None:
        """Return a cell as a number that is not negative; None if it is empty.

        Raises
        ------
        DataFileError
            If it is no number, or negative; names file and line.
        """
        return checked_number(self[column], self.table.locale, self.where, column)


def checked_number(text: str, locale: Locale, where: str, column: str) -> float | None:
    """Return a text as a number that is not negative; None if it stands for none.

    Raises
    ------
    DataFileError
        If it is no number, or negative.
    """
    try:
        value = locale.number(text)
    except InvalidValueError as error:
        raise DataFileError(f"{where}: in {column!r}, {error}. The file may be damaged.") from error
    if value is not None and value < 0:
        raise DataFileError(f"{where}: {column!r} is {text.strip()!r}, and can't be negative.")
    return value


def split(line: str, sign: str) -> list[str] | None:
    """Split a line into cells; None if its quotation marks don't match."""
    if '"' not in line:
        return line.split(sign)
    try:
        rows = list(csv.reader([line], delimiter=sign, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def header_in(
    source: Source, number: int, line: str, known: Callable[[set[str]], bool]
) -> Table | None:
    """Return the table that a line heads, if it has the columns that are asked for."""
    for sign in _SIGNS:
        if sign not in line:
            continue
        cells = split(line, sign)
        names = [each.strip() for each in cells or []]
        if known(set(names)):
            return Table(source, number, names, sign, quoted=line.lstrip().startswith('"'))
    return None


def rows_of(
    table: Table,
    lines: Lines,
    known: Callable[[set[str]], bool] | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table, to the end of the lines; where another one begins, its rows.

    Lines of other output between quoted rows are passed over; a broken row is refused.

    Raises
    ------
    DataFileError
        If a row has not as many cells as the header. For a cell that may be cut off see `Row`.
    """
    wide = len(table.header)
    for number, line, ended in lines:
        text = line.strip()
        if not text or text.startswith(("==", "--")):
            continue
        cells = table.filled(split(text if table.sign != "\t" else line, table.sign))
        if cells is not None and len(cells) == wide and [c.strip() for c in cells] == table.header:
            continue
        if known is not None and not text[:1].isdigit():
            other = header_in(table.source, number, line, known)
            if other is not None:
                table, wide = other, len(other.header)
                continue
            if text.startswith(("Processing", "Generating", "SKIPPED", "NOTICE", "**", "WARNING")):
                continue
        if table.quoted and not text.startswith('"'):
            # The application's own output, unless it stands in one line with a row.
            if text.count(f'"{table.sign}"') > 1:
                raise DataFileError(
                    f"{table.at(number)}: other output stands in one line with a row. Write the "
                    "profile to a file of its own (--log-file)."
                )
            if cells is None or len(cells) != wide:
                continue
        elif not table.quoted and table.sign not in text:
            continue
        if cells is None or len(cells) != wide:
            got = "its quotation marks don't match" if cells is None else f"it has {len(cells)}"
            cut = " The file is cut off here." if not ended else ""
            raise DataFileError(
                f"{table.at(number)}: the row must have {wide} cells, and {got}.{cut} Export it "
                "again."
            )
        unsure = not ended and not line.rstrip().endswith('"') and cells[-1].strip()[-1:].isdigit()
        yield Row(table, number, cells, unsure)


def locale_of(
    table: Table, decimal: str | None, columns: Collection[str], *, plain: bool = False
) -> Locale:
    """Find out from some columns of the first rows below a header how its numbers are written.

    With `plain` the tool prints English without thousands separators, so where commas part the
    cells a single point begins a fraction.

    Raises
    ------
    DataFileError
        If the numbers contradict one another.
    """
    places = [table.columns[name] for name in columns]

    def cells() -> Iterator[str]:
        seen = 0
        for number, line, _ in table.source.lines():
            if number <= table.line:
                continue
            seen += 1
            if seen > _MOST_ROWS:
                return
            row = table.filled(split(line.strip(), table.sign)) or []
            if len(row) == len(table.header):
                yield from (row[place] for place in places)

    english = plain and table.sign == ","
    where = str(table.source.path)
    table.locale = find_locale(cells(), where, decimal=decimal, english=english)
    return table.locale
