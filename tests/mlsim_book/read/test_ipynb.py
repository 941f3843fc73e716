"""Notebooks as chapters: their cells as those of a page, and their stored outputs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import ExecutedPage
from mlsim_book.read.ipynb import Notebook, read_notebook
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


def test_a_notebook_runs_when_asked_and_a_page_shows_its_code_when_it_may_not(
    tmp_path: Path,
) -> None:
    front = text("---\ntitle: Runs\nexecute: {enabled: true}\n---", "raw")
    (tmp_path / "nb.ipynb").write_text(notebook(front, code("print(6 * 7)", stream("old\n"))))
    (tmp_path / "a.qmd").write_text("# A\n\n```{python}\n1 / 0\n```\n")
    page, other = pages(tmp_path, "nb.ipynb", "a.qmd", extra="execute: {enabled: false}\n")
    assert page.chapter.title == "Runs"
    assert "42" in page.markdown
    assert "old" not in page.markdown
    assert "1 / 0" in other.markdown
    assert "cell-output" not in other.markdown


def read(folder: Path, *cells: dict[str, Any]) -> Notebook:
    (folder / "nb.ipynb").write_text(notebook(*cells), "utf-8")
    return read_notebook(folder / "nb.ipynb", name="nb.ipynb")


def test_tags_and_metadata_are_options(tmp_path: Path) -> None:
    """As Jupyter Book and Quarto name them; what the source says itself counts more."""
    wanted = {
        "hide-cell": "include: false", "remove-cell": "include: false",
        "hide-input": "echo: false", "remove-input": "echo: false", "show-input": "echo: true",
        "hide-output": "output: false", "remove-output": "output: false",
        "show-output": "output: true", "hide-warnings": "warning: false",
        "show-warnings": "warning: true",
    }  # fmt: skip
    for tag, option in wanted.items():
        lines = [line.text for line in read(tmp_path, code("1\n", tags=["mine", tag])).lines]
        assert lines == ["```{python}", f"#| {option}", "1", "```"], tag
    given = {"label": "fig-é", "fig-cap": ["a", "b"], "layout-ncol": 2, "collapsed": True}
    made = read(tmp_path, code("#| label: fig-own\n'```'", **given))
    assert [line.text for line in made.lines] == [
        "````{python}", '#| fig-cap: ["a", "b"]', "#| layout-ncol: 2", "#| label: fig-own", "'```'",
        "````",
    ]  # fmt: skip
    made = read(tmp_path, code("1", **given))
    assert made.lines[1].text == '#| label: "fig-é"'


def test_front_matter_opens_the_file(tmp_path: Path) -> None:
    """A blank cell above it has no line of its own."""
    front = text("---\ntitle: A\n---", "raw")
    made = read(
        tmp_path, text("\n"), front, text("two\nlines"), code("a\nb", tags=["x", "y"]), text("end")
    )
    texts = [line.text for line in made.lines]
    assert [texts[at - 1] for at in (1, 5, 8, 13)] == ["---", "two", "```{python}", "end"]
    assert {line.file for line in made.lines} == {"nb.ipynb"}
    made = read(tmp_path, code("1", stream("a at 0x7f21aa"), stream("b"), {"name": "broken"}))
    assert made.outputs == (({"output_type": "stream", "name": "stdout", "text": "a at 0x0b"},),)
    forms = {"text/html": "html", "text/latex": "latex", "text/restructuredtext": "rst"}
    for key in ("raw_mimetype", "format"):
        for mime, name in forms.items():
            lines = read(tmp_path, text("a", "raw", metadata={key: mime})).lines
            assert [line.text for line in lines] == [f"```{{={name}}}", "a", "```"]
    assert [line.text for line in read(tmp_path, text("a", "raw")).lines] == ["a"]
    wrong = {"{": "is no notebook", '{"nbformat": 3}': "format 3", "[]": "format None"}
    for content, words in wrong.items():
        (tmp_path / "nb.ipynb").write_text(content)
        with pytest.raises(SourceError, match=words) as caught:
            read_notebook(tmp_path / "nb.ipynb", name="nb.ipynb")
        assert (caught.value.file, caught.value.line) == ("nb.ipynb", 1 if content == "{" else None)


def test_attached_images_are_files_of_the_page(tmp_path: Path) -> None:
    attached = {
        "my a.jpg": {"text/plain": "A", "image/jpeg": PIXEL},
        "b.svg": {"image/svg+xml": ["<svg", "/>"]},
        "c.txt": {"text/plain": "C"},
    }
    source = "![A](attachment:my a.jpg) ![B](attachment:b.svg) [C](attachment:c.txt)"
    made = read(tmp_path, text("one"), text(source, attachments=attached))
    place = "nb_files/figure-html/cell-1-"
    assert made.lines[-1].text == f"![A]({place}my-a.jpg) ![B]({place}b.svg) [C](attachment:c.txt)"
    assert made.files == {f"{place}my-a.jpg": b"\x89PNG\r\n", f"{place}b.svg": b"<svg/>"}
