"""The pages of a book: which run, where, with what settings, and what becomes of failures.

Here a page that would run gives the number that stands for it, without a kernel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import BookError, CellError, Problems, SourceError
from mlsim_book.model import ExecutedPage
from mlsim_book.read.ipynb import Notebook
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Defaults, Document, parse_blocks
from mlsim_book.run import execute
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import execute_pages, raise_together
from mlsim_book.run.results import (
    Results,
    cell_timeout,
    runs as runs_at_all,
    runs_alone,
    stored_results,
)

MakeBook = Callable[..., Path]


class Runs:
    """Stands for the kernel: notes where pages run and how wide their figures are."""

    def __init__(self) -> None:
        self.ran: dict[str, tuple[str, Any, float]] = {}

    def __call__(self, _: object, defaults: Defaults, *, name: str, **more: Any) -> Results:
        width = defaults.values["fig-width"]
        self.ran[name] = (more["folder"].name, width, more["cell_timeout"])
        if "bad" in name:
            raise CellError("raised", file=name, line=7)
        if "b.qmd" in name:
            return Results(((stream("shown"),),))
        return Results((), ({"text/plain": "42"},))


def stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(execute, "run_document", made)
    return made


def pages(root: Path, said: list[str] | None = None, **options: Any) -> list[ExecutedPage]:
    project, cache = load_project(root, Problems()), PageCache(root / "cache")
    progress = (said if said is not None else []).append
    return execute_pages(project, Problems(), progress=progress, cache=cache, **options)


def test_pages_of_a_book(make_book: MakeBook, runs: Runs) -> None:
    """A page's own settings are taken before those of its folder, and these before the book's."""
    root = make_book(
        "fig-width: 3\nmlsim-book: {cell-timeout: 5}\n",
        index_qmd="# Number `{python} 6 * 7`\n",
        sub__b_qmd="---\nlang: de\nfig-width: 9\nmlsim-book: {cell-timeout: 2}\n---\n\n# B\n\n```{python}\n1\n```\n",
        off_qmd="---\nexecute: {enabled: false}\n---\n\n# Off `{python} 1`\n",
        prose_qmd="# Prose\n",
    )
    (root / "sub" / "_metadata.yml").write_text("flavour: lime\nfig-width: 7\n")
    said: list[str] = []
    made = pages(root, said)
    assert runs.ran == {"index.qmd": (root.name, 3, 5.0), "sub/b.qmd": ("sub", 9, 2.0)}
    assert [each.chapter.source for each in made] == [
        "index.qmd", "sub/b.qmd", "off.qmd", "prose.qmd",
    ]  # fmt: skip
    assert [each.chapter.title for each in made] == ["Number 42", "B", "Off `{python} 1`", "Prose"]
    own = {"lang": "de", "fig-width": 9, "mlsim-book": {"cell-timeout": 2}}
    assert made[1].metadata == own | {"flavour": "lime"}
    assert "shown" in made[1].markdown
    assert sorted(line.split(" in ")[0] for line in said) == [
        "executed index.qmd", "executed sub/b.qmd",
    ]  # fmt: skip
    said.clear()
    assert pages(root, said) == made
    assert sorted(said) == ["unchanged index.qmd", "unchanged sub/b.qmd"]
    runs.ran.clear()
    assert pages(root, chapters=["sub/b.qmd"], refresh=True) == made[1:2]
    assert list(runs.ran) == ["sub/b.qmd"]


def test_a_page_runs_in_the_book_s_folder_if_the_book_says_so(
    make_book: MakeBook, runs: Runs
) -> None:
    root = make_book(sub__b_qmd="# B\n\n```{python}\n1\n```\n")
    settings = root / "_quarto.yml"
    settings.write_text(
        settings.read_text().replace("type: book", "type: book\n  execute-dir: project")
    )
    pages(root)
    assert runs.ran["sub/b.qmd"][0] == root.name


def test_one_failure_is_told_as_it_is_and_several_together(make_book: MakeBook, runs: Runs) -> None:
    text = "# A `{python} 1`\n"
    root = make_book(z_bad_qmd=text, fine_qmd=text, a_bad_qmd=text)
    with pytest.raises(CellError) as caught:
        pages(root, jobs=1)
    assert str(caught.value) == "2 pages failed\na_bad.qmd:7: raised\nz_bad.qmd:7: raised"
    assert list(runs.ran) == ["z_bad.qmd", "fine.qmd", "a_bad.qmd"]
    with pytest.raises(CellError) as caught:
        pages(root, chapters=["fine.qmd", "a_bad.qmd"])
    assert (str(caught.value), caught.value.line) == ("a_bad.qmd:7: raised", 7)
    for name in ("z_bad.qmd", "a_bad.qmd"):
        (root / name).write_text("# A\n\n```{python}\n1\n")
    with pytest.raises(SourceError, match="2 pages failed"):
        pages(root)
    errors = [SourceError("one"), CellError("two")]
    with pytest.raises(BookError, match="2 pages failed\none\ntwo") as mixed:
        raise_together(errors)
    assert type(mixed.value) is BookError
    raise_together([])


def test_a_notebook_runs_only_where_it_is_asked_to() -> None:
    page, notebook = Document({}, (), ""), Document({}, (), "", (), Notebook(()))
    cases = [
        (page, {}, True), (page, {"enabled": False}, False), (page, {"ipynb": False}, True),
        (notebook, {}, False), (notebook, {"enabled": True}, True), (notebook, {"ipynb": True}, True),
        (notebook, {"ipynb": False, "enabled": True}, False),
    ]  # fmt: skip
    for document, execute_, wanted in cases:
        assert runs_at_all(document, {"execute": execute_}) is wanted, execute_
    assert runs_at_all(page, {"execute": False}) is True
    blocks = parse_blocks(split_lines("a `{python} n`\n\n```{python}\n1\n```\n", file="a.ipynb"))
    stored = ((stream("kept"),),)
    expression = ({"text/markdown": "`{python} n`"},)
    made = Document({}, blocks, "", (), Notebook((), stored))
    assert stored_results(made) == Results(stored, expression)
    assert stored_results(Document({}, blocks, "")) == Results(((),), expression)


# ------------------------------------------------ alone, beside others, for how long
CELL = "\n\n```{python}\n1\n```\n"
ALONE = "---\nmlsim-book: {alone: true}\n---\n\n"


def test_nothing_runs_beside_a_page_that_asks_for_it(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A and C wait for each other, so they run side by side; B and D run when they are done."""
    root = make_book(
        index_qmd=f"# A{CELL}",
        b_qmd=f"{ALONE}# B{CELL}",
        c_qmd=f"# C{CELL}",
        d_qmd=f"{ALONE}# D{CELL}",
    )
    together, running = threading.Barrier(2, timeout=60), set[str]()
    beside: dict[str, set[str]] = {}

    def run(*_: Any, name: str, **__: Any) -> Results:
        running.add(name)
        if name in {"index.qmd", "c.qmd"}:
            together.wait()
        beside[name] = set(running)
        if name in {"index.qmd", "c.qmd"}:
            together.wait()
        running.remove(name)
        return Results(((stream(name),),))

    monkeypatch.setattr("mlsim_book.run.execute.run_document", run)
    done = execute_pages(load_project(root, Problems()), Problems(), jobs=4, refresh=True)
    both = {"index.qmd", "c.qmd"}
    assert beside == {
        "index.qmd": both, "c.qmd": both, "b.qmd": {"b.qmd"}, "d.qmd": {"d.qmd"},
    }  # fmt: skip
    order = ["index.qmd", "b.qmd", "c.qmd", "d.qmd"]
    assert [page.chapter.source for page in done] == order
    assert [name in page.markdown for name, page in zip(order, done, strict=True)] == [True] * 4


def setting(name: str, value: Any) -> dict[str, Any]:
    return {"mlsim-book": {name: value}}


def test_a_page_s_own_setting_is_taken_before_the_book_s() -> None:
    assert runs_alone({}, {}, "a.qmd") is False
    assert runs_alone(setting("alone", True), {}, "a.qmd") is True
    assert runs_alone(setting("alone", True), setting("alone", False), "a.qmd") is False
    assert cell_timeout({}, {}, "a.qmd") == 600
    assert cell_timeout(setting("cell-timeout", 7), {}, "a.qmd") == 7
    assert cell_timeout(setting("cell-timeout", 7), setting("cell-timeout", 0.5), "a.qmd") == 0.5


WRONG: list[tuple[Callable[..., Any], str, list[Any], str]] = [
    (runs_alone, "alone", ["yes please", 1, [True], None], "must be `true` or `false`"),
    (
        cell_timeout, "cell-timeout", [0, -3, True, math.inf, math.nan, "an hour", None],
        "must be a number of seconds above 0",
    ),
]  # fmt: skip


def test_a_wrong_setting_is_refused_where_it_stands() -> None:
    for say, name, wrong, words in WRONG:
        for value in wrong:
            given = setting(name, value)
            for book, page, place in (({}, given, "a.qmd"), (given, {}, "_quarto.yml")):
                with pytest.raises(SourceError, match=words) as caught:
                    say(book, page, "a.qmd")
                assert caught.value.file == place
                assert f"`mlsim-book: {name}:` is {value!r}" in str(caught.value)
