"""Edits of prose that are rendered without the rest of their page, and those that can't be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kept import cases, text

from mlsim_book.errors import ToolError
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.render.splice import Splicer, changed_paragraphs, same, splice
from mlsim_book.render.to_html import LUA, page_config

PAGE = text("splice_page.qmd.txt")
CONFIG = json.dumps(
    page_config(Project(Path(), "B", ()), ExecutedPage(Chapter("a.qmd", "", "", 1), "", {}, {}, ""))
)


def render(text: str) -> str:
    """Render a text as a page is rendered."""
    arguments = ["--from=markdown", "--to=html5", "--section-divs", "--wrap=none",
                 f"--lua-filter={LUA / 'book.lua'}"]  # fmt: skip
    return run_pandoc(arguments, text, environment={"MLSIM_BOOK_PAGE": CONFIG})[0]


@pytest.fixture(scope="module")
def page() -> str:
    """The page as it is before an edit."""
    return render(PAGE)


def edited(page: str, old: str, new: str) -> str | None:
    """Put words in the place of others, the first time they stand there; render that quickly."""
    splicer = Splicer()
    splicer.note("a.qmd", "", PAGE, page)
    text = PAGE.replace(old, new, 1)
    assert text != PAGE
    html = splicer.quick("a.qmd", "", text, render, lambda: render(text))
    if html is not None:
        assert splicer.unsure
        assert splicer.confirm()
        assert not splicer.unsure
    return html


def test_prose_is_rendered_alone_and_what_may_reach_further_is_not(page: str) -> None:
    for old, new, shown in cases("edits_of_prose.toml"):
        assert shown in (edited(page, old, new) or ""), old
    for old, new in cases("edits_that_reach_further.toml"):
        assert edited(page, old, new) is None, old
    splicer = Splicer()
    splicer.note("a.qmd", "", PAGE, page)

    def never(*_: str) -> str:
        raise AssertionError

    assert splicer.quick("a.qmd", "", PAGE, never, never) == page
    assert splicer.quick("a.qmd", "other", PAGE, never, never) is None
    assert splicer.quick("b.qmd", "", PAGE, never, never) is None


def test_many_edits_build_on_each_other(page: str) -> None:
    splicer = Splicer()
    splicer.note("a.qmd", "", PAGE, page)
    text = PAGE
    for number in range(4):
        text = text.replace("Water falls", f"Water {number} falls [@more{number}]")
        text = text.replace("Inside", f"Inside {number}")
        if number % 2:
            text = text.replace("Inside", "In")
        splicer.quick("a.qmd", "", text, render, lambda text=text: render(text))  # type: ignore[misc]
        splicer.note("a.qmd", "", text, render(text)) if number == 1 else None
    assert splicer.confirm()


def test_what_was_shown_wrong_is_told_and_forgotten(page: str) -> None:
    splicer = Splicer()
    splicer.note("a.qmd", "", PAGE, page)
    text = PAGE.replace("It falls", "It rains")
    assert splicer.quick("a.qmd", "", text, render, lambda: page)
    assert not splicer.confirm()
    assert splicer.quick("a.qmd", "", text, render, lambda: page) is None

    def broken() -> str:
        raise ToolError("pandoc failed")

    splicer.note("a.qmd", "", PAGE, page)
    assert splicer.quick("a.qmd", "", text, render, broken)
    assert not splicer.confirm()


def test_a_passage_that_is_not_on_the_page_is_not_replaced(page: str) -> None:
    assert splice(page, render("Elsewhere."), render("Here.")) is None
    assert splice(page, render("Twice."), render("Once.")) is None
    assert same(page, render(PAGE))
    assert not same(page, render(PAGE.replace("one2001", "two2002")))


def test_paragraphs_are_found_whole() -> None:
    old = "One\ntwo.\n\n- a\n\n- b\n\n  more\n\nThree."
    change = changed_paragraphs(old, old.replace("two", "2"))
    assert change is not None
    assert (change.old, change.new) == ("One\ntwo.", "One\n2.")
    listed = changed_paragraphs(old, old.replace("more", "less"))
    assert listed is not None
    assert listed.old == "- a\n\n- b\n\n  more"
