"""One document of all pages, for EPUB and PDF: from the finished pages of the site.

Cells have run, references, citations and numbers are filled in; only the formulas
still stand as TeX. So a book on paper says what the site says, and nothing is
executed or rendered twice. Pandoc reads the HTML back, and `paper.lua` makes
of it what such formats can show.
"""

from __future__ import annotations

import base64
import html as htmllib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from mlsim_book.caches import content_hash
from mlsim_book.model import Chapter, Project
from mlsim_book.read.language import appendices_title

FOLDER = Path(__file__).parent
RESOURCES = ("book.typ", "epub.css", "paper.lua")  # what makes a paper besides the pages
READER = "--from=html-auto_identifiers"
_SUFFIXES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
_GONE = re.compile(
    r"<button\b.*?</button>|<script\b.*?</script>|<style\b.*?</style>|<template\b.*?</template>"
    r'|<svg[^>]*aria-hidden="true".*?</svg>|<!--.*?-->'
    # what is for screens only: the dark copies of figures, and their data
    r'|<picture class="dark-content">.*?</picture>|<details class="figure-data".*?</details>',
    re.DOTALL | re.IGNORECASE,
)
_LIGHTBOX = re.compile(r'<a [^>]*class="lightbox"[^>]*>(.*?)</a>', re.DOTALL)
_SVG = re.compile(r"<svg\b([^>]*)>.*?</svg>", re.DOTALL)
_DATA = re.compile(r"data:image/(svg\+xml|png|jpeg|gif|webp);base64,([A-Za-z0-9+/=\s]+)")
_IMAGE = re.compile(r'(<img\b[^>]*?\ssrc=")([^"]*)("[^>]*>)')
_MATH = re.compile(r'<span class="math (inline|display)">(.*?)</span>', re.DOTALL)
_TITLE = re.compile(r'<section id="([^"]+)" class="level1\b')
_TERM = re.compile(r'<dt([^>]*)\sid="([^"]+)"([^>]*)>')
_ANNOTATION = re.compile(r'<span class="code-annotation-anchor" data-annotation="\d+">(\d+)</span>')
_SVG_WIDTH = re.compile(rb'<svg[^>]*?\swidth="([\d.]+)(pt|px)?"')


@dataclass(frozen=True)
class PaperPage:
    """A page of the book, filled in, with its title as HTML."""

    chapter: Chapter
    title: str  # "" if the body has its own
    body: str
    label: str = ""


@dataclass(frozen=True)
class Paper:
    """The whole book as one HTML document, and what pandoc has to know besides."""

    html: str
    config: Mapping[str, Any]  # for the filter
    files: Mapping[str, bytes]  # the images, by path
    metadata: Mapping[str, Any]

    @property
    def key(self) -> str:
        """A hash of everything that the formats are made of."""
        files = [part for name in sorted(self.files) for part in (name, self.files[name])]
        own = [(FOLDER / name).read_bytes() for name in RESOURCES]
        return content_hash(
            self.html, json.dumps(self.config, sort_keys=True),
            json.dumps(self.metadata, sort_keys=True), *files, *own,
        )  # fmt: skip

    def write_files(self, folder: Path) -> None:
        """Write the images into a folder."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def make_paper(project: Project, pages: Sequence[PaperPage], site: Path) -> Paper:
    """Join the pages of a book; images are taken from the folder of the site."""
    collected = _Images(site, project.root)
    anchors = {page.chapter.href: f"page-{index}" for index, page in enumerate(pages, 1)}
    pieces: list[str] = []
    part, appendices = None, appendices_title(project)
    for page in pages:
        chapter = page.chapter
        title = appendices if chapter.appendix and not chapter.part else chapter.part
        if title != part and title and chapter.part_href is None:
            pieces.append(f'<h1 class="part">{htmllib.escape(title)}</h1>')
        part = title
        pieces.append(_one_page(page, collected))
    settings = project.metadata.get("mlsim-book")
    macros = settings.get("macros", {}) if isinstance(settings, Mapping) else {}
    tops = {page.chapter.href: _top(page) for page in pages}
    config: dict[str, Any] = {
        "pages": anchors,
        "tops": tops,
        "images": collected.found,
        "macros": macros,
    }
    if project.site_url:
        config["site"] = project.site_url.rstrip("/")
    return Paper("\n".join(pieces), config, collected.files, _metadata(project))


def _one_page(page: PaperPage, collected: _Images) -> str:
    # an unbalanced tag of the author's must not end the page
    body = LexborHTMLParser(_GONE.sub("", page.body), is_fragment=True).html or ""
    body = _LIGHTBOX.sub(r"\1", body)
    body = collected.take(body, page.chapter.href)
    body = _TERM.sub(r'<dt\1\3><span id="\2"></span>', body)
    body = _ANNOTATION.sub(r"(\1) ", body)
    body = re.sub(r"<details\b[^>]*>", "<div>", body).replace("</details>", "</div>")
    # a fold's own word says nothing where nothing folds
    body = re.sub(r"<summary\b[^>]*>\s*(?:Code|Show the code)\s*</summary>", "", body)
    body = re.sub(r"<summary\b[^>]*>", '<p class="paper-summary"><strong>', body)
    body = body.replace("</summary>", "</strong></p>")
    body = _MATH.sub(r'<code class="paper-\1">\2</code>', body)
    href, top = htmllib.escape(page.chapter.href), _top(page)
    if page.title:
        body = f'<h1 class="chapter-title" id="{top}">{page.title}</h1>\n{body}'
    elif top == "top":
        body = f'<div id="top"></div>\n{body}'
    else:
        body = body.replace('<h1 class="', '<h1 class="chapter-title ', 1)
    return f'<div class="paper-page" data-page="{href}">{body}</div>'


def _top(page: PaperPage) -> str:
    """Return the id at which a page begins."""
    own = None if page.title else _TITLE.search(page.body)
    return own[1] if own else page.label or "top"


class _Images:
    """Collects the images of the pages, under names that don't depend on the page."""

    def __init__(self, site: Path, root: Path) -> None:
        self.site, self.root = site, root
        self.files: dict[str, bytes] = {}
        self.found: dict[str, dict[str, Any]] = {}

    def take(self, html: str, href: str) -> str:
        """Collect the images of a page; its sources become paths from the site's root."""
        html = _SVG.sub(self._inline, html)
        here = posixpath.dirname(href)

        def source(match: re.Match[str]) -> str:
            given = htmllib.unescape(match[2])
            name = self._data(given) if given.startswith("data:") else self._local(given, here)
            return f"{match[1]}{htmllib.escape(name)}{match[3]}"

        return _IMAGE.sub(source, html)

    def _inline(self, match: re.Match[str]) -> str:
        data = match[0]
        if "xmlns=" not in match[1]:
            data = data.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        label = re.search(r'aria-label="([^"]*)"', match[1])
        name = self._add(f"paper-images/{content_hash(data)[:16]}.svg", data.encode())
        return f'<img src="/{name}" alt="{label[1] if label else ""}">'

    def _data(self, url: str) -> str:
        match = _DATA.fullmatch(url)
        if match is None:
            return "image"
        data = base64.b64decode(match[2])
        suffix = match[1].removesuffix("+xml")
        return self._add(f"paper-images/{content_hash(data)[:16]}.{suffix}", data)

    def _local(self, url: str, here: str) -> str:
        path = unquote(urlsplit(url).path)
        if "://" in url:
            return url
        name = posixpath.normpath(posixpath.join(here, path) if path[:1] != "/" else path[1:])
        if name in self.found:
            return name
        file = self.site / name
        if not file.is_file():
            file = self.root / name  # what this format alone shows is not on the site
        if name.startswith("..") or file.suffix.lower() not in _SUFFIXES or not file.is_file():
            return name
        return self._add(name, file.read_bytes())

    def _add(self, name: str, data: bytes) -> str:
        self.files[name] = data
        self.found[name] = {"path": name}
        if width := _SVG_WIDTH.search(data[:2000]) if name.endswith(".svg") else None:
            self.found[name]["width"] = float(width[1]) * (1 if width[2] == b"px" else 96 / 72)
        return name


def _metadata(project: Project) -> dict[str, Any]:
    settings = project.metadata.get("book") or {}
    date = settings.get("date") or project.metadata.get("date")
    known = {
        "title": project.title,
        "subtitle": project.subtitle,
        "author": list(project.author),
        "description": project.description,
        "lang": project.lang,
        "date": str(date) if date else None,
    }
    return {key: value for key, value in known.items() if value}
