"""The ground that Quarto's own renderings cover, on a book of ours: parts, references, errors.

Parts and appendices, cross-references to chapters, sections, figures, tables, equations
and theorems, from every place, words of the book's own, unnumbered chapters, labels used
twice, citations with and without a bibliography; and what ends a build.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from site_pages import Site, built

from mlsim_book.build import build
from mlsim_book.errors import BookError

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><path d="M0 0h40"/></svg>'
BOOK = {
    "_quarto.yml": """project:
  type: book
book:
  title: Houses
  chapters:
    - index.qmd
    - part: "Outer things"
      chapters:
        - walls.qmd
        - roofs.qmd
    - part: rooms.qmd
      chapters:
        - plain.qmd
    - references.qmd
  appendices:
    - tools.qmd
bibliography: refs.bib
""",
    "refs.bib": """@book{beam2001, author={Beam, Ada}, title={On Beams}, year={2001}, publisher={Press}}
@article{post2010, author={Post, Ben and Rail, Cy and Sill, Di and Eave, Ed}, title={Posts},
  journal={J. Posts}, year={2010}}
@book{unread1999, author={Nobody}, title={Unread}, year={1999}, publisher={Press}}
""",
    "wall.svg": SVG,
    "index.qmd": """# Preface {.unnumbered}

On to @sec-walls, then @sec-slate and @sec-tools.
""",
    "walls.qmd": """# Walls {#sec-walls}

See @fig-wall, @Fig-wall, [-@fig-wall], [Drawing @fig-wall], [@fig-wall; @tbl-bricks],
@tbl-bricks, @eq-load, @sec-mortar, @sec-roofs, @sec-slate, @sec-tools, @sec-free, @thm-arch.

![A wall with $x$, see @tbl-bricks](wall.svg){#fig-wall fig-alt="Bricks"}

::: {#fig-box}
Any *content*.

A box
:::

| brick | size |
|:------|-----:|
| red   |    9 |

: Bricks [@beam2001] {#tbl-bricks}

$$
F = m g
$$ {#eq-load}

Inline again: $a$ and $$b = c$$ {#eq-more}, as @eq-more says.

## Mortar {#sec-mortar}

- In a list: @fig-wall.

| where | what |
|-------|------|
| cell  | @tbl-bricks |

::: {.callout-note}
In a box: @eq-load. In code: `@fig-wall`.
:::

A note.[^1] A [link with @fig-wall](roofs.qmd).

[^1]: In a note: @sec-mortar.

### Deep {#sec-deep}

As @beam2001 says [see @post2010, p. 3; @beam2001]; also [-@beam2001]. A mail: me@example.org.

## Free {#sec-free .unnumbered}
""",
    "roofs.qmd": """# Roofs {#sec-roofs}

::: {#thm-arch}
## The arch
It *stands*.
:::

::: {#lem-help}
A help.
:::

::: {#def-roof}
## Roof
What covers.
:::

::: {#exm-hut}
A hut.
:::

::: {#exr-tent}
Draw a tent.
:::

::: {.proof}
By looking at @thm-arch.
:::

::: {.remark}
So it is.
:::

![Second wall](wall.svg){#fig-second}

Back to @fig-wall, @lem-help, @def-roof, @exm-hut, @exr-tent and @fig-second.

## Slate {#sec-slate}

## Slate again
""",
    "rooms.qmd": "# Rooms\n\nThe part begins.\n",
    "plain.qmd": """# Plain {.unnumbered}

![Here](wall.svg){#fig-here}

See @fig-here and @sec-walls.

## Beams {#sec-beams}
""",
    "references.qmd": "# References {.unnumbered}\n\n::: {#refs}\n:::\n",
    "tools.qmd": """# Tools {#sec-tools}

| t |
|---|
| 1 |

: Tools {#tbl-tools}

## Saw {#sec-saw}

See @tbl-tools and @sec-saw.
""",
}
OWN_WORDS = {
    "_quarto.yml": """project:
  type: book
book:
  title: Own
  chapters: [index.qmd]
crossref:
  fig-title: Plate
  fig-prefix: plate
  tbl-prefix: "tab."
  eq-prefix: ""
  title-delim: " —"
""",
    "wall.svg": SVG,
    "index.qmd": """# Own {#sec-own}

![A](wall.svg){#fig-a}

| a |
|---|
| 1 |

: T {#tbl-a}

$$
x
$$ {#eq-a}

See @fig-a, @tbl-a, @eq-a. Twice ![B](wall.svg) and @nowhere2000.

![B](wall.svg){#fig-a}

Lost: @fig-lost.
""",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site with parts and appendices, built once."""
    return built(tmp_path_factory.mktemp("houses"), BOOK)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A book with words of its own, and with mistakes."""
    return built(tmp_path_factory.mktemp("own"), OWN_WORDS)


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


MakeBook = Callable[..., Path]


@pytest.mark.usefixtures("with_assets")
@pytest.mark.parametrize(
    ("extra", "text", "told"),
    [
        ("", "# A\n\n```{python}\n#| label: dry\nraise RuntimeError('the well is dry')\n```\n",
         ("index.qmd:5", "'dry'", "RuntimeError", "the well is dry")),
        ("", "# A\n\nIs `{python} undefined_name`.\n", ("index.qmd:3", "NameError")),
        ("", "# A\n\n{{< include _gone.qmd >}}\n", ("index.qmd:3", "_gone.qmd")),
        ("", "# A\n\n```{python}\n#| echo: perhaps\n1\n```\n", ("index.qmd:4", "echo")),
        ("    - ghost.qmd\n", "# A\n", ("_quarto.yml:7", "ghost.qmd")),
        ("format:\n  html:\n    toc: perhaps\n", "# A\n", ("_quarto.yml:9", "toc")),
        ("format: [\n", "# A\n", ("_quarto.yml",)),
        ("bibliography: gone.bib\n", "# A\n\nSee @x2000.\n", ("gone.bib",)),
    ],
)  # fmt: skip
def test_what_ends_a_build_even_a_lenient_one(
    make_book: MakeBook, extra: str, text: str, told: tuple[str, ...]
) -> None:
    book = make_book(extra, index_qmd=text)
    with pytest.raises(BookError) as caught:
        build(book, lenient=True, progress=str)
    for each in told:
        assert each in str(caught.value)
    assert not (book / "_book").exists()  # no half a site
