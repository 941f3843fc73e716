"""Tables that sort, filter and compare, as a reader meets them by mouse and by key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def url(small_url: Callable[[str], str]) -> str:
    return f"{small_url('teas')}/teas.html"


@pytest.fixture
def teas(visit: Any, url: str) -> Any:
    """The page with tables; it may not complain, and its policy refuses nothing."""
    return visit(url)


def names(page: Any, table: int = 0) -> list[str]:
    rows = page.locator("table.live").nth(table).locator("tbody tr:visible > td:first-child")
    return [text.strip() for text in rows.all_inner_texts()]


def test_only_a_page_with_such_tables_loads_the_script_and_without_it_they_are_plain(
    small_site: Callable[[str], Path], visit: Any, url: str
) -> None:
    site = small_site("teas")
    for name in ("index", "plain"):
        assert "tables-" not in (site / f"{name}.html").read_text(encoding="utf-8")
    assert (site / "teas.html").read_text(encoding="utf-8").count("site_libs/tables-") == 2
    (script,) = (site / "site_libs").glob("tables-*.js")
    assert script.stat().st_size < 15_000
    page = visit(url, java_script_enabled=False)
    assert page.locator("table").first.locator("tbody tr").count() == 5
    assert page.locator("button.sort, .table-tools, .compare-pick").count() == 0


def test_a_column_sorts_by_key_and_says_so(teas: Any) -> None:
    """Numbers from the largest, words from A to Z; what has no value is last both ways."""
    head = teas.locator("table.live th").nth(2)
    teas.locator("button.sort", has_text="Grams").focus()
    for way, order in (
        ("descending", ["Assam", "Sencha", "Keemun", "Oolong", "Matcha"]),
        ("ascending", ["Matcha", "Oolong", "Keemun", "Sencha", "Assam"]),
        (None, ["Assam", "Sencha", "Matcha", "Keemun", "Oolong"]),
    ):
        teas.keyboard.press("Enter")
        assert (head.get_attribute("aria-sort"), names(teas)) == (way, order)
    for column, order in (
        ("Price", ["Matcha", "Keemun", "Assam", "Oolong", "Sencha"]),
        ("Price", ["Oolong", "Assam", "Keemun", "Matcha", "Sencha"]),
        ("Tea", ["Assam", "Keemun", "Matcha", "Oolong", "Sencha"]),
    ):
        teas.locator("button.sort", has_text=column).first.click()
        assert names(teas) == order


def test_rows_are_filtered_in_all_tables_of_a_box_and_counted(teas: Any) -> None:
    count = teas.locator(".table-count").first
    assert count.inner_text() == "5 rows"
    assert count.get_attribute("role") == "status"
    teas.get_by_label("Kind").select_option("green")
    assert names(teas) == ["Sencha", "Matcha"]
    assert names(teas, 1) == ["Matcha"]
    assert count.inner_text() == "2 of 5 rows"
    teas.get_by_label("Filter").first.fill("60 mat")
    assert names(teas) == ["Matcha"]
    teas.get_by_role("button", name="Show all").first.click()
    assert len(names(teas)) == 5
    assert teas.evaluate("document.activeElement.type") == "search"
    teas.get_by_label("City").select_option("Rome")  # rows of one name are told apart
    assert names(teas, 2) == ["Leaf", "Cup"]
    assert teas.locator(".table-count").nth(1).inner_text() == "2 of 3 rows"


def test_rows_lie_side_by_side_with_their_ratios(teas: Any) -> None:
    for name in ("Assam", "Matcha"):
        teas.get_by_label(f"Compare {name}").first.check()
    table = teas.locator(".comparison table")
    heads = [each.inner_text().strip(" ×\n") for each in table.locator("thead th").all()]
    assert heads == ["Assam", "Matcha"]
    rows = [row.inner_text().split("\t") for row in table.locator("tbody tr").all()]
    assert ["Grams", "1,000", "30 ×0.03"] in rows
    assert ["Steep", "240", "60 ×0.25"] in rows
    assert ["Kind", "black", "green"] in rows
    assert ["Box", "2×3", "4×3"] in rows  # of two numbers none is twice the other
    assert ["How long"] in rows
    teas.get_by_role("button", name="Side by side").click()
    assert teas.evaluate("document.activeElement.className") == "comparison"
    teas.get_by_role("button", name="Take Assam out").click()
    assert not teas.locator(".comparison").is_visible()
    assert "choose one more" in teas.locator(".compare-bar [role=status]").inner_text()
    for name in ("Assam", "Sencha", "Keemun"):  # four at most
        teas.get_by_label(f"Compare {name}").first.check()
    assert teas.get_by_label("Compare Oolong").is_disabled()
    teas.get_by_role("button", name="Clear").click()
    assert teas.get_by_label("Compare Oolong").is_enabled()
    assert not teas.locator(".compare-bar").is_visible()


def test_a_table_that_is_not_marked_and_a_printed_page_have_no_controls(teas: Any) -> None:
    assert teas.locator("table").count() == 5 - 1
    assert teas.locator("table").last.locator("button").count() == 0
    teas.emulate_media(media="print")
    assert not teas.locator(".table-tools").first.is_visible()
    assert not teas.locator(".compare-pick").first.is_visible()
    assert len(names(teas)) == 5
