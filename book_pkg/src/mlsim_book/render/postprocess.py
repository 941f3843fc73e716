"""The last changes to a page's HTML: links, images, tables, tidy markup.

Pandoc's output is regular enough for patterns on single tags; nothing here looks
across elements, so raw HTML of the author's passes through the same way.
"""

from __future__ import annotations

import csv
import html as htmllib
import io
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mlsim_book.caches import TextCache
from mlsim_book.model import ExecutedPage
from mlsim_book.read.lines import Reporter
from mlsim_book.render import live_figures
from mlsim_book.run.figures import DARK, SUFFIX, dressed
from mlsim_book.run.outputs import LIVE

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*>"
    r"|<(?P<end>/?)(?P<tag>[a-zA-Z][\w:-]*)(?P<attributes>(?:[^<>\"']++|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
VOID = frozenset(
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
    _attributes: dict[str, str] | None = field(default=None, repr=False)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that have a value, the first of each name.

        >>> parse('<a href="x?a&amp;b">').children[0].attributes
        {'href': 'x?a&b'}
        """
        if self._attributes is None:
            found = reversed(_ATTRIBUTE.findall(self.source))
            self._attributes = {
                key.lower(): htmllib.unescape("".join(values)) for key, *values in found
            }
        return self._attributes

    def attribute(self, name: str) -> str | None:
        """Return the value of an attribute, None without it."""
        return self.attributes.get(name)

    @property
    def classes(self) -> frozenset[str]:
        """The classes of the element."""
        if "class" not in self.source:
            return frozenset()
        return frozenset((self.attribute("class") or "").split())

    def below(self) -> Iterator[Element]:
        """Yield the elements below this one, in reading order."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.below()

    def all(self, name: str) -> Iterator[Element]:
        """Yield the elements of a class below this one."""
        return (each for each in self.below() if name in each.classes)

    def tagged(self, tag: str) -> Iterator[Element]:
        """Yield the elements of a tag below this one."""
        return (each for each in self.below() if each.tag == tag)


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
        if token["end"]:  # it closes the innermost element of its tag, and what is open in that
            while path[-1].tag == tag or any(each.tag == tag for each in path[1:]):
                path[-1].inner_end = token.start()
                if path.pop().tag == tag:
                    break
            continue
        element = Element(tag, token["attributes"], token.start(), token.end())
        path[-1].children.append(element)
        if tag in VOID or token["attributes"].endswith("/"):
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


_CITED = re.compile(r'(<x-cite data-index=")(\d+)')


@dataclass(frozen=True)
class Opened:
    """What one number, or several, of a page opens to."""

    id: str
    text: str  # the number, as it was first met
    html: str


def keep_opened(facts: Mapping[str, Any], keep: TextCache, name: str) -> None:
    """Keep what a page's numbers open to, for its next rendering, under a name.

    There may be hundreds, each a document to pandoc, and an edit of prose changes
    none. Each is kept with what it cites, counted from itself, and refers to.
    """
    if facts.get("notes"):
        return
    known = {}
    for each in facts.get("opens") or ():
        first, last, start, end = each["span"]
        parts = _CITED.split(each["html"])  # text, the tag's beginning, its number, text, ...
        parts[2::3] = [str(int(number) - first) for number in parts[2::3]]
        cites = facts["cites"][first:last] if last > first else []
        refs = facts["refs"][start:end] if end > start else []
        known[each["id"]] = {"html": "".join(parts), "cites": cites, "refs": refs}
    if known:
        keep.store(name, json.dumps(known))


MOST, SPREAD = 200, 50  # rows shown at most; of more, so many evenly spread

_IMAGE = re.compile(r'<img\b[^<>]*?\ssrc="([^"]+)"[^<>]*>')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAME = re.compile(r"<figcaption[^>]*>\s*(?:<[^>]*>\s*)*([^<:]{1,40}):")


def place_tables(html: str, href: str, made: Mapping[str, bytes]) -> str:
    """Put the data of each figure of a page below it.

    Parameters
    ----------
    href
        The page, from the book's root.
    made
        The files drawn, by path from the root.
    """
    pieces, at = [], 0
    for image in _IMAGE.finditer(html):
        source = htmllib.unescape(image[1])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(href), source))
        data = made.get(posixpath.splitext(name)[0] + SUFFIX)
        if data is None or image.start() < at:
            continue
        end = image.end()  # or where its paragraph ends, or the figure around it
        for tag in ("p", "figure"):
            before, close = html[: image.start()], html.find(f"</{tag}>", image.end())
            if close >= 0 and len(re.findall(rf"<{tag}[\s>]", before)) > before.count(f"</{tag}>"):
                end = close + len(f"</{tag}>")
        pieces += [html[at:end], _data_table(data.decode(), source, html[image.end() : end])]
        at = end
    return "".join(pieces) + html[at:]


def _data_table(data: str, source: str, rest: str) -> str:
    """Return the fold; `rest` is what of the figure follows its image: the caption."""
    head, *rows = csv.reader(io.StringIO(data))
    numeric = [
        all(_NUMBER.fullmatch(row[n]) or not row[n] for row in rows) for n in range(len(head))
    ]
    shown = _spread(rows)
    named = _NAME.search(rest)
    name = f"Data of {named[1].strip()}" if named else "Data of this figure"
    said = f"{len(shown)} of {len(rows)} rows" if len(shown) < len(rows) else f"{len(rows)} rows"
    cells = [
        [
            _cell(text, number, "row" if at == 0 and text else "")
            for at, (text, number) in enumerate(zip(row, numeric, strict=False))
        ]
        for row in shown
    ]
    heads = [_cell(text, number, "col") for text, number in zip(head, numeric, strict=True)]
    top, *body = (f"<tr>{''.join(row)}</tr>" for row in (heads, *cells))
    link = posixpath.splitext(source)[0] + SUFFIX
    return (
        f'\n<details class="figure-data" data-search-ignore><summary>{name}</summary>\n'
        f'<table class="table table-sm"><caption>{name}, {said}</caption>'
        f"<thead>{top}</thead>\n<tbody>{chr(10).join(body)}</tbody></table>\n"
        f'<a class="figure-download" href="{htmllib.escape(link)}" download>Download as CSV</a>'
        "</details>\n"
    )


def _spread(rows: list[list[str]]) -> list[list[str]]:
    """Return so many rows as fit a page, the first and the last among them.

    >>> [len(_spread([["1"]] * count)) for count in (3, 200, 201, 400)]
    [3, 200, 50, 50]
    """
    if len(rows) <= MOST:
        return rows
    return [rows[round(n * (len(rows) - 1) / (SPREAD - 1))] for n in range(SPREAD)]


def _cell(text: str, numeric: bool, heads: str) -> str:
    """Return a cell; `heads` is what it heads, "col" or "row"."""
    tag, scope = ("th", f' scope="{heads}"') if heads else ("td", "")
    shown = htmllib.escape(_short(text) if numeric and heads != "col" else text)
    right = ' class="number"' if numeric else ""
    return f"<{tag}{scope}{right}>{shown}</{tag}>"


def _short(number: str) -> str:
    """Return a number with four significant digits; the file has all.

    >>> _short("97.8291"), _short("1234.56"), _short("12345"), _short("0.000123456")
    ('97.83', '1235', '12345', '0.0001235')
    """
    return format(Decimal(f"{float(number):.4g}"), "f") if "." in number else number


_TAG = re.compile(r"<(a|img|source|video|audio|iframe|object)(\s[^<>]*?)?(/?)>", re.IGNORECASE)
_URL = re.compile(r'(\s(?:href|src|data|poster)=)(["\'])(.*?)\2', re.DOTALL)
_SVG_SIZE = re.compile(rb'<svg[^>]*?\swidth="([\d.]+)pt"\s+height="([\d.]+)pt"')
_FRAME_STYLE = re.compile(r"<style[^>]*>[^<]*dataframe[^<]*</style>\s*", re.IGNORECASE)
_FRAME = re.compile(r'<table border="1" class="dataframe([^"]*)">')
_FRAME_HEAD = re.compile(r'<tr style="text-align: \w+;">')
_CODE_LINK = re.compile(
    r'<span id="(cb\d+-\d+|[\w-]+-\d+)"><a href="#\1" aria-hidden="true"[^>]*></a>'
)
_ANNOTATED = re.compile(
    r'<div class="sourceCode([^"]*)" id="([^"]+)" data-annotations="([^"]*)">(.*?)</div>', re.DOTALL
)
_CAPTION_SPACE = re.compile(r"\s*\n\s*(?=</figcaption>)|(?<=: )\n|(?<=<figcaption>)\n")
_CELL_CODE = re.compile(
    r'<div class="sourceCode"([^>]*)><pre class="([^"]*?) ?\bcell-code\b([^"]*)"'
)
_PRINTED = re.compile(
    r'(<div class="cell-output cell-output-(?:stdout|display)">\s*<pre)(><code>.*?</code>)',
    re.DOTALL,
)
_COLUMNS = re.compile(r"[^\s:] {2,}\S")  # "Key:   value" is none
# A desk shows a figure so many times as large as it was drawn, but no wider than the column.
_LARGER, _COLUMN = 1.35, 672  # as site/theme/layout.css has it
_LONG = 24  # rows, with the head: more than a window shows
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_EMPTY_HEADING = re.compile(r"<th\b(\s[^<>]*)?>(?:\s|&nbsp;)*</th>")


@dataclass
class Links:
    """What a book's pages link to: pages by source, and files met on the way."""

    root: Path
    pages: Mapping[str, str]  # source -> href
    made: Mapping[str, bytes]  # files drawn by cells, by path from the root
    files: set[str] = field(default_factory=set)  # to be copied, by path from the root


def finish_html(html: str, page: ExecutedPage, links: Links, reporter: Reporter) -> str:
    """Rewrite links, make images load late, and trim what pandoc leaves over."""
    html = _printed(_tables(place_tables(html, page.chapter.href, links.made)))
    html = _CELL_CODE.sub(r'<div class="sourceCode cell-code"\1><pre class="\2\3"', html)
    html = _CAPTION_SPACE.sub("", html)
    html = _ANNOTATED.sub(_annotate, _CODE_LINK.sub(r'<span id="\1">', html))

    def tag(match: re.Match[str]) -> str:
        name, attributes, _ = match.group(1).lower(), match.group(2) or "", match.group(3)

        def url(found: re.Match[str]) -> str:
            new = rewrite(htmllib.unescape(found.group(3)), page, links, reporter, name)
            return f'{found.group(1)}"{htmllib.escape(new)}"'

        attributes = _URL.sub(url, attributes)
        if name == "img":
            return _image(attributes.rstrip(" /"), page, links)
        return f"<{name}{attributes.rstrip().removesuffix('/').rstrip()}>"

    html = _TAG.sub(tag, html)
    for name in live_figures.unmoved(html):
        message = f"no figure on this page moves '{name}', the handle of a number"
        hint = "Give a live figure of this page such a handle, or take the mark .scrub away."
        reporter.note(page, message, rf'handle="?{re.escape(name)}', hint=hint)
    return html


def _annotate(match: re.Match[str]) -> str:
    """Put the numbers of a block's annotations before their lines."""
    classes, name, marks, code = match.groups()
    for mark in marks.split():
        number, line = mark.split(":")
        code = code.replace(
            f'<span id="{name}-{line}">',
            f'<span class="code-annotation-anchor" data-annotation="{number}">{number}</span>'
            f'<span id="{name}-{line}" class="code-annotation-target">',
            1,
        )
    gutter = (
        '<div class="code-annotation-gutter-bg"></div><div class="code-annotation-gutter"></div>'
    )
    return f'<div class="sourceCode{classes}" id="{name}">{code}{gutter}</div>'


def _image(attributes: str, page: ExecutedPage, links: Links) -> str:
    """Return an image, in both looks if it was drawn for both.

    It is loaded late, but keeps its place: a page that grows while it is read jumps.
    """
    source, here = _URL.search(attributes), posixpath.dirname(page.chapter.href)
    name = posixpath.normpath(posixpath.join(here, unquote(source.group(3)) if source else ""))
    if not re.search(r"\s(width|height|style)=", attributes):
        drawn = _SVG_SIZE.search(links.made.get(name, b"")[:2000])
        if drawn:
            # Points of 1/72 inch; a pixel of CSS is 1/96.
            width, height = (float(each) * 96 / 72 for each in drawn.groups())
            if name.removesuffix(".svg") + DARK in links.made:  # drawn small, for phones
                larger = max(1.0, min(_LARGER, _COLUMN / width))
                width, height = width * larger, height * larger
            attributes += f' width="{round(width)}" height="{round(height)}"'
    if " loading=" not in attributes:
        attributes += ' loading="lazy"'
    attributes += "" if " alt=" in attributes else ' alt=""'

    def address(other: str) -> str:
        return htmllib.escape(posixpath.relpath(other, here or "."))

    shown = dressed(name, attributes, links.made, address) or f"<img{attributes}>"
    moved = links.made.get(posixpath.splitext(name)[0] + LIVE)
    return shown if moved is None else live_figures.place(shown, moved)


def _tables(html: str) -> str:
    """Dress pandas' tables as Quarto does, and let wide tables scroll in a box."""

    def boxed(match: re.Match[str]) -> str:
        # a heading without words heads nothing: it is a plain cell
        table = _EMPTY_HEADING.sub(r"<td\1></td>", match[0])
        long = " long" * (table.count("<tr") > _LONG)
        return f'<div class="table-scroll{long}">{table}</div>'

    frame = r'<table class="dataframe\1 caption-top table table-sm table-striped small">'
    html = _FRAME.sub(frame, _FRAME_STYLE.sub("", html))
    return _TABLE.sub(boxed, _FRAME_HEAD.sub('<tr class="header">', html))


def _printed(html: str) -> str:
    """Let the lines of what was printed wrap, unless some of it stands in columns."""

    def wrapped(match: re.Match[str]) -> str:
        start, text = match.groups()
        return match[0] if _COLUMNS.search(text) else f'{start} class="code-overflow-wrap"{text}'

    return _PRINTED.sub(wrapped, html)


def rewrite(url: str, page: ExecutedPage, links: Links, reporter: Reporter, tag: str = "a") -> str:
    """Return where a link leads on the site; note a local target that doesn't exist."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc or not parts.path:
        return url
    here = posixpath.dirname(page.chapter.href)
    path = unquote(parts.path)
    target = path.lstrip("/") if path.startswith("/") else posixpath.join(here, path)
    target = posixpath.normpath(target)
    tail = (f"?{parts.query}" if parts.query else "") + (
        f"#{parts.fragment}" if parts.fragment else ""
    )
    if target in links.pages:
        return posixpath.relpath(links.pages[target], here or ".") + tail
    if target in set(links.pages.values()) or target in links.made:
        return posixpath.relpath(target, here or ".") + tail if path.startswith("/") else url
    local = links.root / target
    if not target.startswith("..") and local.is_file():
        links.files.add(target)
    elif not (local.is_dir() and tag == "a"):
        what = "image" if tag == "img" else "link target"
        name = posixpath.basename(path)
        near = [each for each in links.pages if posixpath.basename(each) == name]
        reporter.note(
            page, f"Unable to resolve {what}: {url}", re.escape(url), re.escape(path),
            hint=f"Did you mean '{near[0]}'?" if near
            else "Paths start at the chapter's own folder.",
        )  # fmt: skip
    return posixpath.relpath(target, here or ".") + tail if path.startswith("/") else url


def relative(href: str, page: str) -> str:
    """Return a link from one page to another.

    >>> relative("index.html", "part/deep.html")
    '../index.html'
    """
    return posixpath.relpath(href, posixpath.dirname(page) or ".")
