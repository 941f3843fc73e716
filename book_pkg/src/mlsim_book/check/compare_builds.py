"""What moved between two builds of a book: sentences, table rows, outputs, figures, answers.

Numbers of a book are computed, so a change of its data or code changes what it says in
places that nobody edited. This lists them, page by page, with the words that went and
came: who changed a number reads what became of it.

What a built page says, piece by piece: sentences, table rows, outputs, figures. Pieces are what
two builds of a book are compared by. Each knows the section that it stands in and whether it
belongs to an exercise. Navigation is no part of what a page says, nor is a formula said twice
where KaTeX writes it twice.
"""

from __future__ import annotations

import difflib
import hashlib
import html as htmllib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mlsim_book.errors import SourceError
from mlsim_book.read.qmd import MEASURED
from mlsim_book.render.postprocess import Element, Text, parse

_SILENT = {"script", "style", "template", "nav", "mjx-container"}
_SILENT_CLASSES = frozenset({
    "katex-html", "screen-reader-only", "sourceCode", "anchorjs-link", "header-section-number",
    "chapter-number", "dark-content",
})  # fmt: skip
_BLOCKS = {"p": "sentence", "li": "sentence", "dt": "sentence", "dd": "sentence",
           "figcaption": "sentence", "caption": "sentence", "tr": "row", "pre": "output",
           "div": "sentence", "section": "sentence"}  # fmt: skip
_HEADING = re.compile(r"h[1-6]")
# A sentence ends before a capital, a quotation or a parenthesis, not after "e.g.".
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=[A-Z“\"(\[])")


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a page says.

    `kind` is "sentence", "row" (of a table), "output" (of code) or "figure"; a
    figure's text is what stands for it where it can't be seen, and `content` a
    digest of its file.
    """

    kind: str
    text: str
    section: str = ""
    exercise: str = ""
    content: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two pieces the same, wherever they stand."""
        return self.kind, self.text, self.content


def read_out(path: Path, *, leave_out: Iterable[str] = ()) -> list[Piece]:
    """Return what a page of a built site says, in order; nothing if it has no content.

    What has a class of `leave_out` is passed over.
    """
    html, pieces = path.read_text(encoding="utf-8", errors="replace"), list[Piece]()
    passed = _SILENT_CLASSES | frozenset(leave_out)
    words: list[str] = []
    kind, section, exercise = "sentence", "", ""

    def end(*, heading: bool = False) -> None:
        """End a piece: what was read since the last one."""
        nonlocal kind, section
        text = " ".join("".join(words).split())
        words.clear()
        section = text if heading else section
        parts = _END.split(text) if kind == "sentence" else [text]
        pieces.extend(Piece(kind, part, section, exercise) for part in parts if part)
        kind = "sentence"

    def read(each: Element) -> None:
        nonlocal kind, section, exercise
        tag, given = each.tag, each.attributes
        if tag == "img" and "dark-content" not in each.classes:
            pieces.append(_figure(given, path.parent, section, exercise))
        words.extend([" "] if tag == "br" else ())
        # a number that opens is a button in Quarto's pages; what it opens is hidden
        opens = "popover" in each.source.replace("popovertarget", "")
        shut = tag == "button" and "popovertarget" not in given
        if tag in _SILENT or each.classes & passed or opens or shut:
            return
        heading = _HEADING.fullmatch(tag) is not None
        block = heading or tag in _BLOCKS
        if block:
            before = kind
            end()
            kind = _BLOCKS.get(tag, "sentence") if tag != "div" else before
        if heading:
            section = exercise = ""
        if given.get("id", "").startswith("exr-"):
            exercise = given["id"]
        if tag in {"td", "th"} and "".join(words).strip():
            words.append(" | ")
        walk(each)
        if block:
            end(heading=heading)

    def walk(element: Element) -> None:
        for each in element.children:
            if isinstance(each, Text):
                words.append(htmllib.unescape(html[each.start : each.end]))
            else:
                read(each)

    for main in parse(html).tagged("main"):
        walk(main)
        end()
    return pieces


def _figure(given: Mapping[str, str], folder: Path, section: str, exercise: str) -> Piece:
    source = unquote(given.get("src", "").partition("?")[0])
    path, data = folder / source, source.encode()
    if not source.startswith(("data:", "http:", "https:", "//")) and path.is_file():
        data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()[:16]
    text = " ".join(given.get("alt", "").split()) or source[:80]
    return Piece("figure", text, section, exercise, digest)


# Two pieces less alike than this are not one that changed, but one that went and one that came.
ALIKE = 0.55
# Words around a change that are shown.
AROUND = 6
_NUMBER = re.compile(r"[-−]?\d[\d,.]*")
_COUNTED = {"sentence": "sentence", "row": "table row", "output": "output", "figure": "figure"}


@dataclass(frozen=True, slots=True)
class Move:
    """One piece of a page before and after; None where there was or is none."""

    page: str
    old: Piece | None
    new: Piece | None

    @property
    def piece(self) -> Piece:
        """The piece as it is now, or as it was."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def only_numbers(self) -> bool:
        """Whether the words are the same and only numbers are others."""
        if self.old is None or self.new is None or self.old.kind == "figure":
            return False
        return _NUMBER.sub("#", self.old.text) == _NUMBER.sub("#", self.new.text)

    def as_dict(self) -> dict[str, Any]:
        """Return the move as plain data."""
        return {
            "page": self.page,
            "section": self.piece.section,
            "exercise": self.piece.exercise or None,
            "kind": self.piece.kind,
            "only_numbers": self.only_numbers,
            "old": self.old and self.old.text,
            "new": self.new and self.new.text,
        }

    def __str__(self) -> str:
        if self.old is None or self.new is None:
            sign = "+" if self.old is None else "-"
            return f"{sign} {_shortened(self.piece.text)}"
        if self.old.kind == "figure":
            words = "" if self.old.text == self.new.text else f": {_changes(self.old, self.new)}"
            return f"~ drawn anew: {_shortened(self.new.text)}{words}"
        said = _changes(self.old, self.new)
        if self.new.kind == "row" and said.startswith("…"):  # a row is identified by its first cell
            said = f"{self.new.text.partition(' | ')[0]} | {said}"
        return f"~ {said}"


def moved(old: Path, new: Path) -> list[Move]:
    """List what two builds of a book say differently, by page and place.

    What is marked as measured differs at each run, and is passed over.

    Raises
    ------
    SourceError
        If one of the folders holds no pages.
    """
    before, after = pages_of(old), pages_of(new)
    found: list[Move] = []
    for page in sorted(before.keys() | after.keys()):
        was, now = (
            read_out(pages[page], leave_out=[MEASURED]) if page in pages else []
            for pages in (before, after)
        )
        keys = [each.key for each in was], [each.key for each in now]
        matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
        for tag, first, last, start, end in matcher.get_opcodes():
            if tag != "equal":
                pairs = _paired(was[first:last], now[start:end])
                found += [Move(page, one, other) for one, other in pairs]
    return found


def pages_of(folder: Path) -> dict[str, Path]:
    """Return the pages of a built site by name.

    Raises
    ------
    SourceError
        The folder holds none.
    """
    pages = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*.html"))
        if not {"site_libs", "index_files"} & set(path.relative_to(folder).parts)
    }
    if not pages:
        raise SourceError(
            f"there is no built page in {str(folder)!r}",
            hint="Build the site first: mlsim-book build, or quarto render. To compare two builds,"
            " keep a copy of the first: cp -r _book ../before",
        )
    return pages


def _paired(
    old: Sequence[Piece], new: Sequence[Piece]
) -> Iterator[tuple[Piece | None, Piece | None]]:
    """Pair pieces that stand for each other, in order; the rest went or came."""
    rest = list(old)
    for now in new:
        was = next((each for each in rest if _alike(each, now)), None)
        if was is not None:
            # What was passed over on the way has gone.
            for gone in rest[: rest.index(was)]:
                yield gone, None
            rest = rest[rest.index(was) + 1 :]
        yield was, now
    for gone in rest:
        yield gone, None


def _alike(one: Piece, other: Piece) -> bool:
    if one.kind != other.kind:
        return False
    first, second = (_NUMBER.sub("#", each.text).split() for each in (one, other))
    # A row of a table is identified by its first cell.
    if one.kind == "row":
        return one.text.partition(" | ")[0] == other.text.partition(" | ")[0]
    return difflib.SequenceMatcher(None, first, second).ratio() >= ALIKE


def _changes(old: Piece, new: Piece) -> str:
    """Write the words that changed, each with some words around it.

    >>> _changes(Piece("sentence", "It takes 3 s."), Piece("sentence", "It takes 4 s."))
    'It takes [3 -> 4] s.'
    """
    was, now = old.text.split(), new.text.split()
    parts: list[str] = []
    for tag, first, last, start, end in difflib.SequenceMatcher(
        None, was, now, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            went, came = " ".join(was[first:last]), " ".join(now[start:end])
            parts.append(f"[{went or 'nothing'} -> {came or 'nothing'}]")
            continue
        same = was[first:last]
        begins, ends = first == 0, last == len(was)
        left, right = (0 if begins else AROUND), (0 if ends else AROUND)
        if len(same) > left + right:
            same = [*same[:left], "…", *(same[-right:] if right else [])]
        parts.append(" ".join(same))
    return " ".join(parts)


def _shortened(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def as_text(found: Sequence[Move]) -> str:
    """Write moves for a terminal: by page and section, with a last line that counts them."""
    lines: list[str] = []
    for page, on_page in groupby(found, key=lambda each: each.page):
        lines.append(page)
        for (section, exercise), here in groupby(
            on_page, key=lambda each: (each.piece.section, each.piece.exercise)
        ):
            place = f"{section}, {exercise}" if exercise else section
            lines += [f"  {place or 'at the top'}", *(f"    {each}" for each in here)]
    return "\n".join([*lines, _counted(found)])


def _counted(found: Sequence[Move]) -> str:
    if not found:
        return "nothing moved"
    counts = Counter(each.piece.kind for each in found)
    said = [
        f"{counts[kind]} {name}{'' if counts[kind] == 1 else 's'}"
        for kind, name in _COUNTED.items()
        if counts[kind]
    ]
    pages = len({each.page for each in found})
    exercises = len({(each.page, each.piece.exercise) for each in found if each.piece.exercise})
    tail = f"; exercises touched: {exercises}" if exercises else ""
    return f"{', '.join(said)} moved on {pages} page{'' if pages == 1 else 's'}{tail}"
