"""What a built page says, piece by piece: sentences, table rows, outputs, figures.

Pieces are what two builds of a book are compared by. Each knows the section that it
stands in and whether it belongs to an exercise. Navigation is no part of what a page
says, nor is a formula said twice where KaTeX writes it twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
         "track", "wbr"}  # fmt: skip
_SILENT = {"script", "style", "template", "nav", "mjx-container"}
_SILENT_CLASSES = {"katex-html", "screen-reader-only", "sourceCode", "anchorjs-link",
                   "header-section-number", "chapter-number", "dark-content"}  # fmt: skip
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


@dataclass
class _Reader(HTMLParser):
    folder: Path
    leave_out: frozenset[str] = frozenset()
    pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, bool]] = []  # tags of <main>, and whether they are silent
        self._text: list[str] = []
        self._kind = "sentence"
        self._section = self._exercise = ""
        self._heading: str | None = None
        self._title = False  # inside the title of an exercise

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if not self._open and tag != "main":
            return
        classes = set(given.get("class", "").split())
        if tag == "img" and not self._silent and "dark-content" not in classes:
            self._figure(given)
        if tag == "br":
            self._text.append(" ")
        if tag in _VOID:
            return
        silent = tag in _SILENT or bool(classes & (_SILENT_CLASSES | self.leave_out))
        # a number that opens is a button in Quarto's pages; what it opens is hidden
        silent |= "popover" in given or (tag == "button" and "popovertarget" not in given)
        self._open.append((tag, silent or self._silent))
        if silent:
            return
        if tag in _BLOCKS or _HEADING.fullmatch(tag):
            self._flush()
            self._kind = _BLOCKS.get(tag, self._kind if tag == "div" else "sentence")
        if given.get("id", "").startswith("exr-"):
            self._exercise = given["id"]
        if _HEADING.fullmatch(tag):
            self._heading, self._exercise = "", ""
        if tag in {"td", "th"} and "".join(self._text).strip():
            self._text.append(" | ")

    @property
    def _silent(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID or tag not in [name for name, _ in self._open]:
            return
        while self._open:
            name, silent = self._open.pop()
            if not silent and (name in _BLOCKS or _HEADING.fullmatch(name)):
                self._flush(heading=bool(_HEADING.fullmatch(name)))
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self._open and not self._silent:
            self._text.append(data)

    def _flush(self, *, heading: bool = False) -> None:
        """End a piece: what was read since the last one."""
        raw = "".join(self._text)
        self._text = []
        text = " ".join(raw.split())
        if heading:
            self._section = text
        kind = self._kind
        parts = [text] if kind != "sentence" else _END.split(text)
        for part in parts:
            if part:
                self.pieces.append(Piece(kind, part, self._section, self._exercise))
        self._kind = "sentence"

    def _figure(self, given: dict[str, str]) -> None:
        source = unquote(given.get("src", "").partition("?")[0])
        path = self.folder / source
        data = source.encode()
        if not source.startswith(("data:", "http:", "https:", "//")) and path.is_file():
            data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()[:16]
        text = " ".join(given.get("alt", "").split()) or source[:80]
        self.pieces.append(Piece("figure", text, self._section, self._exercise, digest))


def read_out(path: Path, *, leave_out: Iterable[str] = ()) -> list[Piece]:
    """Return what a page of a built site says, in order; nothing if it has no content.

    What has a class of `leave_out` is passed over.
    """
    reader = _Reader(path.parent, frozenset(leave_out))
    reader.feed(path.read_text(encoding="utf-8", errors="replace"))
    reader.close()
    return reader.pieces
