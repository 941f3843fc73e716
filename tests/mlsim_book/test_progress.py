"""Progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.errors import CellError, Problems
from mlsim_book.progress import Teller, bar
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import execute_pages

MakeBook = Callable[..., Path]
CELL = "\n\n```{python}\n6 * 7\n```\n"


def test_a_log_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say = Teller()
    say.step(1, 3, "a.qmd")
    say("executed a.qmd")
    assert capsys.readouterr().out == "executed a.qmd\n"


def test_a_terminal_gets_a_bar_below_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say = Teller(terminal=True)
    say.step(1, 3, "a.qmd")
    say("executed a.qmd")
    say.step(3, 3, "b.qmd")
    shown = bar(1, 3, "a.qmd")
    assert capsys.readouterr().out == f"{shown}\r\x1b[Kexecuted a.qmd\n{shown}\r\x1b[K"


def test_a_bar_fits_the_line() -> None:
    assert len(bar(1, 2, "x" * 200, 60)) == 59
    assert bar(0, 0, "") == f"[{'-' * 24}] 0/0  "


def test_executing_shows_pages_and_leaves_no_bar(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd=f"# A{CELL}", two_qmd=f"# B{CELL}", three_qmd="# C\n")
    problems = Problems()
    execute_pages(load_project(book, problems), problems, progress=Teller(terminal=True))
    out = capsys.readouterr().out
    assert "2/3" in out
    assert out.endswith(("\r\x1b[K", "\n"))
    (book / "two.qmd").write_text("# B\n\n```{python}\n1 / 0\n```\n", encoding="utf-8")
    with pytest.raises(CellError):
        execute_pages(
            load_project(book, problems), problems, progress=Teller(terminal=True), refresh=True
        )
    assert capsys.readouterr().out.endswith(("\r\x1b[K", "\n"))
