"""Repair the HTML of a cell's output, so that it can damage nothing around it.

An output is a fragment inside a page. One with a tag that never closes would swallow
the rest of the chapter, and one that closes too much would end the chapter's own
elements. Balanced HTML passes byte for byte; the rest is parsed as a browser parses a
fragment (selectolax, which wraps a parser that follows the HTML standard) and written out.
"""

from __future__ import annotations

import html as htmllib
import re
from html.parser import HTMLParser

_VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
}  # fmt: skip
_FOREIGN = {"svg", "math"}
# Of a whole document in an output, a browser would lay the attributes over the page's own.
_WHOLE = {"html", "head", "body", "frameset", "frame", "plaintext"}
_PLAINTEXT = re.compile(r"<(/?)plaintext\b", re.IGNORECASE)  # nothing can close it
# A browser ends an open element of these kinds by itself where the next of them opens, so
# that a balanced text can still nest otherwise than it is written.
_BLOCKS = {
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p",
    "pre", "section", "table", "ul",
}  # fmt: skip
_ALONE = {"a", "button", "nobr", "option", "form", "select"}  # never inside themselves


class _Balance(HTMLParser):
    """Follows the tags of a fragment; `sound` says whether each was closed, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.sound = True
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        foreign = not _FOREIGN.isdisjoint(self.open)
        if tag in _WHOLE or (tag in _ALONE and tag in self.open):
            self.sound = False
        if tag in _BLOCKS and "p" in self.open and not foreign:
            self.sound = False
        if tag not in _VOID or foreign:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _FOREIGN or not _FOREIGN.isdisjoint(self.open):
            return
        self.handle_starttag(tag, attrs)  # in HTML `<div/>` opens a div

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in _VOID:
            self.sound = False

    def handle_decl(self, decl: str) -> None:
        self.sound = False  # a document type

    def unknown_decl(self, data: str) -> None:
        self.sound = False


def balanced(html: str) -> bool:
    """Say whether a fragment closes all that it opens and nothing else.

    >>> balanced("<p>a<br>b</p>"), balanced("<p>a"), balanced("a</div>"), balanced("a <!-- b")
    (True, False, False, False)
    """
    reader = _Balance()
    reader.feed(html)
    return reader.sound and not reader.open and "<" not in reader.rawdata


def repaired(html: str) -> str:
    """Return a fragment that closes all that it opens and nothing else.

    >>> repaired("<b>as it is</b>"), repaired("</div><table><tr><td>1")
    ('<b>as it is</b>', '<table><tbody><tr><td>1</td></tr></tbody></table>')
    """
    if balanced(html):
        return html
    from selectolax.lexbor import LexborHTMLParser  # only now: most books need it never

    mended = LexborHTMLParser(_ended(_PLAINTEXT.sub(r"<\1pre", html)), is_fragment=True).html or ""
    return mended if mended.strip() else f"<pre>{htmllib.escape(html)}</pre>"


def _ended(html: str) -> str:
    """Show a tag that never ends as text; a browser would drop it, and all that follows."""
    reader = _Balance()
    reader.feed(html)
    left = reader.rawdata
    if "<" not in left or left.startswith("<!--") or reader.cdata_elem:
        return html
    return html[: -len(left)] + htmllib.escape(left, quote=False)
