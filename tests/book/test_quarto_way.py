"""Every page of the book by Quarto's way: its rules for inline results, then pandoc.

Quarto puts a result in the place of its expression line by line: the first of HTML, Markdown,
SVG and plain text that there is, HTML between backticks. A result that breaks its sentence
there shows up in what pandoc makes of the page. The book's own filter runs as Quarto would run
it, before citations are resolved.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import kept
import pytest

from mlsim import draw, show, table
from mlsim_book.check.quarto import compare_numbers, scan_page
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Cell, Markdown
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
            classes = str(block.options.get("classes") or "").split()
            box = " ".join(f".{each.lstrip('.')}" for each in ("cell", *classes))
            fence = "::::::::::"
            pieces += ["", f"{fence} {{{box}}}", "", *outputs(block, next(cells)), fence, ""]
    return f"<main>{as_quarto(page.chapter.source, pieces)}</main>"


def as_quarto(source: str, pieces: list[str], *, root: Path = ROOT) -> str:
    """Return what pandoc makes of a page's Markdown with the book's filter and its citations."""
    offset = "/".join([".."] * source.count("/")) or "."
    given = {"file": root / source, "root": root, "offset": offset}
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            kept.script("before_book.lua").format(
                **{key: f"[[{value}]]" for key, value in given.items()}
            )
        )
        script.flush()
        options = ["--from=markdown", "--to=html", "--mathjax", f"--lua-filter={script.name}",
                   "--citeproc", "--bibliography=references.bib"]  # fmt: skip
        return run_pandoc(options, "\n\n".join(pieces), cwd=ROOT)[0]


@pytest.fixture(scope="module")
def quarto_way(built_book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every page of the book as Quarto's way makes it, of the results of its cells.

    The build has kept these: no cell runs again.
    """
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
    """Nor a number that our site does not show; nothing folds the sidebar away.

    Citations and references are missing there, so the other way round can't be asked. Quarto folds
    the sidebar beside whatever is wider than the text, but to the right.
    """
    pages = sorted(quarto_way.rglob("*.html"))
    assert len(pages) > 10
    texts = {page: page.read_text("utf-8") for page in pages}
    assert sum(text.count("<button") for text in texts.values()) > 300
    columns, linked = set(), set()
    for page, text in texts.items():
        name = page.relative_to(quarto_way).as_posix()
        ours = (built_book / name).read_text("utf-8")
        assert [str(each) for each in scan_page(text, name, allowed=ours)] == []
        columns.update(re.findall(r'[" ](column-[\w-]+)', text))
        for target in re.findall(r'href="([^":]*\.ipynb)"', text):
            linked.add((page.parent / target).resolve().relative_to(quarto_way.resolve()))
    assert columns == {"column-page-right"}
    differ = compare_numbers(quarto_way, built_book)
    assert [str(each) for each in differ if "only in Quarto's page" in each.what] == []
    # each notebook is linked from its page
    assert linked == {path.relative_to(ROOT) for path in ROOT.glob("notebooks/**/*.ipynb")}
    assert len(linked) > 10
    assert "notebooks/**/*.ipynb" in (ROOT / "_quarto.yml").read_text("utf-8")


def test_notes_are_resolved_as_the_page_is() -> None:
    """Two works of one author and year have letters, in notes, too; so have those in tables."""
    reasons = ("[@nvidia2022a100]", "as printed [@nvidia2022a100, page 2; @nvidia2022triton]")
    told = [inline({"text/html": show(3, "rows", because=why)._repr_html_()}) for why in reasons]
    rows = table([{"Rows": show(3, "rows", because=reasons[1])}]).markdown()
    html = as_quarto(
        "index.qmd", [f"{told[0]} and {told[1]}", rows, "So [@nvidia2022a100; @nvidia2022triton]."]
    )
    assert scan_page(f"<main>{html}</main>") == []
    assert "opens" not in html
    said = " ".join(re.sub("<[^>]*>", "", html).split())
    first = re.search(r"rows = 3, \((NVIDIA 2022[ab])\)", said)
    last = re.search(r"So \((NVIDIA 2022[ab]), (2022[ab])\)", said)
    assert first[1] == last[1]
    assert said.count(f"as printed ({last[1]}, 2; {last[2]})") == 2


def test_a_drawing_gives_its_own_alternative_text(tmp_path: Path) -> None:
    svg = draw.chip("A100").svg
    (tmp_path / "a.svg").write_text(svg, "utf-8")
    told = svg.partition("<desc>")[2].partition("</desc>")[0]
    for attribute, wanted in (("", told), ("{fig-alt='mine'}", "mine")):
        made = as_quarto("page.qmd", [f"![A chip](a.svg){attribute}"], root=tmp_path)
        assert f'data-fig-alt="{wanted}"' in " ".join(made.split())


def test_an_html_block_would_be_seen() -> None:
    html, _ = run_pandoc(["--from=markdown"], f"It takes {inline({'text/html': '<p>5</p>'})} s.")
    assert scan_page(f"<main>{html}</main>")
