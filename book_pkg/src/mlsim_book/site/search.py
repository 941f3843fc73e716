"""The search of a book: what of its pages is indexed, and the files that the site gets.

Section ids stand on `<section>`; the variant of a page that is indexed has them on
headings, and neither navigation nor formulas. An element with `data-search-ignore` is left out.
`theme/search-index.js` answers from these files, over a server as from disk.
"""

from __future__ import annotations

import html as htmllib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from mlsim_book.render.html_tree import Element, Text, edited, parse
from mlsim_book.site.search_index import Section, index_files
from mlsim_book.site.shared_files import FOLDER, LIBS

SEARCH = f"{LIBS}/search"
IGNORE = "data-search-ignore"
_SECTION = re.compile(r'<section id="([^"]+)"([^>]*)>(\s*)<(h[1-6])\b')
_HEADING = re.compile(r'<h[1-6]\b[^>]*?\sid="([^"]+)"[^>]*>(.*?)</h[1-6]>', re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_WITHIN = re.compile(  # tags at which no word ends
    r"</?(?:a|abbr|b|bdi|cite|code|em|i|kbd|mark|q|s|small|span|strong|sub|sup|u|var|wbr)\b[^>]*>"
)
_NOISE = re.compile(
    r'<span class="math (?:inline|display)">.*?</span>|<button\b.*?</button>|<svg\b.*?</svg>'
    r'|<span class="(?:header-section-number|screen-reader-only)">.*?</span>',
    re.DOTALL,
)


def search_page(title: str, body: str) -> str:
    r"""Return the variant of a page that is indexed (formulas not yet typeset).

    >>> search_page("T", '<section id="a" class="x"><h2>A</h2></section>')
    '<title>T</title><section class="x"><h2 id="a">A</h2></section>'
    """
    if IGNORE in body:
        body = edited(body, [(*each, " ") for each in _ignored(parse(body))])
    body = _NOISE.sub(" ", body)
    return f"<title>{title}</title>" + _SECTION.sub(r'<section\2>\3<\4 id="\1"', body)


def write_search(pages: Mapping[str, str], out: Path) -> None:
    """Write the index of the variants (by page) into a site."""
    found = (each for href, html in pages.items() for each in sections(href, html))
    heads, parts = index_files(found)
    engine = (FOLDER / "search-index.js").read_text(encoding="utf-8")
    data = json.dumps(heads, ensure_ascii=False, separators=(",", ":"))
    folder = out / SEARCH
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"index.js": f"{engine}bookSearch.start({data});\n", **parts}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def sections(href: str, html: str) -> Iterator[Section]:
    """Yield the sections of a variant; what stands above the first has the page's title.

    >>> [each.url for each in sections("a b.html", '<title>A</title><h2 id="b">B</h2>Text')]
    ['a%20b.html', 'a%20b.html#b']
    """
    found = _TITLE.match(html)
    page = _text(found[1]) if found else href
    body = html[found.end() :] if found else html
    address = quote(href)
    url, title, start = address, page, 0
    for match in _HEADING.finditer(body):
        yield Section(url, page, title, _text(body[start : match.start()]))
        url = f"{address}#{htmllib.unescape(match[1])}"
        title, start = _text(match[2]), match.end()
    yield Section(url, page, title, _text(body[start:]))


def _text(html: str) -> str:
    """Return the text of some HTML, without line breaks.

    >>> _text("<p>A <b>b</b>, c</p><p>d")
    'A b, c d'
    """
    return " ".join(htmllib.unescape(_TAG.sub(" ", _WITHIN.sub("", html))).split())


def _ignored(element: Element) -> Iterator[tuple[int, int]]:
    """Yield where the contents are that search leaves out."""
    for child in element.children:
        if isinstance(child, Text):
            continue
        if child.attribute(IGNORE) is not None or IGNORE in child.source.split():
            yield child.inner, child.inner_end
        else:
            yield from _ignored(child)
