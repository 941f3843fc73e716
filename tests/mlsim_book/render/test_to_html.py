"""What the filter makes of Quarto's Markdown, feature by feature, on pages by hand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.paper.formats import paper_groups, rendered_for
from mlsim_book.read.lines import Reporter, split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Cell, parse_blocks
from mlsim_book.render.crossref import Words, build_index, label_texts, resolve
from mlsim_book.render.margins import place_margins
from mlsim_book.render.postprocess import Links, finish_html
from mlsim_book.render.to_html import RenderedPage, html_options, render_pages
from mlsim_book.run.pages import execute_pages
from mlsim_book.site import titles
from mlsim_book.site.template import page_title

CHAPTER = Chapter("a.qmd", "a.html", "T", 1)
CASES = tomllib.loads((FIXTURES / "cases" / "rendered.toml").read_text("utf-8"))["pages"]


def rendered(project: Project, text: str) -> RenderedPage:
    """Return a page without cells of Python, rendered; diagrams are shown as their source."""
    source = f"# T {{#sec-t}}\n\n{text}"
    blocks = parse_blocks(split_lines(source, file="a.qmd"))
    shown = "".join(each.text for each in blocks if not isinstance(each, Cell))
    page = ExecutedPage(CHAPTER, shown, {}, {}, source)
    (done,) = render_pages(project, [page], keep=TextCache(project.root / "keep"))
    return done


def missing(html: str, case: dict[str, Any]) -> Iterator[str]:
    """Yield what a page should have and has not, or has and should not."""
    yield from (text for text in case.get("has", ()) if text not in html)
    yield from (f"not {text}" for text in case.get("lacks", ()) if text in html)
    for text, times in case.get("count", {}).items():
        if html.count(text) != times:
            yield f"{times} times, not {html.count(text)}: {text}"
    for pattern, wanted in case.get("found", {}).items():
        if re.findall(pattern, html) != wanted:
            yield f"{wanted}, not {re.findall(pattern, html)}: {pattern}"
    places = [html.index(text) for text in case.get("order", ())]
    if places != sorted(places):
        yield f"in another order: {case['order']}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]) -> None:
    monkeypatch.setenv("QUARTO_PROFILE", "print,draft")
    metadata, problems = case.get("metadata", {}), Problems()
    lang = metadata.get("lang", "en")
    project = Project(tmp_path, "Book", (CHAPTER,), metadata=metadata, lang=lang)
    done = rendered(project, case["text"])
    reporter = Reporter(problems, tmp_path)
    index = build_index([done], reporter)
    html = resolve(done.body, done, index, Words(project), reporter)
    if case.get("finished"):
        links = Links(tmp_path, {"a.qmd": "a.html"}, {})
        html = finish_html(html, done.page, links, reporter)
    if case.get("margins"):
        html = place_margins(html, notes=case.get("notes", False))
    assert list(missing(html.replace("\n", ""), case)) == []
    told = [each.text() for each in problems.found] + [words for words, _ in done.notes]
    wanted = case.get("told", [])
    assert len(told) == len(wanted), told
    assert all(re.search(each, said) for each, said in zip(wanted, told, strict=True)), told
    if "labels" in case:
        assert label_texts(index, project) == case["labels"] | {"sec-t": "Chapter 1"}
    if "numbers" in case:
        assert [each.number for each in done.headings] == case["numbers"]


def test_labels_and_references_over_a_book(make_book: Callable[..., Path]) -> None:
    """Numbers go by chapter and kind, and links lead across pages and folders."""
    root = make_book(
        index_qmd="# One\n\nSee @eq-c, @sec-far, [-@eq-c].\n\n$$ a $$ {#eq-a}\n\n$$ b $$ {#eq-b}\n\n"
        "{{< include _more.qmd >}}\n",
        part__far_qmd="# Far {#sec-far}\n\n## Deep {#sec-deep}\n\n$$ c $$ {#eq-c}\n\n"
        "::: {#exr-x}\nHow?\n:::\n\n| a |\n|---|\n| 1 |\n\n: C {#tbl-t}\n\nBack to @eq-c.\n\n"
        "$$ d $$ {#eq-b}\n",
        **{"_more.qmd": "Text.\n\nSee @fig-no.\n"},
    )
    problems = Problems()
    project = load_project(root, problems)
    pages = render_pages(project, execute_pages(project, problems), keep=TextCache(root / ".keep"))
    reporter = Reporter(problems, root)
    index = build_index(pages, reporter)
    first, second = (resolve(page.body, page, index, Words(project), reporter) for page in pages)
    assert label_texts(index, project) == {
        "eq-a": "Equation 1.1", "eq-b": "Equation 2.2", "eq-c": "Equation 2.1",
        "sec-far": "Chapter 2", "sec-deep": "Section 2.1", "exr-x": "Exercise 2.1",
        "tbl-t": "Table 2.1",
    }  # fmt: skip
    for link in (
        '<a href="part/far.html#eq-c" class="quarto-xref">Equation&nbsp;<span>2.1</span></a>',
        '<a href="part/far.html" class="quarto-xref"><span>Chapter 2</span></a>',
        '<a href="part/far.html#eq-c" class="quarto-xref"><span>2.1</span></a>',
    ):
        assert link in first
    assert '<a href="#eq-c"' in second
    twice, absent = problems.found
    assert twice.text().startswith(
        "part/far.qmd:19: the label 'eq-b' is used twice, first at index.qmd:7"
    )
    assert (absent.file, absent.line) == ("_more.qmd", 3)


def test_a_page_without_a_number(tmp_path: Path) -> None:
    project = Project(tmp_path, "Book", (CHAPTER,), metadata={"number-sections": False})
    done = rendered(project, "Text.\n")
    assert 'class="chapter-number"' not in page_title(done)[1]
    assert 'class="chapter-title"' in page_title(done)[1]
    (entry,) = titles.sidebar(project, CHAPTER)
    assert entry.text == "T"


def test_options_of_a_page_are_taken_before_the_book_s(tmp_path: Path) -> None:
    top = dict.fromkeys(("lang", "toc", "column", "lightbox"), "top")
    html = dict.fromkeys(("toc", "column", "lightbox"), "html")
    metadata = {"column": "page", "lightbox": "page", "format": {"html": {"lightbox": "own"}}}
    project = Project(tmp_path, "B", (CHAPTER,), metadata={**top, "book": {}}, html=html)
    found = html_options(project, ExecutedPage(CHAPTER, "", metadata, {}, ""))
    assert found == {"lang": "top", "toc": "html", "column": "page", "lightbox": "own"}


def test_a_page_is_rendered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, "Book", (CHAPTER,))
    first = rendered(project, "Text.\n").body
    with monkeypatch.context() as patch:
        patch.delattr("mlsim_book.render.to_html.run_pandoc")
        assert rendered(project, "Text.\n").body == first


def test_each_format_shows_its_own_and_is_rendered_where_there_are_conditions(
    tmp_path: Path,
) -> None:
    names, project = ("html", "html:js", "pdf", "latex", "epub"), Project(tmp_path, "B", (CHAPTER,))
    text = "".join(
        f'::: {{.content-visible when-format="{name}"}}\nfor-{name}\n:::\n\n' for name in names
    )
    conditional, plain = (
        [ExecutedPage(CHAPTER, each, {}, {}, each)] for each in (text, "Plain.\n")
    )
    keep = TextCache(tmp_path / "keep")
    for form, shown in {"html": "html html:js", "pdf": "pdf latex", "epub": "html epub"}.items():
        made = rendered_for(form, project, conditional, keep)
        assert made is not None
        assert re.findall(r"for-([\w:]+)", made[0].body) == shown.split()
    assert rendered_for("pdf", project, plain, keep) is None
    assert paper_groups(("pdf", "epub", "zip"), conditional) == [["pdf"], ["epub"]]
    assert paper_groups(("zip",), plain) == []
