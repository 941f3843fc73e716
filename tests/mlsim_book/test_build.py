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


def test_two_builds_of_a_book_are_equal_byte_for_byte_and_have_it_all(tmp_path: Path) -> None:
    shutil.copytree(KETTLE, tmp_path / "a")
    shutil.copytree(KETTLE, tmp_path / "b")
    lines: list[str] = []
    site = build(tmp_path / "a", progress=lines.append)
    second = build(tmp_path / "b", progress=quiet, refresh=True)
    assert site_hash(site) == site_hash(second)
    for name in ("index.html", "parts/pots.html", "parts/pot.svg", "data.csv",
                 "lesson_files/figure-html/fig-boil-output-1.svg", "site_libs/search/index.js"):  # fmt: skip
        stem = (site / name).with_suffix("")
        assert list(stem.parent.glob(stem.name + ".*")), name
    assert lines[-1].startswith("Open file://")
    assert lines[-1].endswith("index.html")
    assert any("http.server" in line for line in lines)
    page = (site / "lesson.html").read_text(encoding="utf-8")
    for part in (
        'href="references.html#ref-pour2015"', "<title>1 How long to boil – The Kettle Book</title>",
        "edit/main/lesson.qmd", 'alt="A falling curve of time against power"',
        "Figure&nbsp;1.1: Time falls with power", "167.4 s",
    ):  # fmt: skip
        assert part in page
    references = (site / "references.html").read_text(encoding="utf-8")
    assert references.count('class="csl-entry"') == 1
    for inner in ("x-ref", "x-cite", "{python}"):
        assert inner not in page + references


# text of the page, more of `_quarto.yml`, what is told, how it ends; what isn't strict ends any build
FAULTS = {
    "unresolved reference": ("See @fig-none.", "", ("index.qmd:3", "@fig-none"), StrictError),
    "duplicate label": (
        "$$ a $$ {#eq-a}\n\n$$ b $$ {#eq-a}", "", ("index.qmd:5", "used twice"), StrictError,
    ),
    "broken formula": ("Text $\\frac{1}{$ here.", "", ("index.qmd:3", "KaTeX"), StrictError),
    "missing link": ("[gone](gone.qmd)", "", ("index.qmd:3", "gone.qmd"), StrictError),
    "missing image": ("![x](gone.svg)", "", ("index.qmd:3", "gone.svg"), StrictError),
    "unknown citation": ("By @nobody2000.", "", ("index.qmd:3", "@nobody2000"), StrictError),
    "unclosed div": ("::: {.callout-note}\nText.", "", ("index.qmd:3", "div"), BookError),
    "missing include": (
        "{{< include _gone.qmd >}}", "", ("index.qmd:3", "_gone.qmd"), SourceError,
    ),
    "bad cell option": (
        "```{python}\n#| echo: maybe\n1\n```", "", ("index.qmd:4", "echo"), SourceError,
    ),
    "failing cell": (
        '```{python}\n#| label: well\nx = 1\nraise RuntimeError("dry")\n```', "",
        ("index.qmd:6", "the cell 'well' raised RuntimeError: dry"), CellError,
    ),
    "failing expression": ("Is `{python} nope`.", "", ("index.qmd:3", "NameError"), CellError),
    "bad front matter": ('---\ntitle: "x\n---', "", ("index.qmd:2", "YAML"), SourceError),
    "missing chapter": ("Text.", "    - ghost.qmd\n", ("_quarto.yml:7", "ghost.qmd"), SourceError),
    "wrong value": (
        "Text.", "format:\n  html:\n    toc: perhaps\n", ("_quarto.yml:9", "toc"), SourceError,
    ),
    "bad YAML": ("Text.", "format: [\n", ("_quarto.yml",), SourceError),
    "missing bibliography": ("Text.", "bibliography: gone.bib\n", ("gone.bib",), SourceError),
}  # fmt: skip


def test_a_fault_names_its_place_and_keeps_the_old_site(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# Before\n\nGood.\n")
    yaml = (book / "_quarto.yml").read_text("utf-8")
    site = build(book, progress=quiet)
    before = site_hash(site)
    for fault, (text, more, told, kind) in FAULTS.items():
        heading = "" if text.startswith("---") else "# A\n\n"
        (book / "index.qmd").write_text(f"{heading}{text}\n", encoding="utf-8")
        (book / "_quarto.yml").write_text(yaml + more, "utf-8")
        lines: list[str] = []
        with pytest.raises(kind) as caught:
            build(book, progress=lines.append, lenient=kind is not StrictError)
        said = "\n".join([*lines, str(caught.value)])
        assert [each for each in told if each not in said] == [], fault
        assert site_hash(site) == before, fault
        assert not [path for path in book.iterdir() if path.name.startswith("._book")], fault


def test_lenient_builds_all_the_same(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\nSee @fig-none and $\\frac{1}{$.\n")
    lines: list[str] = []
    page = (build(book, lenient=True, progress=lines.append) / "index.html").read_text("utf-8")
    assert "?fig-none" in page
    assert "math-error" in page
    assert sum(line.startswith("WARN: index.qmd:3") for line in lines) == 2


def test_what_an_edit_changes_is_on_every_page(make_book: MakeBook) -> None:
    """Titles have the values of their expressions, and an escaped cell is shown, not run."""
    book = make_book(
        index_qmd="# A\n\nOne.\n\n```{{python}}\n#| echo: false\n1 / 0\n```\n",
        two_qmd="# Sum `{python} 6 * 7`\n\nText.\n",
    )
    page = (build(book, progress=quiet) / "index.html").read_text("utf-8")
    assert "One." in page
    assert "Sum 42" in page
    assert "{python}" in page
    assert "{{python}}" not in page
    (book / "index.qmd").write_text("# A\n\nTwo.\n", encoding="utf-8")
    (book / "two.qmd").write_text("# Sum `{python} 6 * 8`\n\nText.\n", encoding="utf-8")
    page = (build(book, progress=quiet) / "index.html").read_text("utf-8")
    assert "Two." in page
    assert "Sum 48" in page
