"""Serve the last good build of a book on this machine alone, and notify pages of new ones.

The script that reloads is put into pages as they are sent, so no file of a site
ever holds it. It comes from the site's own origin and listens there, which a
Content-Security-Policy of `'self'` allows.
"""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from mlsim_book.caches import content_hash
from mlsim_book.errors import BookError
from mlsim_book.site.search import SEARCH

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
