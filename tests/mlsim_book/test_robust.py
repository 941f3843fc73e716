"""Builds that are killed, starved, crossed by others or refused by the disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kept
import pytest
from handed_in import wait_for

from mlsim_book.build import build, site_hash
from mlsim_book.caches import TextCache
from mlsim_book.cli import main
from mlsim_book.errors import CellError, Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run.execute import run_document
from mlsim_book.run.page_cache import Depends, PageCache
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results, Stop
from mlsim_book.site.swap import BusyError, DiskError, hold, lock_path, work_folder

MakeBook = Callable[..., Path]
COMMAND = (sys.executable, "-m", "mlsim_book.cli", "build")
LATER = """\
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.05)
"""


@contextmanager
def started(book: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a build as its own process, which doesn't outlive the test."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, *options], cwd=book, text=True, stdout=pipe, stderr=pipe
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def execute(book: Path, said: Callable[[str], object] = str) -> None:
    """Execute a book's pages, with a cache that is empty."""
    project = load_project(book, Problems())
    execute_pages(project, Problems(), cache=PageCache(book / "cache"), progress=said)


def hidden(book: Path) -> list[str]:
    """Return what a build has left beside the site."""
    return [path.name for path in book.iterdir() if path.name.startswith("._book")]


# Kills itself at one call to the system after the other, until a swap is through;
# what is left must hold the old site or the new one, and be mended by what comes next.
KILLER = kept.text("swap_killer.py.txt")


def test_a_swap_killed_at_any_call_leaves_a_whole_site(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    words = run.stdout.split()
    assert int(words[1]) > 20  # calls at which it was killed
    assert int(words[-1]) >= 1  # one of them between the two renames


def test_the_next_command_restores_a_site(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd="# A\n")
    old = work_folder(book / "_book") / "old"
    old.mkdir(parents=True)
    (old / "index.html").write_text("the old site")
    (old.parent / "new").mkdir()
    main(["notebooks", "--check", str(book)])
    assert (book / "_book" / "index.html").read_text() == "the old site"
    assert "restored _book" in capsys.readouterr().out
    assert hidden(book) == []


@pytest.mark.usefixtures("with_assets")
def test_killed_while_it_executes_it_goes_on_where_it_was(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# A\n\n```{python}\nprint('first')\n```\n",
        two_qmd=f"# B\n\n```{{python}}\n{LATER}```\n",
    )
    with started(book, "--jobs", "1") as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("executed index.qmd")
    (book / "go").touch()
    lines: list[str] = []
    site = build(book, progress=lines.append)
    assert "unchanged index.qmd" in lines
    assert any(line.startswith("executed two.qmd") for line in lines)
    assert (site / "two.html").is_file()
    assert hidden(book) == []


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have SIGINT interrupt these tests and what they start, as in a terminal.

    A script's shell starts what it puts in the background with SIGINT ignored, and so does
    what that starts. A build keeps to this, as it should: Ctrl-C isn't meant for it then.
    """
    if os.name == "nt":
        pytest.skip("Windows has no SIGINT to send")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("with_assets", "ctrl_c")
def test_interrupted_it_stops_the_cell_that_runs(make_book: MakeBook) -> None:
    book = make_book(index_qmd=f"# A\n\n```{{python}}\nopen('begun', 'w').close()\n{LATER}```\n")
    with started(book) as running:
        assert wait_for((book / "begun").exists)
        running.send_signal(signal.SIGINT)
        told = running.communicate(timeout=10)
    assert running.returncode == 130, told
    assert hidden(book) == []


@pytest.mark.usefixtures("ctrl_c")
def test_interrupted_before_its_kernel_starts_a_page_runs_no_cell(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the first second of a build, in which what runs kernels is imported."""
    book = make_book(index_qmd="# A\n\n```{python}\nopen('begun', 'w').close()\n```\n")
    wish, wished, ended = Stop.wish, threading.Event(), threading.Event()
    main_thread = threading.get_ident()

    def wish_and_tell(stop: Stop) -> None:
        wish(stop)
        wished.set()

    def interrupted(*given: Any, **more: Any) -> Any:
        signal.pthread_kill(main_thread, signal.SIGINT)
        wished.wait(10)
        try:
            return run_document(*given, **more)
        finally:
            ended.set()

    monkeypatch.setattr(Stop, "wish", wish_and_tell)
    monkeypatch.setattr("mlsim_book.run.execute.run_document", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(book)
    assert ended.wait(20)
    assert not (book / "begun").exists()


def test_a_lock_is_waited_for_and_of_the_dead_taken_over(tmp_path: Path) -> None:
    target = tmp_path / "_book"
    code = (
        "import sys, time, pathlib, mlsim_book.site.swap as lock\n"
        "with lock.hold(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        said: list[str] = []
        with (
            pytest.raises(BusyError, match=f"process {holder.pid} on .*more than 0.2 s") as caught,
            hold(target, wait=0.2, progress=said.append),
        ):
            pass
        assert "--output-dir" in str(caught.value)
        assert said[0].startswith(f"waiting for process {holder.pid}")
        holder.kill()
    assert lock_path(target).exists()
    with hold(target, wait=0):
        pass
    assert not lock_path(target).exists()


def test_a_kernel_that_dies_twice_is_told_with_its_line(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# A\n\n```{python}\n1\n```\n\n```{python}\nimport os\nos._exit(3)\n```\n",
        two_qmd="# B\n\nText.\n\nIs `{python} __import__('os').kill(__import__('os').getpid(), 9)`.\n",
    )
    said: list[str] = []
    with pytest.raises(CellError) as caught:
        execute(book, said.append)
    for words in (
        "index.qmd:7: the kernel died twice, in the cell (exit code 3)", "--jobs 1",
        "two.qmd:5: the kernel died twice, in the inline expression",
        "(signal 9: killed, as when out of memory)",
    ):  # fmt: skip
        assert words in str(caught.value)
    assert sum("running the page again" in line for line in said) == 2
    assert any(line.startswith("WARN: index.qmd:7: the kernel died") for line in said)


def test_a_time_limit_is_set_and_told(make_book: MakeBook) -> None:
    slow = "__import__('time').sleep(60)"
    book = make_book(
        "mlsim-book:\n  cell-timeout: 1\n",
        index_qmd=f"# A\n\n```{{python}}\n#| label: slow\n{slow}\n```\n",
        two_qmd=f"---\nmlsim-book:\n  cell-timeout: 1.5\n---\n\n# B\n\nIs `{{python}} {slow}`.\n",
    )
    with pytest.raises(CellError) as caught:
        execute(book)
    assert "index.qmd:3: the cell 'slow' ran longer than 1 s" in str(caught.value)
    assert "two.qmd:8: the inline expression" in str(caught.value)
    assert "longer than 2 s" in str(caught.value)
    assert "cell-timeout: <seconds>" in str(caught.value)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("with_assets")
def test_what_the_disk_refuses_leaves_the_old_site(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = make_book(index_qmd="# Before\n")
    before = site_hash(build(book, progress=str))
    (book / "index.qmd").write_text("# After\n")
    new = work_folder(book / "_book")
    for call, error, words in [
        ("write_text", FULL, ("No space left on device", "Free some space")),
        ("rename", PermissionError(errno.EACCES, "Permission denied"), ("denied", "writable")),
        ("mkdir", OSError(errno.EROFS, "Read-only file system"), ("Read-only", "--output-dir")),
    ]:
        real = getattr(Path, call)

        def refused(
            path: Path, *given: Any, real: Any = real, error: Any = error, **more: Any
        ) -> Any:
            if path.is_relative_to(new) and path.name in {"index.html", "new"}:
                raise error
            return real(path, *given, **more)

        with monkeypatch.context() as patch:
            patch.setattr(Path, call, refused)
            with pytest.raises(DiskError) as caught:
                build(book, progress=str)
        assert [each for each in words if each not in str(caught.value)] == []
        assert site_hash(book / "_book") == before
        assert hidden(book) == []
    build(book, progress=str)
    assert site_hash(book / "_book") != before


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\n```{python}\nopen('ran', 'w').close()\n```\n")
    (book / "closed").mkdir(mode=0o555)
    with pytest.raises(DiskError, match="Permission denied"):
        build(book, out=book / "closed" / "_book", progress=str)
    assert not (book / "ran").exists()  # told before any cell


def test_a_cache_on_a_full_disk_leaves_no_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, target: Path) -> Path:
        raise FULL

    monkeypatch.setattr(Path, "replace", refused)
    TextCache(tmp_path / "keep").store("key", "text")
    PageCache(tmp_path / "cache").store("key", Depends({}, {}), Results())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.usefixtures("with_assets")
def test_a_site_replaces_nothing_but_a_site(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n", sub__b_qmd="# B\n")
    (book / "papers").mkdir()
    (book / "papers" / "thesis.txt").write_text("years of work")
    (book / "file").touch()
    for name, words in {
        ".": "sources are there", "..": "sources are there", "sub": "sources are there",
        "papers": "no site", "file": "a file",
    }.items():  # fmt: skip
        with pytest.raises(SourceError, match=words):
            build(book, out=book / name, progress=str)
    assert (book / "papers" / "thesis.txt").is_file()
    (book / "empty").mkdir()
    assert (build(book, out=book / "empty", progress=str) / "index.html").is_file()
