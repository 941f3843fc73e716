"""Execute the pages of a book: parse all, run some side by side, write Markdown."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.caches import cache_folder
from mlsim_book.errors import BookError, CellError, Problems, SourceError
from mlsim_book.exercises.guesses import check_guesses
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.progress import clear, step
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import first_heading, folder_metadata
from mlsim_book.read.qmd import Defaults, Document, merge, page_defaults, read_document
from mlsim_book.run.inline import check_values, check_written, plain_numbers
from mlsim_book.run.intermediate import write_markdown
from mlsim_book.run.page_cache import (
    Depends,
    PageCache,
    depends_names,
    environment_key,
    page_key,
    read_depends,
)
from mlsim_book.run.results import (
    Results,
    Stop,
    cell_timeout,
    needs_kernel,
    runs,
    runs_alone,
    stored_results,
)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ParsedPage:
    """A chapter that is read but not run.

    `metadata` is the page's own: its front matter over its folders'
    `_metadata.yml`. Lay it over `Project.metadata` for everything that holds.
    """

    chapter: Chapter
    document: Document
    metadata: Mapping[str, Any]
    defaults: Defaults


def parse_pages(
    project: Project, problems: Problems, *, chapters: Iterable[str] | None = None
) -> list[ParsedPage]:
    """Read the chapters (all, or those whose `source` is given), in reading order."""
    wanted = None if chapters is None else set(chapters)
    pages: list[ParsedPage] = []
    errors: list[BookError] = []
    for chapter in project.chapters:
        if wanted is not None and chapter.source not in wanted:
            continue
        try:
            pages.append(_parse(project, chapter, problems))
        except BookError as error:
            errors.append(error)
    raise_together(errors)
    return pages


def _parse(project: Project, chapter: Chapter, problems: Problems) -> ParsedPage:
    document = read_document(project.root / chapter.source, root=project.root, problems=problems)
    check_written(document, problems)
    check_guesses(document, problems)
    metadata = merge(folder_metadata(project.root, chapter.source), document.front_matter)
    return ParsedPage(chapter, document, metadata, page_defaults(merge(project.metadata, metadata)))


def run_pages(
    project: Project,
    pages: Sequence[ParsedPage],
    *,
    jobs: int = 2,
    refresh: bool = False,
    progress: Progress = lambda _: None,
    cache: PageCache | None = None,
) -> list[Results]:
    """Run parsed pages, `jobs` at a time, or take their results from the cache.

    Pages that ask to run alone run after the others, one at a time.

    Raises
    ------
    CellError
        A page failed; if several did, one error names all.
    """
    kept = cache or PageCache(cache_folder())
    environment = environment_key()
    depends_once = functools.cache(functools.partial(read_depends, project.root))
    errors: list[BookError] = []
    done: list[str] = []
    stop = Stop()

    def run(page: ParsedPage) -> Results | None:
        try:
            names = depends_names(merge(project.metadata, page.metadata))
            return _run(
                project, page, kept, refresh, environment=environment, depends=depends_once(names),
                read_again=functools.partial(read_depends, project.root, names),
                progress=progress, stop=stop,
            )  # fmt: skip
        except BookError as error:
            errors.append(error)
            return None
        finally:
            done.append(page.chapter.source)
            step(progress, len(done), len(pages), page.chapter.source)

    alone = [runs_alone(project.metadata, each.metadata, each.chapter.source) for each in pages]
    beside = [page for page, apart in zip(pages, alone, strict=True) if not apart]
    pool = ThreadPoolExecutor(max_workers=max(1, jobs))
    try:
        ran = iter(list(pool.map(run, beside)))
        results = [None if apart else next(ran) for apart in alone]
        for place, apart in enumerate(alone):
            if apart:
                results[place] = run(pages[place])
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        stop.wish()  # a cell may run for minutes yet
        raise
    finally:
        clear(progress)
    pool.shutdown()
    raise_together(sorted(errors, key=lambda error: (str(error.file), error.line or 0)))
    return [each for each in results if each is not None]


def _run(
    project: Project,
    page: ParsedPage,
    cache: PageCache,
    refresh: bool,
    *,
    environment: str,
    depends: Depends,
    read_again: Callable[[], Depends],
    progress: Progress,
    stop: Stop,
) -> Results:
    source = page.chapter.source
    if not runs(page.document, merge(project.metadata, page.metadata)):
        return stored_results(page.document)
    if not needs_kernel(page.document, page.defaults):
        return Results(tuple(() for _ in page.document.cells))
    key = page_key(
        page.document,
        page.defaults,
        name=source,
        folder=_folder(project, source),
        environment=environment,
    )
    kept = None if refresh else cache.load(key, depends)
    if kept is not None and len(kept.cells) == len(page.document.cells):
        progress(f"unchanged {source}")
        return kept
    from mlsim_book.run.execute import run_document  # only now: it loads nbclient

    started = time.perf_counter()
    results = run_document(
        page.document,
        page.defaults,
        folder=_folder(project, source),
        name=source,
        cell_timeout=cell_timeout(project.metadata, page.metadata, source),
        progress=progress,
        stop=stop,
    )
    if stranger := depends.stranger(results.opened):
        raise SourceError(
            f"this page ran the code of {stranger}, and the book has a package of that name",
            file=source,
            hint="Install the book's own (pip install -e), or name its folder first in PYTHONPATH.",
        )
    uses = depends.uses(results.opened)
    if read_again().key(uses) == depends.key(uses):  # else one was edited while the page ran
        cache.store(key, depends, results)
    progress(f"executed {source} in {time.perf_counter() - started:.1f} s")
    return results


def _folder(project: Project, source: str) -> Path:
    """Return where a page runs: its folder, or the book's if the project says so."""
    settings = project.metadata.get("project")
    if isinstance(settings, Mapping) and settings.get("execute-dir") == "project":
        return project.root
    return (project.root / source).parent


def execute_pages(
    project: Project,
    problems: Problems,
    *,
    chapters: Iterable[str] | None = None,
    jobs: int = 2,
    refresh: bool = False,
    progress: Progress = lambda _: None,
    cache: PageCache | None = None,
) -> list[ExecutedPage]:
    """Execute the book's pages, in reading order.

    Parameters
    ----------
    chapters
        The `source` of the chapters to execute; all of them when None.
    jobs
        How many pages run at a time.
    refresh
        Run every page, even if its results are in the cache.
    progress
        Called with a line of text as each page is done.
    """
    pages = parse_pages(project, problems, chapters=chapters)
    results = run_pages(project, pages, jobs=jobs, refresh=refresh, progress=progress, cache=cache)
    for page, each in zip(pages, results, strict=True):
        check_values(page.document, each.values, problems)
    return [finish_page(page, each) for page, each in zip(pages, results, strict=True)]


def finish_page(page: ParsedPage, results: Results) -> ExecutedPage:
    """Write a page's intermediate Markdown; its title gets its inline values too."""
    chapter = page.chapter
    markdown, files = write_markdown(page.document, results, page.defaults, source=chapter.source)
    if "`{python}" in chapter.title:
        lines = split_lines(plain_numbers(markdown), file=chapter.source)
        heading = first_heading(lines)
        chapter = replace(chapter, title=heading.title) if heading else chapter
    if page.document.notebook:
        folder = PurePosixPath(chapter.source).parent
        attached = page.document.notebook.files
        files |= {(folder / path).as_posix(): data for path, data in attached.items()}
    return ExecutedPage(chapter, markdown, page.metadata, files, page.document.source)


def raise_together(errors: Sequence[BookError]) -> None:
    """Raise the error there is; if there are several, one that names all."""
    if not errors:
        return
    if len(errors) == 1:
        raise errors[0]
    kinds = {type(error) for error in errors}
    kind = next((each for each in (SourceError, CellError) if kinds == {each}), BookError)
    raise kind(f"{len(errors)} pages failed\n" + "\n".join(str(error) for error in errors))
