"""Titles with markup: in the sidebar, the crumbs, previous and next, the tab, the search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES, book as small_book

from mlsim_book.build import StrictError, build, site_hash
from mlsim_book.caches import TextCache
from mlsim_book.check.built_site import read_page
from mlsim_book.preview.session import Rebuilder
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.site import titles
from mlsim_book.site.search import SEARCH
from mlsim_book.site.template import inline_markdown

pytestmark = pytest.mark.usefixtures("with_assets")
YAML = (FIXTURES / "books/titles/_quarto.yml").read_text("utf-8")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return small_book("titles", tmp_path / "book")


def made(book: Path, out: str = "_book") -> dict[str, str]:
    site = build(book, out=book / out, lenient=True, progress=str)
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
    }


def region(page: str, start: str, end: str = "</nav>") -> str:
    return page[page.index(start) :].split(end, maxsplit=1)[0]


SIDEBAR = '<nav id="quarto-sidebar"'


def test_markup_is_shown_wherever_a_title_stands(book: Path) -> None:
    """As text in the tab; there is no link in a link, and no id twice."""
    pages = made(book)
    for name, page in pages.items():
        for link in re.findall(r"<a\b[^>]*>(.*?)</a>", page, re.DOTALL):
            assert "<a " not in link, name
        counts = Counter(read_page(page).ids)
        assert not [each for each, count in counts.items() if count > 1], name
        shown = region(page, SIDEBAR)
        for part in (
            "Hello <strong>there</strong>",
            "The `x&lt;y&gt;z` &amp;",  # one with an & stands as it is written, as in Quarto
            "A hot <em>kiln</em> for ",
            "Part <strong>two</strong> – of ",
            "<em>Fire</em> of 42<",
            "Pots &amp; <em>pans</em> in ",
        ):
            assert part in shown, (name, part)
        shown = re.sub(r"The `x&lt;.*?</span>", "", shown)
        for raw in ("**", "`", "*kiln", "--", "$n$", "hot.svg", "[wet]", "Not a small", "{python}"):
            assert raw not in shown, (name, raw)
        # TeX is kept for copying, in what is typeset
        assert shown.count('<span class="math inline"><span class="katex">') == 3
    texts = (path.read_text("utf-8") for path in (book / "_book" / SEARCH).glob("t-*.js"))
    title = "1 The x<y>z & “clay” – it’s wet"
    assert f'["clay.html","{title}","{title}",' in "".join(texts)
    following = region(pages["index.html"], '<div class="nav-page nav-page-next">', "</div>")
    assert "“clay” – it’s wet</span>" in following
    crumbs = region(pages["deep/kiln.html"], '<nav class="quarto-page-breadcrumbs"')
    assert "Part <strong>two</strong>" in crumbs
    assert "A hot <em>kiln</em>" in crumbs
    assert "<em>Fire</em> of 42" in region(pages["ash.html"], '<nav class="quarto-page-bread')
    tab = region(pages["clay.html"], "<title>", "</title>")
    assert tab.startswith("<title>1 The x&lt;y&gt;z &amp; “clay” – it’s wet – Pots &amp; pans")


def test_two_builds_of_titles_are_equal(book: Path, with_assets: Path) -> None:
    made(book)
    first = site_hash(book / "_book")
    made(book, "kept")
    for kept in (with_assets / "render").iterdir():
        kept.unlink()
    made(book, "afresh")
    assert site_hash(book / "kept") == site_hash(book / "afresh") == first


def test_a_broken_formula_of_a_part_is_told_at_its_line(book: Path) -> None:
    (book / "_quarto.yml").write_text(YAML.replace("of $n$", r"of $\\frac{1}{$"), "utf-8")
    lines: list[str] = []
    with pytest.raises(StrictError):
        build(book, progress=lines.append)
    (told,) = [each for each in lines if "KaTeX" in each]
    assert told.startswith("ERROR: _quarto.yml:6: ")
    assert not (book / "_book").exists()


def test_a_preview_shows_an_edited_title_on_all_pages(book: Path, tmp_path: Path) -> None:
    rebuilder = Rebuilder(book, lenient=True, jobs=2, progress=str)
    rebuilder.build(tmp_path / "one")
    (book / "ash.qmd").write_text("# *White* ash\n\nSee @sec-clay.\n", encoding="utf-8")
    rebuilder.note(["ash.qmd"])
    rebuilder.build(tmp_path / "two")
    for name in ("index.html", "deep/kiln.html", "ash.html"):
        shown = region((tmp_path / "two" / name).read_text(encoding="utf-8"), SIDEBAR)
        assert "<em>White</em> ash" in shown
    (book / "_quarto.yml").write_text(YAML.replace("**two**", "**three**"), encoding="utf-8")
    rebuilder.note(["_quarto.yml"])
    rebuilder.build(tmp_path / "three")
    shown = region((tmp_path / "three" / "clay.html").read_text(encoding="utf-8"), SIDEBAR)
    assert "Part <strong>three</strong>" in shown


# --------------------------------------------------------- titles of _quarto.yml
@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that pandoc is given for titles."""
    given: list[str] = []

    def counted(arguments: Sequence[str], text: str, **more: Any) -> tuple[str, str]:
        given.append(text)
        return run_pandoc(arguments, text, **more)

    monkeypatch.setattr(titles, "run_pandoc", counted)
    return given


def test_all_marked_titles_take_one_run_once_and_plain_ones_none(
    tmp_path: Path, runs: list[str]
) -> None:
    plain = ["Ground", "Clay & water: it's wet (mostly)", "2. Öl", ""]
    assert titles.render_titles(plain, TextCache(tmp_path))["Clay & water: it's wet (mostly)"] == (
        "Clay &amp; water: it’s wet (mostly)"
    )
    assert not runs
    wanted = {
        "plain": "plain", "*a*": "<em>a</em>", "b -- c": "b – c", '"d"': "“d”",
        "1. `e`": "1. <code>e</code>", "# *f*": "# <em>f</em>", "- _g_": "- <em>g</em>",
        "h\n  *i*\n": "h <em>i</em>",
        "A^[note] [b](c.html){#d} ![e *f*](g.svg) [h]{#i}": "A b e f <span>h</span>",
    }  # fmt: skip
    for _ in range(2):
        found = titles.render_titles(wanted, TextCache(tmp_path))
        assert list(found.values()) == list(wanted.values())
        assert len(runs) == 1


@pytest.mark.parametrize("spoiler", ["<div>", "<!-- open", "| a |\n|---|", "`<!--next title-->`"])
def test_a_title_that_is_no_line_spoils_no_other(
    tmp_path: Path, runs: list[str], spoiler: str
) -> None:
    found = titles.render_titles(["*a*", spoiler, "*b*"], TextCache(tmp_path))
    assert (found["*a*"], found["*b*"]) == ("<em>a</em>", "<em>b</em>")
    assert "<div" not in found[spoiler]
    assert "<table" not in found[spoiler]


def test_dashes_and_what_looks_like_an_id_stay() -> None:
    assert titles.bare('<code>&lt;a id="x"&gt;</code>') == '<code>&lt;a id="x"&gt;</code>'
    assert titles.bare('<span class="header-section-number">1</span> A<br />b') == "A<br />b"
    assert inline_markdown("A _wet_ day -- it's") == "A <em>wet</em> day – it’s"
