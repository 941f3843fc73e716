"""Cut the lines of a chapter into passages: paragraphs, list items, rows, captions.

A sentence does not go on from one passage to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mlsim_book.check.prose import Prose, table_headings
from mlsim_book.read.lines import Fences, SourceLine

_DIV = re.compile(r"^\s*:{3,}\s*(\S.*)?$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_RULE = re.compile(r"^\s*(=+|-{2,}|(\*\s*){3,}|(-\s*){3,})\s*$")
_ROW = re.compile(r"^\s*\|")
_BORDER = re.compile(r"^\s*(\+[-=+:]+\+|\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?)\s*$")
_CAPTION = re.compile(r"^(?:Table)?:\s+\S")
_BULLET = re.compile(
    r"^\s*(?:[-+*]|\(?(?:\d{1,3}|#|@\w*)[.)]|\(?[a-zA-Z][.)]|\[\^[^\]]+\]:|[:~])\s+"
)
_LETTER = re.compile(r"^\s*\(?[a-zA-Z][.)]\s")
_ADDRESS = re.compile(r"^\s{0,3}\[[^\]^][^\]]*\]:\s*\S")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")


@dataclass(frozen=True)
class Passage:
    """A stretch of prose, by its lines."""

    lines: tuple[SourceLine, ...]
    kind: str = "text"  # "text", "row", "heading row" or "caption"
    headings: tuple[tuple[str, bool], ...] = ()  # of a row's columns, and whether given
    covered: bool = False  # by a citation in the caption of its table

    @property
    def source(self) -> str:
        """The text of its lines."""
        return "\n".join(line.text for line in self.lines)

    def line(self, offset: int) -> SourceLine:
        """Return the line on which a place in the source stands."""
        return self.lines[self.source.count("\n", 0, offset)]


def passages(lines: Sequence[SourceLine], *, in_list: bool = False) -> list[Passage]:
    r"""Return the passages of lines, in order; `in_list` says that a list goes on.

    >>> from mlsim_book.read.lines import split_lines
    >>> text = split_lines("# A\nB\nC\n\n- D\n- E\n", file="a.qmd")
    >>> [each.source for each in passages(text)]
    ['# A', 'B\nC', '  D', '  E']
    """
    return _join_tables(list(_Cutter(lines, in_list=in_list).cut()))


class _Cutter:
    """Goes through lines; what is pending is the passage that the next line may belong to."""

    def __init__(self, lines: Sequence[SourceLine], *, in_list: bool) -> None:
        self.lines = lines
        self.in_list = in_list
        self.pending: list[SourceLine] = []
        self.bullet = False  # whether what is pending began as a list item

    def cut(self) -> Iterator[Passage]:
        fences = Fences()
        for line in self.lines:
            if fences.feed(line.text) != "text":
                yield from self._flush()
            else:
                yield from self._take(line)
        yield from self._flush()

    def _flush(self) -> Iterator[Passage]:
        if self.pending:
            kind = "caption" if _CAPTION.match(self.pending[0].text) else "text"
            yield Passage(tuple(self.pending), kind)
        self.pending, self.bullet = [], False

    def _take(self, line: SourceLine) -> Iterator[Passage]:
        text = _QUOTE.sub(lambda match: " " * len(match.group()), line.text)
        line = replace(line, text=text)
        if not text.strip() or _ADDRESS.match(text):
            yield from self._flush()
        elif div := _DIV.match(text):
            yield from self._flush()
            if div.group(1):  # its title or caption may be read
                yield Passage((line,))
        elif _HEADING.match(text):
            yield from self._flush()
            yield Passage((line,))
        elif _BORDER.match(text) or _RULE.match(text):
            yield from self._flush()
            yield Passage((line,), "border")
        elif _ROW.match(text):
            yield from self._flush()
            yield Passage((line,), "row")
        else:
            yield from self._text(line)

    def _text(self, line: SourceLine) -> Iterator[Passage]:
        text = line.text
        indented = bool(re.match(r" {4}|\t", text))
        # as pandoc: a list can't begin in the middle of a paragraph
        starts = (not self.pending or (self.bullet and not _LETTER.match(text))) and _BULLET.match(
            text
        )
        if starts:
            yield from self._flush()
            self.bullet = self.in_list = True
            if not _CAPTION.match(text):
                text = " " * starts.end() + text[starts.end() :]
        elif not self.pending:
            self.in_list = self.in_list and text[:1].isspace()
            if indented and not self.in_list:
                return  # a code block
        self.pending.append(replace(line, text=text))


def _join_tables(found: list[Passage]) -> list[Passage]:
    """Tell rows what heads their columns, and whether their table's caption cites a source."""
    done: list[Passage] = []
    at = 0
    while at < len(found):
        end = at
        while end < len(found) and found[end].kind in {"row", "border"}:
            end += 1
        if end == at:
            done.append(found[at])
            at += 1
            continue
        after = found[end] if end < len(found) and found[end].kind == "caption" else None
        before = found[at - 1] if at and found[at - 1].kind == "caption" else None
        caption = after or before
        covered = caption is not None and bool(Prose(caption.source).citations)
        done += _rows(found[at:end], covered=covered)
        at = end
    return done


def _rows(table: list[Passage], *, covered: bool) -> Iterator[Passage]:
    kinds = [each.kind for each in table]
    first = kinds.index("row") if "row" in kinds else 0
    heads = first + 1 < len(kinds) and kinds[first + 1] == "border"
    headings: tuple[tuple[str, bool], ...] = ()
    if heads:
        headings = tuple(table_headings(Prose(table[first].source)))
    for index, each in enumerate(table):
        if each.kind == "row":
            yield replace(each, headings=() if index == first else headings, covered=covered)
