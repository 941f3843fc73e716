"""The ground that Quarto's own renderings cover, on four small books of ours.

Text that needs no code (`orchard`), cells and what they give (`cells`), parts and references
(`houses`), a book's own words and its mistakes (`own`): what each page shows by which selector
stands in tests/fixtures/ground. Here is what no table says.
"""

from __future__ import annotations

import itertools

import pytest
from site_pages import Site, built, otherwise

BOOKS = ("orchard", "cells", "houses", "own")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Site]:
    """The sites, built once."""
    return {book: built(tmp_path_factory.mktemp(book), book) for book in BOOKS}


@pytest.mark.parametrize("book", BOOKS)
def test_pages_show_what_the_table_of_their_book_says(sites: dict[str, Site], book: str) -> None:
    assert otherwise(sites[book], book) == []


def test_the_reading_order_goes_through_parts_and_appendices(sites: dict[str, Site]) -> None:
    order = ["index", "walls", "roofs", "rooms", "plain", "references", "tools"]
    for before, after in itertools.pairwise(order):
        site = sites["houses"]
        assert site[f"{before}.html"].links(".nav-page-next a")[0][1] == f"{after}.html"
        assert site[f"{after}.html"].links(".nav-page-previous a")[0][1] == f"{before}.html"


def test_tabs_and_their_panels_name_each_other(sites: dict[str, Site]) -> None:
    page = sites["orchard"]["boxes.html"]
    for tab in page.all("[role=tab]"):
        panel = page.one(f"#{tab.attributes['aria-controls']}")
        assert panel.attributes["aria-labelledby"] == tab.attributes["id"]


def test_files_are_there_and_included_ones_in_their_place(sites: dict[str, Site]) -> None:
    site = sites["orchard"]
    assert (site.folder / "crop.csv").read_text() == "a,b\n1,2\n"
    assert (site.folder / "basket.svg").is_file()
    assert (site.folder / "own.css").is_file()
    for name in ("text.html", "yard/front.html"):
        page = site[name]
        assert (page.text("#before"), page.text("#after")) == ("Before all.", "After all.")
        parts = ('id="before"', "<h1", 'id="after"')
        assert sorted(parts, key=page.html.index) == [*parts]
    drawn = sites["cells"]["index.html"].one("#fig-line img").attributes["src"]
    assert (sites["cells"].folder / (drawn or "")).read_text().startswith("<svg")


def test_mistakes_are_told_with_their_line_and_no_machine_is_named(sites: dict[str, Site]) -> None:
    told = "\n".join(sites["own"].said)
    assert "index.qmd:17: the label 'fig-a' is used twice, first at index.qmd:3" in told
    assert "index.qmd:19: Unable to resolve crossref @fig-lost" in told
    assert "index.qmd:15: citation @nowhere2000" in told
    assert any("yard/front.qmd:22" in line and "no.such" in line for line in sites["orchard"].said)
    site = sites["cells"]
    assert str(site.folder.parent) not in site["index.html"].html
