"""The last changes to a page's HTML."""

from __future__ import annotations

from pathlib import Path

from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.places import Reporter
from mlsim_book.render.postprocess import Links, _tables, finish_html, rewrite

PAGE = ExecutedPage(Chapter("sub/b.qmd", "sub/b.html", "B", 2), "", {}, {}, "")


def test_a_heading_without_words_becomes_a_plain_cell() -> None:
    made = _tables("<table><tr><th></th><th style='x'>\n</th><th>power</th></tr></table>")
    assert made == (
        "<div class=\"table-scroll\"><table><tr><td></td><td style='x'></td>"
        "<th>power</th></tr></table></div>"
    )


def test_an_empty_heading_outside_a_table_is_left_alone() -> None:
    assert _tables("<p>&lt;th&gt;</p><th></th>") == "<p>&lt;th&gt;</p><th></th>"


def test_a_heading_of_an_image_keeps_its_place() -> None:
    image = '<table><tr><th><img src="a.png" alt="a"></th></tr></table>'
    assert image in _tables(image)


def links(root: Path) -> Links:
    (root / "sub").mkdir()
    (root / "sub" / "data x.csv").write_text("1")
    drawn = b'<svg xmlns="http://www.w3.org/2000/svg" width="36pt" height="50.25pt">'
    return Links(root, {"index.qmd": "index.html", "sub/b.qmd": "sub/b.html"}, {"sub/x.svg": drawn})


def test_where_a_link_leads(tmp_path: Path) -> None:
    to, problems = links(tmp_path), Problems()
    reporter = Reporter(problems, tmp_path)
    for given, new in {
        "../index.qmd#x": "../index.html#x", "/index.qmd?q=1#y": "../index.html?q=1#y",
        "b.qmd": "b.html", "/sub/b.qmd": "b.html", "../index.html": "../index.html",
        "/index.html#z": "../index.html#z", "https://e.org/a b": "https://e.org/a b", "#x": "#x",
        "//e.org/a": "//e.org/a", "": "", "x.svg": "x.svg", "/sub/x.svg": "x.svg",
        "data%20x.csv": "data%20x.csv", "../sub": "../sub",
    }.items():  # fmt: skip
        assert rewrite(given, PAGE, to, reporter) == new, given
    assert to.files == {"sub/data x.csv"}
    assert rewrite("/sub/data%20x.csv", PAGE, to, reporter) == "data x.csv"
    assert not problems.found
    for given, tag, what in [
        ("none.csv", "a", "link target"), ("../sub", "img", "image"),
        ("../../out.csv", "a", "link target"), ("ndex.qmd", "a", "link target"),
    ]:  # fmt: skip
        problems = Problems()
        rewrite(given, PAGE, to, Reporter(problems, tmp_path), tag)
        (told,) = problems.found
        assert what in told.message, given
        assert told.file == "sub/b.qmd"


def test_an_image_loads_late_in_its_place(tmp_path: Path) -> None:
    """36 points of 1/72 inch are 48 pixels of 1/96, and 50.25 are 67."""
    to, reporter = links(tmp_path), Reporter(Problems(), tmp_path)
    for given, made in {
        '<img src="x.svg" />': '<img src="x.svg" width="48" height="67" loading="lazy" alt="">',
        '<img src="x.svg" style="a" alt="A">': '<img src="x.svg" style="a" alt="A" loading="lazy">',
        '<IMG src="https://e.org/a" loading="eager">': '<img src="https://e.org/a" loading="eager" alt="">',
        "<a href='b.qmd'>b</a>": '<a href="b.html">b</a>',
        '<video src="https://e.org/v" controls />': '<video src="https://e.org/v" controls>',
    }.items():  # fmt: skip
        assert finish_html(given, PAGE, to, reporter) == made
