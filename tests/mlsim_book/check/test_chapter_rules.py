"""What `mlsim-book check` says of a chapter that isn't in the book, or breaks its rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kept
import pytest

from mlsim_book.check.book import check_book
from mlsim_book.errors import CellError, Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import execute_pages

MakeBook = Callable[..., Path]

RULES = kept.text("chapter_rules.txt")
EXERCISE = kept.text("chapter_rules.exercises.toml")
SELFCHECK = '[[selfcheck]]\nid = "watt"\nquestion = "?"\nchoices = ["a", "b"]\nanswer = "a"\n'
GOOD = (
    EXERCISE.format(id="one", level="recall", n=[1, 2, 3])
    + EXERCISE.format(id="two", level="design", n=[1])
    + SELFCHECK
)
CHAPTER = "# B\n\nYou will learn\n\n```python\nshow('one',\n  \"two\", 'watt')\n```\n"


def told(root: Path) -> list[str]:
    problems = check_book(root).found
    return [each.text() for each in problems if "no built site" not in each.message]


def book(make_book: MakeBook, chapter: str = CHAPTER, exercises: str = GOOD) -> Path:
    root = make_book(RULES, index_qmd="# A\n", parts__b_qmd=chapter)
    (root / "parts" / "b.exercises.toml").write_text(exercises)
    return root


def test_a_chapter_that_follows_the_rules(make_book: MakeBook) -> None:
    assert told(book(make_book)) == []


@pytest.mark.parametrize(
    ("chapter", "exercises", "said"),
    [
        (CHAPTER.replace("You will learn", "You learn"), GOOD,
         ("parts/b.qmd: nothing in this chapter matches '^You will learn$', as the book's rules ask\n"
         "  Say what readers will learn.")),
        (CHAPTER, GOOD.replace("[1, 2, 3]", "[1, 2]"),
         ("parts/b.exercises.toml: the exercises of parts/b.qmd have 0 [[exercise]] with 3 variants "
         "or more, but the book's rules ask for at least 1")),
        (CHAPTER, GOOD.replace('"design"', '"recall"'),
         ("parts/b.exercises.toml: the exercises of parts/b.qmd have none of level 'design', which "
         "the book's rules ask for")),
        (CHAPTER, GOOD.replace(SELFCHECK, ""),
         ("parts/b.exercises.toml: the exercises of parts/b.qmd have 0 [[selfcheck]], but the "
         "book's rules ask for at least 1")),
        (CHAPTER.replace('"two", ', ""), GOOD,
         ("parts/b.exercises.toml:11: the exercise 'two' is not shown in parts/b.qmd\n"
         '  Show it in a cell with `output: asis`, by its id: "two".')),
    ],
)  # fmt: skip
def test_what_breaks_a_rule(make_book: MakeBook, chapter: str, exercises: str, said: str) -> None:
    assert told(book(make_book, chapter, exercises)) == [said]


def test_a_chapter_without_exercises(make_book: MakeBook) -> None:
    root = book(make_book)
    (root / "parts" / "b.exercises.toml").unlink()
    (problem,) = told(root)
    assert problem.startswith(
        "parts/b.qmd: this chapter has no exercises\n  Write b.exercises.toml"
    )


def test_a_chapter_that_the_book_does_not_list(make_book: MakeBook) -> None:
    root = book(make_book, CHAPTER + "\n{{< include shared.qmd >}}\n")
    (root / "parts" / "shared.qmd").write_text("Text.\n")
    (root / "parts" / "_more.qmd").write_text("Text.\n")
    (root / "parts" / "new.qmd").write_text("# New\n")
    for name in ("_book", ".hidden", "other"):
        (root / name).mkdir()
        (root / name / "c.qmd").write_text("# C\n")
    (root / "other" / "_quarto.yml").write_text("project:\n  type: book\n")
    assert told(root) == [
        (
            "parts/new.qmd: this chapter is not in the book: _quarto.yml does not list it\n"
            "  Add it under `book: chapters:`; or, if pages include it, call it _new.qmd."
        )
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{chapter: a}", "_quarto.yml:8: `chapter-rules:` has {'chapter': 'a'}"),
        ("{chapters: a, exercise: 2}", "Did you mean 'exercises'?"),
        (
            "{chapters: a, exercises: many}",
            "_quarto.yml:8: 'exercises' is 'many', which must be a whole number",
        ),
        ("{chapters: a, text: 5}", "which must be a pattern in quotes"),
        ("{chapters: a, text: '('}", "has a wrong regular expression"),
    ],
)
def test_a_wrong_rule(make_book: MakeBook, rule: str, said: str) -> None:
    root = make_book(f"mlsim-book:\n  chapter-rules: [{rule}]\n", index_qmd="# A\n")
    with pytest.raises(SourceError) as caught:
        check_book(root)
    assert said in str(caught.value)


def test_what_is_wrong_with_exercises_is_said_before_pages_are_run(make_book: MakeBook) -> None:
    root = book(make_book, exercises=GOOD.replace("title =", "titel =").replace("ice =", "ise ="))
    (root / "parts" / "c.exercises.toml").write_text("[[exercise]\n")
    first, second = told(root)
    assert first.startswith("parts/b.exercises.toml:3: unknown key 'titel'")
    assert second.startswith("parts/c.exercises.toml:1: invalid TOML")


def test_an_exercise_that_can_not_be_computed_is_no_traceback(make_book: MakeBook) -> None:
    cell = "from mlsim_exercises.bank import Bank\nBank('b.exercises.toml').show('two')"
    root = book(
        make_book,
        f"# B\n\n```{{python}}\n#| output: asis\n{cell}\n```\n",
        GOOD.replace('"6 * n"', '"6 * litres"'),
    )
    with pytest.raises(CellError) as caught:
        execute_pages(load_project(root, Problems()), Problems(), cache=PageCache(root / "cache"))
    assert str(caught.value) == (
        "b.exercises.toml:11: the answer of 'two' raised NameError: name 'litres' is not defined\n"
        "  The page asks for it at parts/b.qmd:6."
    )
