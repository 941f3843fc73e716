"""The last changes to a page's HTML: links, images, tables, tidy markup.

Pandoc's output is regular enough for patterns on single tags; nothing here looks
across elements, so raw HTML of the author's passes through the same way.
"""

from __future__ import annotations

import html as htmllib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mlsim_book.model import ExecutedPage
from mlsim_book.read.lines import Reporter
from mlsim_book.render.figure_tables import place_tables
from mlsim_book.run.figure_theme import dressed

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
    html = _tables(place_tables(html, page.chapter.href, links.made))
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
            attributes = _image(attributes, page, links)
            return _drawing(attributes, page, links)
        return f"<{name}{attributes.rstrip().removesuffix('/').rstrip()}>"

    return _TAG.sub(tag, html)


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
    """Load an image late, but keep its place: a page that grows while it is read jumps."""
    attributes = attributes.rstrip(" /")
    source = _URL.search(attributes)
    if source and not re.search(r"\s(width|height|style)=", attributes):
        name = posixpath.join(posixpath.dirname(page.chapter.href), source.group(3))
        drawn = _SVG_SIZE.search(links.made.get(posixpath.normpath(name), b"")[:2000])
        if drawn:
            # Points of 1/72 inch; a pixel of CSS is 1/96.
            width, height = (round(float(each) * 96 / 72) for each in drawn.groups())
            attributes += f' width="{width}" height="{height}"'
    if " loading=" not in attributes:
        attributes += ' loading="lazy"'
    return attributes if " alt=" in attributes else attributes + ' alt=""'


def _drawing(attributes: str, page: ExecutedPage, links: Links) -> str:
    """Return an image, in both looks if it was drawn for both."""
    source = _URL.search(attributes)
    here = posixpath.dirname(page.chapter.href)
    name = posixpath.normpath(posixpath.join(here, unquote(source.group(3)) if source else ""))

    def address(other: str) -> str:
        return htmllib.escape(posixpath.relpath(other, here or "."))

    both = dressed(name, attributes, links.made, address)
    return both or f"<img{attributes.rstrip().removesuffix('/').rstrip()}>"


def _tables(html: str) -> str:
    """Dress pandas' tables as Quarto does, and let wide tables scroll in a box."""
    html = _FRAME_STYLE.sub("", html)
    html = _FRAME.sub(
        r'<table class="dataframe\1 caption-top table table-sm table-striped small">', html
    )
    html = _FRAME_HEAD.sub('<tr class="header">', html)
    return _TABLE.sub(_table, html)


def _table(match: re.Match[str]) -> str:
    """Put a table into a box; a heading without words heads nothing: it is a plain cell."""
    table = _EMPTY_HEADING.sub(r"<td\1></td>", match.group(0))
    return f'<div class="table-scroll">{table}</div>'


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
        _note_missing(url, page, links, reporter, tag)
    return posixpath.relpath(target, here or ".") + tail if path.startswith("/") else url


def _note_missing(url: str, page: ExecutedPage, links: Links, reporter: Reporter, tag: str) -> None:
    path = unquote(urlsplit(url).path)
    what = "image" if tag == "img" else "link target"
    near = [name for name in links.pages if posixpath.basename(name) == posixpath.basename(path)]
    reporter.note(
        page,
        f"Unable to resolve {what}: {url}",
        re.escape(url),
        re.escape(path),
        hint=f"Did you mean '{near[0]}'?" if near else "Paths start at the chapter's own folder.",
    )


def relative(href: str, page: str) -> str:
    """Return a link from one page to another.

    >>> relative("index.html", "part/deep.html")
    '../index.html'
    """
    return posixpath.relpath(href, posixpath.dirname(page) or ".")
