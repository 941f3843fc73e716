"""Assemble a site from executed pages: render, finish, write, index."""

from __future__ import annotations

import posixpath
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlsim_book.caches import Memo, TextCache, cache_folder
from mlsim_book.errors import Problems
from mlsim_book.exercises.page_script import guesses_page
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.paper.document import PaperPage, make_paper
from mlsim_book.paper.figures_zip import write_figures
from mlsim_book.paper.formats import (
    download_name,
    downloads,
    paper_groups,
    rendered_for,
    write_paper,
    zip_time,
)
from mlsim_book.paper.open_numbers import with_numbers
from mlsim_book.paper.site_zip import write_zip
from mlsim_book.read.places import Reporter
from mlsim_book.render.assets import Assets, load_assets
from mlsim_book.render.citations import (
    format_citations,
)
from mlsim_book.render.crossref import Words, build_index
from mlsim_book.render.postprocess import Links
from mlsim_book.render.shortcodes import expand_shortcodes
from mlsim_book.render.splice import Splicer
from mlsim_book.render.to_html import html_options, render_pages
from mlsim_book.site.cards import cards_place, cards_script
from mlsim_book.site.finish import (
    Book,
    Finished,
    finish_page,
    finish_pages,
    macros_of,
    typeset_pages,
)
from mlsim_book.site.offer import Offer, committed_notebooks, write_offer
from mlsim_book.site.search import write_search
from mlsim_book.site.shared_files import write_shared
from mlsim_book.site.template import Site, as_list, page_title
from mlsim_book.site.titles import Titles, book_titles

Progress = Callable[[str], None]
WriteSearch = Callable[[Mapping[str, str], Path], None]


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
    splicer: Splicer | None = None,
) -> None:
    """Write a site from executed pages, noting problems on the way.

    A preview gives a `memo` and a `splicer` of the build before, and an `index` that waits.
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
    rendered = render_pages(project, expanded, keep=keep, jobs=jobs, splicer=splicer)
    book = Book(
        project,
        reporter,
        _links(project, pages),
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
    site = Site(
        project, assets, write_shared(assets, out, *favicon), offered,
        _titles(book, finished, assets, keep), downloads(project, formats),
        guesses_page((each.page.page.chapter.href, each.body) for each in finished),
    )  # fmt: skip
    for each in finished:
        href = each.page.page.chapter.href
        body, cards = _with_cards(each, out)
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
    variants = {each.page.page.chapter.href: each.search for each in finished}
    (index or write_search)(variants, out)
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


def _with_cards(page: Finished, out: Path) -> tuple[str, str]:
    """Write what a page's numbers open to; return the page's body that names it, and it."""
    if not page.opens:
        return page.body, ""
    script = cards_script(page.opens)
    path, place = cards_place(page.page.page.chapter.href, script)
    _write_text(out / path, script)
    return page.body + place, "".join(each.html for each in page.opens)


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


def _links(project: Project, pages: Sequence[ExecutedPage]) -> Links:
    return Links(
        project.root,
        {chapter.source: chapter.href for chapter in project.chapters},
        {name: data for page in pages for name, data in page.files.items()},
    )


def _titles(book: Book, pages: Sequence[Finished], assets: Assets, keep: TextCache) -> Titles:
    """Return the titles for the navigation."""
    chapters = {each.page.page.chapter.href: each.name for each in pages if each.name}
    macros, problems = macros_of(book.project), book.reporter.problems
    return book_titles(book.project, chapters, assets, keep, macros=macros, problems=problems)


def _write_files(book: Book, pages: Sequence[ExecutedPage], out: Path) -> None:
    """Write what cells drew; copy what pages link to and what the project lists."""
    project, links, problems = book.project, book.links, book.reporter.problems
    for page in pages:
        for name, data in page.files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
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
