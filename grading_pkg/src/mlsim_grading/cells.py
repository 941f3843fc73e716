"""Tables as they are written: cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

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
