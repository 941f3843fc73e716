"""Figures as a reader sees them: in both looks, on a phone, on paper, and their data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe import axe_script
from kept import book, script

from mlsim_book.build import build, site_hash

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
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


def test_two_builds_in_two_folders_are_byte_equal(tmp_path: Path) -> None:
    hashes = set()
    for name in ("one", "other"):
        root = book("clay_figure", tmp_path / name)
        hashes.add(site_hash(build(root, formats=("epub", "pdf"), refresh=True, progress=str)))
    assert len(hashes) == 1


def test_a_figure_follows_the_look_and_is_printed_in_light_colours(figure: Any) -> None:
    page = figure(WIDE, "dark")
    assert page.evaluate(SEEN) == [DARK_COPY]
    page.locator(".theme-toggle:visible").first.click()
    page.wait_for_function(f"({SEEN})()[0] === '{LIGHT_COPY}'")
    page.locator(".theme-toggle:visible").first.click()
    page.emulate_media(media="print")
    assert page.evaluate(SEEN) == [LIGHT_COPY]
    assert not page.locator(".figure-data").is_visible()


@pytest.mark.parametrize(
    ("scheme", "kept", "scripts", "copies"),
    [
        ("light", None, True, [LIGHT_COPY, DARK_COPY]),
        ("dark", None, True, [DARK_COPY, LIGHT_COPY]),
        ("light", "dark", True, [DARK_COPY, LIGHT_COPY]),
        ("dark", "light", True, [LIGHT_COPY, DARK_COPY]),
        ("light", None, False, [LIGHT_COPY]),
        ("dark", None, False, [LIGHT_COPY]),  # without scripts a page is light
    ],
)
def test_only_the_copy_that_is_seen_is_loaded(
    site: Path, browser: Any, scheme: str, kept: str | None, scripts: bool, copies: list[str]
) -> None:
    """The other one comes when the button asks for it."""
    context = browser.new_context(viewport=WIDE, color_scheme=scheme, java_script_enabled=scripts)
    if kept:
        context.add_init_script(f"localStorage.setItem('theme', '{kept}')")
    page = context.new_page()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.split("/")[-1]))

    def figures() -> list[str]:
        page.wait_for_timeout(300)  # for what should not come, too
        return [each for each in loaded if each in {LIGHT_COPY, DARK_COPY}]

    page.goto((site / "index.html").as_uri(), wait_until="networkidle")
    assert figures() == copies[:1]
    if scripts:
        page.locator(".theme-toggle:visible").first.click()
        assert figures() == copies
        assert page.evaluate(SEEN) == copies[1:]
    context.close()


def test_a_dark_page_on_paper_has_the_light_copy(figure: Any) -> None:
    """Print it, and the browser loads what it lacks, and waits; `page.pdf()` doesn't wait."""
    page = figure(WIDE, "dark")
    page.wait_for_function(f"({LOADED})() === '{DARK_COPY}'")
    page.emulate_media(media="print")
    page.wait_for_function(f"({LOADED})() === '{LIGHT_COPY}'")


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
        "b => [b.scrollWidth, b.clientWidth, b.querySelector('img').getAttribute('width')]"
    )
    assert outside < inside
    assert 10 * 96 / 72 * inside / float(natural) >= 8.9  # letters of 10 points, in pixels
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_open_table_on_a_phone_has_no_violation(figure: Any, scheme: str) -> None:
    page = figure(PHONE, scheme)
    page.locator(".figure-data summary").click()
    page.evaluate(axe_script())
    assert page.evaluate("axe.run(document).then((found) => found.violations)") == []
