"""What answers are written with: values for JSON, a report for a terminal or a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Of more points than this, a report shows the ends.
MOST_POINTS = 20


def plain(value: Any) -> Any:
    """Turn NumPy values into what JSON knows; NaN, which it doesn't, into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def listed(rows: Iterable[tuple[str, str]], label: int, width: int = 66) -> list[str]:
    """Write names and values as lines; a long value goes on below its beginning.

    >>> listed([("time", "1 s"), ("used for", "this and that")], 10, 9)
    ['  time      1 s', '  used for  this and', '            that']
    """
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
        for index, part in enumerate(parts or [""]):
            lines.append(f"  {'' if index else name:<{label}}{part}")
    return lines


@dataclass(frozen=True)
class Report:
    """A title, and rows of a name and a value; of many points, a row for each.

    `label` is the room for a name; `width`, that for a value before it is wrapped.

    >>> print(Report("A lamp", [("power", "60 W")], label=7).text())
    A lamp
      power  60 W
    """

    title: str
    rows: Sequence[tuple[str, ...]]
    label: int = 12
    width: int = 66
    # Of many points: the head of each column, and its width; what holds of all of them.
    heads: Sequence[tuple[str, int]] = ()
    notes: Sequence[tuple[str, str]] = ()

    def text(self) -> str:
        """Write it for a terminal."""
        if not self.heads:
            pairs = [(name, value) for name, value in self.rows]
            return "\n".join([self.title, *listed(pairs, self.label, self.width)])
        lines = [self.title, self._line([head for head, _ in self.heads])]
        lines += [self._line(row) for row in shown(self.rows, ("...",))]
        lines += listed(self.notes, self.label, self.width)
        return "\n".join(lines)

    def _line(self, cells: Sequence[str]) -> str:
        padded = (f"{cell:>{width}}" for cell, (_, width) in zip(cells, self.heads, strict=False))
        return "  " + "  ".join(padded)

    def markdown(self) -> str:
        """Write it for a notebook."""
        heads = [head for head, _ in self.heads] or ["", ""]
        lines = [f"**{_cell(self.title)}**", "", f"| {' | '.join(heads)} |"]
        lines.append("|---" * len(heads) + "|")
        dots = ("...",) * len(heads)
        rows = shown(self.rows, dots) if self.heads else self.rows
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
        lines += [f"\n{_cell(name)}: {_cell(words)}" for name, words in self.notes]
        return "\n".join(lines)


def shown(rows: Sequence[Any], dots: Any) -> list[Any]:
    """Return rows, or of many the ends of them with dots between.

    >>> shown(range(30), "...")[8:13]
    [8, 9, '...', 20, 21]
    """
    if len(rows) <= MOST_POINTS:
        return list(rows)
    half = MOST_POINTS // 2
    return [*rows[:half], dots, *rows[-half:]]


def _cell(words: str) -> str:
    """Keep what stands in a cell of a Markdown table in it."""
    return words.replace("|", r"\|").replace("*", r"\*")
