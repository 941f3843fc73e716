"""Check a book without building it: its sources, its notebooks, and the site that is there.

That references and citations lead somewhere, and that no label is used twice, a build says.

| what | where |
|---|---|
| entries of the bibliography | `sources` |
| chapters that the book doesn't list, the book's own rules, exercise files | `sources` |
| numbers | `numbers` |
| notebooks | `render.notebooks` |
| ids, links, headings, requests, valid HTML, spelling of terms | `built_site` |
| links to other servers, on request | `built_site` |
| answers that stand before their questions | `spoilers` |
| what a genuine Quarto would do otherwise | `run`, `quarto` |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mlsim_book.check.built_site import BuiltSite, ask_all, check_site, external_links, read_site
from mlsim_book.check.numbers import check_numbers
from mlsim_book.check.quarto import note_findings, quarto_findings
from mlsim_book.check.sources import (
    check_chapters,
    check_exercise_files,
    check_unused,
    read_entries,
)
from mlsim_book.check.spoilers import check_spoilers
from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage
from mlsim_book.read.project import load_project
from mlsim_book.render.notebooks import check_notebooks
from mlsim_book.run.pages import parse_pages

Progress = Callable[[str], None]


def check_book(
    root: Path,
    *,
    out: Path | None = None,
    external: bool = False,
    progress: Progress = lambda _: None,
) -> Problems:
    """Check a book's sources, its numbers and notebooks, and its site if there is one.

    `progress` gets a line for each page (how many numbers are computed, cited, given, bare), and
    one for each whose cells are run.

    Parameters
    ----------
    out
        Where the site is; `project: output-dir:` of the book when None.
    external
        Ask other servers, too, whether the pages that the site links to are there.
    """
    problems = Problems()
    project = load_project(root.resolve(), problems)
    parsed = parse_pages(project, problems)
    before = len(problems)
    files = check_exercise_files(project, [each.chapter.source for each in parsed], problems)
    if len(problems) > before:
        return problems  # pages that show these exercises could only fail
    note_findings(quarto_findings(project, parsed), problems)
    pages = {
        each.chapter.href: ExecutedPage(each.chapter, "", each.metadata, {}, each.document.source)
        for each in parsed
    }
    check_chapters(project, pages.values(), files, problems)
    entries = read_entries(project, problems)
    for name, counts in check_numbers(project, parsed, problems).items():
        progress(f"{name}: {counts.text()}")
    folder = project.root / "notebooks"
    if folder.is_dir():
        progress("comparing notebooks: chapters that changed since the last build run again")
        check_notebooks(project, folder, problems, progress=progress)
    place = (out or project.root / project.output_dir).resolve()
    if (place / "index.html").is_file():
        site = read_site(project, place, pages, problems)
        links = [link for page in site.read.values() for link in page.links]
        check_site(site)
        check_spoilers(site)
        check_unused(project, pages.values(), links, entries, problems)
        if external:
            check_external(site, progress)
    else:
        problems.add(f"there is no built site in {place}", hint="Run: mlsim-book build")
    return problems


def check_external(site: BuiltSite, progress: Progress) -> None:
    """Note links to other sites' pages that are gone; report those that are uncertain."""
    found = external_links(site)
    progress(f"asking for {len(found)} addresses on other servers")
    for answer in ask_all(found):
        if answer.fault is None:
            continue
        name, message = found[answer.url], f"the link {answer.url}: {answer.fault}"
        if answer.sure:
            hint = "Link to where the page is now, or to a stored copy."
            site.note(name, message, re.escape(answer.url), hint=hint)
        else:
            progress(f"not sure: {name}: {message}")
