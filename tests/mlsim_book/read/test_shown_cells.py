"""Cells in other languages: shown as code, told of once, and no reason to stop a build."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import cases

from mlsim_book.build import build
from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Cell, advise_languages, parse_blocks
from mlsim_book.render.notebooks import make_notebooks
from mlsim_book.run.pages import parse_pages
from mlsim_book.site.template import strip_tags

MakeBook = Callable[..., Path]
PYTHON = "```{python}\n1 + 1\n```\n"


def shown(text: str) -> str:
    """Return the Markdown that a text without Python becomes."""
    blocks = parse_blocks(split_lines(text, file="a.qmd"))
    assert not any(isinstance(block, Cell) for block in blocks)
    return "".join(block.text for block in blocks if not isinstance(block, Cell))


def test_code_without_its_option_lines() -> None:
    for cell, markdown in cases("shown_cells.toml"):
        assert shown(f"a\n\n{cell}\nb\n") == f"a\n\n{markdown}\nb\n", cell
    with pytest.raises(SourceError, match=r"a\.qmd:1: the cell that opens here is not closed"):
        shown("```{bash}\nls\n")
    # a diagram in a list stays in it, and with a label it is a figure
    text = shown("- a\n\n  ```{mermaid}\n  %%| echo: true\n  graph LR\n  ```\n")
    assert all(line.startswith("  ") for line in text.splitlines()[1:] if line.strip())
    assert text.count("graph LR") == 2
    assert "%%|" not in text
    text = shown('```{dot}\n//| label: fig-m\n//| fig-cap: "A *b*\n//|   c"\ngraph {}\n```\n')
    assert "::: {#fig-m}" in text
    assert "\n\n::: {.cell-output-display}\n" in text
    assert "\nA *b* c\n" in text
    assert "fig-cap" not in text


@pytest.fixture
def book(make_book: MakeBook) -> Path:
    return make_book(
        index_qmd=f"# A\n\n{PYTHON}\n```{{bash}}\n#| echo: true\necho `{{python}} 1/0`\n```\n",
        b_qmd="# B\n\n```{bash}\nls\n```\n\n```{r}\nx\n```\n\n```{r}\ny\n```\n\nSee @lst-a.\n\n"
        '```{julia}\n#| lst-label: lst-a\n#| lst-cap: "A *loop*"\nfor i in 1:2 end\n```\n',
    )


@pytest.mark.usefixtures("with_assets")
def test_a_strict_build_shows_them_and_tells_of_each_language_once(book: Path) -> None:
    lines: list[str] = []
    site = build(book, progress=lines.append)
    told = [line for line in lines if line.startswith("WARN: ")]
    assert [line.split(": cells in ")[0] for line in told] == [
        "WARN: index.qmd:7", "WARN: b.qmd:7", "WARN: b.qmd:17",
    ]  # fmt: skip
    assert [line.split("'")[1] for line in told] == ["bash", "r", "julia"]
    assert "wants R" in told[1]
    assert "wants R" not in told[0] + told[2]
    index, other = ((site / name).read_text("utf-8") for name in ("index.html", "b.html"))
    assert '<pre class="sourceCode bash' in index
    assert "echo `{python} 1/0`" in strip_tags(index)  # code is code, whatever stands in it
    assert "#|" not in index + other
    assert "{bash}" not in index + other
    assert "Listing&nbsp;2.1: A <em>loop</em></figcaption>" in other
    assert "Listing&nbsp;<span>2.1</span>" in other
    problems = Problems()
    project = load_project(book, problems)
    assert [len(page.document.cells) for page in parse_pages(project, problems)] == [1, 0]
    made = make_notebooks(project, problems)  # there they are text
    assert list(made) == ["index.ipynb"]
    cells = json.loads(made["index.ipynb"])["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "``` bash\necho `{python} 1/0`\n```" in "".join(cells[2]["source"])
    assert not problems.found


def test_python_misspelled_is_no_other_language() -> None:
    for name in ("Python", "pyhton", "python3", "py"):
        problems = Problems()
        advise_languages(split_lines(f"a\n\n```{{{name}}}\n1 / 0\n```\n", file="a.qmd"), problems)
        [told] = problems.found
        assert (told.line, told.message.split(":")[0]) == (
            3, f"a cell in '{name}' is shown, not run",
        )  # fmt: skip
        assert "Write ```{python}" in (told.hint or "")
        assert not problems.advice
    assert shown("```{pyhton}\n1 / 0\n```\n") == "``` {.pyhton}\n1 / 0\n```\n"


def test_each_other_language_is_told_of_once() -> None:
    text = "".join(
        f"```{{{name}}}\nx\n```\n\n" for name in ("python", "r", "dot", "r", "cython", "ojs")
    )
    problems = Problems()
    advise_languages(split_lines(text, file="a.qmd"), problems)
    assert [(each.line, each.message.split("'")[1]) for each in problems.advice] == [
        (5, "r"), (17, "cython"), (21, "ojs"),
    ]  # fmt: skip
    hints = [each.hint or "" for each in problems.advice]
    assert ["wants R" in each for each in hints] == [True, False, False]
    assert ["reader's browser" in each for each in hints] == [False, False, True]
    assert not problems.found
