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
from http.client import HTTPMessage
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlsim_book.build import build, site_hash
from mlsim_book.errors import BookError, SourceError
from mlsim_book.preview import session
from mlsim_book.preview.session import Preview, Watcher, scan
from mlsim_book.site.swap import hold

MakeBook = Callable[..., Path]
Lines, Asked, Patch = list[str], list[list[str]], pytest.MonkeyPatch
pytestmark = pytest.mark.usefixtures("with_assets")
CELL = "```{python}\nx = 6 * 7\n```\n"


@pytest.fixture
def lines() -> list[str]:
    """What a preview prints."""
    return []


@pytest.fixture
def asked(monkeypatch: Patch) -> list[list[str]]:
    """The pages that are executed, each time that any are."""
    asked: list[list[str]] = []
    really = session.execute_pages

    def execute(*given: Any, **named: Any) -> object:
        asked.append(list(named["chapters"]))
        return really(*given, **named)

    monkeypatch.setattr(session, "execute_pages", execute)
    return asked


@pytest.fixture
def running(make_book: MakeBook, lines: Lines) -> Iterator[Preview]:
    """A preview of a book of two chapters, built once."""
    two = "# B\n\nSee @sec-c.\n\n## C {#sec-c}\n"
    book = make_book(index_qmd=page_with("First"), two_qmd=two)
    with Preview(book, progress=lines.append) as preview:
        preview.build()
        yield preview


def answer(preview: Preview, path: str, host: str = "") -> tuple[int, str, HTTPMessage]:
    """Return the status and the text of an answer, and what it says of itself."""
    port = preview.server.server_port
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    client.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = client.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def get(preview: Preview, path: str, host: str = "") -> tuple[int, str]:
    return answer(preview, path, host)[:2]


def joined(thread: threading.Thread | None) -> None:
    """Wait for work beside the watching, which a second Ctrl-C doesn't."""
    assert thread is not None
    assert thread.daemon
    thread.join()


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


def test_an_edit_of_prose_runs_its_own_page(running: Preview, lines: Lines, asked: Asked) -> None:
    index, two = version(get(running, "/")[1]), version(get(running, "/two.html")[1])
    news = News(running, "/index.html")
    assert news.next() == {"version": index, "error": ""}
    asked.clear()
    lines.clear()
    assert not running.look()
    edit(running.root / "index.qmd", page_with("Second"))
    assert running.look()
    assert asked == [["index.qmd"]]
    assert not any(line.startswith(("executed", "unchanged")) for line in lines)  # cached
    told = news.next()
    page = get(running, "/")[1]
    assert "Second 42." in page
    assert told == {"version": version(page), "error": ""}
    assert told["version"] != index
    assert version(get(running, "/two.html")[1]) == two
    assert "index.qmd" in lines[-1]
    edit(running.root / "index.qmd", page_with("Third").replace("6 * 7", f"6 * {time.time_ns()}"))
    running.look()
    assert any(line.startswith("executed index.qmd") for line in lines)


def test_an_edit_of_what_code_reads_runs_all_pages(make_book: MakeBook, asked: Asked) -> None:
    """A chapter that another names in quotes, or that the settings name; not one that none reads."""
    reads = "# A\n\n```{python}\nx = [\"two.qmd\", 'three.qmd']\n```\n"
    texts = {f"{name}_qmd": "# A\n" for name in ("two", "three", "five", "six", "d__7")}
    book = make_book("mlsim-book:\n  depends: [d/, f*.qmd]\n", index_qmd=reads, **texts)
    every = ["index.qmd", "two.qmd", "three.qmd", "five.qmd", "six.qmd", "d/7.qmd"]
    with Preview(book, progress=str) as preview:
        preview.build()
        for name in every[1:]:
            edit(book / name, f"# More of {name}\n")
            preview.look()
    assert asked == [every, every, every, every, ["six.qmd"], every]


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
    alone = [running._rebuilder._stands_alone(each) for each in (*steps, "refs.bib", "_quarto.yml")]
    assert alone == [True, True, False, False]
    assert site_hash(site) == site_hash(built)


def test_a_failed_build_is_told_over_the_last_good_page(running: Preview, lines: Lines) -> None:
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
    edit(running.root / "two.qmd", "# B\n\nAnd @sec-none.\n")
    running.look()
    assert news.next()["error"].count("the cell raised") == 1  # of a page that did not change
    assert sorted(each.name for each in running._folder.glob("site-*")) == ["site-1"]
    edit(running.root / "index.qmd", "# A\n\nMended.\n")
    edit(running.root / "two.qmd", "# B\n\nMended too.\n")
    running.look()
    last = news.next()
    assert not last["error"]
    assert last["version"] != before["version"]


def test_a_first_build_that_fails_shows_why_and_a_lenient_one_the_page(
    make_book: MakeBook, lines: Lines, tmp_path: Path
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
    before = version(get(running, "/")[1])
    (running.shown.site / "site_libs/x.css").write_text("p {}")
    running.shown.publish(running.shown.site)
    assert version(get(running, "/")[1]) not in {"", before}  # what pages may load is new
    assert not running.shown.version("site_libs/x.css")
    for path in ("../secret.txt", "%2e%2e/secret.txt", "a/..%2f../secret.txt", "site_libs", "no"):
        assert get(running, f"/{path}")[0] == 404, path
    status, page = get(running, "/three.html")
    assert (status, version(page)) == (404, "")  # a page that is not there waits for itself
    assert page.index("reload.js") < page.index("</head>")
    assert get(running, "/", f"[::1]:{port}")[0] == 200
    for name, kind in (
        ("", "text/html; charset=utf-8"), ("three.html", "text/html; charset=utf-8"),
        (".preview/reload.js", "text/javascript"), ("site_libs/x.css", "text/css"),
    ):  # fmt: skip
        _, text, told = answer(running, f"/{name}")
        assert told["Content-Length"] == str(len(text.encode()))
        assert (told["Content-Type"], told["Cache-Control"]) == (kind, "no-store")
    told = News(running, "/")._answer.headers
    assert (told["Content-Type"], told["Cache-Control"]) == ("text/event-stream", "no-store")
    with pytest.raises(BookError, match="can't listen on port"):
        Preview(running.root, port=port, progress=str)


def test_a_silent_reader_gets_signs_of_life(running: Preview, monkeypatch: Patch) -> None:
    monkeypatch.setattr(session, "_ALIVE", 0.01)
    before = set(threading.enumerate())
    news = News(running, "/")
    news.next()
    assert [news._answer.readline() for _ in range(4)] == [b"\n", b": \n", b"\n", b": \n"]
    assert {each.daemon for each in threading.enumerate() if each not in before} == {True}


def test_search_follows_when_it_is_quiet(
    running: Preview, lines: Lines, monkeypatch: Patch
) -> None:
    def searched(after: float) -> list[str]:
        """Look some seconds after the last build; return the folders of the search."""
        now = running._built + after
        clock = SimpleNamespace(monotonic=lambda: now, perf_counter=time.perf_counter)
        monkeypatch.setattr(session, "time", clock)
        running.look()
        if running._indexing:
            joined(running._indexing)
        return sorted(each.name for each in running._folder.glob("search-*"))

    def refuse(_: Path) -> None:
        raise OSError("no room")

    assert get(running, "/site_libs/search/index.js")[0] == 404
    running._built = 64.0
    assert searched(2.0) == []
    assert searched(2.125) == ["search-1"]
    assert get(running, "/site_libs/search/index.js")[0] == 200
    running._index()  # once more into the same folder
    assert searched(3.0) == ["search-1"]
    running.build()
    assert searched(3.0) == ["search-2"]
    monkeypatch.setattr(running._rebuilder, "write_index", refuse)
    lines.clear()
    searched(3.0)
    assert not lines  # it is up to date
    for _ in range(2):
        running._indexed = False
        searched(3.0)
        assert lines == ["WARN: the search is not up to date: no room"]
        running.interrupt.wished.set()  # then nobody is told


def test_the_search_is_made_once_at_a_time(running: Preview, monkeypatch: Patch) -> None:
    gate, done = threading.Event(), list[str]()

    def work(_: Path) -> None:
        gate.wait(60)
        done.append("index")

    monkeypatch.setattr(running, "_rebuilder", SimpleNamespace(write_index=work))
    for _ in range(2):
        running._index()
    gate.set()
    joined(running._indexing)
    assert done == ["index"]


def test_a_build_tells_of_three_changes(running: Preview, lines: Lines, monkeypatch: Patch) -> None:
    assert re.fullmatch(r"built in \d+\.\d\d s", lines[-1])
    with monkeypatch.context() as patch:
        patch.setattr(running._rebuilder, "build", lambda _: [].index(7))
        running.build()  # what nobody foresaw ends nothing
    assert lines[-1] == f"ERROR: {running.shown.error}"
    assert running.shown.error.startswith("ValueError: ")
    for changed, said in (("ab", "a, b"), ("abc", "a, b, c"), ("abcd", "a, b, c, ...")):
        ticks = iter([7.0, 9.5, 9.5, 9.5])
        clock = SimpleNamespace(perf_counter=lambda ticks=ticks: next(ticks), monotonic=lambda: 0.0)
        monkeypatch.setattr(session, "time", clock)
        running.build(changed)
        assert lines[-1] == f"built in 2.50 s  {said}"
    assert sorted(each.name for each in running._folder.iterdir()) == ["site-4", "site-5"]


def test_it_takes_turns_while_it_builds(running: Preview, lines: Lines) -> None:
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
    running.interrupt.wished.clear()
    running.interrupt._note()  # no build is broken off any more


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
                 "__pycache__/y.pyc", "a.qmd~", ".a.qmd.swp", "gone.csv", "gone.qmd"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "round").symlink_to(tmp_path)
    found = ["a.qmd", str(Path("b/c.svg")), "gone.csv", "gone.qmd"]
    assert sorted(scan(tmp_path, [tmp_path / "_book"])) == found
    watcher, waits = Watcher(tmp_path), list[float]()
    watcher.pause(waits.append)
    (tmp_path / "made.csv").write_text("1")
    edit(tmp_path / "a.qmd", "edited")
    (tmp_path / "gone.csv").unlink()
    (tmp_path / "gone.qmd").unlink()
    watcher.overlook_made()
    assert watcher.changes() == ["a.qmd", "gone.qmd"]
    assert watcher.changes() == []
    watcher.cost = 5.0  # at most a tenth of the time is spent
    watcher.pause(waits.append)
    assert waits == [0.1, 50.0]


def test_an_edit_counts_once_it_has_settled(tmp_path: Path, monkeypatch: Patch) -> None:
    watcher, ticks = Watcher(tmp_path), count()
    steps, waits = ["a.qmd", "b.qmd", "c.qmd"], list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if steps:
            (tmp_path / steps.pop(0)).write_text("")

    clock = SimpleNamespace(sleep=sleep, perf_counter=lambda: next(ticks))
    monkeypatch.setattr(session, "time", clock)
    sleep(0.0)
    assert watcher.changes() == ["a.qmd", "b.qmd", "c.qmd"]
    assert waits == [0.0, 0.03, 0.03, 0.03]
    assert watcher.cost == 1
    assert watcher.changes() == []
