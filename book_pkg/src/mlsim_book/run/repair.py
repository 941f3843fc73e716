"""Repair the Markdown that a cell displays, so that it can damage nothing around it.

An element or a `:::` div that is left open would swallow the rest of the chapter, and a
stray end would close one of the chapter's own. What is left open is closed where its
output ends (a phrase's element where its paragraph ends); stray ends go. The text stays
Markdown, and sound text stays as it is. HTML outputs are repaired by `html_repair`.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from mlsim_book.read.lines import Fences

_BLOCKS = frozenset({
    "address", "article", "aside", "audio", "blockquote", "button", "center", "details", "div",
    "dl", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "iframe", "main", "math", "nav", "object", "ol", "pre", "section", "select",
    "summary", "svg", "table", "template", "ul", "video",
})  # fmt: skip
# Left open, these would go on behind their paragraph.
_PHRASES = frozenset({
    "a", "abbr", "b", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt",
    "u", "var",
})  # fmt: skip
_RAW = frozenset({"script", "style", "textarea"})  # hold text, no elements
_TOKEN = re.compile(
    r"""<(?P<end>/?)(?P<name>[A-Za-z][\w-]*)(?P<rest>(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?/?)>
    |^[ ]{0,3}(?P<fence>:{3,})[ \t]*(?P<attr>\{.*\}|[^\s:{}]+)?[ \t]*:*[ \t]*$""",
    re.VERBOSE | re.MULTILINE,
)
_HIDDEN = re.compile(
    r"""(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)(?P=ticks)(?!`)
    |\$\$.*?\$\$|\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)|<!--.*?-->""",
    re.VERBOSE | re.DOTALL,
)
_UNFINISHED = re.compile(r"<(?=[A-Za-z/][^<>]*[\"'][^<>]*\Z)")
_BLANK = re.compile(r"\n[ \t]*\n|\n?\Z")


@dataclass
class _Text:
    """One text, what of it can be markup, and what is to change."""

    text: str
    visible: str = ""
    tail: list[str] = field(default_factory=list)  # lines to stand at its end
    edits: list[tuple[int, int, str]] = field(default_factory=list)  # from, to, instead

    def done(self) -> str:
        text = self.text
        for start, end, instead in sorted(self.edits, key=lambda edit: edit[:2], reverse=True):
            text = text[:start] + instead + text[end:]
        if not self.tail:
            return text
        return "\n".join([text.rstrip("\n"), *self.tail]) + "\n"


@dataclass(frozen=True)
class _Open:
    """Something that is open: an element, or a div of `:::`."""

    name: str
    where: int  # the index of its text
    at: int


def mend(texts: Sequence[str]) -> list[str]:
    r"""Return Markdown texts that close all that they open, and nothing else.

    They are taken together: what one opens, a later one may close.

    >>> mend(["<div>\n\n*a*", "b</div>"]), mend(["<div>\n\n*a*\n"]), mend(["b</div> c"])
    (['<div>\n\n*a*', 'b</div>'], ['<div>\n\n*a*\n\n</div>\n'], ['b c'])
    """
    if not any(mark in text for text in texts for mark in ("<", ":::", "```", "~~~")):
        return list(texts)
    parts = [_Text(_closed_comment(text)) for text in texts]
    stack: list[_Open] = []
    for index, part in enumerate(parts):
        _hide(part)
        _scan(part, index, parts, stack)
    for left in reversed(stack):
        _close_at_end(left, parts)
    return [part.done() for part in parts]


def _closed_comment(text: str) -> str:
    """Show a comment that never ends as text."""
    bare = _HIDDEN.sub(lambda match: " " * len(match[0]), text)
    at = bare.find("<!--")
    return f"{text[:at]}&lt;{text[at + 1 :]}" if at >= 0 and "-->" not in bare[at:] else text


def _hide(part: _Text) -> None:
    """Blank out what is no markup: code, formulas, comments. HTML in a raw block is."""
    fences, kept, raw, opening = Fences(), [], False, ""
    for line in part.text.splitlines(keepends=True):
        kind = fences.feed(line.rstrip("\n"))
        if kind == "open":
            raw, opening = "{=html}" in line, line.strip()
        shown = kind == "text" or (kind == "code" and raw)
        kept.append(line if shown else re.sub(r"[^\n]", " ", line))
    if fences.in_code:
        part.tail.append(re.match(r"[`~]+", opening)[0])  # type: ignore[index]
    joined = "".join(kept)
    part.visible = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), joined)
    for match in _UNFINISHED.finditer(part.visible):
        part.edits.append((match.start(), match.end(), "&lt;"))


def _scan(part: _Text, index: int, parts: list[_Text], stack: list[_Open]) -> None:
    """Follow what a text opens and closes."""
    at = 0
    while (match := _TOKEN.search(part.visible, at)) is not None:
        at = match.end()
        name = (match["name"] or ":::").lower()
        if match["fence"]:
            closes = not match["attr"]
        elif name not in _BLOCKS | _PHRASES | _RAW or match["rest"].endswith("/"):
            continue
        else:
            closes = bool(match["end"])
        if closes:
            _close(name, match, index, parts, stack)
        elif name in _RAW:
            end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(part.visible, at)
            if end is None:
                part.tail.append(f"</{name}>")
                return
            at = end.end()
        else:
            stack.append(_Open(name, index, match.start()))


def _close(
    name: str, match: re.Match[str], index: int, parts: list[_Text], stack: list[_Open]
) -> None:
    """Take an end: it closes the last of its name, and before that all that is open in it."""
    part = parts[index]
    if all(each.name != name for each in stack):
        part.edits.append((match.start(), match.end(), ""))
        return
    while (left := stack.pop()).name != name:
        if left.where != index:
            _close_at_end(left, parts)
        elif left.name in _PHRASES:
            at = min(_paragraph_end(part, left.at), match.start())
            part.edits.append((at, at, f"</{left.name}>"))
        else:
            end = "\n:::\n" if left.name == ":::" else f"</{left.name}>"
            end += "\n\n" if match["fence"] else ""  # a fence stands on a line of its own
            part.edits.append((match.start(), match.start(), end))


def _close_at_end(left: _Open, parts: list[_Text]) -> None:
    part = parts[left.where]
    if left.name in _PHRASES:
        at = _paragraph_end(part, left.at)
        part.edits.append((at, at, f"</{left.name}>"))
    else:
        part.tail += ["", left.name if left.name == ":::" else f"</{left.name}>"]


def _paragraph_end(part: _Text, at: int) -> int:
    found = _BLANK.search(part.visible, at)
    return found.start() if found else len(part.visible)


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
_HTML_BLOCKS = {
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
        if tag in _HTML_BLOCKS and "p" in self.open and not foreign:
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
