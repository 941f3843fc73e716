"""Finish rendered pages: fill in references, citations, links and hints, typeset formulas."""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mlsim_book.caches import Memo, TextCache
from mlsim_book.errors import Problem, Problems
from mlsim_book.model import Project
from mlsim_book.read.places import Reporter
from mlsim_book.render import katex
from mlsim_book.render.assets import Assets
from mlsim_book.render.citations import (
    Citations,
    entries,
    place_citations,
    place_references,
)
from mlsim_book.render.crossref import Index, Words, resolve
from mlsim_book.render.glossary import FilledPage, place_hints
from mlsim_book.render.margins import place_margins
from mlsim_book.render.opens import Opened
from mlsim_book.render.postprocess import Links, finish_html
from mlsim_book.render.to_html import RenderedPage, html_options
from mlsim_book.site import navigation
from mlsim_book.site.search import search_page
from mlsim_book.site.template import page_title
from mlsim_book.site.titles import bare


@dataclass(frozen=True)
class Finished:
    """A page's parts, complete but for the template."""

    page: RenderedPage
    body: str
    toc: list[navigation.Contents]
    search: str
    opens: tuple[Opened, ...] = ()
    name: str = ""  # its title as the navigation shows it; "" if it has none of its own


@dataclass(frozen=True)
class Book:
    """What finishing a page needs to know of all the others."""

    project: Project
    reporter: Reporter
    links: Links
    index: Index
    citations: Citations


def finish_pages(
    book: Book, rendered: Sequence[RenderedPage], memo: Memo | None = None
) -> list[Finished]:
    """Fill in references, citations and links of all pages."""
    memo = memo or Memo()
    return _hinted(book, [_remembered(book, page, memo) for page in rendered], memo)


def _remembered(book: Book, page: RenderedPage, memo: Memo) -> Finished:
    """Finish a page, or take what the same page gave before, with its problems and files."""
    href = page.page.chapter.href
    formatted = book.citations
    lists = (formatted.bibliography, formatted.parted, formatted.home)
    cited = (formatted.by_page.get(href), *lists)
    others = (book.project, book.index, book.links.pages, book.links.made, cited)

    def finish(page: RenderedPage) -> tuple[Finished, list[Problem], set[str]]:
        problems, files = Problems(), set[str]()
        alone = replace(
            book,
            reporter=replace(book.reporter, problems=problems),
            links=replace(book.links, files=files),
        )
        return finish_page(alone, page, Words(book.project)), problems.found, files

    finished, found, files = memo.get(("finished", href), finish, page, beside=others)
    book.links.files.update(files)
    for each in found:
        book.reporter.problems.add(each.message, file=each.file, line=each.line, hint=each.hint)
    return finished


def _hinted(book: Book, pages: list[Finished], memo: Memo) -> list[Finished]:
    """Put the glossary's hints into pages that are filled in."""
    filled = [FilledPage(each.page.page, page_title(each.page)[0], each.body) for each in pages]
    bodies = place_hints(book.project, filled, book.reporter, memo)
    return [
        replace(each, body=bodies.get(each.page.page.chapter.href, each.body)) for each in pages
    ]


def finish_page(book: Book, page: RenderedPage, words: Words) -> Finished:
    """Fill in one page, as far as it can be done without the others' texts."""
    for message, needle in page.notes:
        book.reporter.note(page.page, message, re.escape(needle))

    def fill(html: str) -> str:
        html = resolve(html, page, book.index, words, book.reporter)
        html = place_citations(html, page, book.citations)
        return finish_html(html, page.page, book.links, book.reporter)

    options = html_options(book.project, page.page)
    beside = options.get("citation-location") == "margin"
    body = place_margins(
        fill(place_references(page.body, page, book.citations, beside=beside)),
        notes=options.get("reference-location") == "margin",
        references=entries(book.citations) if beside else None,
    )
    opens = tuple(replace(each, html=fill(each.html)) for each in page.opens)
    name = fill(_own_title(page))
    title = page.title and replace(page.title, html=_one_line(name))
    titled = replace(page, title=title)
    depth = int(options.get("toc-depth", 3))
    headings = [
        replace(each, html=resolve(each.html, page, book.index, words, book.reporter))
        for each in page.headings
    ]
    variant = search_page(htmllib.escape(page_title(titled)[0]), body)
    return Finished(titled, body, navigation.contents(headings, depth), variant, opens, bare(name))


def _own_title(page: RenderedPage) -> str:
    """Return what a page calls itself: the title, or on a front page its first heading."""
    if page.title:
        return page.title.html
    return next((each.html for each in page.headings if each.level == 1), "")


def _one_line(html: str) -> str:
    """Return a title without links, which a heading of the page should not be."""
    return re.sub(r"</?a\b[^>]*>", "", html).strip()


def typeset_pages(
    book: Book, pages: Sequence[Finished], assets: Assets, keep: TextCache
) -> list[Finished]:
    """Typeset the formulas of all pages in one go."""
    found = [katex.formulas(_everything(each)) for each in pages]
    wanted = [each for page in found for each in page]
    done = katex.typeset(wanted, assets, keep, macros_of(book.project))

    def place(html: str) -> str:
        return katex.place_formulas(html, done)

    for each, formulas in zip(pages, found, strict=True):
        katex.note_broken(each.page.page, formulas, done, book.reporter, _behind(each))
    return [
        replace(
            each,
            body=place(each.body),
            toc=_typeset_contents(each.toc, place),
            name=place(each.name),
            opens=tuple(replace(one, html=place(one.html)) for one in each.opens),
            page=replace(
                each.page,
                title=each.page.title
                and replace(each.page.title, html=place(each.page.title.html)),
            ),
        )
        for each in pages
    ]


def _everything(page: Finished) -> str:
    title = page.page.title.html if page.page.title else ""
    opened = "".join(each.html for each in page.opens)
    headings = "".join(heading.html for heading in page.page.headings)
    return title + page.body + headings + opened + page.name


def macros_of(project: Project) -> Mapping[str, str]:
    """Return the macros that formulas of a book may use."""
    settings = project.metadata.get("mlsim-book")
    return settings.get("macros", {}) if isinstance(settings, Mapping) else {}


def _behind(page: Finished) -> dict[katex.Formula, str]:
    """Return the number that a formula stands behind, for formulas in what opens."""
    return {formula: each.text for each in page.opens for formula in katex.formulas(each.html)}


def _typeset_contents(
    items: list[navigation.Contents], place: Callable[[str], str]
) -> list[navigation.Contents]:
    return [
        replace(each, html=place(each.html), items=_typeset_contents(each.items, place))
        for each in items
    ]
