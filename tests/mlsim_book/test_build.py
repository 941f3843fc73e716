"""Whole builds: what is written, what stops a build, and that the old site stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import StrictError, build, site_hash
from mlsim_book.errors import BookError, CellError, SourceError

MakeBook = Callable[..., Path]
KETTLE = Path(__file__).parents[1] / "fixtures" / "kettle"
pytestmark = pytest.mark.usefixtures("with_assets")


def quiet(line: str) -> None:
    """Say nothing."""


def test_two_builds_are_equal_byte_for_byte(tmp_path: Path) -> None:
    shutil.copytree(KETTLE, tmp_path / "a")
    shutil.copytree(KETTLE, tmp_path / "b")
    first = build(tmp_path / "a", progress=quiet)
    second = build(tmp_path / "b", progress=quiet, refresh=True)
    assert site_hash(first) == site_hash(second)


def test_what_a_site_holds(tmp_path: Path) -> None:
    shutil.copytree(KETTLE, tmp_path / "book")
    lines: list[str] = []
    site = build(tmp_path / "book", progress=lines.append)
    for name in ("index.html", "parts/pots.html", "parts/pot.svg", "data.csv",
                 "lesson_files/figure-html/fig-boil-output-1.svg", "site_libs/search/index.js"):  # fmt: skip
        stem = (site / name).with_suffix("")
        assert list(stem.parent.glob(stem.name + ".*")), name
    assert lines[-1].startswith("Open file://")
    assert lines[-1].endswith("index.html")
    assert any("http.server" in line for line in lines)
    page = (site / "lesson.html").read_text(encoding="utf-8")
    assert 'href="references.html#ref-pour2015"' in page
    assert "<title>1 How long to boil – The Kettle Book</title>" in page
    assert "edit/main/lesson.qmd" in page
    assert "x-ref" not in page
    assert "x-cite" not in page
    references = (site / "references.html").read_text(encoding="utf-8")
    assert references.count('class="csl-entry"') == 1
    assert "{python}" not in page


def test_the_cell_runs_and_its_figure_is_placed_with_its_caption(tmp_path: Path) -> None:
    shutil.copytree(KETTLE, tmp_path / "book")
    page = (build(tmp_path / "book", progress=quiet) / "lesson.html").read_text(encoding="utf-8")
    assert 'alt="A falling curve of time against power"' in page
    assert "Figure&nbsp;1.1: Time falls with power" in page
    assert "167.4 s" in page


FAULTS = {
    "unresolved reference": ("# A\n\nSee @fig-none.\n", "index.qmd:3", "@fig-none", StrictError),
    "duplicate label": (
        "# A\n\n$$ a $$ {#eq-a}\n\n$$ b $$ {#eq-a}\n", "index.qmd:5", "used twice", StrictError,
    ),
    "broken formula": ("# A\n\nText $\\frac{1}{$ here.\n", "index.qmd:3", "KaTeX", StrictError),
    "missing link": ("# A\n\n[gone](gone.qmd)\n", "index.qmd:3", "gone.qmd", StrictError),
    "missing image": ("# A\n\n![x](gone.svg)\n", "index.qmd:3", "gone.svg", StrictError),
    "unknown citation": ("# A\n\nBy @nobody2000.\n", "index.qmd:3", "@nobody2000", StrictError),
    "unclosed div": ("# A\n\n::: {.callout-note}\nText.\n", "index.qmd:3", "div", BookError),
    "bad cell option": (
        "# A\n\n```{python}\n#| echo: maybe\n1\n```\n", "index.qmd:4", "echo", SourceError,
    ),
    "failing cell": (
        '# A\n\n```{python}\nx = 1\nraise RuntimeError("dry")\n```\n', "index.qmd:5", "dry",
        CellError,
    ),
    "failing expression": ("# A\n\nIs `{python} nope`.\n", "index.qmd:3", "NameError", CellError),
    "bad front matter": ('---\ntitle: "x\n---\n', "index.qmd:2", "YAML", SourceError),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_its_place_and_keeps_the_old_site(make_book: MakeBook, fault: str) -> None:
    text, place, said, kind = FAULTS[fault]
    book = make_book(index_qmd="# Before\n\nGood.\n")
    site = build(book, progress=quiet)
    before = site_hash(site)
    (book / "index.qmd").write_text(text, encoding="utf-8")
    lines: list[str] = []
    with pytest.raises(kind) as caught:
        build(book, progress=lines.append)
    told = "\n".join([*lines, str(caught.value)])
    assert place in told
    assert said in told
    assert site_hash(site) == before
    assert not [path for path in book.iterdir() if path.name.startswith("._book")]


def test_lenient_builds_all_the_same(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\nSee @fig-none and $\\frac{1}{$.\n")
    lines: list[str] = []
    page = (build(book, lenient=True, progress=lines.append) / "index.html").read_text("utf-8")
    assert "?fig-none" in page
    assert "math-error" in page
    assert sum(line.startswith("WARN: index.qmd:3") for line in lines) == 2


def test_a_problem_page_is_replaced_once_mended(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\nOne.\n")
    build(book, progress=quiet)
    (book / "index.qmd").write_text("# A\n\nTwo.\n", encoding="utf-8")
    assert "Two." in (build(book, progress=quiet) / "index.html").read_text("utf-8")


def test_a_title_with_an_expression_is_shown_with_its_value(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n", two_qmd="# Sum `{python} 6 * 7`\n\nText.\n")
    page = (build(book, progress=quiet) / "index.html").read_text("utf-8")
    assert "Sum 42" in page


def test_escaped_cells_are_shown_not_run(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\n```{{python}}\n#| echo: false\n1 / 0\n```\n")
    page = (build(book, progress=quiet) / "index.html").read_text("utf-8")
    assert "{python}" in page
    assert "{{python}}" not in page
