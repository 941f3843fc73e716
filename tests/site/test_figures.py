"""Figures as a reader sees them: in both looks, on a phone, on paper, and their data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe import axe_script
from exercise_book import PHONE, WIDE
from kept import script

SEEN = """() => [...document.querySelectorAll("main img")].filter((each) => each.checkVisibility())
  .map((each) => each.currentSrc.split("/").pop())"""
LOADED = """() => [...document.querySelectorAll("main img")].filter((each) => each.checkVisibility())
  .map((each) => each.naturalWidth && each.currentSrc.split("/").pop()).join()"""
LIGHT_COPY, DARK_COPY = "fig-pots-output-1.svg", "fig-pots-output-1.dark.svg"
# A page's picture, as light as its pixels are on average: from 0 to 1.
LIGHT = script("lightness.js")


@pytest.fixture
def site(small_site: Callable[[str], Path]) -> Path:
    """The site of a book of one figure."""
    return small_site("clay_figure")


@pytest.fixture
def figure(visit: Any, small_url: Callable[[str], str]) -> Any:
    """Open the page in some size and look."""

    def opened(size: dict[str, int], scheme: str) -> Any:
        address = f"{small_url('clay_figure')}/index.html"
        return visit(address, size, color_scheme=scheme, bypass_csp=True)

    return opened


@pytest.mark.parametrize("kept", [None, "light", "dark"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_only_the_copy_that_is_seen_is_loaded(
    site: Path, browser: Any, scheme: str, kept: str | None
) -> None:
    """The other one comes when the button asks for it; without scripts a page is light."""
    copies = [LIGHT_COPY, DARK_COPY] if (kept or scheme) == "light" else [DARK_COPY, LIGHT_COPY]
    for scripts in (True, False):
        context = browser.new_context(
            viewport=WIDE, color_scheme=scheme, java_script_enabled=scripts
        )
        if kept:
            context.add_init_script(f"localStorage.setItem('theme', '{kept}')")
        page = context.new_page()
        loaded: list[str] = []
        page.on("request", lambda request, to=loaded: to.append(request.url.split("/")[-1]))
        page.goto((site / "index.html").as_uri(), wait_until="networkidle")
        page.wait_for_timeout(300)  # for what should not come, too
        figures = [each for each in loaded if each in copies]
        assert figures == (copies[:1] if scripts else [LIGHT_COPY])
        if scripts:
            page.locator(".theme-toggle:visible").first.click()
            page.wait_for_timeout(300)
            assert [each for each in loaded if each in copies] == copies
            assert page.evaluate(SEEN) == copies[1:]
        context.close()


def test_a_dark_page_on_paper_has_the_light_copy(figure: Any) -> None:
    """Print it, and the browser loads what it lacks, and waits; `page.pdf()` doesn't wait."""
    page = figure(WIDE, "dark")
    page.wait_for_function(f"({LOADED})() === '{DARK_COPY}'")
    page.emulate_media(media="print")
    page.wait_for_function(f"({LOADED})() === '{LIGHT_COPY}'")
    assert not page.locator(".figure-data").is_visible()


def test_no_white_card_glares_in_the_dark(site: Path, browser: Any) -> None:
    # a canvas may read what it draws of pages with one origin only: not of files
    seen = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport=WIDE)
        page.route("http://book.test/**", lambda route: route.fulfill(
            path=site / route.request.url.removeprefix("http://book.test/")))  # fmt: skip
        page.goto("http://book.test/index.html")
        seen[scheme] = page.evaluate(LIGHT)
        page.close()
    assert seen["light"] > 0.9
    assert seen["dark"] < 0.25


def test_on_a_phone_letters_stay_readable_and_the_figure_scrolls(figure: Any) -> None:
    page = figure(PHONE, "light")
    box = page.locator(".figure-scroll")
    inside, outside, natural = box.evaluate(
        "b => [b.scrollWidth, b.clientWidth, b.querySelector('img').naturalWidth]"
    )
    assert outside < inside
    assert 10.5 * 96 / 72 * inside / natural >= 8.9  # letters of 10.5 points, in pixels
    page.wait_for_function("document.querySelector('.figure-scroll').tabIndex === 0")
    assert box.get_attribute("aria-label") == "Figure, scrolls sideways"
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_data_open_by_keyboard_and_are_a_table(figure: Any, site: Path) -> None:
    page = figure(WIDE, "light")
    fold = page.locator(".figure-data")
    assert not fold.locator("table").is_visible()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert fold.locator("table").is_visible()
    assert "Data of Figure" in fold.locator("caption").inner_text()
    assert fold.locator("th[scope=col]").all_inner_texts() == ["Day", "Pots, clay"]
    assert fold.locator("tbody tr").last.inner_text().split() == ["2", "9"]
    file = site / str(fold.locator("a").get_attribute("href"))
    assert file.read_text() == 'Day,"Pots, clay"\n0,1\n1,4\n2,9\n'
    page.evaluate(axe_script())
    page.set_viewport_size(PHONE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("axe.run(document).then((found) => found.violations)") == []
