"""Navigation, titles and the other parts of a page's frame."""

from __future__ import annotations

from pathlib import Path

from mlsim_book.model import Chapter, Project
from mlsim_book.render.to_html import Heading
from mlsim_book.site import navigation, search

CHAPTERS = (
    Chapter("index.qmd", "index.html", "Preface", None),
    Chapter("a.qmd", "a.html", "Clay & *pots*", 1, part="Ground"),
    Chapter("sub/b.qmd", "sub/b.html", "Water", 2, part="Ground"),
    Chapter("c.qmd", "c.html", "Tools", 1, appendix=True),
)
PROJECT = Project(Path(), "Book", CHAPTERS)


def test_sidebar_groups_by_part() -> None:
    entries = navigation.sidebar(PROJECT, CHAPTERS[2])
    assert [entry.text for entry in entries] == ["Preface", "Ground", "Appendices"]
    assert [each.href for each in entries[1].items] == ["../a.html", "b.html"]
    assert [each.active for each in entries[1].items] == [False, True]
    assert "Clay &amp; *pots*" in entries[1].items[0].text
    assert 'class="chapter-number">A<' in entries[2].items[0].text


def test_neighbours_and_breadcrumb() -> None:
    before, after = navigation.neighbours(PROJECT, CHAPTERS[0])
    assert before is None
    assert after is not None
    assert after.href == "a.html"
    assert [entry.href for entry in navigation.breadcrumb(PROJECT, CHAPTERS[2])] == [
        "../a.html",
        "b.html",
    ]
    assert len(navigation.breadcrumb(PROJECT, CHAPTERS[0])) == 1


def heading(level: int, name: str, **more: bool) -> Heading:
    return Heading(level, name, "", f'<a href="x">{name}</a>', name, **more)


def test_contents_nest_and_leave_out() -> None:
    tree = navigation.contents(
        [heading(2, "a"), heading(3, "b"), heading(4, "deep"), heading(2, "c", unlisted=True),
         heading(2, "d")]
    )  # fmt: skip
    assert [(each.heading.id, [i.heading.id for i in each.items]) for each in tree] == [
        ("a", ["b"]), ("d", []),
    ]  # fmt: skip
    assert tree[0].html == "a"


def test_search_sees_ids_on_headings_and_no_formulas() -> None:
    body = '<section id="s" class="level2">\n<h2><span class="header-section-number">1.1</span> Sum</h2><span class="math inline">x^2</span></section>'
    page = search.search_page("T", body)
    assert '<h2 id="s"' in page
    assert "x^2" not in page
    assert "1.1" not in page


def test_colab_only_with_a_repository(kettle_site: Path) -> None:
    page = (kettle_site / "lesson.html").read_text("utf-8")
    assert "github/example/kettle/blob/main/notebooks/lesson.ipynb" in page
    assert 'href="./notebooks/lesson.ipynb" download' in page
    assert (kettle_site / "notebooks" / "lesson.ipynb").is_file()
    assert "colab" not in (kettle_site / "index.html").read_text("utf-8")
