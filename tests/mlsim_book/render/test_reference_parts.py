"""The list of references in parts: order, headings, links, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from kept import FIXTURES
from site_pages import Site, built

from mlsim_book.errors import SourceError
from mlsim_book.render.reference_parts import parts_of

BOOK = {each.name: each.read_text("utf-8") for each in (FIXTURES / "books" / "sheds").iterdir()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return built(tmp_path_factory.mktemp("sheds"), BOOK)


def firsts(site: Site, where: str) -> list[str]:
    """Return the first word of each entry of a part."""
    texts = site["references.html"].texts(f"{where} .csl-entry")
    return [each.replace(",", " ").split()[0] for each in texts]


def test_each_entry_stands_in_its_part(site: Site) -> None:
    page = site["references.html"]
    assert page.texts("#refs h2") == ["Papers & books", "Data"]
    assert firsts(site, "#papers-books") == ["Beam", "Rail"]
    assert firsts(site, "#data") == ["A"]


def test_citations_lead_to_their_entries(site: Site) -> None:
    assert {target for _, target in site["index.html"].links("main p a")} == {
        f"references.html#ref-{key}" for key in ("shop2026", "rail2019", "beam2001")
    }
    for key in ("shop2026", "rail2019", "beam2001"):
        assert site["references.html"].one(f"#ref-{key}")


def test_a_part_without_entries_has_no_heading(tmp_path_factory: pytest.TempPathFactory) -> None:
    papers = {**BOOK, "index.qmd": "# Sheds\n\nAs in @beam2001.\n"}
    site = built(tmp_path_factory.mktemp("papers"), papers)
    assert site["references.html"].texts("#refs h2") == ["Papers & books"]


def test_a_book_that_asks_for_no_parts_has_one_list() -> None:
    assert parts_of({}) == ()


LAST = {"title": "Data"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("papers", "a list of two parts or more"),
        ([LAST], "a list of two parts or more"),
        (["papers", LAST], "parts with `title`, `types` and `fields`"),
        ([{"title": "Papers", "kind": ["book"]}, LAST], "parts with `title`, `types`"),
        ([{"types": ["book"]}, LAST], "parts with a title"),
        ([{"title": "Papers", "types": "book"}, LAST], "parts with lists of words"),
        ([{"title": "Papers", "fields": [1]}, LAST], "parts with lists of words"),
        ([LAST, LAST], "only the last part has no `types` or `fields`"),
        ([LAST, {"title": "Papers", "types": ["book"]}], "whose last part has neither"),
    ],
)
def test_a_wrong_setting_is_refused(given: Any, said: str) -> None:
    with pytest.raises(SourceError, match=said) as error:
        parts_of({"mlsim-book": {"references-in-parts": given}})
    assert error.value.file == "_quarto.yml"
