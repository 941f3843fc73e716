"""Lines that remember where they were written, and what surrounds them.

Includes mix the lines of several files, so each carries its own file and line.
`Fences` follows code fences and HTML comments from line to line: whatever reads
.qmd text asks it whether a line is text at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.errors import SourceError


@dataclass(frozen=True)
class SourceLine:
    """A line of text (without its end) with its file and line number."""

    text: str
    file: str
    line: int


def read_lines(path: Path, *, name: str) -> tuple[SourceLine, ...]:
    """Return the lines of a UTF-8 file; `name` is what errors call it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"not UTF-8 text ({error.reason} at byte {error.start})",
            file=name,
            hint="Save the file as UTF-8.",
        ) from None
    return split_lines(text, file=name)


def split_lines(text: str, *, file: str) -> tuple[SourceLine, ...]:
    r"""Return the lines of a text.

    >>> split_lines("a\nb", file="x.qmd")[1]
    SourceLine(text='b', file='x.qmd', line=2)
    """
    parts = text.replace("\r\n", "\n").split("\n")
    if parts and not parts[-1]:
        parts.pop()
    return tuple(SourceLine(part, file, number) for number, part in enumerate(parts, start=1))


CELL_FENCE = re.compile(r"^(\s*)(`{3,})\s*\{([A-Za-z][\w-]*)( *[ ,].*)?\}\s*$")
_FENCE = re.compile(r"^\s*(`{3,}(?=[^`]*$)|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


class Fences:
    """Follow code fences and HTML comments through lines fed one by one.

    `feed` says what a line is: "text", "open" (a fence), "code", "close", or
    "comment" for a line that begins inside an HTML comment. `cell` says
    whether the block just opened, or open now, is one to execute.

    >>> fences = Fences()
    >>> [fences.feed(line) for line in ["a", "```{python}", "b", "```", "c"]]
    ['text', 'open', 'code', 'close', 'text']
    """

    def __init__(self) -> None:
        self.cell: re.Match[str] | None = None
        self.in_comment = False
        self._closing: re.Pattern[str] | None = None

    @property
    def in_code(self) -> bool:
        """Whether a fence is open."""
        return self._closing is not None

    def feed(self, text: str) -> str:
        """Take the next line and say what it is."""
        if self._closing is not None:
            if self._closing.match(text):
                self._closing = None
                return "close"
            return "code"
        if self.in_comment:
            end = text.find("-->")
            if end >= 0:
                self.in_comment = _opens_comment(text[end + 3 :])
            return "comment"
        fence = _FENCE.match(text)
        if fence is None:
            self.in_comment = _opens_comment(text)
            return "text"
        mark = fence.group(1)
        self.cell = CELL_FENCE.match(text)
        if self.cell is not None:  # as Quarto: the same indent, the same number of ticks
            self._closing = re.compile(rf"^{self.cell.group(1)}{mark}\s*$")
        else:
            self._closing = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        return "open"


def _opens_comment(text: str) -> bool:
    """Say whether a line leaves an HTML comment open (code spans don't count)."""
    bare = _CODE_SPAN.sub("", text)
    return bare.rfind("<!--") > bare.rfind("-->")
