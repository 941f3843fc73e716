"""Notebooks as chapters, and cells embedded from other notebooks and pages."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import ExecutedPage
from mlsim_book.read.ipynb import read_notebook
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import execute_pages

MakeBook = Callable[..., Path]
PIXEL = base64.b64encode(b"\x89PNG\r\n").decode()


def code(source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a code cell."""
    return {"cell_type": "code", "id": "abc12", "metadata": metadata, "source": source,
            "execution_count": 1, "outputs": list(outputs)}  # fmt: skip


def text(source: str, kind: str = "markdown", **more: Any) -> dict[str, Any]:
    """Return a text cell."""
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True), **more}


def stream(words: str) -> dict[str, Any]:
    """Return a stored stream."""
    return {"output_type": "stream", "name": "stdout", "text": [words]}


PLOT = {"output_type": "display_data", "data": {"image/png": PIXEL}, "metadata": {}}
CELLS = (
    text("# A notebook {#sec-nb}\n\nIs `{python} 1 + 1`.\n"),
    code("print('hello')", stream("stored\n")),
    code("#| label: fig-nb\n#| fig-cap: Stored\nplot()", PLOT),
    code("secret()", stream("shown\n"), tags=["remove-input", "mine"]),
    text("<b>raw</b>", "raw", metadata={"raw_mimetype": "text/html"}),
    text("![A](attachment:a.png)", attachments={"a.png": {"image/png": PIXEL}}),
)


def notebook(*cells: dict[str, Any]) -> str:
    """Return a notebook's file."""
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def pages(root: Path, *chapters: str, extra: str = "") -> list[ExecutedPage]:
    """Run a book of these chapters."""
    listed = ", ".join(chapters)
    (root / "_quarto.yml").write_text(
        f"project: {{type: book}}\nbook: {{title: T, chapters: [{listed}]}}\n{extra}"
    )
    problems = Problems()
    return execute_pages(load_project(root, problems), problems)


def test_stored_outputs_are_shown_and_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "nb.ipynb").write_text(notebook(*CELLS))
    (page,) = pages(tmp_path, "nb.ipynb")
    assert (page.chapter.title, page.chapter.label) == ("A notebook", "sec-nb")
    assert page.chapter.href == "nb.html"
    assert "stored" in page.markdown
    assert "Is `{python} 1 + 1`." in page.markdown
    assert "![Stored](nb_files/figure-html/fig-nb-output-1.png){#fig-nb}" in page.markdown
    assert "secret()" not in page.markdown
    assert "shown" in page.markdown
    assert "```{=html}\n<b>raw</b>\n```" in page.markdown
    assert set(page.files) == {
        "nb_files/figure-html/fig-nb-output-1.png",
        "nb_files/figure-html/cell-5-a.png",
    }


def test_a_notebook_runs_when_asked(tmp_path: Path) -> None:
    front = text("---\ntitle: Runs\nexecute: {enabled: true}\n---", "raw")
    (tmp_path / "nb.ipynb").write_text(notebook(front, code("print(6 * 7)", stream("old\n"))))
    (page,) = pages(tmp_path, "nb.ipynb")
    assert page.chapter.title == "Runs"
    assert "42" in page.markdown
    assert "old" not in page.markdown


def test_a_page_that_may_not_run_shows_its_code(tmp_path: Path) -> None:
    (tmp_path / "a.qmd").write_text("# A\n\n```{python}\n1 / 0\n```\n")
    (page,) = pages(tmp_path, "a.qmd", extra="execute: {enabled: false}\n")
    assert "1 / 0" in page.markdown
    assert "cell-output" not in page.markdown


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is no notebook"), ('{"nbformat": 3}', "format 3"), ("[]", "format None")],
)
def test_what_is_no_notebook(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "nb.ipynb").write_text(content)
    with pytest.raises(SourceError, match=words):
        read_notebook(tmp_path / "nb.ipynb", name="nb.ipynb")


@pytest.mark.parametrize("address", ["nb.ipynb#fig-nb", "nb.ipynb#abc12,fig-nb", "nb.ipynb[3]"])
def test_embedding_shows_outputs_only(tmp_path: Path, address: str) -> None:
    (tmp_path / "nb.ipynb").write_text(notebook(*CELLS))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.qmd").write_text(f"# A\n\n{{{{< embed ../{address} >}}}}\n")
    (page,) = pages(tmp_path, "sub/a.qmd")
    assert "![Stored](a_files/figure-html/nb/fig-nb-output-1.png){#fig-nb}" in page.markdown
    assert "sub/a_files/figure-html/nb/fig-nb-output-1.png" in page.files
    assert "plot()" not in page.markdown


def test_embedding_a_page_runs_it(tmp_path: Path) -> None:
    (tmp_path / "b.qmd").write_text("# B\n\n```{python}\n#| label: sum\nprint(2 + 3)\n```\n")
    (tmp_path / "a.qmd").write_text("# A\n\n{{< embed b.qmd#sum echo=true >}}\n")
    (page,) = pages(tmp_path, "a.qmd")
    assert "print(2 + 3)" in page.markdown
    assert "\n5\n" in page.markdown


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("no.ipynb#a", "does not exist"),
        ("nb.ipynb#fig-no", "'fig-no' does not exist in 'nb.ipynb'"),
        ("nb.ipynb[40]", "has 6 cells, not 40"),
        ("nb.txt", "can't be embedded"),
    ],
)
def test_what_cannot_be_embedded(tmp_path: Path, address: str, words: str) -> None:
    (tmp_path / "nb.ipynb").write_text(notebook(*CELLS))
    (tmp_path / "a.qmd").write_text(f"# A\n\n{{{{< embed {address} >}}}}\n")
    with pytest.raises(SourceError, match=words.replace("[", r"\[")) as caught:
        pages(tmp_path, "a.qmd")
    assert (caught.value.file, caught.value.line) == ("a.qmd", 3)
