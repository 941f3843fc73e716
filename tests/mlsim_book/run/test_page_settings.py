"""What a page says of how it runs: alone, beside others, for how long."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run.page_settings import cell_timeout, runs_alone
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results

MakeBook = Callable[..., Path]
CELL = "\n\n```{python}\n1\n```\n"
ALONE = "---\nmlsim-book: {alone: true}\n---\n\n"


def test_nothing_runs_beside_a_page_that_asks_for_it(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A and C wait for each other, so they run side by side; B and D run when they are done."""
    root = make_book(
        index_qmd=f"# A{CELL}",
        b_qmd=f"{ALONE}# B{CELL}",
        c_qmd=f"# C{CELL}",
        d_qmd=f"{ALONE}# D{CELL}",
    )
    together, running = threading.Barrier(2, timeout=60), set[str]()
    beside: dict[str, set[str]] = {}

    def run(*_: Any, name: str, **__: Any) -> Results:
        running.add(name)
        if name in {"index.qmd", "c.qmd"}:
            together.wait()
        beside[name] = set(running)
        if name in {"index.qmd", "c.qmd"}:
            together.wait()
        running.remove(name)
        return Results((({"output_type": "stream", "name": "stdout", "text": name},),))

    monkeypatch.setattr("mlsim_book.run.execute.run_document", run)
    done = execute_pages(load_project(root, Problems()), Problems(), jobs=4)
    both = {"index.qmd", "c.qmd"}
    assert beside == {
        "index.qmd": both, "c.qmd": both, "b.qmd": {"b.qmd"}, "d.qmd": {"d.qmd"},
    }  # fmt: skip
    order = ["index.qmd", "b.qmd", "c.qmd", "d.qmd"]
    assert [page.chapter.source for page in done] == order
    assert [name in page.markdown for name, page in zip(order, done, strict=True)] == [True] * 4


def setting(name: str, value: Any) -> dict[str, Any]:
    return {"mlsim-book": {name: value}}


def test_a_page_s_own_setting_is_taken_before_the_book_s() -> None:
    assert runs_alone({}, {}, "a.qmd") is False
    assert runs_alone(setting("alone", True), {}, "a.qmd") is True
    assert runs_alone(setting("alone", True), setting("alone", False), "a.qmd") is False
    assert cell_timeout({}, {}, "a.qmd") == 600
    assert cell_timeout(setting("cell-timeout", 7), {}, "a.qmd") == 7
    assert cell_timeout(setting("cell-timeout", 7), setting("cell-timeout", 0.5), "a.qmd") == 0.5


@pytest.mark.parametrize(
    ("say", "name", "wrong", "words"),
    [
        (runs_alone, "alone", ["yes please", 1, [True], None], "must be `true` or `false`"),
        (
            cell_timeout, "cell-timeout", [0, -3, True, math.inf, math.nan, "an hour", None],
            "must be a number of seconds above 0",
        ),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_where_it_stands(
    say: Callable[..., Any], name: str, wrong: list[Any], words: str
) -> None:
    for value in wrong:
        for book, page, place in (({}, setting(name, value), "a.qmd"),
                                  (setting(name, value), {}, "_quarto.yml")):  # fmt: skip
            with pytest.raises(SourceError, match=words) as caught:
                say(book, page, "a.qmd")
            assert caught.value.file == place
            assert f"`mlsim-book: {name}:` is {value!r}" in str(caught.value)
