"""Tables of instructors, read from whatever program saved them, and written without formulas.

Excel writes semicolons where a comma is the decimal sign, and Windows-1252 or UTF-16 unless it is
asked for UTF-8. So both are found out from the file itself, and nothing is replaced in silence.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mlsim_book.errors import SourceError

# as OWASP lists them ("CSV Injection"); blanks before them and their full-width forms count, too
_FORMULA = tuple("=+-@＝＋－＠")
_PART = re.compile(r"([;\n])")  # where a spreadsheet of another language begins a cell
LONGEST_CELL = 32_000  # characters: a spreadsheet takes 32,767, Python's `csv` 131,072


def is_formula(text: str) -> bool:
    """Say whether a spreadsheet may take a cell for a formula.

    >>> [is_formula(each) for each in ("=HYPERLINK(1)", " @SUM(1)", "-1.5", "-", "-Ann")]
    [True, True, False, False, True]
    """
    try:
        float(text)
    except ValueError:
        return len(text.strip()) > 1 and text.lstrip().startswith(_FORMULA)
    return False


def safe(text: str, *, lines: bool = False) -> str:
    r"""Return a cell that is no formula, prints, and can be read; `lines` keeps its line breaks.

    Where a comma is the decimal sign, spreadsheets begin a cell at each semicolon: what follows
    one is made safe, too. What is too long for a cell is cut, and says so.

    >>> safe("=HYPERLINK(1)"), safe("-1.5"), safe("a\tb\n"), safe("a\nb", lines=True)
    ("'=HYPERLINK(1)", '-1.5', 'a b ', 'a\nb')
    >>> safe("a;=HYPERLINK(1);b"), safe("3; -4")
    ("a;'=HYPERLINK(1);b", '3; -4')
    """
    if len(text) > LONGEST_CELL and not lines:  # what has lines, somebody may have written by hand
        text = f"{text[:LONGEST_CELL]}… (cut, of {len(text):,} characters)"
    kept = "\n" if lines else ""
    text = "".join(char if char.isprintable() or char == kept else " " for char in text)
    first, *others = _PART.split(text)
    return _guarded(first) + "".join(
        each if each in {";", "\n"} else _guarded(each, '"') for each in others
    )


def _guarded(text: str, around: str = "") -> str:
    """Return a part of a cell with an apostrophe, if it is a formula within some signs."""
    return f"'{text}" if is_formula(text.lstrip(f" {around}")) else text


def unsafe(text: str) -> str:
    """Return a cell as it was before it was made safe.

    >>> unsafe("'-Ann"), unsafe("'tis"), unsafe("a;'=b")
    ('-Ann', "'tis", 'a;=b')
    """
    return "".join(
        each[1:] if each.startswith("'") and _guarded(each[1:], '"') != each[1:] else each
        for each in _PART.split(text)
    )


def csv_text(rows: Iterable[Sequence[str]], *, delimiter: str = ",", lines: bool = False) -> str:
    r"""Return rows as CSV, each cell made safe.

    >>> csv_text([["student", "points"], ["=1+1", "2"]])
    "student,points\n'=1+1,2\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([safe(each, lines=lines) for each in row] for row in rows)
    return out.getvalue()


def number(value: float) -> str:
    """Write points: at most two digits after the point, none that say nothing.

    >>> number(7.0), number(7.125), number(2 / 3), number(12345.5)
    ('7', '7.13', '0.67', '12345.5')
    """
    # half a cent of a point goes up, as people round it
    return f"{int(value * 100 + 0.5 + 1e-9) / 100:.2f}".rstrip("0").rstrip(".")


def some(names: Sequence[str], most: int = 5) -> str:
    """Return a few names, and how many more there are.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


DELIMITERS = (",", ";", "|", "\t")  # names have the first ones in them
LARGEST = 32_000_000  # bytes
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of Excel, new and old
_BLANK = " \t,;|"
_LOOKED_AT = 200  # rows from which the delimiter is told


@dataclass(frozen=True)
class Table:
    """Rows of a table, each with the line of the file on which it begins; blank ones left out.

    `encoding` and `delimiter` are those that the file was read with.
    """

    rows: tuple[tuple[int, tuple[str, ...]], ...]
    encoding: str = "utf-8"
    delimiter: str = ","


def read_table(path: Path) -> Table:
    """Read a table of comma-, semicolon-, tab- or bar-separated values.

    Raises
    ------
    SourceError
        There is no such file, or it is no such table: a workbook, too large, binary.
    """
    data = _bytes(path)
    if data.startswith(_WORKBOOKS):
        raise SourceError(
            "this is a workbook of a spreadsheet program, not a table of text",
            file=path,
            hint="Save it as CSV: in Excel, 'CSV UTF-8 (comma delimited)'.",
        )
    text, encoding = decode(data)
    if "\x00" in text:
        raise SourceError("this is no table of text", file=path, hint="Save it as CSV.")
    try:
        return parse(text, encoding)
    except csv.Error as error:
        raise SourceError(f"this is no table that can be read: {error}", file=path) from error


def read_columns(
    path: Path, wanted: Sequence[str], hint: str = ""
) -> tuple[list[tuple[int, dict[str, str]]], Table]:
    """Read a table with a header; return the line and the cells of each row by their column.

    Raises
    ------
    SourceError
        As `read_table`, or a column that is wanted isn't there.
    """
    table = read_table(path)
    known = {each.casefold(): each for each in wanted}
    first = [cell.strip() for cell in table.rows[0][1]] if table.rows else []
    head = [known.get(each.casefold(), each) for each in first]
    if missing := [each for each in wanted if each not in head]:
        hint = hint or f"Its first line is: {','.join(wanted)}"
        raise SourceError(f"there is no column {', '.join(missing)}", file=path, line=1, hint=hint)
    rows = []
    for line, cells in table.rows[1:]:
        named = zip_longest(head, cells, fillvalue="")
        rows.append((line, {name: cell.strip() for name, cell in named if name}))
    return rows, table


def _bytes(path: Path) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise SourceError("this is no file", file=path)
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise SourceError(f"this table can't be read: {error.strerror}", file=path) from error
    if len(data) > LARGEST:
        raise SourceError(f"this table is larger than {LARGEST // 1_000_000} MB", file=path)
    return data


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file, and the encoding that it was taken to be in.

    >>> decode("Jos\u00e9".encode("cp1252")), decode("Jos\u00e9".encode("utf-16-le"))
    (('José', 'cp1252'), ('José', 'utf-16-le'))
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), encoding.removesuffix("-sig")
    nulls = [data[start:4096:2].count(0) for start in (0, 1)]
    if max(nulls) > len(data[:4096]) // 8:  # letters of most names have a null byte beside them
        encoding = "utf-16-le" if nulls[1] > nulls[0] else "utf-16-be"
        return data.decode(encoding, "replace"), encoding
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def parse(text: str, encoding: str = "utf-8") -> Table:
    r"""Return the rows of a text, split by the delimiter that splits them most evenly.

    >>> parse("student;group\nLovelace, Ada;1\n").rows
    ((1, ('student', 'group')), (2, ('Lovelace, Ada', '1')))
    """
    first, _, rest = text.partition("\n")
    named = first.strip().strip('"')
    if named.lower().startswith("sep=") and len(named) == 5:  # as Excel writes and reads it
        return Table(_rows(rest, named[-1], 2), encoding, named[-1])
    delimiter = _delimiter(text)
    if not delimiter:  # one column: a comma in it belongs to a name, as in "Lovelace, Ada"
        return Table(_rows(text, "\x1f", 1), encoding, "")
    return Table(_rows(text, delimiter, 1), encoding, delimiter)


def _delimiter(text: str) -> str:
    """Return the delimiter, or "" if the first row has none."""
    best = (0.0, 0, -1)
    for rank, delimiter in enumerate(DELIMITERS):
        widths = [len(cells) for _, cells in _rows(text, delimiter, 1, _LOOKED_AT)]
        if not widths or widths[0] < 2:
            continue
        even = Counter(widths)[widths[0]] / len(widths)
        best = max(best, (even, widths[0], rank))
    return DELIMITERS[best[2]] if best[2] >= 0 else ""


def _rows(
    text: str, delimiter: str, line: int, most: int | None = None
) -> tuple[tuple[int, tuple[str, ...]], ...]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found = []
    before = 0
    for cells in reader:
        if any(cell.strip(_BLANK) for cell in cells):
            found.append((line + before, tuple(cells)))
        before = reader.line_num
        if most is not None and len(found) == most:
            break
    return tuple(found)
