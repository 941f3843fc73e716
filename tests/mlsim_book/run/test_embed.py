"""Cells embedded from other notebooks and pages: which, how, and where their figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept import cases, text, untold

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.ipynb import Notebook
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Document, parse_blocks
from mlsim_book.run.embed import expand_embeds
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results

SVG = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}}
CELLS = text("embedded.qmd.txt")


def stream(said: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": said}


RESULTS = Results(
    ((stream("hello\n"),), (SVG, stream("careful\n", "stderr")), (stream("5\n"),), ())
)


def embedded(root: Path, call: str, *, notebook: bool = True) -> ExecutedPage:
    """Embed by a call in a page; the file is a notebook whose text cells are one each."""
    for name in ("nb.ipynb", "sub/other.qmd"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    blocks = parse_blocks(split_lines(CELLS, file="nb.ipynb"))
    starts = (1, 3, 7, 13, 18, 23, 25)
    names = (("id0",), ("id1",), ("id2", "sums", "more"), ())
    stored = Notebook((), RESULTS.cells, names, starts) if notebook else None
    document = Document({}, blocks, CELLS, (), stored)
    source = f"# A\n\n```\n{call}\n```\n\n  {call}\n"
    page = ExecutedPage(Chapter("sub/a.qmd", "", "A", 1), source, {}, {"kept": b"1"}, source)
    done = expand_embeds(page, root, lambda _: (document, RESULTS))
    assert done.markdown.startswith(f"# A\n\n```\n{call}\n```\n\n")  # there it is shown
    assert done.files["kept"] == b"1"
    return done


def test_outputs_alone_are_shown(tmp_path: Path) -> None:
    for address in (
        "../nb.ipynb#fig-a",
        "/nb.ipynb#id1",
        "../nb.ipynb[3]",
        "../sub/../nb.ipynb#fig-a",
    ):
        page = embedded(tmp_path, f"{{{{< embed {address} >}}}}")
        shown = page.markdown.split("```\n", 2)[2]
        assert '::: {.quarto-embed-nb-cell notebook="nb.ipynb"}' in shown
        assert "![Stored](a_files/figure-html/nb/fig-a-output-1.svg){#fig-a}" in shown
        assert page.files["sub/a_files/figure-html/nb/fig-a-output-1.svg"] == b"<svg/>"
        assert [each for each in ("plot()", "careful", "hello") if each in shown] == []


def test_what_is_embedded(tmp_path: Path) -> None:
    every = ["# A notebook", "hello", "plot()", "Stored", "careful", "5", "More text."]
    for call, words in cases("embedded.toml"):
        page = embedded(tmp_path, f"{{{{< embed {call} >}}}}", notebook="nb." in call)
        lines = page.markdown.split("```\n", 2)[2].splitlines()
        assert [word for line in lines for word in every if word in line] == words, call


def test_what_cannot_be_embedded(tmp_path: Path) -> None:
    def embed(address: str) -> None:
        embedded(tmp_path, f"{{{{< embed {address} >}}}}")

    assert untold(embed, "not_embedded.toml") == []
    with pytest.raises(SourceError, match=r"^sub/a\.qmd:7: "):
        embed("gone.ipynb#a")


def test_a_page_that_is_embedded_runs(tmp_path: Path) -> None:
    (tmp_path / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [a.qmd]}\n")
    (tmp_path / "b.qmd").write_text("# B\n\n```{python}\n#| label: sum\nprint(2 + 3)\n```\n")
    (tmp_path / "a.qmd").write_text("# A\n\n{{< embed b.qmd#sum echo=true >}}\n")
    problems = Problems()
    (page,) = execute_pages(load_project(tmp_path, problems), problems)
    assert "print(2 + 3)" in page.markdown
    assert "\n5\n" in page.markdown
