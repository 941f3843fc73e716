"""Exercises in a chapter: asked on its page, and found beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import text

from mlsim_book.errors import CellError, Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.read.project import load_project
from mlsim_book.render.notebooks import make_notebooks
from mlsim_book.run.pages import execute_pages

TEXT = text("double.exercises.toml")
SELFCHECK = '\n[[selfcheck]]\nid = "{0}"\nquestion = "{0}?"\nchoices = ["a", "b"]\nanswer = "a"\n'
CELL = """\
```{{python}}
#| echo: false
#| output: asis
from mlsim_exercises.bank import Bank
Bank("x.exercises.toml", module="kettles").show({})
```
"""


def test_in_a_chapter(make_book: Callable[..., Path]) -> None:
    root = make_book(index_qmd="# A\n\n" + CELL.format('"double"'))
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
    # a wrong id in a run names the page, too, and the nearest
    (root / "index.qmd").write_text("# A\n\n" + CELL.format('"double", "dubble"'))
    file.write_text(TEXT, encoding="utf-8")
    with pytest.raises(CellError, match=r"no exercise or self-check 'dubble'(.*\n)+") as caught:
        execute_pages(load_project(root, Problems()), Problems())
    assert "Did you mean 'double'?" in str(caught.value)
    assert "index.qmd:7" in str(caught.value)


def test_a_run_in_one_cell_is_as_its_exercises_in_cells_of_their_own(
    make_book: Callable[..., Path],
) -> None:
    """On the page, and in the notebook, which gives each a question and a cell to answer in."""
    names = ['"double"', '"triple"', '"watt"', '"volt"']
    alone = "\n".join(CELL.format(each) for each in names)
    page = "# T\n\n```{{python}}\n1 + 1\n```\n\nNow you.\n\n{}\nEnd.\n"
    together = CELL.format(", ".join(names))
    root = make_book(a_qmd=page.format(alone), b_qmd=page.format(together))
    triple = TEXT.replace('"double"', '"triple"').replace("2 *", "3 *")
    checks = SELFCHECK.format("watt") + SELFCHECK.format("volt")
    (root / "x.exercises.toml").write_text(f"{TEXT}\n{triple}{checks}", encoding="utf-8")
    project = load_project(root, Problems())
    one, run = execute_pages(project, Problems())
    one_text, run_text = (re.sub(r"\n\n+", "\n\n", each.markdown) for each in (one, run))
    assert one_text == run_text
    books = [json.loads(each) for each in make_notebooks(project, Problems()).values()]
    one_cells, run_cells = (
        [(each["cell_type"], "".join(each["source"])) for each in book["cells"]] for book in books
    )
    assert [source for kind, source in run_cells if 'check("' in source] == [
        f'from kettles import check, hint, reveal\n\nanswer = ...  # a number in s\ncheck("{name}", answer)'
        for name in ("double", "triple")
    ]
    assert one_cells == run_cells


def test_settings_that_name_no_folder(make_book: Callable[..., Path]) -> None:
    for given, said in (("questions", "list of paths"), ("[q]", "no folder")):
        root = make_book(f"mlsim-book:\n  exercises: {given}\n", index_qmd="# A\n")
        with pytest.raises(SourceError, match=said):
            exercise_files(load_project(root, Problems()), ["index.qmd"])
