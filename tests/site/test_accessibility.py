"""Every page for every reader: axe-core, contrast, keyboard, motion, landmarks, names.

axe-core judges whole pages, light and dark, on a phone and on a desk. What it gives
up on (text over a half-transparent ground, formulas) is measured here, and so is
what only shows in use: the menu, search, the focus. Cards are in test_cards.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import NEXT_FRAME, axe_script
from exercise_book import PHONE, WIDE
from kept import script

KINDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = [("light", WIDE), ("light", PHONE), ("dark", WIDE), ("dark", PHONE)]

# All rules look at a page once; those that a window's width or colours can change, again.
# Contrast is measured by CONTRAST, which is quicker and judges what axe-core gives up on.
# Set MLSIM_AXE=full for all rules in all looks (minutes).
WIDTH = ["target-size", "scrollable-region-focusable", "region"]
COLOURS = ["link-in-text-block"]
FULL = os.environ.get("MLSIM_AXE") == "full"


RUN_AXE = script("run_axe.js")

# A formula is thousands of elements, hidden from assistive technology, and MathML
# that is not: for axe-core a word of the same size stands in its place.
PLAIN_FORMULAS = script("plain_formulas.js")

# Bodies of folds are looked at too.
OPEN_ALL = script("open_all.js")

CONTRAST = script("contrast.js")


@pytest.fixture
def visit(visit: Any) -> Any:
    """Open an address without motion, in some size and colours."""

    def opened(url: str, size: dict[str, int] = WIDE, **options: Any) -> Any:
        # bypass_csp: axe is put into the page, whose policy forbids strangers
        return visit(url, size, **{"reduced_motion": "reduce", "bypass_csp": True, **options})

    return opened


def violations(page: Any, rules: list[str] | None = None) -> list[str]:
    """Return what axe-core finds on a page as it is: by all rules, or by some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_script())
    chosen = ["tag", KINDS, FULL] if rules is None or FULL else ["rule", rules, FULL]
    return list(page.evaluate(RUN_AXE, chosen))


def in_looks(page: Any) -> Iterator[tuple[str, dict[str, int]]]:
    """Show a page in each of its looks."""
    for scheme, size in LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.bsTheme === '{scheme}'")
        page.evaluate(NEXT_FRAME)
        yield scheme, size


@pytest.mark.slow
def test_no_page_has_a_violation_in_any_look(
    looked_at: list[str], book_url: str, kettle_site: Path, kettle_url: str, visit: Any
) -> None:
    axe_script()
    found = []
    kettle = [each.relative_to(kettle_site).as_posix() for each in kettle_site.rglob("*.html")]
    for paths, url in ((looked_at, book_url), (sorted(kettle), kettle_url)):
        for path in paths:
            page = visit(f"{url}/{path}")
            page.evaluate(OPEN_ALL)
            for scheme, size in in_looks(page):
                bad = page.evaluate(CONTRAST)
                found += [f"{path} {scheme} {size['width']}: contrast {each}" for each in bad]
            page.evaluate(PLAIN_FORMULAS)
            for scheme, size in in_looks(page):
                rules = {1280: None, 390: WIDTH}[size["width"]] if scheme == "light" else COLOURS
                bad = violations(page, rules)
                found += [f"{path} {scheme} {size['width']}: {each}" for each in bad]
            page.close()
    assert found == [], "\n".join(found[:20])


def test_the_open_menu_and_the_open_search_have_no_violation(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/index.html", PHONE)
    menu = page.locator(".menu-open")
    menu.click()
    assert violations(page) == []
    page.locator("#quarto-sidebar a:visible").last.focus()
    page.keyboard.press("Tab")  # leaves it, and closes it
    inside = "document.querySelector('#quarto-sidebar').contains(document.activeElement)"
    assert not page.evaluate(inside)
    assert menu.get_attribute("aria-expanded") == "false"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("kettle")
    page.locator("#search-results [role=option]").first.wait_for(timeout=10_000)
    assert violations(page) == []


def test_what_scrolls_sideways_has_a_tab_stop_and_a_name(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html", PHONE)
    page.evaluate(OPEN_ALL)
    page.wait_for_timeout(100)
    boxes = page.locator("main :is(pre, .table-scroll)").evaluate_all(script("scrolls_sideways.js"))
    assert any(scrolls for scrolls, _ in boxes)
    assert all(scrolls == named for scrolls, named in boxes)
    page.set_viewport_size({"width": 3000, "height": 900})
    page.wait_for_function("!document.querySelector('main .table-scroll').hasAttribute('tabindex')")


def test_each_tab_stop_shows_that_it_has_the_focus_and_nothing_moves(
    kettle_url: str, visit: Any
) -> None:
    """Nothing moves for those who want no motion."""
    page = visit(f"{kettle_url}/lesson.html")
    moving = page.evaluate(script("moving.js"))
    assert moving == []
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        at_end, *stop = page.evaluate(script("focus_shown.js"))
        if at_end:
            break
        stops.append(stop)
    assert len(stops) > 15
    assert [html for html, seen in stops if not seen] == []
