"""What `mlsim-book check` tells of sources: the bibliography, and the rules of chapters."""

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
BIB = "@book{ada1843,\n  title = {Notes},\n}\n\n@misc{hill2001, title = {Heat}}\n"
WITH_BIB = "bibliography: refs.bib\n"
IN_DATA = "mlsim-book:\n  citation-keys-in: {}\n"


def told(root: Path) -> list[str]:
    """Check a book with a site of one empty page."""
    (root / "_book").mkdir(exist_ok=True)
    page = "<!DOCTYPE html><title>A</title><h1>A</h1><a href='#ref-linked'>b</a>"
    (root / "_book" / "index.html").write_text(page + "<p id='ref-linked'>c</p>")
    problems = check_book(root)
    assert not any("cited nowhere" in each.message for each in problems.found)  # only advice
    return [each.text() for each in (*problems.found, *problems.advice)]


@pytest.fixture
def cites(make_book: MakeBook) -> Callable[..., list[str]]:
    """Check a page that cites, beside a bibliography of two entries."""

    def check(text: str, extra: str = WITH_BIB, bib: str = BIB, **files: str) -> list[str]:
        files = {"index.qmd": f"# A\n\n{text}\n", "refs.bib": bib, **files}
        return told(make_book(extra, **files))

    return check


def test_an_entry_that_is_there_twice(cites: Callable[..., list[str]]) -> None:
    (said,) = cites("@ada1843 @hill2001", bib=BIB + "@misc{ada1843, }\n")
    assert said.startswith("refs.bib:6: the entry 'ada1843' is there twice, first at refs.bib:1")


def test_entries_that_nothing_uses(cites: Callable[..., list[str]]) -> None:
    """Cells, exercises and data may cite; the bibliography itself doesn't."""
    (said,) = cites("As in @ada1843.")
    assert said.startswith("refs.bib:5: the entry 'hill2001' is cited nowhere")
    assert "citation-keys-in" in said
    assert cites("@ada1843 @hill2001", bib=BIB + "@misc{linked, title = {By a cell}}\n") == []
    in_data = WITH_BIB.replace("refs.bib", "data/refs.bib") + IN_DATA.format("[data]")
    found = cites("@ada1843", in_data, **{"data/refs.bib": BIB})
    assert any("'hill2001' is cited nowhere" in each for each in found)


@pytest.mark.parametrize(
    ("extra", "more"),
    [
        (IN_DATA.format("[data]"), {"data/a.toml": 'source = "hill2001"\n'}),
        (IN_DATA.format("[d.csv]"), {"d.csv": "1,hill2001\n"}),
        ("nocite: |\n  @hill2001\n", {}),
        ("nocite: |\n  @*\n", {}),
        ("", {"index.qmd": "# A\n\n@ada1843\n\n::: {x=1}\n[-@hill2001, p. 3]\n:::\n"}),
        ("", {"index.exercises.toml": "# [@hill2001]\n"}),
    ],
)
def test_entries_used_elsewhere(
    cites: Callable[..., list[str]], extra: str, more: dict[str, str]
) -> None:
    found = cites("As in @ada1843.", WITH_BIB + extra, **more)
    assert [each for each in found if "cited nowhere" in each] == []


def test_a_wrong_setting_is_refused(make_book: MakeBook) -> None:
    for value in ("data", "[gone]", "[1]"):
        with pytest.raises(SourceError, match="citation-keys-in"):
            told(
                make_book(WITH_BIB + IN_DATA.format(value), index_qmd="# A\n", **{"refs.bib": BIB})
            )
    for rule, said in kept.cases("wrong_rules.toml", "chapters"):
        with pytest.raises(SourceError) as caught:
            told(make_book(f"mlsim-book:\n  chapter-rules: [{rule}]\n", index_qmd="# A\n"))
        assert said in str(caught.value)


# ---------------------------------------------------------- chapters and their exercises
GOOD = kept.text("chapter_rules.exercises.toml")
CHAPTER = "# B\n\nYou will learn\n\n```python\nshow('one',\n  \"two\", 'watt')\n```\n"


@pytest.fixture
def ruled(make_book: MakeBook) -> Callable[..., Path]:
    """Write a book with rules for its chapter, and exercises beside that."""

    def make(chapter: str = CHAPTER, exercises: str = GOOD) -> Path:
        rules = kept.text("chapter_rules.txt")
        beside = {"parts/b.exercises.toml": exercises}
        return make_book(rules, index_qmd="# A\n", parts__b_qmd=chapter, **beside)

    return make


def unbuilt(root: Path) -> list[str]:
    """Check a book that has no site."""
    problems = check_book(root).found
    return [each.text() for each in problems if "no built site" not in each.message]


def test_what_breaks_a_rule_of_chapters(ruled: Callable[..., Path]) -> None:
    assert unbuilt(ruled()) == []
    for old, new, said in kept.cases("wrong_rules.toml", "broken"):
        assert old in CHAPTER + GOOD
        assert unbuilt(ruled(CHAPTER.replace(old, new), GOOD.replace(old, new))) == [said]
    root = ruled()
    (root / "parts" / "b.exercises.toml").unlink()
    (problem,) = unbuilt(root)
    said = "parts/b.qmd: this chapter has no exercises\n  Write b.exercises.toml"
    assert problem.startswith(said)


def test_exercises_that_no_page_shows_are_told(make_book: MakeBook) -> None:
    check = "[[selfcheck]]" + GOOD.partition("[[selfcheck]]")[2]
    files = {f"{each}.exercises.toml": check.replace("watt", each) for each in ("one", "two")}
    book = make_book(index_qmd="# A\n\n`show('one')`\n", **files)
    (said,) = [each for each in told(book) if "no page shows" in each]
    assert said.startswith("two.exercises.toml: ")


def test_a_chapter_that_the_book_does_not_list(ruled: Callable[..., Path]) -> None:
    root = ruled(CHAPTER + "\n{{< include shared.qmd >}}\n")
    for name in ("_book", ".hidden", "other"):
        (root / name).mkdir()
        (root / name / "c.qmd").write_text("# C\n")
    for name in ("shared", "_more", "new"):
        (root / "parts" / f"{name}.qmd").write_text("Text.\n")
    (root / "other" / "_quarto.yml").write_text("project:\n  type: book\n")
    (said,) = unbuilt(root)
    assert said == (
        "parts/new.qmd: this chapter is not in the book: _quarto.yml does not list it\n"
        "  Add it under `book: chapters:`; or, if pages include it, call it _new.qmd."
    )


def test_what_is_wrong_with_exercises_is_said_before_pages_are_run(
    ruled: Callable[..., Path],
) -> None:
    root = ruled(exercises=GOOD.replace("title =", "titel =").replace("ice =", "ise ="))
    (root / "parts" / "c.exercises.toml").write_text("[[exercise]\n")
    first, second = unbuilt(root)
    assert first.startswith("parts/b.exercises.toml:3: unknown key 'titel'")
    assert second.startswith("parts/c.exercises.toml:1: invalid TOML")


def test_an_exercise_that_can_not_be_computed_is_no_traceback(ruled: Callable[..., Path]) -> None:
    cell = "from mlsim_exercises.bank import Bank\nBank('b.exercises.toml').show('two')"
    root = ruled(
        f"# B\n\n```{{python}}\n#| output: asis\n{cell}\n```\n",
        GOOD.replace('"6 * n"', '"6 * litres"'),
    )
    with pytest.raises(CellError) as caught:
        execute_pages(load_project(root, Problems()), Problems(), cache=PageCache(root / "cache"))
    assert str(caught.value) == (
        "b.exercises.toml:11: the answer of 'two' raised NameError: name 'litres' is not defined\n"
        "  The page asks for it at parts/b.qmd:6."
    )
