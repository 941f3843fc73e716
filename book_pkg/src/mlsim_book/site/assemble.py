"""Assemble a site from executed pages: render, finish, write, index.

Finish rendered pages: fill in references, citations, links and hints, typeset formulas.
"""

from __future__ import annotations

import html as htmllib
import posixpath
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlsim_book.caches import Memo, TextCache, cache_folder
from mlsim_book.errors import Problem, Problems
from mlsim_book.exercises.files import guesses_page
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.paper.formats import (
    PaperPage,
    download_name,
    downloads,
    make_paper,
    paper_groups,
    rendered_for,
    write_paper,
    zip_time,
)
from mlsim_book.paper.zips import with_numbers, write_figures, write_zip
from mlsim_book.read.lines import Reporter
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.render import live_figures, to_html
from mlsim_book.render.assets import Assets, load_assets
from mlsim_book.render.citations import (
    Citations,
    entries,
    format_citations,
    place_citations,
    place_references,
)
from mlsim_book.render.crossref import Index, Words, build_index, resolve
from mlsim_book.render.glossary import FilledPage, place_hints
from mlsim_book.render.guesses import settle_guesses
from mlsim_book.render.margins import place_margins
from mlsim_book.render.postprocess import Links, Opened, finish_html
from mlsim_book.render.shortcodes import expand_shortcodes
from mlsim_book.render.to_html import RenderedPage, html_options, render_pages
from mlsim_book.run.outputs import LIVE
from mlsim_book.site.moved import Place, moved
from mlsim_book.site.search import Wording, search_page, search_wording, write_search
from mlsim_book.site.shared_files import FOLDER, LIBS, cards_place, cards_script, write_shared
from mlsim_book.site.template import (
    Offer,
    Site,
    as_list,
    committed_notebooks,
    page_title,
    write_offer,
)
from mlsim_book.site.titles import Contents, bare, book_titles, contents


@dataclass(frozen=True)
class Finished:
    """A page's parts, complete but for the template."""

    page: RenderedPage
    body: str
    toc: list[Contents]
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
    pages = [_remembered(book, page, memo) for page in rendered]
    filled = [FilledPage(each.page.page, page_title(each.page)[0], each.body) for each in pages]
    bodies = place_hints(book.project, filled, book.reporter, memo)
    return [
        replace(each, body=bodies.get(each.page.page.chapter.href, each.body)) for each in pages
    ]


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
    body = settle_guesses(body, page.page, book.reporter)
    opens = tuple(replace(each, html=fill(each.html)) for each in page.opens)
    # the title, or on a front page its first heading
    firsts = (each.html for each in page.headings if each.level == 1)
    name = fill(page.title.html if page.title else next(firsts, ""))
    # without links, which a heading of the page should not be
    shown = re.sub(r"</?a\b[^>]*>", "", name).strip()
    title = page.title and replace(page.title, html=shown)
    titled = replace(page, title=title)
    depth = int(options.get("toc-depth", 3))
    headings = [
        replace(each, html=resolve(each.html, page, book.index, words, book.reporter))
        for each in page.headings
    ]
    variant = search_page(htmllib.escape(page_title(titled)[0]), body)
    return Finished(titled, body, contents(headings, depth), variant, opens, bare(name))


def typeset_pages(
    book: Book, pages: Sequence[Finished], assets: Assets, keep: TextCache
) -> list[Finished]:
    """Typeset the formulas of all pages in one go."""
    found = []
    for each in pages:
        parts = [each.page.title.html if each.page.title else "", each.body, each.name]
        parts += [one.html for one in each.page.headings] + [one.html for one in each.opens]
        found.append(to_html.formulas("".join(parts)))
    wanted = [each for page in found for each in page]
    done = to_html.typeset(wanted, assets, keep, macros_of(book.project))

    def place(html: str) -> str:
        return to_html.place_formulas(html, done)

    def placed(items: list[Contents]) -> list[Contents]:
        return [replace(e, html=place(e.html), items=placed(e.items)) for e in items]

    for each, formulas in zip(pages, found, strict=True):
        # the number that a formula stands behind
        behind = {one: card.text for card in each.opens for one in to_html.formulas(card.html)}
        to_html.note_broken(each.page.page, formulas, done, book.reporter, behind)
    return [
        replace(
            each,
            body=place(each.body),
            toc=placed(each.toc),
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


def macros_of(project: Project) -> Mapping[str, str]:
    """Return the macros that formulas of a book may use."""
    macros: Mapping[str, str] = book_settings(project.metadata).get("macros", {})
    return macros


Progress = Callable[[str], None]
WriteSearch = Callable[[Mapping[str, str], Path, Wording], None]


def step_line(what: str, count: int, started: float) -> str:
    """Return a line of progress."""
    return f"{what} {count} page{'s' * (count != 1)} ({time.perf_counter() - started:.1f} s)"


def write_site(
    project: Project,
    pages: Sequence[ExecutedPage],
    out: Path,
    problems: Problems,
    *,
    jobs: int = 2,
    progress: Progress = print,
    memo: Memo | None = None,
    index: WriteSearch | None = None,
    formats: Sequence[str] = (),
    offer: Offer | None = None,
) -> None:
    """Write a site from executed pages, noting problems on the way.

    A preview gives the `memo` of the build before, and an `index` that waits.
    `formats` of the whole book ("pdf", "epub", "zip") are written beside the pages. Without
    an `offer`, students are offered the notebooks that the repository has, and no wheel.
    """
    started = time.perf_counter()
    memo = memo or Memo()
    # the pages know the values of expressions in titles, `_quarto.yml` doesn't
    project = replace(project, chapters=tuple(page.chapter for page in pages))
    reporter = Reporter(problems, project.root)
    assets, keep = load_assets(), TextCache(cache_folder() / "render")
    expanded = [
        replace(page, markdown=expand_shortcodes(page, project, reporter)) for page in pages
    ]
    rendered = render_pages(project, expanded, keep=keep, jobs=jobs)
    book = Book(
        project,
        reporter,
        Links(
            project.root,
            {chapter.source: chapter.href for chapter in project.chapters},
            {name: data for page in pages for name, data in page.files.items()},
        ),
        build_index(rendered, reporter),
        format_citations(project, rendered, reporter, keep),
    )
    progress(step_line("rendered", len(rendered), started))
    filled = finish_pages(book, rendered, memo)
    finished = typeset_pages(book, filled, assets, keep)
    _write_files(book, pages, out)
    offered = write_offer(offer or Offer(committed_notebooks(project)), project, out)
    for group in paper_groups(formats, expanded):
        _write_paper(_as_format(group[0], book, expanded, filled, keep), group, out, progress)
    favicon = [project.root / project.favicon] if project.favicon else []
    named = {each.page.page.chapter.href: each.name for each in finished if each.name}
    titles = book_titles(project, named, assets, keep, macros=macros_of(project), problems=problems)
    site = Site(
        project, assets, write_shared(assets, out, *favicon), offered,
        titles, downloads(project, formats),
        guesses_page((each.page.page.chapter.href, each.body) for each in finished),
    )  # fmt: skip
    for each in finished:
        href = each.page.page.chapter.href
        body, cards = each.body, "".join(one.html for one in each.opens)
        if each.opens:  # what its numbers open to
            script = cards_script(each.opens)
            path, place = cards_place(href, script)
            _write_text(out / path, script)
            body += place
        html = memo.get(("page", href), site.page, each.page, body, each.toc, beside=site)
        _write_text(out / href, html)
        if silenced := memo.get(("refused", href), site.refused, html + cards, beside=site):
            reporter.note(
                each.page.page,
                f"the book's content-security-policy would silence `{silenced}`",
                re.escape(silenced),
                r"javascript:|\bon[a-z]+\s*=|<script",
                hint="Put scripts into files of the book, or take the setting out.",
            )
    if project.site_url:
        _write_text(out / "404.html", site.missing(finished[0].page))
    places = [
        Place(page.chapter.href, page.chapter.title, each.body, page.metadata.get("aliases") or [])
        for each in finished
        for page in [each.page.page]
    ]
    for path, text in moved(places, f"{LIBS}/moved.js", lang=project.lang):
        _write_text(out / path, text)
        shutil.copy(FOLDER / "moved.js", out / LIBS)
    variants = {each.page.page.chapter.href: each.search for each in finished}
    (index or write_search)(variants, out, search_wording(project))
    if "zip" in formats:
        others = [download_name(project, form) for form in formats]
        others += offered.zips
        own = download_name(project, "zip")
        write_zip(out, own, variants, without=others, time=zip_time())
    if "figures" in formats:
        bodies = [(each.page.page.chapter.href, each.body) for each in finished]
        name = download_name(project, "figures")
        address = project.site_url
        write_figures(out, name, project.title, bodies, address=address, time=zip_time())
    keep.prune()
    progress(step_line("wrote", len(finished), started))


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _as_format(
    form: str,
    book: Book,
    pages: Sequence[ExecutedPage],
    filled: Sequence[Finished],
    keep: TextCache,
) -> tuple[Book, Sequence[Finished]]:
    """Return the pages as a format shows them: those of the site, unless they set conditions."""
    rendered = rendered_for(form, book.project, pages, keep)
    if rendered is None:
        return book, filled
    quiet = replace(book.reporter, problems=Problems())  # the site's pages reported them
    own = replace(
        book,
        reporter=quiet,
        links=replace(book.links, files=set()),
        index=build_index(rendered, quiet),
        citations=format_citations(book.project, rendered, quiet, keep),
    )
    words = Words(book.project)
    return own, [finish_page(own, page, words) for page in rendered]


def _write_paper(
    made: tuple[Book, Sequence[Finished]], forms: Sequence[str], out: Path, progress: Progress
) -> None:
    """Write EPUB and PDF from the pages as they are before their formulas are typeset."""
    started = time.perf_counter()
    book, pages = made
    flat = [
        PaperPage(
            each.page.page.chapter,
            page_title(each.page)[1] if each.page.title else "",
            with_numbers(each.body, each.opens),
            each.page.title.id if each.page.title else "",
        )
        for each in pages
    ]
    paper = make_paper(book.project, flat, out)
    write_paper(book.project, paper, forms, out, progress)
    progress(f"made {' and '.join(forms)} ({time.perf_counter() - started:.1f} s)")


def _write_files(book: Book, pages: Sequence[ExecutedPage], out: Path) -> None:
    """Write what cells drew; copy what pages link to and what the project lists."""
    project, links, problems = book.project, book.links, book.reporter.problems
    for page in pages:
        for name, data in page.files.items():
            if name.endswith(LIVE):  # its data stand on the page
                continue
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for bundle in live_figures.bundles(page.files):
            for name, text in live_figures.files_of(bundle).items():
                _write_text(out / LIBS / "live" / name, text)
        for css in as_list(html_options(project, page).get("css")):
            links.files.add(str(css))
    settings = project.metadata.get("project") or {}
    for pattern in as_list(settings.get("resources")):
        found = [path for path in project.root.glob(str(pattern)) if path.is_file()]
        if not found and not (project.root / str(pattern)).is_dir():
            problems.add(f"`resources: {pattern}` names no file", file="_quarto.yml")
        links.files.update(path.relative_to(project.root).as_posix() for path in found)
    for name in sorted(links.files):
        source, path = project.root / name, out / posixpath.normpath(name)
        if source.is_file() and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, path)
