"""`mlsim-book check` finds what a reader would trip over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.check.book import check_book, check_sources
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("with_assets")


@pytest.fixture
def kettle(kettle_site: Path, tmp_path: Path) -> Path:
    """A copy of the small fixture book and its site, without its notebooks."""
    ignored = shutil.ignore_patterns("notebooks")
    shutil.copytree(kettle_site.parent, tmp_path / "book", ignore=ignored)
    shutil.copytree(kettle_site, tmp_path / "book" / "_book", dirs_exist_ok=True)
    return tmp_path / "book"


def told(root: Path) -> list[str]:
    return [problem.text() for problem in check_book(root).found]


def test_a_good_book_has_no_problems(kettle: Path) -> None:
    assert told(kettle) == []


FAULTS = {
    'href="#eq-boil"': ('href="#eq-gone"', "anchor that lesson.html doesn't have"),
    'href="data.csv"': ('href="gone.csv"', "gone.csv leads nowhere"),
    'alt="A falling curve of time against power"': ("", "no alternative text"),
    "<main ": (
        '<script src="https://cdn.example.org/x.js"></script><p id="eq-boil"></p><main ',
        "cdn.example.org", "'eq-boil' is on lesson.html twice",
    ),
}  # fmt: skip


def test_faults_of_the_site(kettle: Path) -> None:
    page = kettle / "_book" / "lesson.html"
    text = page.read_text("utf-8")
    for old, (new, *_) in FAULTS.items():
        assert old in text
        text = text.replace(old, new)
    page.write_text(text, encoding="utf-8")
    style = "a { background: url(https://cdn.example.org/a.png) }"
    (kettle / "_book" / "more.css").write_text(style)
    found = told(kettle)
    of_page = [line for line in found if line.startswith("lesson.qmd")]
    for words in (each for _, *said in FAULTS.values() for each in said):
        assert any(words in line for line in of_page), words
    assert any("more.css" in line and "cdn.example.org" in line for line in found)


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


def test_a_stale_notebook_is_told_of_and_so_is_a_chapter_that_runs_for_it(kettle: Path) -> None:
    """Cells may run for minutes, so a check that runs them may not be silent."""
    (kettle / "notebooks").mkdir()
    said: list[str] = []
    found = check_book(kettle, progress=said.append).found
    assert any("lesson.ipynb" in each.text() for each in found)
    (begins,) = (n for n, line in enumerate(said) if line.startswith("comparing notebooks"))
    assert any(line.startswith("executed lesson.qmd") for line in said[begins:])
