"""Tables as they are written: cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

# as OWASP lists them ("CSV Injection"); blanks before them and their full-width forms count, too
_FORMULA = tuple("=+-@＝＋－＠")


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
    r"""Return a cell that is no formula and prints; `lines` keeps its line breaks.

    >>> safe("=HYPERLINK(1)"), safe("-1.5"), safe("a\tb\n"), safe("a\nb", lines=True)
    ("'=HYPERLINK(1)", '-1.5', 'a b ', 'a\nb')
    """
    kept = "\n" if lines else ""
    text = "".join(char if char.isprintable() or char == kept else " " for char in text)
    return f"'{text}" if is_formula(text) else text


def unsafe(text: str) -> str:
    """Return a cell as it was before it was made safe.

    >>> unsafe("'-Ann"), unsafe("'tis")
    ('-Ann', "'tis")
    """
    return text[1:] if text.startswith("'") and is_formula(text[1:]) else text


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
