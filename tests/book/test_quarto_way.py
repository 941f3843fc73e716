"""Every page of the book by Quarto's way: its rules for inline results, then pandoc alone.

Quarto puts a result in the place of its expression line by line: the first of HTML, Markdown,
SVG and plain text that there is, HTML between backticks. A result that breaks its sentence
there shows up in what pandoc makes of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mlsim_book.check.quarto_scan import compare_numbers, scan_page
from mlsim_book.errors import Problems
from mlsim_book.read.document import Cell, Markdown
from mlsim_book.read.project import load_project
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.run.inline import find_inline
from mlsim_book.run.pages import ParsedPage, parse_pages, run_pages
from mlsim_book.run.results import Output, Results

ROOT = Path(__file__).parents[2]
EXPRESSION = re.compile(r"(^|[^`])`\{python\}[ \t]([^`]+)`")
ORDER = ("text/html", "text/markdown", "image/svg+xml", "image/png", "text/plain")
ESCAPED = re.compile(r"([\\`*_{}\[\]()>#+-.!])")


def first(data: Mapping[str, str]) -> str:
    return next(each for each in ORDER if each in data)


def inline(data: Mapping[str, str]) -> str:
    """Return what Quarto writes for the result of an expression."""
    kind = first(data)
    if kind == "text/html":
        return f"`{data[kind]}`{{=html}}"
    if kind == "text/plain" and data[kind][:1] in "'\"":
        return ESCAPED.sub(r"\\\1", data[kind][1:-1].replace("\\", "\\\\"))
    return data[kind]


def prose(block: Markdown, values: Iterator[Mapping[str, str]]) -> str:
    known = {each.expression: next(values) for each in find_inline(block)}

    def put(match: re.Match[str]) -> str:
        data = known.get(match[2].strip())
        return match[1] + inline(data) if data and inline(data) else match[0]

    return "\n".join(EXPRESSION.sub(put, line) for line in block.text.split("\n"))


def outputs(cell: Cell, given: tuple[Output, ...]) -> Iterator[str]:
    for each in given:
        if each["output_type"] == "stream":
            asis = cell.options.get("output") == "asis"
            yield each["text"] if asis else f"```\n{each['text']}\n```"
        elif "data" in each:
            kind = first(each["data"])
            text = each["data"][kind]
            yield {"text/html": f"```{{=html}}\n{text}\n```", "text/markdown": text}.get(kind, "")


def rendered(page: ParsedPage, results: Results) -> str:
    """Return the page as pandoc alone makes it of what Quarto would hand on."""
    values, cells, pieces = iter(results.values), iter(results.cells), []
    for block in page.document.blocks:
        if isinstance(block, Markdown):
            pieces.append(prose(block, values))
        else:
            pieces += ["", *outputs(block, next(cells)), ""]
    html, _ = run_pandoc(["--from=markdown", "--to=html", "--mathjax"], "\n\n".join(pieces))
    return f"<main>{html}</main>"


@pytest.fixture(scope="module")
def quarto_way(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every page of the book as Quarto's way makes it."""
    problems = Problems()
    project = load_project(ROOT, problems)
    pages = parse_pages(project, problems)
    folder = tmp_path_factory.mktemp("quarto")
    for page, results in zip(pages, run_pages(project, pages), strict=True):
        path = folder / page.chapter.href
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(page, results), "utf-8")
    return folder


def test_no_page_shows_what_must_not_be_seen(quarto_way: Path, built_book: Path) -> None:
    pages = sorted(quarto_way.rglob("*.html"))
    assert len(pages) > 10
    assert sum(page.read_text("utf-8").count("<button") for page in pages) > 300
    for page in pages:
        name = page.relative_to(quarto_way).as_posix()
        ours = (built_book / name).read_text("utf-8")
        assert [str(each) for each in scan_page(page.read_text("utf-8"), name, allowed=ours)] == []


def test_no_number_is_shown_that_our_site_does_not_show(quarto_way: Path, built_book: Path) -> None:
    """Citations and references are missing there, so the other way round can't be asked."""
    differ = compare_numbers(quarto_way, built_book)
    assert [str(each) for each in differ if "only in Quarto's page" in each.what] == []


def test_an_html_block_would_be_seen() -> None:
    html, _ = run_pandoc(["--from=markdown"], f"It takes {inline({'text/html': '<p>5</p>'})} s.")
    assert scan_page(f"<main>{html}</main>")
