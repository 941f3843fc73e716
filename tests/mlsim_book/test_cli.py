"""The command: exit codes, messages without tracebacks, the other engine."""

from __future__ import annotations

import re
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import build
from mlsim_book.cli import main
from mlsim_book.site.swap import BusyError, hold, lock_path, take_turns

MakeBook = Callable[..., Path]
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("with_assets")


@pytest.fixture
def book(make_book: MakeBook) -> Path:
    return make_book(index_qmd="# A\n\n```{python}\n1 + 1\n```\n")


def test_exit_codes_and_where_a_site_is(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(book)]) == 0
    assert "Open file://" in capsys.readouterr().out
    assert main(["check", str(book)]) == 0
    assert (book / "_book" / "index.html").is_file()
    assert main(["notebooks", str(book), "--check"]) == 1
    assert main(["notebooks", str(book)]) == 0
    assert main(["notebooks", str(book), "--check"]) == 0
    assert main(["build", str(book), "--output-dir", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there" / "index.html").is_file()
    capsys.readouterr()
    (book / "index.qmd").write_text("# A\n\nSee @fig-none.\n")
    assert main(["build", str(book)]) == 1
    said = "".join(capsys.readouterr())
    assert "index.qmd:3" in said
    assert "Traceback" not in said
    assert main(["build", str(book), "--lenient"]) == 0
    assert main(["build", str(tmp_path / "there")]) == 1
    assert "_quarto.yml" in capsys.readouterr().err
    for wrong in ([], ["bake"], ["build", "-j", "0"], ["build", "--engine", "x"]):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2


def test_without_the_grader_its_commands_say_what_to_install(
    book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mlsim_book.cli.entry_points", lambda group: ())
    assert main(["grade", "week2"]) == 1
    said = capsys.readouterr().err
    assert "mlsim-grading, which isn't installed" in said
    assert '"./mlsim_pkg[notebook]" ./book_pkg ./grading_pkg' in said
    main(["doctor"])
    assert re.search("-- +grading +not installed", capsys.readouterr().out)


# ------------------------------------------------------------------------- Quarto
def fake_quarto(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Put a quarto on the PATH that tells its Python, its arguments and what it finds frozen."""
    quarto = folder / "bin" / "quarto"
    quarto.parent.mkdir(exist_ok=True)
    quarto.write_text(
        f'#!/bin/sh\necho "$QUARTO_PYTHON $*" > "{folder}/called"\n'
        f'ls _freeze > "{folder}/frozen" 2>/dev/null\nmkdir -p _freeze/new\nexit {code}\n'
    )
    quarto.chmod(0o755)
    monkeypatch.setenv("PATH", f"{quarto.parent}:/usr/bin:/bin")


def test_quarto_runs_the_cells_with_this_python_and_its_exit_code_is_kept(
    book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("QUARTO_PYTHON", raising=False)
    for code, python in ((0, sys.executable), (3, "/my/python")):
        fake_quarto(tmp_path, monkeypatch, code)
        assert main(["build", str(book), "--engine", "quarto"]) == code
        assert (tmp_path / "called").read_text().startswith(f"{python} render {book}")
        monkeypatch.setenv("QUARTO_PYTHON", "/my/python")


def test_no_quarto(
    book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


# -------------------------------------------------------------------------- turns
@pytest.mark.parametrize(
    "command",
    [["build"], ["notebooks"], ["notebooks", "--check"], ["build", "--engine", "quarto"]],
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
        if "quarto" in command:  # nor does it wait for ever
            with pytest.raises(BusyError, match="has been building"):
                build(book, engine="quarto", wait=0.1, progress=str)
        assert not (tmp_path / "called").exists()
    thread.join()
    assert codes == [0]
    assert not lock_path(book / "_book").exists()


def test_a_book_that_nobody_can_write_needs_no_turns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mlsim_book.site.swap.os.access", lambda *_: False)
    with take_turns(tmp_path / "_book", print):
        assert not lock_path(tmp_path / "_book").exists()
