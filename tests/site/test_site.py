"""What a reader's browser sees of a built site, and of the pages of the book that are looked at."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import Any

import pytest
from kept import script

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LINES = script("line_lengths.js")
# Whether each table that is wider than a window stands in a box that scrolls.
BOXED = """() => [...document.querySelectorAll("main table")]
  .filter((each) => each.checkVisibility() && each.scrollWidth > innerWidth)
  .every((each) => each.closest(".table-scroll"))"""
PHRASE = os.environ.get("MLSIM_PHRASE", "")  # to search for; the first heading when empty


Found = dict[str, list[str]]


@pytest.fixture(scope="module")
def walked(browser: Any, looked_at: list[str], book_url: str) -> Found:
    """What breaks a rule on pages of the book, by rule. Each is opened once, without a network."""
    found: Found = defaultdict(list)
    for path in looked_at:
        with browser.new_context(viewport=WIDE, color_scheme="light") as context:
            page = context.new_page()
            note = found["complaints"].append
            page.on(
                "console", lambda m, note=note, at=path: m.type == "error" and note(at + m.text)
            )
            page.on("pageerror", lambda error, note=note, at=path: note(f"{at}: {error}"))
            page.on("requestfailed", lambda r, note=note, at=path: note(f"{at} failed: {r.url}"))
            page.route(_elsewhere(book_url), lambda route: route.abort())
            page.goto(f"{book_url}/{path}")
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            page.wait_for_load_state("networkidle")
            counts = page.evaluate(LINES)
            if len(counts) >= 10:
                middle, long = counts[len(counts) // 2], counts[len(counts) * 9 // 10]
                found["measured"].append(path)
                if not (60 <= middle <= 75 and long <= 78):
                    found["lines"].append(f"{path}: {middle} letters, a tenth {long} or more")
            page.set_viewport_size(PHONE)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                    found["overflows"].append(f"{path}, {scheme}")
            if not page.evaluate(BOXED):
                found["tables"].append(path)
    return found


def _elsewhere(url: str) -> re.Pattern[str]:
    return re.compile(rf"^(?!{re.escape(url)}|data:)")


def test_pages_load_without_complaint_or_request_elsewhere(walked: Found) -> None:
    assert walked["complaints"] == []


def test_nothing_overflows_a_phone_and_wide_tables_scroll_in_their_boxes(walked: Found) -> None:
    assert walked["overflows"] == []
    assert walked["tables"] == []


def test_lines_of_text_keep_the_measure(walked: Found) -> None:
    assert walked["lines"] == []
    assert len(walked["measured"]) >= 3


@pytest.fixture
def open_page(visit: Any, book_url: str) -> Any:
    """Open a page of the book; it may not complain."""

    def opened(path: str = "index.html", *, url: str = book_url, **options: Any) -> Any:
        return visit(f"{url}/{path}", options.pop("viewport", WIDE), **options)

    return opened


def test_search_finds_a_section_by_keyboard(looked_at: list[str], open_page: Any) -> None:
    page = open_page(next(path for path in looked_at if path != "index.html"))
    heading = page.locator("main section[id] > :is(h2, h3)").first
    words = PHRASE or heading.evaluate(
        "h => [...h.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(' ').trim()"
    )
    if not words:
        words = page.locator("h1.title .chapter-title").inner_text()
    page.keyboard.press("/")
    assert page.locator("#search").evaluate("dialog => dialog.open")
    page.keyboard.type(words)
    result = page.locator("#search-results a[role=option]").first
    result.wait_for(timeout=10_000)
    target = result.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")


def test_the_first_tab_stop_skips_to_the_text(open_page: Any) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "quarto-document-content"


def test_print_opens_what_is_folded_and_drops_navigation(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html", url=kettle_url)
    assert not page.get_by_text("Its heat is small").is_visible()
    page.emulate_media(media="print")
    assert page.get_by_text("Its heat is small").is_visible()
    assert page.get_by_text("gives the same").is_visible()
    assert not page.locator("#quarto-sidebar").is_visible()


def test_a_link_into_something_folded_opens_it(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html#callout-2", url=kettle_url)
    assert page.get_by_text("Its heat is small").is_visible()


def test_page_is_readable_without_scripts(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html", url=kettle_url, java_script_enabled=False)
    assert page.get_by_text("Its heat is small").is_visible()
    assert page.get_by_text("gives the same").is_visible()
