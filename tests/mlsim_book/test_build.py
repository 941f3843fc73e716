"""Whole builds: what is written, what stops a build, and that the old site stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import cases

from mlsim_book.build import build, site_hash
from mlsim_book.errors import BookError

MakeBook = Callable[..., Path]
KETTLE = Path(__file__).parents[1] / "fixtures" / "kettle"
pytestmark = pytest.mark.usefixtures("with_assets")


def test_two_builds_of_a_book_are_equal_byte_for_byte_and_have_it_all(tmp_path: Path) -> None:
    shutil.copytree(KETTLE, tmp_path / "a")
    shutil.copytree(KETTLE, tmp_path / "b")
    lines: list[str] = []
    site = build(tmp_path / "a", progress=lines.append)
    second = build(tmp_path / "b", progress=str, refresh=True)
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


def test_a_fault_names_its_place_and_keeps_the_old_site(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# Before\n\nGood.\n")
    yaml = (book / "_quarto.yml").read_text("utf-8")
    site = build(book, progress=str)
    before = site_hash(site)
    for text, more, told, kind in cases("faults_of_books.toml"):
        heading = "" if text.startswith("---") else "# A\n\n"
        (book / "index.qmd").write_text(f"{heading}{text}\n", encoding="utf-8")
        (book / "_quarto.yml").write_text(yaml + more, "utf-8")
        lines: list[str] = []
        with pytest.raises(BookError) as caught:
            build(book, progress=lines.append, lenient=kind != "StrictError")
        assert kind in {each.__name__ for each in caught.type.__mro__}, text
        said = "\n".join([*lines, str(caught.value)])
        assert [each for each in told if each not in said] == [], text
        assert site_hash(site) == before, text
        assert not [path for path in book.iterdir() if path.name.startswith("._book")], text


def test_titles_have_the_values_of_their_expressions_after_each_edit(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n\nOne.\n", two_qmd="# Sum `{python} 6 * 7`\n\nText.\n")
    assert "Sum 42" in (build(book, progress=str) / "index.html").read_text("utf-8")
    (book / "index.qmd").write_text("# A\n\nTwo.\n", encoding="utf-8")
    (book / "two.qmd").write_text("# Sum `{python} 6 * 8`\n\nText.\n", encoding="utf-8")
    page = (build(book, progress=str) / "index.html").read_text("utf-8")
    assert "Two." in page
    assert "Sum 48" in page
