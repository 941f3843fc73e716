"""Labels and references: numbers, words, links across pages, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.read.places import Reporter
from mlsim_book.read.project import load_project
from mlsim_book.render.crossref import Words, build_index, label_texts, resolve
from mlsim_book.render.to_html import RenderedPage, render_pages
from mlsim_book.run.pages import execute_pages

MakeBook = Callable[..., Path]


def rendered(root: Path) -> tuple[list[RenderedPage], Reporter, dict[str, str], list[str]]:
    problems = Problems()
    project = load_project(root, problems)
    pages = render_pages(project, execute_pages(project, problems), keep=TextCache(root / ".keep"))
    reporter = Reporter(problems, root)
    index = build_index(pages, reporter)
    words = Words(project)
    bodies = [resolve(page.body, page, index, words, reporter) for page in pages]
    return pages, reporter, label_texts(index, project), bodies


def test_numbers_go_by_chapter_and_kind(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\n$$ a $$ {#eq-a}\n\n$$ b $$ {#eq-b}\n",
        two_qmd="# Two {#sec-two}\n\n## Deep {#sec-deep}\n\n$$ c $$ {#eq-c}\n\n"
        "::: {#exr-x}\nHow?\n:::\n\n| a |\n|---|\n| 1 |\n\n: Caption {#tbl-t}\n",
    )
    _, _, texts, _ = rendered(book)
    assert texts == {
        "eq-a": "Equation 1.1", "eq-b": "Equation 1.2", "eq-c": "Equation 2.1",
        "sec-two": "Chapter 2", "sec-deep": "Section 2.1",
        "exr-x": "Exercise 2.1", "tbl-t": "Table 2.1",
    }  # fmt: skip


def test_references_lead_across_pages_and_folders(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\nSee @eq-far, @sec-far and [-@eq-far].\n",
        part__far_qmd="# Far {#sec-far}\n\n$$ a $$ {#eq-far}\n\nBack to @eq-far.\n",
    )
    _, reporter, _, (first, second) = rendered(book)
    assert not reporter.problems.found
    assert (
        '<a href="part/far.html#eq-far" class="quarto-xref">Equation&nbsp;<span>2.1</span></a>'
        in first
    )
    assert '<a href="part/far.html" class="quarto-xref"><span>Chapter 2</span></a>' in first
    assert '<a href="part/far.html#eq-far" class="quarto-xref"><span>2.1</span></a>' in first
    assert '<a href="#eq-far"' in second


def test_an_unresolved_reference_names_its_line_and_the_nearest_label(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# One\n\n$$ a $$ {#eq-speed}\n\nSee\n@eq-sped.\n")
    _, reporter, _, (body,) = rendered(book)
    (problem,) = reporter.problems.found
    assert (problem.file, problem.line) == ("index.qmd", 6)
    assert problem.message.startswith("Unable to resolve crossref @eq-sped")
    assert problem.hint == "Did you mean @eq-speed?"
    assert '<span class="quarto-unresolved-ref">?eq-sped</span>' in body


def test_a_label_used_twice_names_both_places(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\n$$ a $$ {#eq-a}\n", two_qmd="# Two\n\nText.\n\n$$ a $$ {#eq-a}\n"
    )
    _, reporter, _, _ = rendered(book)
    (problem,) = reporter.problems.found
    assert problem.text().startswith(
        "two.qmd:5: the label 'eq-a' is used twice, first at index.qmd:3"
    )


def test_a_reference_in_an_included_file_is_found_there(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\n{{< include _more.qmd >}}\n", **{"_more.qmd": "Text.\n\nSee @fig-no.\n"}
    )
    _, reporter, _, _ = rendered(book)
    assert [(each.file, each.line) for each in reporter.problems.found] == [("_more.qmd", 3)]


def test_an_unnumbered_section_is_referred_to_by_its_title(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\n## Loose ends {.unnumbered #sec-loose}\n\nSee @sec-loose.\n"
    )
    _, reporter, _, (body,) = rendered(book)
    assert not reporter.problems.found
    assert '<a href="#sec-loose">Loose ends</a>' in body


def test_parts_of_a_figure_count_by_letters(make_book: MakeBook) -> None:
    book = make_book(
        index_qmd="# One\n\n::: {#fig-both layout-ncol=2}\n![L](a.svg){#fig-l}\n\n"
        "![R](b.svg){#fig-r}\n\nBoth.\n:::\n\nSee @fig-r.\n"
    )
    _, _, texts, (body,) = rendered(book)
    assert texts == {"fig-both": "Figure 1.1", "fig-l": "Figure 1.1 (a)", "fig-r": "Figure 1.1 (b)"}
    assert body.count('class="quarto-layout-cell') == 2
    assert "(b) \nR" in body or "(b) R" in body


def test_custom_words(make_book: MakeBook) -> None:
    book = make_book(
        "crossref:\n  eq-prefix: eq.\n", index_qmd="# One\n\n$$ a $$ {#eq-a}\n\n@eq-a, @Eq-a\n"
    )
    _, _, _, (body,) = rendered(book)
    assert "eq.&nbsp;<span>1.1</span>" in body
    assert "Eq.&nbsp;<span>1.1</span>" in body
