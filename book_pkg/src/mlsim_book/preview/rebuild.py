"""Build a book again and again in one process, doing only what an edit makes necessary.

A prose edit of a chapter parses, renders and finishes that chapter; all else is
taken from the build before. Any other change (a figure, a bibliography, a file that
code reads) goes through the caches on disk, as every build does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.build import StrictError
from mlsim_book.caches import Memo
from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.project import load_project
from mlsim_book.render.assets import load_assets
from mlsim_book.render.pandoc import find_pandoc
from mlsim_book.render.splice import Splicer
from mlsim_book.run.depends import depends_names
from mlsim_book.run.pages import execute_pages
from mlsim_book.site.assemble import write_site
from mlsim_book.site.search import write_search

Progress = Callable[[str], None]


class Rebuilder:
    """Builds a book into one folder after another, and remembers."""

    def __init__(self, root: Path, *, lenient: bool, jobs: int, progress: Progress) -> None:
        self.root, self.lenient, self.jobs, self.progress = root, lenient, jobs, progress
        self.variants: Mapping[str, str] = {}  # what the search index is made of
        self._memo = Memo()
        self._splicer = Splicer()
        self._pages: dict[str, tuple[Any, ExecutedPage]] = {}
        self._project: Project | None = None

    def note(self, changed: Iterable[str]) -> None:
        """Forget what a change of these files may touch; a chapter's text touches only itself."""
        if not all(self._stands_alone(name) for name in changed):
            self._memo, self._splicer = Memo(), Splicer()
            self._pages = {}

    def build(self, out: Path) -> None:
        """Build the site, less its search index, into a folder.

        Raises
        ------
        BookError
            What a strict build refuses (a lenient one reports it and goes on), or what
            no build can do without.
        """
        problems = Problems()
        self._project = project = load_project(self.root, problems)
        load_assets()
        find_pandoc()
        pages = self._execute(project, problems)
        write_site(
            project, pages, out, problems, jobs=self.jobs, progress=lambda _: None,
            memo=self._memo, index=self._index_later, splicer=self._splicer,
        )  # fmt: skip
        if problems.found and not self.lenient:
            raise StrictError("\n".join(each.text() for each in problems.found))
        for each in problems.found:
            self.progress(f"WARN: {each.text()}")

    @property
    def unsure(self) -> bool:
        """Whether the last builds show paragraphs whose pages were not rendered as a whole."""
        return self._splicer.unsure

    def confirm(self) -> bool:
        """Render such pages as a whole; say whether all is shown as it should be."""
        return self._splicer.confirm()

    def write_index(self, out: Path) -> None:
        """Write the search index of the last build into a folder."""
        write_search(self.variants, out)

    def _index_later(self, variants: Mapping[str, str], out: Path) -> None:
        self.variants = variants

    def _execute(self, project: Project, problems: Problems) -> list[ExecutedPage]:
        """Return all pages, executing those whose text is another than before."""
        given: dict[str, Any] = {}
        for chapter in project.chapters:
            path = self.root / chapter.source
            text = path.read_bytes() if path.is_file() else b""
            given[chapter.source] = (chapter, text, project.metadata)
        pages = {
            name: self._pages[name][1]
            for name in given
            if name in self._pages and self._pages[name][0] == given[name]
        }
        stale = [name for name in given if name not in pages]
        if stale:
            found = Problems()
            fresh = execute_pages(
                project, found, chapters=stale, jobs=self.jobs, progress=self._say_executed
            )
            pages.update(zip(stale, fresh, strict=True))
            problems.found += [each for each in found.found if each not in problems.found]
            if not found.found:  # else they must be reported again
                self._pages.update({name: (given[name], pages[name]) for name in stale})
        return [pages[name] for name in given]

    def _say_executed(self, line: str) -> None:
        if not line.startswith("unchanged "):
            self.progress(line)

    def _stands_alone(self, name: str) -> bool:
        """Say whether a file is a chapter that no other page's code reads."""
        project, path = self._project, PurePosixPath(Path(name).as_posix())
        if project is None or str(path) not in {each.source for each in project.chapters}:
            return False
        depends = [
            each
            for pattern in depends_names(project.metadata)
            for each in self.root.glob(pattern.rstrip("/"))
        ]
        full = self.root / name
        quoted = (f'{path.name}"', f"{path.name}'")
        return not any(each == full or each in full.parents for each in depends) and not any(
            mark in page.source for _, page in self._pages.values() for mark in quoted
        )
