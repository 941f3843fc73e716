"""The command: exit codes, messages without tracebacks, the other engine."""

from __future__ import annotations

import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import build
from mlsim_book.cli import main
from mlsim_book.site.lock import BusyError, hold, lock_path, take_turns

MakeBook = Callable[..., Path]
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("with_assets")


def test_build_and_check(make_book: MakeBook, capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(index_qmd="# A\n\nText.\n")
    assert main(["build", str(book)]) == 0
    assert "Open file://" in capsys.readouterr().out
    assert main(["check", str(book)]) == 0
    assert (book / "_book" / "index.html").is_file()


def test_output_folder(make_book: MakeBook, tmp_path: Path) -> None:
    book = make_book(index_qmd="# A\n\nText.\n")
    assert main(["build", str(book), "--output-dir", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there" / "index.html").is_file()


def test_errors_have_no_traceback(make_book: MakeBook, capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(index_qmd="# A\n\nSee @fig-none.\n")
    assert main(["build", str(book)]) == 1
    said = "".join(capsys.readouterr())
    assert "index.qmd:3" in said
    assert "Traceback" not in said
    assert main(["build", str(book), "--lenient"]) == 0


def test_no_book_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(tmp_path)]) == 1
    assert "_quarto.yml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["bake"], ["build", "-j", "0"], ["build", "--engine", "x"]]
)
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_notebooks(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\n```{python}\n1 + 1\n```\n")
    assert main(["notebooks", str(book), "--check"]) == 1
    assert main(["notebooks", str(book)]) == 0
    assert main(["notebooks", str(book), "--check"]) == 0


def fake_quarto(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    quarto = folder / "bin" / "quarto"
    quarto.parent.mkdir()
    quarto.write_text(f'#!/bin/sh\necho "called $*" > "{folder}/called"\nexit {code}\n')
    quarto.chmod(0o755)
    monkeypatch.setenv("PATH", f"{quarto.parent}:/usr/bin:/bin")


@pytest.mark.parametrize("code", [0, 3])
def test_quarto_engine_keeps_the_exit_code(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    book = make_book(index_qmd="# A\n")
    fake_quarto(tmp_path, monkeypatch, code)
    assert main(["build", str(book), "--engine", "quarto"]) == code
    assert (tmp_path / "called").read_text().startswith(f"called render {book}")


def quarto_that_freezes(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Put a quarto on the PATH that tells its Python and what it finds frozen."""
    fake_quarto(folder, monkeypatch, code)
    (folder / "bin" / "quarto").write_text(
        f'#!/bin/sh\necho "$QUARTO_PYTHON $*" > "{folder}/called"\n'
        f'ls _freeze > "{folder}/frozen" 2>/dev/null\nmkdir -p _freeze/new\nexit {code}\n'
    )


def test_quarto_runs_the_cells_with_this_python(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    book = make_book(index_qmd="# A\n")
    quarto_that_freezes(tmp_path, monkeypatch, 0)
    monkeypatch.delenv("QUARTO_PYTHON", raising=False)
    assert main(["build", str(book), "--engine", "quarto"]) == 0
    assert (tmp_path / "called").read_text().startswith(f"{sys.executable} render")
    monkeypatch.setenv("QUARTO_PYTHON", "/my/python")
    assert main(["build", str(book), "--engine", "quarto"]) == 0
    assert (tmp_path / "called").read_text().startswith("/my/python render")


@pytest.mark.parametrize("code", [0, 1])
def test_refresh_has_quarto_run_every_cell_and_loses_nothing(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    book = make_book(index_qmd="# A\n")
    quarto_that_freezes(tmp_path, monkeypatch, code)
    (book / "_freeze" / "old").mkdir(parents=True)
    assert main(["build", str(book), "--engine", "quarto", "--refresh"]) == code
    assert "--execute" in (tmp_path / "called").read_text()
    assert "--cache-refresh" not in (tmp_path / "called").read_text()
    assert (tmp_path / "frozen").read_text() == ""
    kept = [each.name for each in (book / "_freeze").iterdir()]
    assert kept == (["new"] if code == 0 else ["old"])
    assert not (book / "_freeze.before").exists()


def test_what_a_killed_refresh_put_away_comes_back(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    book = make_book(index_qmd="# A\n")
    quarto_that_freezes(tmp_path, monkeypatch, 0)
    (book / "_freeze.before" / "old").mkdir(parents=True)
    assert main(["build", str(book), "--engine", "quarto"]) == 0
    assert (tmp_path / "frozen").read_text() == "old\n"


def test_no_quarto(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    book = make_book(index_qmd="# A\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert main(["build", str(book), "--engine", "quarto"]) == 1
    said = capsys.readouterr().err
    assert "no `quarto` on the PATH" in said
    assert "pip install 'mlsim-book[quarto]'" in said
    extras = tomllib.loads((ROOT / "book_pkg" / "pyproject.toml").read_text())["project"]
    assert f"'{extras['optional-dependencies']['quarto'][0]}'" in said
    # what pip installs lies beside this Python, whose folder need not be on the PATH
    fake_quarto(tmp_path, monkeypatch, 3)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    assert main(["build", str(book), "--engine", "quarto"]) == 3


@pytest.mark.parametrize(
    "command", [["notebooks"], ["notebooks", "--check"], ["build", "--engine", "quarto"]]
)
def test_commands_that_run_cells_take_turns(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    book = make_book(index_qmd="# A\n")
    fake_quarto(tmp_path, monkeypatch, 0)
    codes: list[int] = []
    said = ""
    thread = threading.Thread(target=lambda: codes.append(main([*command, str(book)])))
    with hold(book / "_book", wait=0):
        thread.start()
        while "waiting for process" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().out
        assert not codes
        assert not (tmp_path / "called").exists()
    thread.join()
    assert codes == [0]
    assert not lock_path(book / "_book").exists()


def test_quarto_does_not_wait_for_ever(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    book = make_book(index_qmd="# A\n")
    fake_quarto(tmp_path, monkeypatch, 0)
    with hold(book / "_book", wait=0), pytest.raises(BusyError, match="has been building"):
        build(book, engine="quarto", wait=0.1, progress=str)
    assert not (tmp_path / "called").exists()


def test_a_book_that_nobody_can_write_needs_no_turns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mlsim_book.site.lock.os.access", lambda *_: False)
    with take_turns(tmp_path / "_book", print):
        assert not lock_path(tmp_path / "_book").exists()
