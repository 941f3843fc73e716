"""The zip of a book's figures: every labelled one, its caption, the same bytes twice."""

from __future__ import annotations

import zipfile
from pathlib import Path

import kept

from mlsim_book.paper.figures_zip import pictures, write_figures

PAGE = kept.text("figures_zip_page.md")
TIME = (1980, 1, 1, 0, 0, 0)


def test_pictures() -> None:
    found = {each.name: each for each in pictures("part/a.html", PAGE)}
    assert sorted(found) == ["a/fig-pot.svg", "a/fig-two-1.png", "a/fig-two-2.png"]
    pot = found["a/fig-pot.svg"]
    assert (pot.path, pot.caption, pot.alt, pot.link) == (
        "part/a_files/pot.svg", "Figure 1.1: A pot", "A <pot>", "part/a.html#fig-pot",
    )  # fmt: skip
    assert found["a/fig-two-1.png"].path == "x/1.png"


def test_zip(tmp_path: Path) -> None:
    for name in ("part/a_files/pot.svg", "x/1.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    pages = [("part/a.html", PAGE)]

    def write() -> bytes:
        count = write_figures(
            tmp_path, "B-figures.zip", "B & C", pages, address="https://b.org/", time=TIME
        )
        assert count == 2  # the third lies nowhere
        return (tmp_path / "B-figures.zip").read_bytes()

    assert write() == write()
    with zipfile.ZipFile(tmp_path / "B-figures.zip") as archive:
        assert sorted(archive.namelist()) == [
            "B-figures/a/fig-pot.svg", "B-figures/a/fig-two-1.png", "B-figures/figures.html",
        ]  # fmt: skip
        listed = archive.read("B-figures/figures.html").decode()
    assert "B &amp; C" in listed
    assert '<img src="a/fig-pot.svg" alt="A &lt;pot&gt;">' in listed
    assert '<a href="https://b.org/part/a.html#fig-pot">In the book</a>' in listed
