"""Exercises in a chapter: asked on its page, and found beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.errors import CellError, Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import execute_pages

TEXT = """\
[[exercise]]
id = "double"
title = "Twice the water"
kind = "number"
prompt = "How long for 2 kg?"
setup = "power, heat = 2000, 4186 * 80"
answer = "2 * heat / power"
unit = "s"
tolerance = 0.01
solution = "{answer:.0f} s, {answer / (heat / power):.0f} times as long."

[[exercise.wrong]]
answer = "heat / power"
because = "That is for 1 kg."
"""
CELL = (
    "# A\n\n```{python}\n#| echo: false\n#| output: asis\n"
    'from mlsim_exercises.bank import Bank\nBank("x.exercises.toml").show("double")\n```\n'
)


def test_in_a_chapter(make_book: Callable[..., Path]) -> None:
    root = make_book(index_qmd=CELL)
    file = root / "x.exercises.toml"
    file.write_text(TEXT, encoding="utf-8")
    project = load_project(root, Problems())
    assert exercise_files(project, ["index.qmd"]) == [file]
    (page,) = execute_pages(project, Problems())
    assert '\n::: {#exr-double .checked data-kind="number" data-answer=' in page.markdown
    assert "335 s, 2 times as long." in page.markdown
    file.write_text(TEXT.replace("2 * heat / power", "heat / power"), encoding="utf-8")
    with pytest.raises(
        CellError, match=r"^x\.exercises\.toml:12: the wrong path(.*\n)+.*index\.qmd:7"
    ):
        execute_pages(project, Problems())


@pytest.mark.parametrize(("given", "said"), [("questions", "list of paths"), ("[q]", "no folder")])
def test_settings_that_name_no_folder(
    make_book: Callable[..., Path], given: str, said: str
) -> None:
    root = make_book(f"mlsim-book:\n  exercises: {given}\n", index_qmd="# A\n")
    with pytest.raises(SourceError, match=said):
        exercise_files(load_project(root, Problems()), ["index.qmd"])
