"""HTML as a tree that remembers where everything stands, so that it can be edited in place.

Made for pandoc's output with raw HTML of authors in it: end tags without a start
are passed over, missing ones are implied by what closes around them. Nothing is
written back, so a page's markup stays as it was but for the edits.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*>"
    r"|<(?P<end>/?)(?P<tag>[a-zA-Z][\w:-]*)(?P<attributes>(?:[^<>\"']++|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
_RAW = frozenset({"script", "style", "textarea", "title"})  # their content is no markup


@dataclass(slots=True)
class Text:
    """A stretch of text, with character references as they are written."""

    start: int
    end: int


@dataclass(slots=True)
class Element:
    """An element: `inner` to `inner_end` is its content, without the tags."""

    tag: str
    source: str  # its attributes, as written
    start: int
    inner: int
    inner_end: int = -1
    children: list[Element | Text] = field(default_factory=list)

    def attribute(self, name: str) -> str | None:
        """Return the value of an attribute, None without it.

        >>> parse('<a href="x?a&amp;b">').children[0].attribute("href")
        'x?a&b'
        """
        for key, *values in _ATTRIBUTE.findall(self.source):
            if key.lower() == name:
                return htmllib.unescape("".join(values))
        return None

    @property
    def classes(self) -> frozenset[str]:
        """The classes of the element."""
        if "class" not in self.source:
            return frozenset()
        return frozenset((self.attribute("class") or "").split())

    def all(self, name: str) -> Iterator[Element]:
        """Yield the elements of a class below this one, in reading order."""
        for child in self.children:
            if isinstance(child, Element):
                if name in child.classes:
                    yield child
                yield from child.all(name)


def parse(html: str) -> Element:
    """Return the tree of a piece of HTML.

    >>> [each.tag for each in parse('<p>a <b title="x > y">c</b></p>').children]
    ['p']
    """
    root = Element("", "", 0, 0)
    path = [root]
    at = 0
    while token := _TOKEN.search(html, at):
        if token.start() > at:
            path[-1].children.append(Text(at, token.start()))
        at = token.end()
        tag = (token["tag"] or "").lower()
        if not tag:
            continue
        if token["end"]:
            _close(path, tag, token)
            continue
        element = Element(tag, token["attributes"], token.start(), token.end())
        path[-1].children.append(element)
        if tag in _VOID or token["attributes"].endswith("/"):
            element.inner_end = token.end()
            continue
        path.append(element)
        if tag in _RAW:
            end = re.compile(rf"</{tag}\b|\Z", re.IGNORECASE).search(html, at)
            at = end.start() if end else len(html)
    if at < len(html):
        path[-1].children.append(Text(at, len(html)))
    for element in path:
        element.inner_end = len(html)
    return root


def _close(path: list[Element], tag: str, token: re.Match[str]) -> None:
    """Close the innermost element of a tag, and what was left open in it."""
    if not any(each.tag == tag for each in path[1:]):
        return
    while True:
        element = path.pop()
        element.inner_end = token.start()
        if element.tag == tag:
            return


def edited(html: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return HTML with some stretches replaced; edits are (start, end, new), apart.

    >>> edited("abc", [(2, 3, "C"), (0, 1, "A")])
    'AbC'
    """
    pieces, at = [], 0
    for start, end, new in sorted(edits):
        pieces += [html[at:start], new]
        at = end
    return "".join([*pieces, html[at:]])
