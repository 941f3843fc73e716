"""Find terms in running text, and put a hint on the first occurrence of each.

Running text is paragraphs, list items, definitions and the bodies of callouts;
not headings, links, code, formulas, captions, tables or quotes.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mlsim_book.render.html_tree import Element, edited, parse

_PROSE_TAGS = frozenset({"p", "li", "dd"})
_PROSE_CLASSES = frozenset({"callout-body-container"})
_BARRED_TAGS = frozenset({
    "h1", "h2", "h3", "h4", "h5", "h6", "a", "button", "summary", "label", "select", "code", "pre",
    "kbd", "samp", "var", "math", "svg", "figcaption", "caption", "table", "blockquote", "q",
    "cite", "dt", "dfn", "script", "style", "template", "textarea", "title", "nav", "header",
})  # fmt: skip
_BARRED_CLASSES = frozenset({
    "math", "opens", "citation", "callout-header", "theorem-title", "proof-title", "csl-entry",
    "quarto-unresolved-ref", "footnotes",
})  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A term: where it is defined, as what, and how it is spelled."""

    id: str
    definition: str
    spellings: tuple[str, ...]


class Terms:
    """The terms of a book, ready to be found.

    >>> terms = Terms([Entry("term-pot", "A vessel.", ("pot", "kettle"))])
    >>> terms.hint("<p>Two kettles and a pot.</p>", "g.html")[1]
    ['term-pot']
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {
            _key(spelling): entry for entry in entries for spelling in reversed(entry.spellings)
        }
        # the longest first: "memory bandwidth" is no occurrence of "bandwidth"
        spellings = sorted(self._entries, key=len, reverse=True)
        words = "|".join(map(_pattern, spellings))
        # an ampersand before it: the name of a character reference, no word
        self._found = re.compile(rf"(?<![\w&#-])(?:{words})s?(?!-?\w)") if words else None

    def hint(self, html: str, glossary: str) -> tuple[str, list[str]]:
        """Put hints into a page's HTML; return it, and the ids of the terms met, in order.

        Parameters
        ----------
        glossary
            The address of the glossary, from this page.
        """
        if self._found is None:
            return html, []
        edits: list[tuple[int, int, str]] = []
        used: dict[str, None] = {}
        for start, end in running_text(parse(html), prose=False):
            for match in self._found.finditer(html, start, end):
                entry = self._entry(match.group())
                if entry.id in used:
                    continue
                used[entry.id] = None
                edits.append((match.start(), match.end(), _link(entry, match.group(), glossary)))
        return edited(html, edits), list(used)

    def _entry(self, text: str) -> Entry:
        key = _key(htmllib.unescape(text))
        return self._entries[key] if key in self._entries else self._entries[key.removesuffix("s")]


def _key(spelling: str) -> str:
    """Return a spelling in one form: the first letter small, single spaces."""
    text = " ".join(spelling.split())
    return text[:1].lower() + text[1:]


def _pattern(spelling: str) -> str:
    """Return the pattern of a spelling in HTML, whatever the case of its first letter."""
    words = [re.escape(htmllib.escape(word, quote=False)) for word in spelling.split()]
    first = spelling[:1]
    if first.isalpha():
        words[0] = f"[{first.lower()}{first.upper()}]{words[0][1:]}"
    return r"\s+".join(words)


def running_text(element: Element, *, prose: bool) -> Iterable[tuple[int, int]]:
    """Yield the places of running text, in reading order; `prose` says that it is inside one."""
    for child in element.children:
        if not isinstance(child, Element):
            if prose:
                yield child.start, child.end
        elif child.tag not in _BARRED_TAGS and not child.classes & _BARRED_CLASSES:
            inside = child.tag in _PROSE_TAGS or bool(child.classes & _PROSE_CLASSES)
            yield from running_text(child, prose=prose or inside)


def _link(entry: Entry, text: str, glossary: str) -> str:
    href = htmllib.escape(f"{glossary}#{entry.id}")
    return (
        f'<a class="term" href="{href}" data-definition="{htmllib.escape(entry.definition)}">'
        f"{text}</a>"
    )
