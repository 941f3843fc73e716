"""What a first visit to each page of the book weighs, and a first search.

Chromium opens each page with an empty cache, over a server of this machine that
compresses with gzip as GitHub Pages does, and tells through the DevTools protocol
what came over the wire, headers included. Images that lie below the first screen
are named apart: they load while one reads.

    python benchmarks/bench_pages.py            # the book of this repository
    python benchmarks/bench_pages.py _book      # a site that is built already
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tables import lay_out

ROOT = Path(__file__).parents[1]
PAGE, SEARCH, EARLY = 200_000, 100_000, 1_000  # bytes: the limits
SCREEN = {"width": 1280, "height": 900}
QUERY = "memory bandwidth"
COMPRESSED = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".txt", ".xml"}
SETTLED_MS = 400  # after the last request: fonts and lazy images have been asked for

FONTS = "() => document.fonts.ready.then(() => null)"
# The images that start below the first screen, by address.
BELOW = """() => [...document.images]
  .filter((each) => each.getBoundingClientRect().top >= innerHeight)
  .map((each) => each.currentSrc || each.src)"""


class Gzipping(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; what is text goes out compressed."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send a file."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        text = path.suffix in COMPRESSED
        if text:
            body = gzip.compress(body, compresslevel=6, mtime=0)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        if text:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def gzip_server(site: Path) -> Iterator[str]:
    """Serve a site on a free port; give its address."""
    handler = functools.partial(Gzipping, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Visit:
    """What a first visit to a page asked for: bytes over the wire by path."""

    path: str
    loaded: dict[str, int] = field(default_factory=dict)
    below: set[str] = field(default_factory=set)  # images below the first screen
    blocking: list[str] = field(default_factory=list)  # scripts that the first paint waits for
    early: int = 0  # bytes of scripts inside the page that run before the first paint
    search: dict[str, int] = field(default_factory=dict)  # what the first answer of search took

    @property
    def weight(self) -> int:
        """Bytes of a first visit, without images below the first screen."""
        return sum(size for name, size in self.loaded.items() if name not in self.below)

    def part(self, *suffixes: str) -> int:
        """Bytes of the files of some kinds, of those that count."""
        return sum(
            size for name, size in self.loaded.items()
            if name.endswith(suffixes) and name not in self.below
        )  # fmt: skip


# A script in the head without `defer`, `async` or `type=module` holds up the first paint.
EARLY_SCRIPTS = """() => [...document.querySelectorAll("script")]
  .filter((each) => !each.defer && !each.async && each.type !== "module")
  .filter((each) => !each.type || /javascript/.test(each.type))
  .map((each) => [each.src, new TextEncoder().encode(each.textContent).length])"""


class Wire:
    """Counts what a page loads, workers included: bytes over the wire, headers and all."""

    def __init__(self, page: Any, url: str) -> None:
        self._url = url
        self._done: list[Any] = []
        page.on("requestfinished", self._note)

    def _note(self, request: Any) -> None:
        self._done.append(request)

    def loaded(self) -> dict[str, int]:
        """Return the bytes by path."""
        found: dict[str, int] = {}
        for request in self._done:
            if name := self.name(request.url):
                sizes = request.sizes()
                # of a worker's script only the headers are counted
                body = sizes["responseBodySize"] or int(
                    request.response().headers.get("content-length", 0)
                )
                size = sizes["responseHeadersSize"] + body
                found[name] = found.get(name, 0) + size
        return found

    def name(self, url: str) -> str:
        """Return the path of an address from the root of the site, "" of data in the page."""
        return unquote(urlsplit(url).path).lstrip("/") if url.startswith(self._url) else ""


def visit(browser: Any, url: str, path: str, *, query: str = "", **options: Any) -> Visit:
    """Open a page for the first time; with a query, search, too."""
    context = browser.new_context(viewport=SCREEN, **options)
    try:
        page = context.new_page()
        wire = Wire(page, url)
        page.goto(f"{url}/{path}", wait_until="networkidle")
        for _ in range(2):  # what is laid out late may ask for more fonts
            page.evaluate(FONTS)
            page.wait_for_timeout(SETTLED_MS)
        found = Visit(path, wire.loaded())
        found.below = {wire.name(each) for each in page.evaluate(BELOW)}
        for source, size in page.evaluate(EARLY_SCRIPTS):
            found.blocking += [wire.name(source)] if source else []
            found.early += 0 if source else size
        if query:
            found.search = _search(page, wire, query)
        return found
    finally:
        context.close()


def _search(page: Any, wire: Wire, query: str) -> dict[str, int]:
    """Search as a reader does; return what the first answer took, by path."""
    before = wire.loaded()
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.locator("#search-results [role=option]").first.wait_for(timeout=10_000)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLED_MS)
    return {name: size for name, size in wire.loaded().items() if name not in before}


def pages_of(site: Path) -> list[str]:
    """Return the paths of a site's pages, the first page first."""
    paths = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return sorted(paths, key=lambda path: (path != "index.html", path))


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium; say what is missing."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        sys.exit("There is no Chromium on the PATH; name one in $CHROMIUM.")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def kilobytes(size: int) -> str:
    return f"{size / 1000:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, nargs="?", help="a built site (default: build it)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-pages-") as folder:
        site = options.site
        if site is None:
            from mlsim_book.build import build

            site = build(ROOT, out=Path(folder) / "site", progress=str)
        if not (site / "index.html").is_file():
            parser.error(f"{site} holds no index.html; name the folder of a built site")
        with gzip_server(site) as url, chromium() as browser:
            visits = [visit(browser, url, path) for path in pages_of(site)]
            search = visit(browser, url, "index.html", query=QUERY)
    rows = [
        (
            each.path, *map(kilobytes, (
                each.part(".html"), each.part(".css", ".js"), each.part(".woff2"),
                each.part(".svg", ".png", ".jpg", ".webp", ".gif"), each.weight,
            )), str(each.early), "yes" if good(each) else "NO",
        )
        for each in visits
    ]  # fmt: skip
    print(
        f"First visit, kB over the wire; limit {PAGE // 1000} kB, scripts before paint {EARLY} B\n"
    )
    head = ("page", "text", "style, script", "fonts", "images", "in all", "early B", "reached")
    print(lay_out(head, rows))
    searched = sum(search.search.values())
    kept = searched <= SEARCH
    print(
        f"\nFirst search ({QUERY!r}): {kilobytes(searched)} kB, limit {SEARCH // 1000} kB:"
        f" {'yes' if kept else 'NO'}"
    )
    return int(not (kept and all(map(good, visits))))


def good(found: Visit) -> bool:
    """Say whether a page keeps the limits."""
    return found.weight <= PAGE and found.early <= EARLY and not found.blocking


if __name__ == "__main__":
    sys.exit(main())
