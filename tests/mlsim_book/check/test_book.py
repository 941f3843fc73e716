"""`mlsim-book check` finds what a reader would trip over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import build
from mlsim_book.check.book import check_book, check_sources
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
KETTLE = Path(__file__).parents[2] / "fixtures" / "kettle"
pytestmark = pytest.mark.usefixtures("with_assets")


@pytest.fixture
def kettle(tmp_path: Path) -> Path:
    shutil.copytree(KETTLE, tmp_path / "book")
    build(tmp_path / "book", progress=str)
    return tmp_path / "book"


def told(root: Path) -> list[str]:
    return [problem.text() for problem in check_book(root).found]


def test_a_good_book_has_no_problems(kettle: Path) -> None:
    assert told(kettle) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("#eq-boil", "#eq-gone", "anchor that lesson.html doesn't have"),
        ('href="data.csv"', 'href="gone.csv"', "gone.csv leads nowhere"),
        ('alt="A falling curve of time against power"', "", "no alternative text"),
        ("<main ", '<script src="https://cdn.example.org/x.js"></script><main ', "cdn.example.org"),
        ("<main ", '<p id="eq-boil"></p><main ', "'eq-boil' is on lesson.html twice"),
    ],
)
def test_faults_of_the_site(kettle: Path, old: str, new: str, said: str) -> None:
    page = kettle / "_book" / "lesson.html"
    text = page.read_text("utf-8")
    changed = (
        text.replace(f'href="{old}"', f'href="{new}"')
        if old.startswith("#")
        else text.replace(old, new)
    )
    assert changed != text
    page.write_text(changed, encoding="utf-8")
    assert any(said in line and line.startswith("lesson.qmd") for line in told(kettle))


def test_styles_may_not_load_from_elsewhere(kettle: Path) -> None:
    (kettle / "_book" / "more.css").write_text(
        "a { background: url(https://cdn.example.org/a.png) }"
    )
    assert any("cdn.example.org" in line for line in told(kettle))


def test_no_site_is_a_problem(make_book: MakeBook) -> None:
    assert any("no built site" in line for line in told(make_book(index_qmd="# A\n")))


def test_references_are_checked_without_building(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# A\n\nSee @fig-a, @fig-no and `@fig-code`.\n\n```{python}\n#| label: fig-a\n1\n```\n"
        "\n```python\nx = '@fig-quoted'\n```\n"
    )
    problems = Problems()
    project = load_project(book, problems)
    check_sources(project, parse_pages(project, problems), problems)
    assert [(each.line, each.message) for each in problems.found] == [
        (3, "Unable to resolve crossref @fig-no")
    ]


def test_stale_notebooks_are_told(kettle: Path) -> None:
    (kettle / "notebooks").mkdir()
    assert any("lesson.ipynb" in line for line in told(kettle))


def test_a_chapter_that_runs_again_is_told_of_while_the_notebooks_are_compared(
    kettle: Path,
) -> None:
    """Cells may run for minutes, so a check that runs them may not be silent."""
    (kettle / "notebooks").mkdir()
    lesson = kettle / "lesson.qmd"
    more = "\n```{python}\n1 + 1\n```\n"
    lesson.write_text(lesson.read_text(encoding="utf-8") + more, encoding="utf-8")
    said: list[str] = []
    check_book(kettle, progress=said.append)
    (begins,) = (n for n, line in enumerate(said) if line.startswith("comparing notebooks"))
    assert any(line.startswith("executed lesson.qmd") for line in said[begins:])
