"""The preview: what is built anew, what is served, to whom, and how errors are told."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlsim_book.build import build, site_hash
from mlsim_book.errors import BookError, SourceError
from mlsim_book.preview import rebuild
from mlsim_book.preview.session import Preview
from mlsim_book.preview.watch import PAUSE, Watcher, scan
from mlsim_book.render import splice
from mlsim_book.site.lock import hold

MakeBook = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("with_assets")
CELL = "```{python}\nx = 6 * 7\n```\n"


@pytest.fixture
def lines() -> list[str]:
    """What a preview prints."""
    return []


@pytest.fixture
def running(make_book: MakeBook, lines: list[str]) -> Iterator[Preview]:
    """A preview of a book of two chapters, built once."""
    two = "# B\n\nSee @sec-c.\n\n## C {#sec-c}\n"
    book = make_book(index_qmd=page_with("First"), two_qmd=two)
    with Preview(book, progress=lines.append) as preview:
        preview.build()
        yield preview


def get(preview: Preview, path: str, host: str | None = None) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    port = preview.server.server_port
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    client.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = client.getresponse()
    return answer.status, answer.read().decode()


class News:
    """The news that a page in a browser gets."""

    def __init__(self, preview: Preview, page: str) -> None:
        port = preview.server.server_port
        self._client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._client.request("GET", f"/.preview/events?page={page}")
        self._answer = self._client.getresponse()

    def next(self) -> dict[str, str]:
        """Return what is told next."""
        while not (line := self._answer.readline()).startswith(b"data: "):
            pass
        return dict(json.loads(line[6:]))


def page_with(text: str) -> str:
    return f"# A\n\n{CELL}\n{text} `{{python}} x`.\n"


def edit(path: Path, text: str) -> None:
    """Write a file with a new time, however coarse the clock of the disk is."""
    before = path.stat().st_mtime_ns
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(before + 10**9, before + 10**9))


def version(page: str) -> str:
    found = re.search(r'<script src="/\.preview/reload\.js" data-version="(\w*)" defer>', page)
    assert found
    return found[1]


def test_pages_carry_the_script_and_the_site_does_not(running: Preview, tmp_path: Path) -> None:
    _, page = get(running, "/")
    assert "First 42." in page
    assert version(page)
    assert not (running.root / "_book").exists()
    assert running.shown.site is not None
    built = build(running.root, out=tmp_path / "out", progress=str)
    for site in (built, running.shown.site):
        for path in site.rglob("*"):
            assert not path.is_file() or b".preview/" not in path.read_bytes(), path


def test_an_edit_of_prose_runs_and_finishes_its_own_page_alone(
    running: Preview, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, two = version(get(running, "/")[1]), version(get(running, "/two.html")[1])
    news = News(running, "/index.html")
    assert news.next() == {"version": index, "error": ""}
    asked: list[list[str]] = []
    really = rebuild.execute_pages

    def execute(*given: object, **named: object) -> object:
        asked.append(list(named["chapters"]))  # type: ignore[call-overload]
        return really(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(rebuild, "execute_pages", execute)
    lines.clear()
    assert not running.look()
    edit(running.root / "index.qmd", page_with("Second"))
    assert running.look()
    assert asked == [["index.qmd"]]
    assert not [
        line for line in lines if line.startswith(("executed", "unchanged"))
    ]  # from the cache
    told = news.next()
    page = get(running, "/")[1]
    assert "Second 42." in page
    assert told == {"version": version(page), "error": ""}
    assert told["version"] != index
    assert version(get(running, "/two.html")[1]) == two
    assert "index.qmd" in lines[-1]


def test_many_edits_give_what_a_build_gives(running: Preview, tmp_path: Path) -> None:
    (running.root / "refs.bib").write_text("@book{a, title={T}, author={Ada Brook}, year={2001}}")
    steps = {
        "two.qmd": "# Bee\n\nSee @sec-a.\n",
        "index.qmd": f"# Aye {{#sec-a}}\n\n{CELL}\nBut `{{python}} x + 1`, says @a.\n",
    }
    settings = running.root / "_quarto.yml"
    edit(settings, settings.read_text("utf-8") + "bibliography: refs.bib\n")
    running.look()
    for name, text in steps.items():
        edit(running.root / name, text)
        running.look()
    assert not running.shown.error
    site = running.shown.site
    assert site is not None
    built = build(running.root, out=tmp_path / "out", progress=str)
    running._rebuilder.write_index(site)
    assert site_hash(site) == site_hash(built)


def test_a_failed_build_is_told_over_the_last_good_page(running: Preview, lines: list[str]) -> None:
    news = News(running, "/")
    before = news.next()
    edit(running.root / "two.qmd", "# B\n\nSee @sec-none.\n")
    running.look()
    told = news.next()
    assert told["version"] == before["version"]
    assert "two.qmd:3" in told["error"]
    assert any(line.startswith("ERROR: two.qmd:3") for line in lines)
    assert "First 42." in get(running, "/")[1]
    edit(running.root / "index.qmd", "# A\n\nOther.\n")
    running.look()
    assert running.shown.error == told["error"]  # what is wrong is told again with every build
    edit(running.root / "index.qmd", "# A\n\n```{python}\n1 / 0\n```\n")
    running.look()
    while "two.qmd:3" in (error := news.next()["error"]):
        pass
    assert "ZeroDivisionError" in error
    edit(running.root / "index.qmd", "# A\n\nMended.\n")
    edit(running.root / "two.qmd", "# B\n\nMended too.\n")
    running.look()
    last = news.next()
    assert not last["error"]
    assert last["version"] != before["version"]


def test_a_first_build_that_fails_shows_why_and_a_lenient_one_the_page(
    make_book: MakeBook, lines: list[str], tmp_path: Path
) -> None:
    book = make_book(index_qmd="# A\n\nSee @fig-none.\n")
    with Preview(book, progress=str) as preview:
        status, page = get(preview, "/")
        assert (status, version(page)) == (200, "")
        assert "The book is being built" in page
        preview.build()
        assert "index.qmd:3" in News(preview, "/").next()["error"]
    with Preview(book, lenient=True, progress=lines.append) as preview:
        preview.build()
        assert "?fig-none" in get(preview, "/")[1]
    assert any(line.startswith("WARN: index.qmd:3") for line in lines)
    (tmp_path / "_quarto.yml").unlink()
    with pytest.raises(SourceError, match=r"no _quarto\.yml"):
        Preview(tmp_path, progress=str)


def test_what_is_served_and_to_whom(running: Preview) -> None:
    """On loopback and by its own name: the site, and a script that needs no leave beyond it."""
    assert running.server.server_address[0] == "127.0.0.1"
    port = running.server.server_port
    assert get(running, "/", f"localhost:{port}")[0] == 200
    assert get(running, "/", f"rebound.example:{port}")[0] == 403
    _, script = get(running, "/.preview/reload.js")
    assert "new EventSource('/.preview/events" in script
    for barred in ("eval(", "innerHTML", "http://", "https://", "cssText"):
        assert barred not in script
    assert running.shown.site is not None
    (running.shown.site.parent / "secret.txt").write_text("Not served.")
    for path in ("../secret.txt", "%2e%2e/secret.txt", "a/..%2f../secret.txt", "site_libs", "no"):
        assert get(running, f"/{path}")[0] == 404, path
    status, page = get(running, "/three.html")
    assert (status, version(page)) == (404, "")  # a page that is not there waits for itself
    assert "This page is not in the book" in page
    with pytest.raises(BookError, match="can't listen on port"):
        Preview(running.root, port=port, progress=str)


def test_search_follows_when_it_is_quiet(running: Preview) -> None:
    assert get(running, "/site_libs/search/index.js")[0] == 404
    running._built = -1e9
    running.look()
    assert running._indexing is not None
    running._indexing.join()
    assert get(running, "/site_libs/search/index.js")[0] == 200


def test_an_edit_of_prose_is_shown_before_its_page_is_rendered_and_confirmed(
    running: Preview, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was shown wrong is built again."""

    def confirmed(text: str, shown: str) -> bool:
        lines.clear()
        edit(running.root / "index.qmd", page_with(text))
        running.look()
        assert f"{shown} 42." in get(running, "/")[1]
        assert running._confirming is not None
        running._confirming.join()
        lines.clear()
        return not running.look() and not lines

    assert confirmed("Soon", shown="Soon")
    monkeypatch.setattr(splice, "splice", lambda page, *_: page.replace("Soon", "Wrong"))
    assert not confirmed("Third", shown="Wrong")
    assert "Third 42." in get(running, "/")[1]
    assert not running._rebuilder.unsure


def test_it_takes_turns_with_builds_and_only_while_building(
    running: Preview, lines: list[str]
) -> None:
    target = running.root / "_book"
    with hold(target, wait=0):
        pass  # nobody builds: nobody holds it
    edit(running.root / "index.qmd", "# A\n\nMore.\n")
    thread = threading.Thread(target=running.look)
    lines.clear()
    with hold(target, wait=0):
        thread.start()
        while not lines:
            time.sleep(0.01)
        assert "waiting for process" in lines[0]
        assert "First 42." in get(running, "/")[1]
    thread.join()
    assert "More." in get(running, "/")[1]


def test_a_wish_to_end_breaks_off_a_build_and_is_heard_after_one(running: Preview) -> None:
    site = running.shown.site
    running.interrupt.wished.set()
    edit(running.root / "index.qmd", "# A\n\nMore.\n")
    running.look()
    assert running.shown.site == site
    running._fail("pandoc was stopped, too", Path("none"))
    assert not running.shown.error
    with pytest.raises(KeyboardInterrupt):  # a second one ends at once
        running.interrupt._note()
    running.interrupt.wished.clear()
    with pytest.raises(KeyboardInterrupt), running.interrupt.breaking():
        running.interrupt._note()


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True])
def test_ctrl_c_stops_it_cleanly_and_breaks_off_cells_that_run(
    make_book: MakeBook, tmp_path: Path, signal_: int, busy: bool
) -> None:
    begun, scratch = tmp_path / "begun", tmp_path / "temporary"
    scratch.mkdir()
    cell = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)"
    text = f"```{{python}}\n{cell}\n```\n" if busy else "Text.\n"
    book = make_book(index_qmd=f"# A\n\n{text}")
    run = subprocess.Popen(
        [sys.executable, "-m", "mlsim_book.cli", "preview", str(book)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    assert run.stdout is not None
    assert re.match(r"Preview at http://127\.0\.0\.1:\d+/ \(Ctrl-C", run.stdout.readline())
    if busy:
        while not begun.exists() and run.poll() is None:
            time.sleep(0.05)
    else:
        assert run.stdout.readline().startswith("built in")
    run.send_signal(signal_)
    out, error = run.communicate(timeout=30)
    assert (run.returncode, out.splitlines()[-1], error) == (0, "stopped", "")
    assert not list(scratch.glob("mlsim-book-preview-*"))
    with hold(book / "_book", wait=0):
        pass  # let go


def test_what_nobody_writes_is_not_watched_and_an_edit_is(tmp_path: Path) -> None:
    """What a cell writes starts no build, but an edit meanwhile does."""
    for name in ("a.qmd", "b/c.svg", ".git/x", "_book/x.html", "env/pyvenv.cfg", "env/lib.py",
                 "__pycache__/y.pyc", "a.qmd~", ".a.qmd.swp"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert sorted(scan(tmp_path, [tmp_path / "_book"])) == ["a.qmd", str(Path("b/c.svg"))]
    watcher = Watcher(tmp_path)
    (tmp_path / "made.csv").write_text("1")
    edit(tmp_path / "a.qmd", "edited")
    watcher.overlook_made()
    assert watcher.changes() == ["a.qmd"]
    assert watcher.changes() == []
    waits: list[float] = []
    for watcher.cost in (0.0, 5.0):  # at most a tenth of the time is spent
        watcher.pause(waits.append)
    assert waits == [PAUSE, 50.0]
