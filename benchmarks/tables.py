"""Tables for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def lay_out(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows out as a Markdown table."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    )
