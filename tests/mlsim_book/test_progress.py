"""Progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import CellError, Problems
from mlsim_book.progress import Teller, bar
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results

MakeBook = Callable[..., Path]
CELL = "\n\n```{python}\n6 * 7\n```\n"


def test_a_log_gets_plain_lines_and_a_terminal_a_bar_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = bar(1, 3, "a.qmd")
    for say, told in [
        (Teller(), "executed a.qmd\n"),
        (Teller(terminal=True), f"{shown}\r\x1b[Kexecuted a.qmd\n{shown}\r\x1b[K"),
    ]:
        say.step(1, 3, "a.qmd")
        say("executed a.qmd")
        say.step(3, 3, "b.qmd")
        assert capsys.readouterr().out == told


def test_a_bar_fits_the_line() -> None:
    assert len(bar(1, 2, "x" * 200, 60)) == 59
    assert bar(0, 0, "") == f"[{'-' * 24}] 0/0  "


def test_executing_shows_pages_and_leaves_no_bar(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, name: str, **__: Any) -> Results:
        if failing == name:
            raise CellError("failed", file=name)
        return Results(((),))

    monkeypatch.setattr("mlsim_book.run.execute.run_document", run)
    book = make_book(index_qmd=f"# A{CELL}", two_qmd=f"# B{CELL}", three_qmd="# C\n")
    problems, failing = Problems(), ""
    project = load_project(book, problems)
    execute_pages(project, problems, progress=Teller(terminal=True))
    out = capsys.readouterr().out
    assert "2/3" in out
    assert out.endswith(("\r\x1b[K", "\n"))
    failing = "two.qmd"
    with pytest.raises(CellError, match=r"two\.qmd: failed"):
        execute_pages(project, problems, progress=Teller(terminal=True), refresh=True)
    assert capsys.readouterr().out.endswith(("\r\x1b[K", "\n"))
