"""Tables whose columns are as wide as a line of dashes says."""

from __future__ import annotations

import re
from collections.abc import Iterator


def spans_of(dashes: str) -> list[tuple[int, int]]:
    """Return where the columns are; empty if a line has anything but dashes and spaces.

    >>> spans_of(" ---  -----")
    [(1, 4), (6, 11)]
    """
    if not dashes.strip() or set(dashes) - {"-", " "}:
        return []
    return [found.span() for found in re.finditer("-+", dashes)]


def cells_of(line: str, spans: list[tuple[int, int]], *, open_end: bool) -> list[str] | None:
    """Cut a line into cells; None if letters stand where no column is.

    With `open_end` the last column goes on to the end of the line.
    """
    cells = []
    for place, (start, end) in enumerate(spans):
        last = place + 1 == len(spans)
        # A name may be longer than its column where it is the first or the last.
        stop = None if last and open_end else end
        cells.append(line[start:stop].strip())
        gap = line[end : spans[place + 1][0]] if not last else line[end:]
        if gap.strip() and stop is not None:
            return None
    return cells if not line[: spans[0][0]].strip() else None


def rows_in(
    lines: Iterator[tuple[int, str, bool]], spans: list[tuple[int, int]], *, open_end: bool = False
) -> Iterator[tuple[int, list[str] | None, str]]:
    """Yield number, cells and text of each line to the next line of dashes."""
    for number, line, _ in lines:
        if spans_of(line):
            return
        if line.strip():
            yield number, cells_of(line, spans, open_end=open_end), line
