"""Tables whose cells may be numbers that open: for a page as Markdown, else as plain text.

A page of a Quarto book gets the Markdown that Quarto reads, with citations and buttons. A
notebook would print those raw, so it gets the same table in words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mlsim.display.number import Number
from mlsim.display.number_notes import name_documents
from mlsim.errors import InvalidValueError

# Set for the cells of a page by Quarto, and by what builds this book.
_PAGE = "QUARTO_FIG_WIDTH"
_OPENS = re.compile(r"\[(?:`[^`]*`\{=html\})?([^\[\]`]*)(?:`[^`]*`\{=html\})?\]\{\.opens [^}]*\}")
_MARKS = re.compile(r"\\([_*|$])|(?<![\\\w])\*{1,2}(?=\S)|(?<=\S)\*{1,2}(?!\w)|`")


class Table:
    """Rows of cells below a header; a notebook or a page shows it as a table.

    Parameters
    ----------
    header
        A name for each column, as Markdown.
    rows
        As many cells in each: numbers that open, or anything else that prints as Markdown.
    align
        A letter for each of the first columns, l or r; the others are aligned to the right.

    Raises
    ------
    InvalidValueError
        If a row has not as many cells as the header.

    >>> print(Table(("Device", "TFLOP/s"), [("A100", 312), ("H100", "**989**")]))
    Device  TFLOP/s
    ------  -------
    A100        312
    H100        989
    """

    def __init__(
        self, header: Sequence[str], rows: Sequence[Sequence[Any]], *, align: str = "l"
    ) -> None:
        if set(align) - {"l", "r"} or len(align) > len(header):
            raise InvalidValueError(
                f"align={align!r} must be letters l and r, one for each column at most."
            )
        for row in rows:
            if len(row) != len(header):
                raise InvalidValueError(
                    f"a row has {len(row)} cells, and the header {len(header)}: {row!r}"
                )
        self.header = tuple(header)
        self.rows = tuple(tuple(row) for row in rows)
        self.align = align.ljust(len(self.header), "r")

    def markdown(self) -> str:
        """Return the table as Quarto reads it."""
        cells = [[_written(cell) for cell in row] for row in (self.header, *self.rows)]
        return self._piped(cells)

    def plain_markdown(self) -> str:
        """Return the table as a notebook reads it: plain numbers, citations as words."""
        cells = [[_read(cell) for cell in row] for row in (self.header, *self.rows)]
        return self._piped(cells)

    def _piped(self, cells: list[list[str]]) -> str:
        widths = self._widths()
        # Should a table be given relative widths, they follow the number of dashes.
        rule = [
            "-" * (width + 1) + ("-" if side == "l" else ":")
            for width, side in zip(widths, self.align, strict=True)
        ]
        head, *rows = ("| " + " | ".join(row) + " |" for row in cells)
        return "\n".join([head, "|" + "|".join(rule) + "|", *rows])

    def _texts(self) -> list[list[str]]:
        return [[_bare(_read(cell)) for cell in row] for row in (self.header, *self.rows)]

    def _widths(self) -> list[int]:
        return [max(map(len, column)) for column in zip(*self._texts(), strict=True)]

    def __str__(self) -> str:
        widths = self._widths()
        head, *rows = self._texts()
        lines = [head, ["-" * width for width in widths], *rows]
        return "\n".join("  ".join(self._aligned(line, widths)).rstrip() for line in lines)

    def _aligned(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            f"{cell:<{width}}" if side == "l" else f"{cell:>{width}}"
            for cell, width, side in zip(cells, widths, self.align, strict=True)
        ]

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.markdown() if _PAGE in os.environ else self.plain_markdown()


def table(
    rows: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
    header: Sequence[str] | None = None,
    *,
    align: str = "l",
) -> Table:
    """Return rows as a table: mappings from heading to cell, or cells below a header.

    `align` has a letter, l or r, for each of the first columns; the others get r.

    Raises
    ------
    InvalidValueError
        If there is no row, or one doesn't fit the header.

    >>> print(table([{"Batch": 1, "Time": "55 µs"}, {"Batch": 8, "Time": "313 µs"}]))
    Batch    Time
    -----  ------
    1       55 µs
    8      313 µs
    """
    if header is not None:
        return Table(header, [tuple(row) for row in rows], align=align)
    if not rows:
        raise InvalidValueError("a table needs a row, or a header.")
    first = rows[0]
    if not isinstance(first, Mapping):
        raise InvalidValueError("rows without names need a header: table(rows, header).")
    return Table(tuple(first), [tuple(dict(row).values()) for row in rows], align=align)


def _written(cell: Any) -> str:
    return cell.markdown() if isinstance(cell, Number) else str(cell)


def _read(cell: Any) -> str:
    """Return a cell as a notebook shows it."""
    if isinstance(cell, Number):
        return cell.text
    return name_documents(_OPENS.sub(r"\1", str(cell)))


def _bare(markdown: str) -> str:
    """Return Markdown without the marks of emphasis, code and escapes."""
    return _MARKS.sub(lambda match: match[1] or "", markdown)
