"""Whether a page is valid HTML: as the standard's parser reads it, and what may stand in what.

html5lib follows the parsing rules of the standard and reports every error. It does
not know what an element may hold; of those rules, the few that are broken in practice
are kept here: no block in a line of text, no control in a link or a button, nothing
but items in a list. Elements of SVG and MathML are left to the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import html5lib
from html5lib.constants import E as MESSAGES

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.render.html_tree import Element, Text, parse

_RULES = "1"  # part of the key of what is kept: raise it when a rule changes
_TEMPLATE = re.compile(r"(<template\b[^>]*>)(.*?)(</template>)", re.DOTALL)
_MOST = 20  # of one page; one missing end tag makes many errors

_LINES = frozenset({
    "span", "h1", "h2", "h3", "h4", "h5", "h6", "button", "em", "strong", "b", "i", "u", "s",
    "code", "kbd", "samp", "var", "small", "sub", "sup", "q", "cite", "abbr", "dfn", "label",
    "time", "mark", "pre",
})  # fmt: skip
_BLOCKS = frozenset({
    "div", "p", "ul", "ol", "dl", "table", "section", "article", "aside", "nav", "header",
    "footer", "main", "figure", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "form", "details", "fieldset", "address",
})  # fmt: skip
_CONTROLS = frozenset({"a", "button", "input", "select", "textarea", "details", "iframe", "label"})
_FOREIGN = frozenset({"svg", "math"})
_ITEMS = {
    "ul": frozenset({"li", "script", "template"}),
    "ol": frozenset({"li", "script", "template"}),
    "dl": frozenset({"dt", "dd", "div", "script", "template"}),
}


@dataclass(frozen=True)
class Fault:
    """Something that is not valid, on a line of the page, and the markup near it."""

    line: int
    message: str
    near: str


def find_faults(html: str, keep: TextCache | None = None) -> list[Fault]:
    """Return what is not valid in a page, the first twenty; `keep` remembers known pages.

    >>> page = "<!DOCTYPE html><title>A</title><p>B</b></p>"
    >>> [each.message for each in find_faults(page)]
    ['Unexpected end tag (b). Ignored.']
    >>> find_faults("<!DOCTYPE html><title>A</title><span><div>B</div></span>")[0].message
    'a <div> stands in a <span>, which holds a line of text only'
    """
    key = content_hash("html", _RULES, html5lib.__version__, html)
    if keep is not None and (kept := keep.load(key)) is not None:
        return [Fault(**each) for each in json.loads(kept)]
    faults = [*_parse_errors(html), *_misplaced(html, parse(html), ())]
    faults = sorted(dict.fromkeys(faults), key=lambda each: each.line)[:_MOST]
    if keep is not None:
        keep.store(key, json.dumps([asdict(each) for each in faults]))
    return faults


def _parse_errors(html: str) -> Iterator[Fault]:
    """Yield the errors of a page, and of its templates, which html5lib takes for ordinary."""
    bare = _TEMPLATE.sub(lambda match: match[1] + "\n" * match[2].count("\n") + match[3], html)
    yield from _errors(bare, html, 0, fragment=False)
    for match in _TEMPLATE.finditer(html):
        yield from _errors(match[2], match[2], html.count("\n", 0, match.start(2)), fragment=True)


def _errors(html: str, shown: str, above: int, *, fragment: bool) -> Iterator[Fault]:
    parser = html5lib.HTMLParser()
    if fragment:
        parser.parseFragment(html, container="template")
    else:
        parser.parse(html)
    lines = shown.split("\n")
    for (line, column), code, data in parser.errors:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        try:
            message = MESSAGES[code] % data
        except (KeyError, TypeError):
            message = code
        yield Fault(line + above, message, _near(text, column))


def _near(text: str, column: int) -> str:
    """Return the tag that ends before a column of a line, at most 60 characters."""
    start = text.rfind("<", 0, column + 1)
    end = text.find(">", max(start, 0))
    return text[start : end + 1 or None].strip()[:60] if start >= 0 else ""


def _misplaced(html: str, element: Element, above: tuple[str, ...]) -> Iterator[Fault]:
    """Yield the elements that may not stand where they do."""
    inside = (*above, element.tag)
    for child in element.children:
        if isinstance(child, Text):
            if element.tag in _ITEMS and html[child.start : child.end].strip():
                yield _fault(html, child.start, f"text stands in a <{element.tag}>, outside items")
            continue
        if element.tag in _ITEMS and child.tag not in _ITEMS[element.tag]:
            yield _fault(html, child.start, f"a <{child.tag}> stands in a <{element.tag}>, no item")
        if message := _forbidden(child.tag, inside):
            yield _fault(html, child.start, message)
        if child.tag not in _FOREIGN:
            # what a template holds is put elsewhere by a script
            yield from _misplaced(html, child, () if child.tag == "template" else inside)


def _forbidden(tag: str, inside: tuple[str, ...]) -> str | None:
    if tag in _BLOCKS:
        line = next((each for each in reversed(inside) if each in _LINES), None)
        if line is not None:
            return f"a <{tag}> stands in a <{line}>, which holds a line of text only"
    if tag in _CONTROLS:
        control = next((each for each in reversed(inside) if each in {"a", "button"}), None)
        if control is not None:
            return f"a <{tag}> stands in a <{control}>: two controls in one"
    return None


def _fault(html: str, start: int, message: str) -> Fault:
    end = html.find(">", start)
    near = html[start : end + 1] if end >= 0 else html[start:]
    return Fault(html.count("\n", 0, start) + 1, message, near.split("\n")[0][:60])
