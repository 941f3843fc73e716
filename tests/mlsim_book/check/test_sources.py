"""What `mlsim-book check` tells of sources: labels, citations, the bibliography."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.check.book import check_book
from mlsim_book.check.sources import cited_keys
from mlsim_book.errors import SourceError

MakeBook = Callable[..., Path]
BIB = "@book{ada1843,\n  title = {Notes},\n}\n\n@misc{hill2001, title = {Heat}}\n"
WITH_BIB = "bibliography: refs.bib\n"


def told(root: Path) -> list[str]:
    """Check a book with a site of one empty page."""
    (root / "_book").mkdir()
    page = "<!DOCTYPE html><title>A</title><h1>A</h1><a href='#ref-linked'>b</a>"
    (root / "_book" / "index.html").write_text(page + "<p id='ref-linked'>c</p>")
    problems = check_book(root)
    assert not any("cited nowhere" in each.message for each in problems.found)  # only advice
    return [each.text() for each in (*problems.found, *problems.advice)]


def test_unknown_citations_are_told_with_line_and_nearest_key(make_book: MakeBook) -> None:
    book = make_book(
        WITH_BIB, index_qmd="# A\n\nAs in [@ada1843; @hill2001].\nAnd @hil2001.\n", **{"refs.bib": BIB}
    )  # fmt: skip
    (said,) = told(book)
    assert said.startswith("index.qmd:4: citation @hil2001 not found")
    assert "Did you mean @hill2001?" in said


def test_a_chapter_that_was_taken_out_is_told_once_with_all_that_leads_to_it(
    make_book: MakeBook,
) -> None:
    book = make_book(
        index_qmd="# A {#sec-api}\n\nSee @sec-capacity.\n\n## As in @sec-capacity\n\n@eq-gone\n",
        two_qmd="# B\n\n[-@sec-capacity] and @sec-capacity.\n",
    )
    lost, equation, *_ = told(book)
    assert lost.startswith("index.qmd:3: Unable to resolve crossref @sec-capacity\n")
    assert lost.endswith("reword what leads there. It stands at index.qmd:5, two.qmd:3, too.")
    assert equation.startswith("index.qmd:7: Unable to resolve crossref @eq-gone")
    assert "too." not in equation


def test_exercises_that_no_page_shows_are_told(make_book: MakeBook) -> None:
    check = '[[selfcheck]]\nid = "{}"\nquestion = "?"\nchoices = ["a", "b"]\nanswer = "a"\n'
    files = {f"{each}.exercises.toml": check.format(each) for each in ("one", "two")}
    book = make_book(index_qmd="# A\n\n`show('one')`\n", **files)
    (said,) = [each for each in told(book) if "no page shows" in each]
    assert said.startswith("two.exercises.toml: ")


def test_what_is_no_citation() -> None:
    text = (
        "---\nauthor: '@someone'\n---\n\n# A\n\n`@code`, a@b.org, <https://x.org/@y>, \\@z, @fig-a\n"
        "[link](https://x.org/@me)\n\n```python\n@decorator\n```\n\n```{python}\n@other\n```\n"
    )
    assert list(cited_keys(text)) == []


def test_unused_entries_are_told_with_their_line(make_book: MakeBook) -> None:
    book = make_book(WITH_BIB, index_qmd="# A\n\nAs in @ada1843.\n", **{"refs.bib": BIB})
    (said,) = told(book)
    assert said.startswith("refs.bib:5: the entry 'hill2001' is cited nowhere")
    assert "citation-keys-in" in said


@pytest.mark.parametrize(
    ("extra", "more"),
    [
        ("mlsim-book:\n  citation-keys-in: [data]\n", {"data/a.toml": 'source = "hill2001"\n'}),
        ("mlsim-book:\n  citation-keys-in: [d.csv]\n", {"d.csv": "1,hill2001\n"}),
        ("nocite: |\n  @hill2001\n", {}),
        ("nocite: |\n  @*\n", {}),
        ("", {"index.qmd": "# A\n\n@ada1843\n\n::: {x=1}\n[-@hill2001, p. 3]\n:::\n"}),
        ("", {"index.exercises.toml": "# [@hill2001]\n"}),
    ],
)
def test_entries_used_elsewhere(make_book: MakeBook, extra: str, more: dict[str, str]) -> None:
    files = {"index.qmd": "# A\n\nAs in @ada1843.\n", "refs.bib": BIB, **more}
    book = make_book(WITH_BIB + extra, **files)
    assert [each for each in told(book) if "cited nowhere" in each] == []


def test_a_key_in_the_bibliography_itself_is_no_use(make_book: MakeBook) -> None:
    extra = WITH_BIB + "mlsim-book:\n  citation-keys-in: [data]\n"
    text = extra.replace("refs.bib", "data/refs.bib")
    book = make_book(text, index_qmd="# A\n\n@ada1843\n", **{"data/refs.bib": BIB})
    assert any("'hill2001' is cited nowhere" in each for each in told(book))


@pytest.mark.parametrize("value", ["data", "[gone]", "[1]"])
def test_a_wrong_setting_is_refused(make_book: MakeBook, value: str) -> None:
    book = make_book(
        WITH_BIB + f"mlsim-book:\n  citation-keys-in: {value}\n",
        index_qmd="# A\n", **{"refs.bib": BIB},
    )  # fmt: skip
    with pytest.raises(SourceError, match="citation-keys-in"):
        told(book)


def test_an_entry_that_is_there_twice(make_book: MakeBook) -> None:
    text = "# A\n\n@ada1843 @hill2001\n"
    book = make_book(WITH_BIB, index_qmd=text, **{"refs.bib": BIB + "@misc{ada1843, }\n"})
    (said,) = told(book)
    assert said.startswith("refs.bib:6: the entry 'ada1843' is there twice, first at refs.bib:1")


def test_labels_used_twice(make_book: MakeBook) -> None:
    figure = "![a](a.png){{#fig-{}}}\n\n"
    text = "# A\n\n" + figure.format("x") + figure.format("x") + "```md\n{#fig-x}\n```\n"
    (said,) = told(make_book(index_qmd=text))
    assert said.startswith("index.qmd:5: the label 'fig-x' is used twice, first at index.qmd:3")


def test_versions_of_a_thing_for_several_formats_share_a_label(make_book: MakeBook) -> None:
    text = '::: {.content-visible when-format="html"}\n![a](a.png){#fig-x}\n:::\n\n'
    assert told(make_book(index_qmd="# A\n\n" + text + text.replace("html", "pdf"))) == []


def test_an_entry_that_a_cell_cites(make_book: MakeBook) -> None:
    bib = BIB + "@misc{linked, title = {By a cell}}\n"
    book = make_book(WITH_BIB, index_qmd="# A\n\n@ada1843 @hill2001\n", **{"refs.bib": bib})
    assert told(book) == []
