"""`mlsim-book preview`: a book in the browser that follows its sources while they are written.

The site is built into a folder of its own, which goes when the preview ends; `_book`
is left alone. A build that fails is reported in the terminal and over the last good page.

See which files of a book change, by looking at them again and again. Looking costs a few
milliseconds for some hundred files, works on every system and file share, and needs no library.

Build a book again and again in one process, doing only what an edit makes necessary. A prose edit
of a chapter parses, renders and finishes that chapter; all else is taken from the build before.
Any other change (a figure, a bibliography, a file that code reads) goes through the caches on
disk, as every build does.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Self

from mlsim_book.build import StrictError
from mlsim_book.caches import Memo
from mlsim_book.errors import BookError, Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.preview.server import PreviewServer, Shown, start_server
from mlsim_book.preview.watch import Watcher
from mlsim_book.read.project import load_project
from mlsim_book.render.assets import load_assets
from mlsim_book.render.pandoc import find_pandoc
from mlsim_book.run.page_cache import depends_names
from mlsim_book.run.pages import execute_pages
from mlsim_book.site.assemble import write_site
from mlsim_book.site.search import write_search
from mlsim_book.site.swap import take_turns

Progress = Callable[[str], None]


class Rebuilder:
    """Builds a book into one folder after another, and remembers."""

    def __init__(self, root: Path, *, lenient: bool, jobs: int, progress: Progress) -> None:
        self.root, self.lenient, self.jobs, self.progress = root, lenient, jobs, progress
        self.variants: Mapping[str, str] = {}  # what the search index is made of
        self._memo = Memo()
        self._pages: dict[str, tuple[Any, ExecutedPage]] = {}
        self._project: Project | None = None

    def note(self, changed: Iterable[str]) -> None:
        """Forget what a change of these files may touch; a chapter's text touches only itself."""
        if not all(self._stands_alone(name) for name in changed):
            self._memo, self._pages = Memo(), {}

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
            memo=self._memo, index=self._index_later,
        )  # fmt: skip
        if problems.found and not self.lenient:
            raise StrictError("\n".join(each.text() for each in problems.found))
        for each in problems.found:
            self.progress(f"WARN: {each.text()}")

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


_QUIET = 2.0  # seconds without an edit before the search is brought up to date


class Preview:
    """A running preview: its server, its watcher, its builds.

    Use it as a context: leaving it stops the server and removes what was built.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int | None = None,
        lenient: bool = False,
        jobs: int = 2,
        progress: Progress = print,
    ) -> None:
        self.root = root.resolve()
        project = load_project(self.root, Problems())  # no book here: say so, and end
        self.shown, self.progress = Shown(), progress
        self.interrupt = Interrupt()
        self._target = (self.root / project.output_dir).resolve()
        self.server: PreviewServer = start_server(self.shown, port)
        self._folder = Path(tempfile.mkdtemp(prefix="mlsim-book-preview-"))
        self._watcher = Watcher(self.root, [self.root / project.output_dir])
        self._rebuilder = Rebuilder(self.root, lenient=lenient, jobs=jobs, progress=progress)
        self._count = 0
        self._sites: list[Path] = []
        self._indexed = True
        self._indexing: threading.Thread | None = None
        self._built = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shown.stop()
        self.server.shutdown()
        self.server.server_close()
        if self._indexing:
            self._indexing.join()
        _clear(self._folder)

    def build(self, changed: Sequence[str] = ()) -> None:
        """Build and show; or, if that fails, show why and leave the site that was there."""
        started = time.perf_counter()
        self._count += 1
        site = self._folder / f"site-{self._count}"
        self._rebuilder.note(changed)
        try:
            with self.interrupt.breaking(), take_turns(self._target, self.progress):
                self._rebuilder.build(site)
        except KeyboardInterrupt:
            _clear(site)
            return
        except BookError as error:
            self._fail(str(error), site)
        except Exception as error:  # noqa: BLE001 - half an edit must not end the preview
            self._fail(f"{type(error).__name__}: {error}", site)
        else:
            self._indexed = False
            self.shown.publish(site)
            self._sites.append(site)
            if len(self._sites) > 2:  # somebody may be reading the one before
                _clear(self._sites.pop(0))
            what = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
            self.progress(f"built in {time.perf_counter() - started:.2f} s  {what}".rstrip())
        self._watcher.overlook_made()
        self._built = time.monotonic()

    def look(self) -> bool:
        """Build if something changed, and say whether it did; else catch up on the search."""
        changed = self._watcher.changes()
        if changed:
            self.build(changed)
        elif not self._indexed and time.monotonic() - self._built > _QUIET:
            self._index()
        return bool(changed)

    def pause(self) -> None:
        """Wait until the next look."""
        self._watcher.pause(self.interrupt.wished.wait)

    def _fail(self, error: str, site: Path) -> None:
        if not self.interrupt.wished.is_set():  # else Ctrl-C has stopped the tools as well
            self.progress(f"ERROR: {error}")
            self.shown.fail(error)
        _clear(site)

    def _index(self) -> None:
        """Make the search index beside the watching."""
        if self._indexing and self._indexing.is_alive():
            return
        self._indexed = True
        out = self._folder / f"search-{self._count}"

        def work() -> None:
            try:
                self._rebuilder.write_index(out)
            except (BookError, OSError) as error:
                if not self.interrupt.wished.is_set():
                    self.progress(f"WARN: the search is not up to date: {error}")
                return
            old, self.shown.search = self.shown.search, out
            if old is not None and old != out:
                _clear(old)

        self._indexing = threading.Thread(target=work, daemon=True)
        self._indexing.start()


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def preview(
    root: Path, *, port: int | None, lenient: bool, jobs: int, progress: Progress = print
) -> None:
    """Show a book and follow its sources until Ctrl-C, or until it is asked to end.

    Raises
    ------
    BookError
        There is no book, or the port is taken. What is wrong with chapters is shown
        instead.
    """
    with (
        Preview(root, port=port, lenient=lenient, jobs=jobs, progress=progress) as running,
        running.interrupt.listening(),
    ):
        progress(f"Preview at {running.server.url} (Ctrl-C stops it)")
        running.build()
        while not running.interrupt.wished.is_set():
            running.pause()
            running.look()
    progress("stopped")


class Interrupt:
    """A wish to end, by Ctrl-C or by a request of the system.

    Python raises KeyboardInterrupt wherever the main thread happens to be: in a library's
    cleaning up it is printed and lost, in a `finally` it cuts the tidying short. So the
    signal is only noted, and the command ends at its next look. A long build, which has
    none, is broken off where it says that it may be.

    >>> interrupt = Interrupt()
    >>> with interrupt.listening():
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupt.wished.is_set()
    True
    """

    def __init__(self) -> None:
        self.wished = threading.Event()
        self._breaking = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take signals as wishes; a thread other than the main one gets none."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Let a wish raise KeyboardInterrupt here; at once if there is one already."""
        self._breaking = True
        try:
            if self.wished.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._breaking = False

    def _note(self, *_: object) -> None:
        again = self.wished.is_set()  # a second Ctrl-C ends at once
        self.wished.set()
        if self._breaking or again:
            raise KeyboardInterrupt
