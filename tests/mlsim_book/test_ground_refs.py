"""The ground that Quarto's own renderings cover, on a book of ours: parts and references.

Parts and appendices, cross-references to chapters, sections, figures, tables, equations
and theorems, from every place, words of the book's own, unnumbered chapters, labels used
twice, citations with and without a bibliography.
"""

from __future__ import annotations

import itertools

import pytest
from site_pages import Site, built


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site with parts and appendices, built once."""
    return built(tmp_path_factory.mktemp("houses"), "houses")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A book with words of its own, and with mistakes."""
    return built(tmp_path_factory.mktemp("own"), "own")


# ------------------------------------------------------------------ parts, appendices
def test_the_sidebar_has_parts_and_appendices(site: Site) -> None:
    page = site["walls.html"]
    found = [
        (
            each.css_first(".sidebar-item-text").text().strip(),
            len(each.css(".sidebar-section > .sidebar-item")),
        )
        for each in page.all(".sidebar-menu-container > ul > .sidebar-item")
    ]
    assert found == [
        ("Preface", 0), ("Outer things", 2), ("Rooms", 1), ("References", 0), ("Appendices", 1),
    ]  # fmt: skip
    assert ("Rooms", "rooms.html") in page.links("#quarto-sidebar a")
    assert page.texts(".breadcrumb-item") == ["Outer things", "1 Walls"]
    order = ["index", "walls", "roofs", "rooms", "plain", "references", "tools"]
    for before, after in itertools.pairwise(order):
        assert site[f"{before}.html"].links(".nav-page-next a")[0][1] == f"{after}.html"
        assert site[f"{after}.html"].links(".nav-page-previous a")[0][1] == f"{before}.html"


def test_appendices_count_by_letters(site: Site) -> None:
    page = site["tools.html"]
    assert page.text("h1.title") == "Appendix A — Tools"
    assert page.text("#tbl-tools figcaption") == "Table A.1: Tools"
    assert page.text("#sec-saw > h2") == "A.1 Saw"
    assert page.links("#sec-saw a") == [("Table A.1", "#tbl-tools"), ("Section A.1", "#sec-saw")]


# ----------------------------------------------------------------------- references
def test_references_read_and_lead_as_in_quarto(site: Site) -> None:
    page = site["walls.html"]
    assert page.links("main > p:first-of-type a") == [
        ("Figure 1.1", "#fig-wall"), ("Figure 1.1", "#fig-wall"), ("1.1", "#fig-wall"),
        ("Drawing 1.1", "#fig-wall"), ("Figure 1.1", "#fig-wall"), ("Table 1.1", "#tbl-bricks"),
        ("Table 1.1", "#tbl-bricks"), ("Equation 1.1", "#eq-load"),
        ("Section 1.1", "#sec-mortar"), ("Chapter 2", "roofs.html"),
        ("Section 2.1", "roofs.html#sec-slate"), ("Appendix A", "tools.html"),
        ("Free", "#sec-free"), ("Theorem 2.1", "roofs.html#thm-arch"),
    ]  # fmt: skip
    assert site["index.html"].links("main a") == [
        ("Chapter 1", "walls.html"), ("Section 2.1", "roofs.html#sec-slate"),
        ("Appendix A", "tools.html"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "link"),
    [
        ("#fig-wall figcaption", ("Table 1.1", "#tbl-bricks")),
        ("#sec-mortar > ul", ("Figure 1.1", "#fig-wall")),
        ("#sec-mortar > .table-scroll td", ("Table 1.1", "#tbl-bricks")),
        (".callout-note", ("Equation 1.1", "#eq-load")),
        ("#fn1", ("Section 1.1", "#sec-mortar")),
    ],
)
def test_references_stand_everywhere(site: Site, place: str, link: tuple[str, str]) -> None:
    assert link in site["walls.html"].links(f"{place} a")


def test_code_and_links_hold_no_references(site: Site) -> None:
    page = site["walls.html"]
    assert page.text(".callout-note code") == "@fig-wall"
    assert page.links('a[href="roofs.html"]:not(.quarto-xref)')[-1][1] == "roofs.html"
    assert page.text('#sec-mortar > p a[href="roofs.html"]') == "link with Figure 1.1"
    assert not page.all("main a a")


def test_floats_and_equations_are_numbered(site: Site) -> None:
    page = site["walls.html"]
    assert page.text("#fig-box figcaption") == "Figure 1.2: A box"
    assert page.text("#fig-box em") == "content"
    assert page.text("#tbl-bricks figcaption").startswith("Table 1.1: Bricks (Beam 2001)")
    assert page.one("#fig-wall figcaption span.math")
    for name, number in (("eq-load", "1.1"), ("eq-more", "1.2")):
        tex = page.text(f'#{name} annotation[encoding="application/x-tex"]')
        assert tex.endswith(rf"\tag{{{number}}}")
    assert site["roofs.html"].text("#fig-second figcaption") == "Figure 2.1: Second wall"


@pytest.mark.parametrize(
    ("name", "classes", "text"),
    [
        ("thm-arch", "theorem", "Theorem 2.1 (The arch) It stands."),
        ("lem-help", "theorem.lemma", "Lemma 2.1 A help."),
        ("def-roof", "theorem.definition", "Definition 2.1 (Roof) What covers."),
        ("exm-hut", "theorem.example", "Example 2.1 A hut."),
        ("exr-tent", "theorem.exercise", "Exercise 2.1 Draw a tent."),
    ],
)
def test_theorems(site: Site, name: str, classes: str, text: str) -> None:
    page = site["roofs.html"]
    assert page.text(f"div#{name}.{classes}") == text
    assert page.one(f"#{name} .theorem-title strong")


def test_proofs_and_remarks_have_no_number(site: Site) -> None:
    page = site["roofs.html"]
    assert page.texts("div.proof") == ["Proof. By looking at Theorem 2.1.", "Remark. So it is."]
    assert page.texts(".proof-title") == ["Proof.", "Remark."]
    assert not page.all("main section h2 + p:empty")


def test_unnumbered_chapters_count_their_floats_alone(site: Site) -> None:
    page = site["plain.html"]
    assert page.text("h1.title") == "Plain"
    assert page.text("#fig-here figcaption") == "Figure 1: Here"
    assert page.links("main > p a") == [("Figure 1", "#fig-here"), ("Chapter 1", "walls.html")]
    assert page.text("#sec-beams > h2") == "Beams"
    assert site["walls.html"].text("#sec-free > h2") == "Free"


# ------------------------------------------------------------------------ citations
def test_citations(site: Site) -> None:
    page = site["walls.html"]
    text = page.texts("#sec-deep > p")[0]
    assert text == (
        "As Beam (2001) says (see Post et al. 2010, 3; Beam 2001); also (2001). "
        "A mail: me@example.org."
    )
    assert {target for _, target in page.links("#sec-deep a")} == {
        "references.html#ref-beam2001", "references.html#ref-post2010",
    }  # fmt: skip
    entries = site["references.html"].texts("#refs .csl-entry")
    assert [each.split(",")[0] for each in entries] == ["Beam", "Post"]  # the unread is not there
    assert site["references.html"].one("#refs #ref-post2010 em").text() == "J. Posts"


# ----------------------------------------------------------- own words, and mistakes
def test_a_book_chooses_its_words(own: Site) -> None:
    page = own["index.html"]
    assert page.texts("figcaption") == ["Plate 1.1 — A", "Table 1.1 — T", "Plate 1.2 — B"]
    # a label used twice leads to the last
    assert page.links("a.quarto-xref") == [
        ("plate 1.2", "#fig-a"), ("tab. 1.1", "#tbl-a"), ("1.1", "#eq-a"),
    ]  # fmt: skip


def test_mistakes_are_told_and_shown(own: Site) -> None:
    page = own["index.html"]
    assert page.text(".quarto-unresolved-ref") == "?fig-lost"
    assert page.text(".citation") == "@nowhere2000"
    assert "no bibliography" not in page.text("main")
    told = "\n".join(own.said)
    assert "index.qmd:17: the label 'fig-a' is used twice, first at index.qmd:3" in told
    assert "index.qmd:19: Unable to resolve crossref @fig-lost" in told
    assert "index.qmd:15: citation @nowhere2000" in told
