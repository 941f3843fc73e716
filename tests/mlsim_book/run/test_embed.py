"""Cells embedded from other notebooks and pages: which, how, and where their figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.document import Document
from mlsim_book.read.ipynb import Notebook
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import parse_blocks
from mlsim_book.run.embed import expand_embeds
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results

SVG = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}}
CELLS = (Path(__file__).parents[2] / "fixtures" / "texts" / "embedded.qmd.txt").read_text("utf-8")


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


RESULTS = Results(
    ((stream("hello\n"),), (SVG, stream("careful\n", "stderr")), (stream("5\n"),), ())
)


def embedded(
    root: Path, call: str, *, source: str = "sub/a.qmd", notebook: bool = True
) -> ExecutedPage:
    """Embed by a call in a page; the file is a notebook whose text cells are one each."""
    for name in ("nb.ipynb", "sub/other.qmd"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    blocks = parse_blocks(split_lines(CELLS, file="nb.ipynb"))
    starts = (1, 3, 7, 13, 18, 23, 25)
    names = (("id0",), ("id1",), ("id2", "sums", "more"), ())
    stored = Notebook((), RESULTS.cells, names, starts) if notebook else None
    document = Document({}, blocks, CELLS, (), stored)
    text = f"# A\n\n```\n{call}\n```\n\n  {call}\n"
    page = ExecutedPage(Chapter(source, "", "A", 1), text, {}, {"kept": b"1"}, text)
    done = expand_embeds(page, root, lambda _: (document, RESULTS))
    assert done.markdown.startswith(f"# A\n\n```\n{call}\n```\n\n")  # there it is shown
    assert done.files["kept"] == b"1"
    return done


@pytest.mark.parametrize(
    "address", ["../nb.ipynb#fig-a", "/nb.ipynb#id1", "../nb.ipynb[3]", "../sub/../nb.ipynb#fig-a"]
)
def test_outputs_alone_are_shown(tmp_path: Path, address: str) -> None:
    page = embedded(tmp_path, f"{{{{< embed {address} >}}}}")
    shown = page.markdown.split("```\n", 2)[2]
    assert '::: {.quarto-embed-nb-cell notebook="nb.ipynb"}' in shown
    assert "![Stored](a_files/figure-html/nb/fig-a-output-1.svg){#fig-a}" in shown
    assert page.files["sub/a_files/figure-html/nb/fig-a-output-1.svg"] == b"<svg/>"
    for hidden in ("plot()", "careful", "hello"):
        assert hidden not in shown


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("../nb.ipynb#fig-a echo=true", ["plot()", "Stored"]),
        ("../nb.ipynb#fig-a warning=TRUE", ["Stored", "careful"]),
        ("../nb.ipynb#sums,id0", ["5", "hello"]),
        ("'../nb.ipynb#sums, id0'", ["5", "hello"]),
        ("../nb.ipynb[2,4]", ["hello", "5"]),
        ("../nb.ipynb[2-4]", ["hello", "Stored", "5"]),
        ("../nb.ipynb[6]", ["More text."]),
        ("../nb.ipynb", ["# A notebook", "hello", "Stored", "5", "More text."]),
        ("other.qmd[2]", ["hello"]),
        ("other.qmd[6]", ["More text."]),  # of a page, what has text counts
        ("other.qmd#par", ["More text."]),
        ("other.qmd#more", ["5"]),
    ],
)
def test_what_is_embedded(tmp_path: Path, call: str, words: list[str]) -> None:
    every = ["# A notebook", "hello", "plot()", "Stored", "careful", "5", "More text."]
    page = embedded(tmp_path, f"{{{{< embed {call} >}}}}", notebook="nb." in call)
    lines = page.markdown.split("```\n", 2)[2].splitlines()
    found = [word for line in lines for word in every if word in line]
    assert found == words


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("gone.ipynb#a", "the embedded file 'gone.ipynb' does not exist"),
        (
            "../nb.ipynb#no",
            "'no' does not exist in '../nb.ipynb'\n  Its cells are: fig-a, id0, id1,",
        ),
        ("../nb.ipynb#quiet", "the cell 'quiet' of '../nb.ipynb' has nothing to show"),
        ("../nb.ipynb[2,8]", "'../nb.ipynb' has 7 cells, not 8"),
        ("../nb.ipynb[0]", "has 7 cells, not 0"),
        ("nb.txt", "'nb.txt' can't be embedded"),
        ("nb.ipynb[", "'nb.ipynb[' can't be embedded"),
    ],
)
def test_what_cannot_be_embedded(tmp_path: Path, address: str, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        embedded(tmp_path, f"{{{{< embed {address} >}}}}")
    assert words in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("sub/a.qmd", 7)


def test_a_page_that_is_embedded_runs(tmp_path: Path) -> None:
    (tmp_path / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [a.qmd]}\n")
    (tmp_path / "b.qmd").write_text("# B\n\n```{python}\n#| label: sum\nprint(2 + 3)\n```\n")
    (tmp_path / "a.qmd").write_text("# A\n\n{{< embed b.qmd#sum echo=true >}}\n")
    problems = Problems()
    (page,) = execute_pages(load_project(tmp_path, problems), problems)
    assert "print(2 + 3)" in page.markdown
    assert "\n5\n" in page.markdown
