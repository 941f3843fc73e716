"""The number check over whole books: where texts come from, lines, counts, exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kept
import pytest

from mlsim_book.build import build
from mlsim_book.check.numbers import check_numbers
from mlsim_book.cli import main
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
TEA = Path(__file__).parents[1] / "books" / "tea"


def told(book: Path) -> tuple[list[tuple[str, int | None, str]], dict[str, str]]:
    problems = Problems()
    project = load_project(book, problems)
    counts = check_numbers(project, parse_pages(project, problems), problems)
    found = [(each.file, each.line, each.message) for each in problems.found]
    return found, {name: each.text() for name, each in counts.items()}


def test_prose_front_matter_and_captions(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd=(
            "---\nsubtitle: In 5 ms\ndescription: |\n  Text.\n  In 6 ms.\n---\n\n# A\n\n"
            "```{python}\n#| label: fig-a\n#| fig-cap: In 7 ms\n#| fig-alt: In 8 ms\n"
            "# 9 ms\n1\n```\n\nIn `{python} 1` ms,\nnot 10 ms.\n"
        )
    )
    found, counts = told(book)
    assert found == [
        ("index.qmd", 2, "bare number '5 ms'"),
        ("index.qmd", 3, "bare number '6 ms'"),
        ("index.qmd", 12, "bare number '7 ms' in fig-cap"),
        ("index.qmd", 13, "bare number '8 ms' in fig-alt"),
        ("index.qmd", 19, "bare number '10 ms'"),
    ]
    assert counts == {"index.qmd": "1 computed, 0 cited, 0 given, 5 bare"}


def test_a_caption_covers_its_figure(make_book: MakeBook) -> None:
    cell = "```{python}\n#| fig-cap: In 7 ms [@a]\n#| fig-alt: In 8 ms\n1\n```\n"
    found, counts = told(make_book(index_qmd=f"# A\n\n{cell}"))
    assert found == []
    assert counts == {"index.qmd": "0 computed, 2 cited, 0 given, 0 bare"}


def test_included_files_and_the_book_itself(make_book: MakeBook) -> None:
    book = make_book(
        "  subtitle: In 3 ms\n",
        index_qmd="# A\n\n{{< include _more.qmd >}}\n",
        **{"_more.qmd": "Text.\n\nIn 5 ms.\n"},
    )
    found, counts = told(book)
    assert found == [
        ("_more.qmd", 3, "bare number '5 ms'"),
        ("_quarto.yml", 7, "bare number '3 ms'"),
    ]
    assert list(counts) == ["index.qmd", "_quarto.yml"]


EXERCISES = kept.text("counted.exercises.toml")


def test_exercises_beside_a_chapter(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n", part__b_qmd="# B\n", **{"part/b.exercises.toml": EXERCISES})
    found, counts = told(book)
    assert found == [
        ("part/b.exercises.toml", line, f"bare number '{number} ms'")
        for line, number in [(3, 1), (7, 2), (14, 5), (17, 6), (23, 9), (27, 10)]
    ]
    assert counts["part/b.exercises.toml"] == "1 computed, 0 cited, 2 given, 6 bare"


@pytest.mark.usefixtures("with_assets")
def test_the_command(make_book: MakeBook, capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(index_qmd="# A\n\nIn 5 ms.\n")
    build(book, progress=str)  # a bare number is no reason not to build
    assert main(["check", str(book)]) == 1
    said = capsys.readouterr()
    assert "index.qmd: 0 computed, 0 cited, 0 given, 1 bare" in said.out
    assert "index.qmd:3: bare number '5 ms'" in said.err
    for way in ("`{python} ...`", "[@key]", '[5 ms]{.given kind="assumption"}', "example"):
        assert way in said.err
    (book / "index.qmd").write_text("# A\n\nIn [5 ms]{.given kind='result'}.\n")
    assert main(["check", str(book)]) == 1
    assert "a result can't be given" in capsys.readouterr().err
    (book / "index.qmd").write_text("# A\n\nIn [5 ms]{.given kind='example'}.\n")
    assert main(["check", str(book)]) == 0


def test_a_book_in_order() -> None:
    found, counts = told(TEA)
    assert found == []
    assert counts["steep.qmd"] == "16 computed, 0 cited, 0 given, 0 bare"


def test_a_book_can_do_without(make_book: MakeBook) -> None:
    book = make_book("mlsim-book:\n  numbers: false\n", index_qmd="# A\n\nIn 5 ms.\n")
    assert told(book) == ([], {})
