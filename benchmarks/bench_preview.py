"""How soon a preview shows an edit of prose, on each page of a book.

    python benchmarks/bench_book.py preview
    python benchmarks/bench_book.py preview --repeats 7 --book DIR

The book (this repository's, unless another is given) is copied, and `mlsim-book preview`
follows the copy, with the user's own cache. A word is put into paragraphs of each page,
one after another, at places spread over the page. Timed is from the saving of the file
until the page that a browser would fetch is there, with the word in it: the news that
the browser waits for, and the page itself. Drawing it takes the browser some
milliseconds more. The exit code is 1 if the median of a page is above the limit.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tables import lay_out

from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project

LIMIT = 1.0  # seconds, the median of a page
SETTLED = 2.5  # seconds between edits: what follows an answer is done by then
_SKIPPED = (".git", ".venv", ".*_cache", "._book*", "_book", "build", "dist", "__pycache__")


def places(text: str) -> list[int]:
    """Return the lines at which a paragraph of a chapter begins, out of code and lists."""
    found, fence = [], ""
    lines = text.split("\n")
    start = lines.index("---", 1) + 1 if lines[0] == "---" else 0
    for at, line in enumerate(lines):
        mark = re.match(r"\s*(`{3,}|~{3,}|\$\$)", line)
        if mark and (not fence or line.strip().startswith(fence)):
            closed = fence or line.count(mark[1]) > 1
            fence = "" if closed else mark[1]
        elif not fence and at > start and not lines[at - 1].strip() and re.match(r"[A-Z]\w", line):
            found.append(at)
    return found


def spread(found: Sequence[int], count: int) -> list[int]:
    """Return some of the places, from all over the page.

    >>> spread([1, 2, 3, 4, 5, 6, 7, 8, 9], 3)
    [1, 5, 9]
    """
    if len(found) <= count:
        return list(found)
    last = len(found) - 1
    return [found[round(at * last / max(1, count - 1))] for at in range(count)]


class Running:
    """A preview that runs, seen as a browser sees it."""

    def __init__(self, book: Path, port: int) -> None:
        self.book, self.port = book, port
        self._words = 0

    def edit(self, source: str, href: str, line: int) -> float:
        """Put a word into a line; return the seconds until the page has it."""
        path = self.book / source
        text = path.read_text(encoding="utf-8")
        self._words += 1
        word = f"frumious{self._words}x{os.getpid()}"
        lines = text.split("\n")
        first, space, rest = lines[line].partition(" ")
        lines[line] = f"{first} {word}{space}{rest}"
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request("GET", f"/.preview/events?page=/{href}")
        news = client.getresponse()
        self._next(news)
        started = time.perf_counter()
        path.write_text("\n".join(lines), encoding="utf-8")
        while word not in self._page(self._next(news), href):
            pass
        taken = time.perf_counter() - started
        client.close()
        time.sleep(SETTLED)
        path.write_text(text, encoding="utf-8")
        time.sleep(SETTLED)
        return taken

    def _next(self, news: http.client.HTTPResponse) -> dict[str, str]:
        while not (line := news.readline()).startswith(b"data: "):
            pass
        return dict(json.loads(line[6:]))

    def _page(self, told: dict[str, str], href: str) -> str:
        if told["error"]:
            sys.exit(f"the preview failed:\n{told['error']}")
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request("GET", f"/{href}")
        page = client.getresponse().read().decode()
        client.close()
        return page


@contextmanager
def previewed(book: Path) -> Iterator[Running]:
    """Run a preview of a book, built once."""
    run = subprocess.Popen(
        [sys.executable, "-m", "mlsim_book.cli", "preview", str(book), "--lenient"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    try:
        port = 0
        for line in run.stdout:
            if match := re.match(r"Preview at http://127\.0\.0\.1:(\d+)/", line):
                port = int(match[1])
            if line.startswith("built in"):
                break
            if line.startswith("ERROR"):
                run.terminate()
                sys.exit(line + run.communicate(timeout=60)[0])
        yield Running(book, port)
    finally:
        run.terminate()
        run.communicate(timeout=60)


def measure(book: Path, repeats: int, only: Sequence[str]) -> dict[str, list[float]]:
    """Return the seconds of each edit, by chapter."""
    project = load_project(book, Problems())
    times: dict[str, list[float]] = {}
    with previewed(book) as running:
        for chapter in project.chapters:
            text = (book / chapter.source).read_text(encoding="utf-8")
            found = spread(places(text), repeats)
            if not found or (only and chapter.source not in only):
                continue
            times[chapter.source] = [
                running.edit(chapter.source, chapter.href, line) for line in found
            ]
            shown = " ".join(f"{each:.2f}" for each in times[chapter.source])
            print(f"{chapter.source}: {shown}", flush=True)
    return times


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="edits of each page (default: 5)")
    parser.add_argument("--book", type=Path, default=Path(__file__).parents[1], metavar="DIR")
    parser.add_argument("--only", nargs="*", default=(), metavar="FILE", help="chapters")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}; it must be 1 or more")
    with tempfile.TemporaryDirectory(prefix="bench-preview-") as folder:
        book = Path(folder) / "book"
        shutil.copytree(options.book, book, ignore=shutil.ignore_patterns(*_SKIPPED))
        times = measure(book, options.repeats, options.only)
    load = f", load {os.getloadavg()[1]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"\n{os.cpu_count()} cores{load}, Python {platform.python_version()}")
    print(f"seconds from an edit of prose to the page, of {options.repeats} edits a page\n")
    rows, missed = [], False
    for name, found in times.items():
        median = statistics.median(found)
        missed |= median > LIMIT
        reached = "yes" if median <= LIMIT else "no"
        rows.append((name, f"{median:.2f} s", f"{max(found):.2f} s", f"<= {LIMIT:g} s", reached))
    print(lay_out(("page", "median", "slowest", "limit", "reached"), rows))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
