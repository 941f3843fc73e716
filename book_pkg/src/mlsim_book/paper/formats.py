"""The book as EPUB, as PDF and as a zip that opens from disk, beside the site.

EPUB is pandoc's; PDF is made by Typst, whose package for Python brings the program.
Both are byte-equal from build to build: no clock, no font of the machine. What was
made of the same pages before is kept and not made again.

One document of all pages, for EPUB and PDF: from the finished pages of the site. Cells have run,
references, citations and numbers are filled in; only the formulas still stand as TeX. So a book on
paper says what the site says, and nothing is executed or rendered twice. Pandoc reads the HTML
back, and `paper.lua` makes of it what such formats can show.
"""

from __future__ import annotations

import base64
import datetime
import functools
import html as htmllib
import importlib
import json
import os
import posixpath
import re
import tempfile
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from mlsim_book.caches import TextCache, cache_folder, content_hash
from mlsim_book.errors import BookError, ToolError
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.labels import appendices_title
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.render.pandoc import find_pandoc, pandoc_version, run_pandoc
from mlsim_book.render.to_html import RenderedPage, render_pages

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
    macros = book_settings(project.metadata).get("macros", {})
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


Progress = Callable[[str], None]

FORMATS = {
    "pdf": "PDF",
    "epub": "EPUB",
    "zip": "Zip, to read offline",
    "figures": "Figures",
}  # in the links' order
_EPOCH = 315532800  # 1980, where the times of zip archives begin
_HINT = "Install it with: python -m pip install typst"
_FORMULA = re.compile(r'<code class="paper-(?:inline|display)">.*?</code>', re.DOTALL)
_MATH_COMPLAINT = re.compile(r"Could not convert TeX math (.*?)(?:, rendering as TeX|$)", re.DOTALL)
# what is for notebooks alone is hidden in every other format
_CONDITION = re.compile(r"\b(?:when|unless)-format\s*=\s*(?![\"']?ipynb\b)")


@dataclass(frozen=True)
class Download:
    """A file of the whole book, as the site links to it."""

    name: str  # from the root of the site
    text: str


def download_name(project: Project, form: str) -> str:
    """Return the name of a file of the whole book, as Quarto names it.

    >>> download_name(Project(Path(), "Clay & *pots*", ()), "pdf")
    'Clay-pots.pdf'
    """
    words = re.findall(r"\w+(?:['.]\w+)*", re.sub(r"<[^>]*>", "", project.title))
    suffix = "-figures.zip" if form == "figures" else f".{form}"
    return f"{'-'.join(words) or 'book'}{suffix}"


def parse_formats(text: str) -> tuple[str, ...]:
    """Return the formats that a text like `pdf,epub` names.

    >>> parse_formats("epub, pdf")
    ('pdf', 'epub')
    """
    named = {each.strip().lower() for each in text.split(",") if each.strip()}
    if unknown := sorted(named - {"html", *FORMATS}):
        raise BookError(
            f"'{unknown[0]}' is no format of a book",
            hint=f"Formats: html, {', '.join(FORMATS)}; several with commas between.",
        )
    return tuple(form for form in FORMATS if form in named)


def wanted_formats(project: Project, target: Path, asked: Collection[str]) -> tuple[str, ...]:
    """Return the formats to make: those asked for, and what the site there has already."""
    if not asked:
        return ()
    return tuple(
        form
        for form in FORMATS
        if form in asked or (target / download_name(project, form)).is_file()
    )


def require_tools(formats: Collection[str]) -> None:
    """Tell what is missing before minutes of cells are run."""
    if "pdf" in formats:
        _typst()


def downloads(project: Project, formats: Collection[str]) -> tuple[Download, ...]:
    """Return the links to the files of these formats.

    >>> downloads(Project(Path(), "Clay", ()), ("pdf",))
    (Download(name='Clay.pdf', text='PDF'),)
    """
    return tuple(
        Download(download_name(project, form), text)
        for form, text in FORMATS.items()
        if form in formats
    )


def write_paper(
    project: Project, paper: Paper, formats: Collection[str], out: Path, progress: Progress
) -> None:
    """Write EPUB and PDF, as far as they are wanted, into the folder of the site."""
    makers = {"epub": make_epub, "pdf": make_pdf}
    keep = TextCache(cache_folder() / "formats")
    for form in ("epub", "pdf"):
        if form not in formats:
            continue
        versions = ".".join(map(str, pandoc_version(find_pandoc())))
        versions += f" {_typst().__version__}" if form == "pdf" else ""
        key = content_hash(form, paper.key, versions, str(_epoch()), project.site_url or "")
        kept = keep.load(key)
        if kept is None:
            data = makers[form](project, paper, progress)
            keep.store(key, base64.b64encode(data).decode())
        else:
            data = base64.b64decode(kept)
        (out / download_name(project, form)).write_bytes(data)
    keep.prune()


def make_epub(project: Project, paper: Paper, progress: Progress) -> bytes:
    """Return the book as EPUB 3: one file a chapter, formulas as MathML."""
    with tempfile.TemporaryDirectory(prefix="mlsim-book-epub-") as scratch:
        folder = Path(scratch)
        paper.write_files(folder)
        # the same in every build
        words = "\n".join([project.site_url or "", project.title, *project.author])
        own = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, words)}"
        facts = {**paper.metadata, "identifier": own}
        (folder / "paper-metadata.json").write_text(json.dumps(facts), encoding="utf-8")
        # without highlighting: pandoc's gives two lines of a page one id
        arguments = [
            READER, "--to=epub3", "--mathml", "--syntax-highlighting=none",
            "--split-level=1", "--toc-depth=2", "--metadata-file=paper-metadata.json",
            f"--css={FOLDER / 'epub.css'}", f"--lua-filter={FOLDER / 'paper.lua'}",
            "--output=paper-book.epub",
        ]  # fmt: skip
        _, said = run_pandoc(
            arguments, paper.html, cwd=folder,
            environment={**_told(paper, folder), "SOURCE_DATE_EPOCH": str(_epoch())},
        )  # fmt: skip
        _warn("EPUB", said, progress)
        return (folder / "paper-book.epub").read_bytes()


def make_pdf(project: Project, paper: Paper, progress: Progress) -> bytes:
    """Return the book as PDF."""
    typst = _typst()
    source = typst_source(paper, progress)
    with tempfile.TemporaryDirectory(prefix="mlsim-book-pdf-") as scratch:
        folder = Path(scratch)
        paper.write_files(folder)
        (folder / "paper-book.typ").write_text(source, encoding="utf-8")
        try:
            return bytes(
                typst.compile(
                    str(folder / "paper-book.typ"), root=str(folder), format="pdf",
                    ignore_system_fonts=True, timestamp=_epoch(),
                )
            )  # fmt: skip
        except typst.TypstError as error:
            message = str(error)
    refused = [] if "refused" in paper.config else refused_formulas(paper)
    if not refused:
        raise ToolError(
            f"Typst could not set the book '{project.title}':\n{message}",
            hint="The site needs no PDF: build it without --to pdf, and please report this.",
        )
    for math in refused:
        progress(f"WARN: PDF: a formula is shown as TeX: {math[:200]}")
    return make_pdf(project, replace(paper, config={**paper.config, "refused": refused}), progress)


def refused_formulas(paper: Paper, some: list[str] | None = None) -> list[str]:
    """Return the formulas that Typst can't set: half of them at a time, then half of that."""
    typst, formulas = _typst(), some or [*dict.fromkeys(_FORMULA.findall(paper.html))]
    alone = replace(paper, html="".join(f"<p>{each}</p>" for each in formulas))
    try:
        source = typst_source(alone, lambda _: None)
        typst.compile(source.encode(), format="pdf", ignore_system_fonts=True)
    except typst.TypstError:
        if len(formulas) == 1:
            return [htmllib.unescape(re.sub(r"<[^>]*>", "", formulas[0]))]
        half = len(formulas) // 2
        parts = (formulas[:half], formulas[half:])
        return [each for part in parts for each in refused_formulas(paper, part)]
    return []


def typst_source(paper: Paper, progress: Progress) -> str:
    """Return the book in Typst's language."""
    authors = "".join(
        json.dumps(str(each), ensure_ascii=False) + ", "
        for each in paper.metadata.get("author", ())
    )
    with tempfile.TemporaryDirectory(prefix="mlsim-book-typst-") as scratch:
        facts = Path(scratch) / "metadata.json"
        facts.write_text(json.dumps(paper.metadata), encoding="utf-8")
        arguments = [
            READER, "--to=typst-smart", "--standalone", f"--metadata-file={facts}",
            "--syntax-highlighting=idiomatic", "--wrap=none",
            f"--template={FOLDER / 'book.typ'}", f"--variable=author-strings:{authors}",
            f"--lua-filter={FOLDER / 'paper.lua'}",
        ]  # fmt: skip
        source, said = run_pandoc(arguments, paper.html, environment=_told(paper, Path(scratch)))
    _warn("PDF", said, progress)
    return source


def _told(paper: Paper, folder: Path) -> dict[str, str]:
    """Tell the filter what it has to know: in a file, as a variable may not be so long."""
    path = folder / "paper-config.json"
    path.write_text(json.dumps(paper.config), encoding="utf-8")
    return {"MLSIM_BOOK_PAPER": str(path)}


def _warn(form: str, said: str, progress: Progress) -> None:
    """Say which formulas stand as TeX: the rest of pandoc's warnings are for its makers."""
    for math in dict.fromkeys(" ".join(each.split()) for each in _MATH_COMPLAINT.findall(said)):
        progress(f"WARN: {form}: a formula is shown as TeX: {math[:200]}")


def _epoch() -> int:
    """Return the timestamp of files: SOURCE_DATE_EPOCH, or the same for all."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(given) if given.isdigit() else _EPOCH


@functools.cache
def _typst() -> Any:
    try:
        return importlib.import_module("typst")
    except ImportError:
        raise ToolError("a PDF needs the package typst, which is missing", hint=_HINT) from None


def zip_time() -> tuple[int, int, int, int, int, int]:
    """Return the timestamp of the files in a zip."""
    moment = datetime.datetime.fromtimestamp(max(_epoch(), _EPOCH), tz=datetime.UTC)
    return (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)


def depends_on_format(pages: Sequence[ExecutedPage]) -> bool:
    """Say whether any page shows something in some formats only: `when-format="pdf"`.

    Only a book that uses such conditions is rendered again for a format, and nothing of it
    is executed again. What is numbered is counted afresh: a figure may stand in each
    format's text.
    """
    return any(_CONDITION.search(page.markdown) for page in pages)


def paper_groups(formats: Sequence[str], pages: Sequence[ExecutedPage]) -> list[Sequence[str]]:
    """Return the formats to make from pages, those together that show the same.

    >>> paper_groups(("pdf", "epub", "zip"), [])
    [['pdf', 'epub']]
    """
    forms = [form for form in formats if form not in {"zip", "figures"}]
    if depends_on_format(pages):
        return [[form] for form in forms]
    return [forms] if forms else []


def rendered_for(
    form: str, project: Project, pages: Sequence[ExecutedPage], keep: TextCache
) -> list[RenderedPage] | None:
    """Return a book's pages as a format ("pdf", "epub") has them; None if all have the same."""
    if not depends_on_format(pages):
        return None
    return render_pages(project, pages, keep=keep, form=form)
