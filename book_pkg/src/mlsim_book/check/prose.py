"""What a reader reads of Markdown, with every character where it was written.

`passages` cuts lines into stretches of prose: paragraphs, list items, headings,
captions, table rows. `Prose` is the text of one with code, formulas, addresses and
markup blanked out, character for character, so that a place in it is a place in
the source.

Cut the lines of a chapter into passages: paragraphs, list items, rows, captions. A sentence does
not go on from one passage to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mlsim_book.read.labels import WORDS
from mlsim_book.read.lines import Fences, SourceLine

COMPUTED = "\ue000"  # stands for the value of an inline expression
NO_PROSE = "\ue001"  # stands for code, a formula, a citation key
BREAK = "\u2029"  # ends a sentence

_TOKEN = re.compile(
    r"(?P<escape>\\.)"
    r"|(?P<comment><!--.*?(?:-->|\Z))"
    r"|(?P<ticks>(?P<run>`+)(?!`)(?P<code>.*?)(?<!`)(?P=run)(?!`))"
    r"|(?P<math>\$\$.*?(?:\$\$|\Z)|\$(?=\S)(?:\\.|[^$\\])+?(?<!\s)\$(?!\d))"
    r"|(?P<shortcode>\{\{\{?<.*?>\}?\}\})"
    r"|(?P<element><(?P<tag>script|style|svg|pre|code)\b.*?</(?P=tag)>)"
    r"|(?P<address><[a-zA-Z][\w+.-]*:[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>|\b(?:https?|ftp)://[^\s<>)\]]+)"
    r"|(?P<markup></?[a-zA-Z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)"
    r"|(?P<footnote>\[\^[^\]\s]+\]:?)"
    r"|(?P<attributes>\{\s*(?:[#.][^{}]*|=\w+|-|[\w-]+=(?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\})"
    r"|(?P<citation>(?<![\w\\@.])-?@(?:\{(?P<braced>[^}\n]+)\}|(?P<key>\w(?:[\w:.#$%&+?~/-]*\w)?)))"
    r"|(?P<entity>&(?:\#\d+|\#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);)"
    r"|(?P<emphasis>\*+|(?<!\w)_+|_+(?!\w)|~~)"
    r"|(?P<bracket>[\[\]])",
    re.DOTALL,
)
_COMPUTED = re.compile(r"\{python\}\s+\S", re.DOTALL)
_TARGET = re.compile(r"\((?:[^()\\\"]|\\.|\"[^\"]*\"|\([^()]*\))*\)|\[[^\[\]]*\]", re.DOTALL)
_SPAN = re.compile(r"\{(?:[^{}\"']|\"[^\"]*\"|'[^']*')*\}", re.DOTALL)
_KIND = re.compile(r"\bkind\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s}]+))")
_SHOWN = re.compile(r"(?:fig-|tbl-|lst-)?(?:cap|alt|subcap|title)\s*=\s*(\"[^\"]*\"|'[^']*')")
_SPACES = {"&nbsp;", "&#160;", "&thinsp;", "&#8239;", "&ensp;", "&emsp;"}
_SENTENCE_END = re.compile(rf"[.!?…][\"'”’)\]]*\s+(?![a-z])|{BREAK}")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|cf|vs|ca|approx|al|[Ff]igs?|[Ee]qs?|[Ss]ec|[Cc]h|[Tt]ab|[Nn]os?|resp|incl|St|Dr"
    r"|Mrs?|Ms|pp?)$"
)


@dataclass(frozen=True)
class Given:
    """A stretch marked `[...]{.given kind="..."}`."""

    start: int
    end: int
    kind: str | None


@dataclass
class Prose:
    """A text of Markdown with what is no prose blanked out."""

    source: str
    citations: list[int] = field(default_factory=list)  # where keys stand, references left out
    given: list[Given] = field(default_factory=list)
    attributes: list[tuple[int, int]] = field(default_factory=list)  # such as a fig-alt
    text: str = ""

    def __post_init__(self) -> None:
        self._chars = list(self.source)
        self._open: list[int] = []
        at = 0
        while token := _TOKEN.search(self.source, at):
            at = max(self._blank(token), token.start() + 1)
        self.text = "".join(self._chars)

    def _fill(self, start: int, end: int, mark: str) -> int:
        self._chars[start:end] = mark * (end - start)
        return end

    def _blank(self, token: re.Match[str]) -> int:
        """Blank out a token; return where to go on."""
        start, end = token.span()
        match token.lastgroup or "":
            case "bracket":
                return self._bracket(token)
            case "escape":
                keep = token.group()[1] if token.group()[1] not in "*_`@\n " else " "
                self._chars[start:end] = [" ", keep]
            case "ticks":
                computed = token["run"] == "`" and _COMPUTED.match(token["code"])
                self._fill(start, end, COMPUTED if computed else NO_PROSE)
            case "citation":
                key = token["braced"] or token["key"]
                if key.split("-")[0].lower() not in WORDS or "-" not in key:
                    self.citations.append(start)
                self._fill(start, end, NO_PROSE)
            case "entity" if token.group() == "&times;":
                self._chars[start:end] = [*" " * (end - start - 1), "×"]
            case "entity" if token.group() not in _SPACES:
                self._fill(start, end, NO_PROSE)
            case "attributes":
                self._blank_attributes(start, end)
            case "math" | "element" | "address" | "shortcode":
                self._fill(start, end, NO_PROSE)
            case _:
                self._fill(start, end, " ")
        return end

    def _bracket(self, token: re.Match[str]) -> int:
        if token.group() == "[":
            self._open.append(token.start())
            return token.end()
        if not self._open:
            return token.end()
        start, end = self._open.pop(), token.end()
        target = _TARGET.match(self.source, end)
        if target:
            end = self._fill(target.start(), target.end(), " ")
        span = _SPAN.match(self.source, end)
        if target or span:  # "[12](a.html) GB" reads as one
            self._chars[start] = self._chars[token.start()] = " "
        if span:
            if re.search(r"\.given\b", span.group()):
                kind = _KIND.search(span.group())
                name = next(filter(None, kind.groups()), "") if kind else None
                self.given.append(Given(start, token.start(), name))
            end = self._blank_attributes(span.start(), span.end())
        return end

    def _blank_attributes(self, start: int, end: int) -> int:
        """Blank out attributes, but for the values that readers see."""
        shown = [match.span(1) for match in _SHOWN.finditer(self.source, start, end)]
        kept = {(a, b): self._chars[a + 1 : b - 1] for a, b in shown}
        self._fill(start, end, " ")
        for (a, b), text in kept.items():
            self._chars[a:b] = [BREAK, *text, BREAK]
            self.attributes.append((a, b))
        return end

    def sentences(self) -> Iterator[tuple[int, int]]:
        """Yield where each sentence starts and ends.

        >>> text = Prose("It is so. See e.g. Ada. Yes")
        >>> [text.source[a:b] for a, b in text.sentences()]
        ['It is so. ', 'See e.g. Ada. ', 'Yes']
        """
        start = 0
        for end in _SENTENCE_END.finditer(self.text):
            if not _ABBREVIATION.search(self.text, start, end.start()):
                yield start, end.end()
                start = end.end()
        if start < len(self.text):
            yield start, len(self.text)


@dataclass(frozen=True)
class Cell:
    """A cell of a table: where it stands in its row, and what heads its column."""

    start: int
    end: int
    heading: str = ""
    given: bool = False  # whether its heading is marked as given


def table_cells(row: Prose, headings: Sequence[tuple[str, bool]] = ()) -> list[Cell]:
    """Return the cells of a pipe table's row, each with the heading of its column."""
    edges = [match.start() for match in re.finditer(r"\|", row.text)]
    bounds = list(zip(edges, edges[1:] if len(edges) > 1 else [len(row.text)], strict=False))
    found = []
    for index, (start, end) in enumerate(bounds):
        heading, given = headings[index] if index < len(headings) else ("", False)
        found.append(Cell(start + 1, end, heading, given))
    return found


def table_headings(row: Prose) -> list[tuple[str, bool]]:
    """Return the headings in the first row of a pipe table, and whether they are given."""
    return [
        (
            row.text[cell.start : cell.end].strip(),
            any(cell.start <= each.start < cell.end for each in row.given),
        )
        for cell in table_cells(row)
    ]


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
