"""`mlsim-book preview`: a book in the browser that follows its sources while they are written.

The site is built into a folder of its own, which goes when the preview ends; `_book`
is left alone. A build that fails is reported in the terminal and over the last good page.

Which files change is found by looking at them again and again: that costs a few milliseconds for
some hundred files, works on every system and file share, and needs no library. A prose edit of a
chapter parses, renders and finishes that chapter; all else is taken from the build before. Any
other change (a figure, a bibliography, a file that code reads) goes through the caches on disk, as
every build does.

The last good build is served on this machine alone. The script that reloads is put into pages as
they are sent, so no file of a site ever holds it. It comes from the site's own origin and listens
there, which a Content-Security-Policy of `'self'` allows.
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from mlsim_book.build import StrictError
from mlsim_book.caches import Memo, content_hash
from mlsim_book.errors import BookError, Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.project import load_project
from mlsim_book.render.assets import load_assets
from mlsim_book.render.pandoc import find_pandoc
from mlsim_book.run.page_cache import depends_names
from mlsim_book.run.pages import execute_pages
from mlsim_book.site.assemble import write_site
from mlsim_book.site.search import SEARCH, Wording, write_search
from mlsim_book.site.swap import take_turns

_SKIPPED = frozenset({"__pycache__", "node_modules"})
_SCRATCH = ("~", ".swp", ".swx", ".tmp", ".part", ".crswap")  # what editors leave while they save
_WRITTEN = frozenset(
    {".qmd", ".md", ".ipynb", ".yml", ".yaml", ".bib", ".csl", ".css", ".py", ".toml"}
)
PAUSE = 0.1  # seconds between two looks
_SETTLE = 0.03  # an editor that saves in steps is done after this

Stamps = dict[str, tuple[int, int]]


def scan(root: Path, skip: Iterable[Path] = ()) -> Stamps:
    """Return time and size of the files of a book by path, leaving out what people don't write.

    Hidden files and folders, virtual environments and the folders in `skip` don't count.
    """
    barred = {str(path) for path in skip}
    found: Stamps = {}
    queue = [str(root)]
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue  # gone, or not readable
        if any(each.name == "pyvenv.cfg" for each in listed):
            continue
        for each in listed:
            if each.name.startswith((".", "#")) or each.name.endswith(_SCRATCH):
                continue
            try:
                if each.is_dir(follow_symlinks=False):
                    if each.name not in _SKIPPED and each.path not in barred:
                        queue.append(each.path)
                elif each.is_file():
                    stat = each.stat()
                    found[os.path.relpath(each.path, root)] = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                continue
    return found


def differing(old: Stamps, new: Stamps) -> list[str]:
    """Return what changed, came or went, by path.

    >>> differing({"a": (1, 1), "b": (1, 1)}, {"a": (2, 1), "c": (1, 1)})
    ['a', 'b', 'c']
    """
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


class Watcher:
    """Finds what changed in a folder since the last call."""

    def __init__(self, root: Path, skip: Iterable[Path] = ()) -> None:
        self.root, self.skip = root, tuple(skip)
        self.seen = scan(root, self.skip)
        self.cost = 0.0  # seconds of a look

    def changes(self) -> list[str]:
        """Return what changed since the last call, once it has settled."""
        new = self._look()
        if new == self.seen:
            return []
        while True:
            time.sleep(_SETTLE)
            again = self._look()
            if again == new:
                break
            new = again
        found, self.seen = differing(self.seen, new), new
        return found

    def overlook_made(self) -> None:
        """Take what a build's own cells have written for seen, but not what people write."""
        new = self._look()
        for name in differing(self.seen, new):
            if Path(name).suffix.lower() in _WRITTEN:
                continue
            if name in new:
                self.seen[name] = new[name]
            else:
                del self.seen[name]

    def pause(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Wait until the next look is due: never more than a tenth of the time is spent."""
        wait(max(PAUSE, 10 * self.cost))

    def _look(self) -> Stamps:
        started = time.perf_counter()
        found = scan(self.root, self.skip)
        self.cost = time.perf_counter() - started
        return found


HOST = "127.0.0.1"
_SCRIPT = Path(__file__).parent / "preview.js"
_OWN = "/.preview/"
_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_ALIVE = 15.0  # seconds between signs of life on a silent connection
_WAITING = '<!DOCTYPE html><html lang="en"><head><title>{0}</title></head><body><p>{0}</p>'


class Shown:
    """What is shown at the moment: the last good site, and what is wrong with the sources."""

    def __init__(self) -> None:
        self.site: Path | None = None
        self.search: Path | None = None  # the folder that holds the search's files
        self.error = ""
        self.stopped = False
        self.news = threading.Condition()
        self.count = 0
        self._versions: dict[str, str] = {}

    def publish(self, site: Path) -> None:
        """Show a new site, whole and without errors."""
        files = sorted(path for path in site.rglob("*") if path.is_file())
        others = content_hash(
            *(part for path in files if path.suffix != ".html"
              for part in (path.relative_to(site).as_posix(), path.read_bytes()))
        )  # fmt: skip
        versions = {
            path.relative_to(site).as_posix(): content_hash(others, path.read_bytes())
            for path in files
            if path.suffix == ".html"
        }
        with self.news:
            self.site, self._versions, self.error = site, versions, ""
            self._tell()

    def fail(self, error: str) -> None:
        """Show what is wrong over the last good pages."""
        with self.news:
            self.error = error
            self._tell()

    def stop(self) -> None:
        """Let all who listen go."""
        with self.news:
            self.stopped = True
            self._tell()

    def version(self, page: str) -> str:
        """Return the version of a page of the site; "" if there is none."""
        return self._versions.get(page, "")

    def _tell(self) -> None:
        self.count += 1
        self.news.notify_all()


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: PreviewServer

    def do_GET(self) -> None:
        """Answer: a page with the script in it, a file, or news as they come."""
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in _NAMES:
            # another site's name that was made to lead here
            self.send_error(HTTPStatus.FORBIDDEN, "Only this machine is served")
            return
        url = urlsplit(self.path)
        with suppress(ConnectionError):  # the reader has gone on
            if url.path == f"{_OWN}events":
                self._events(_page_name(parse_qs(url.query).get("page", ["/"])[0]))
            elif url.path == f"{_OWN}reload.js":
                self._send(_SCRIPT.read_bytes(), "text/javascript")
            else:
                self._file(url.path)

    def do_HEAD(self) -> None:
        """Refuse: a preview never needs this."""
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    def _file(self, path: str) -> None:
        shown, name = self.server.shown, _page_name(path)
        root = shown.search if name.startswith(f"{SEARCH}/") else shown.site
        file = _file_of(root, name) if root else None
        if file is None and name.endswith(".html"):
            text, status = (
                ("This page is not in the book", HTTPStatus.NOT_FOUND)
                if shown.site
                else ("The book is being built", HTTPStatus.OK)
            )
            self._send(_with_script(_WAITING.format(text), ""), "text/html; charset=utf-8", status)
        elif file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif file.suffix == ".html":
            html = file.read_text(encoding="utf-8")
            self._send(_with_script(html, shown.version(name)), "text/html; charset=utf-8")
        else:
            self._send(file.read_bytes(), self.guess_type(str(file)))

    def _send(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def _events(self, page: str) -> None:
        """Send what the page has to know, now and whenever it changes."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        shown, known = self.server.shown, -1
        while not shown.stopped:
            with shown.news:
                if shown.count == known:
                    shown.news.wait(_ALIVE)
                news, known = shown.count != known, shown.count
                state = {"version": shown.version(page), "error": shown.error}
            self.wfile.write(f"data: {json.dumps(state)}\n\n".encode() if news else b": \n\n")
            self.wfile.flush()

    def log_message(self, *args: object) -> None:
        """Say nothing of requests."""


class PreviewServer(http.server.ThreadingHTTPServer):
    """The server; it listens on the loopback address and on no other."""

    daemon_threads = True

    def __init__(self, shown: Shown, port: int) -> None:
        self.shown = shown
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{HOST}:{self.server_port}/"


def start_server(shown: Shown, port: int | None) -> PreviewServer:
    """Start to serve, on a port that is asked for or else any free one.

    Raises
    ------
    BookError
        The port that was asked for is taken.
    """
    try:
        server = PreviewServer(shown, port or 0)
    except (OSError, OverflowError) as error:
        raise BookError(
            f"can't listen on port {port}: {getattr(error, 'strerror', None) or error}",
            hint="Another preview may have it; give another --port, or none for any free one.",
        ) from None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def _page_name(path: str) -> str:
    """Return the file that an address names.

    >>> _page_name("/"), _page_name("/parts/"), _page_name("/a%20b.html")
    ('index.html', 'parts/index.html', 'a b.html')
    """
    name = unquote(path).lstrip("/")
    return f"{name}index.html" if not name or name.endswith("/") else name


def _file_of(root: Path, name: str) -> Path | None:
    """Return a file below a folder, None if there is none or the name leads out."""
    file = (root / name).resolve()
    return file if file.is_file() and file.is_relative_to(root.resolve()) else None


def _with_script(html: str, version: str) -> bytes:
    script = f'<script src="{_OWN}reload.js" data-version="{version}" defer></script>'
    head, mark, rest = html.partition("</head>")
    return (f"{head}{script}{mark}{rest}" if mark else html + script).encode()


Progress = Callable[[str], None]


class Rebuilder:
    """Builds a book into one folder after another, and remembers."""

    def __init__(self, root: Path, *, lenient: bool, jobs: int, progress: Progress) -> None:
        self.root, self.lenient, self.jobs, self.progress = root, lenient, jobs, progress
        # what the search index is made of
        self.indexed: tuple[Mapping[str, str], Wording] = {}, Wording()
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

        def index_later(variants: Mapping[str, str], _: Path, wording: Wording) -> None:
            self.indexed = variants, wording

        write_site(
            project, pages, out, problems, jobs=self.jobs, progress=lambda _: None,
            memo=self._memo, index=index_later,
        )  # fmt: skip
        if problems.found and not self.lenient:
            raise StrictError("\n".join(each.text() for each in problems.found))
        for each in problems.found:
            self.progress(f"WARN: {each.text()}")

    def write_index(self, out: Path) -> None:
        """Write the search index of the last build into a folder."""
        variants, wording = self.indexed
        write_search(variants, out, wording)

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
                project, found, chapters=stale, jobs=self.jobs,
                progress=lambda each: None if each[:10] == "unchanged " else self.progress(each),
            )  # fmt: skip
            pages.update(zip(stale, fresh, strict=True))
            problems.found += [each for each in found.found if each not in problems.found]
            if not found.found:  # else they must be reported again
                self._pages.update({name: (given[name], pages[name]) for name in stale})
        return [pages[name] for name in given]

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
        self.watcher = Watcher(self.root, [self.root / project.output_dir])
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
        shutil.rmtree(self._folder, ignore_errors=True)

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
            shutil.rmtree(site, ignore_errors=True)
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
                shutil.rmtree(self._sites.pop(0), ignore_errors=True)
            what = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
            self.progress(f"built in {time.perf_counter() - started:.2f} s  {what}".rstrip())
        self.watcher.overlook_made()
        self._built = time.monotonic()

    def look(self) -> bool:
        """Build if something changed, and say whether it did; else catch up on the search."""
        changed = self.watcher.changes()
        if changed:
            self.build(changed)
        elif not self._indexed and time.monotonic() - self._built > _QUIET:
            self._index()
        return bool(changed)

    def _fail(self, error: str, site: Path) -> None:
        if not self.interrupt.wished.is_set():  # else Ctrl-C has stopped the tools as well
            self.progress(f"ERROR: {error}")
            self.shown.fail(error)
        shutil.rmtree(site, ignore_errors=True)

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
                shutil.rmtree(old, ignore_errors=True)

        self._indexing = threading.Thread(target=work, daemon=True)
        self._indexing.start()


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
            running.watcher.pause(running.interrupt.wished.wait)
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
