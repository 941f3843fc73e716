"""Numbers that open and terms with hints, as a reader meets them, by mouse, key and touch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exercise_book import PHONE, WIDE
from kept import script

from mlsim_book.build import build

TEA = Path(__file__).parents[1] / "mlsim_book" / "books" / "tea"
FOCUS = "document.activeElement"
AT_THE_NUMBER = f"{FOCUS} === document.querySelector('main .opens')"
# What numbers open to is loaded when the first is neared.
COME_NEAR = "document.querySelector('main .opens').dispatchEvent(new Event('focus'))"


@pytest.fixture(scope="module")
def tea_url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """The address of the small book that has numbers and terms."""
    book = Path(shutil.copytree(TEA, tmp_path_factory.mktemp("tea") / "book"))
    site = build(book, progress=str)
    yield from serve_folder(site)


@pytest.fixture
def lesson(visit: Any, tea_url: str) -> Any:
    """Open the page with numbers and terms; it may not complain."""

    def opened(**options: Any) -> Any:
        page = visit(f"{tea_url}/steep.html", **options)
        if options.get("java_script_enabled", True):
            page.evaluate(COME_NEAR)
            page.wait_for_function("window.bookCards")
        return page

    return opened


def first(page: Any) -> Any:
    return page.locator("main .opens").first


def inside(page: Any, selector: str) -> bool:
    """Say whether an element is inside the wide window."""
    box = page.locator(selector).bounding_box()
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return bool(
        box["x"] >= 0 and box["y"] >= 0 and right <= WIDE["width"] and bottom <= WIDE["height"]
    )


def test_clicks_open_the_card_and_close_it(lesson: Any) -> None:
    page = lesson()
    number, card = first(page), page.locator("#opens-card")
    assert number.get_attribute("aria-expanded") == "false"
    number.click()
    assert number.get_attribute("aria-expanded") == "true"
    assert page.get_by_role("dialog", name="3 min").count() == 1
    assert card.locator(".katex-display").is_visible()
    assert card.locator("tbody tr").count() == 3
    assert page.evaluate(f"{FOCUS}.id") == "opens-card"
    card.locator("p").first.click()
    assert card.is_visible()
    number.click()
    assert not card.is_visible()
    number.click()
    page.mouse.click(700, 880)  # outside
    assert not card.is_visible()
    assert page.evaluate(AT_THE_NUMBER)
    number.click()
    # the open card may lie over another: the number is what matters, not where it stands
    page.locator("main .opens", has_text="12 %").first.dispatch_event("click")
    assert "Twelve parts" in card.inner_text()
    assert page.locator("[aria-expanded=true]").count() == 1
    page.emulate_media(media="print")
    assert not card.is_visible()
    assert number.evaluate("e => getComputedStyle(e).textDecorationLine") == "none"


def test_what_numbers_open_to_comes_with_the_first_and_is_asked_for_again(
    browser: Any, tea_url: str
) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: "/cards/" in request.url and asked.append(request.url))
    page.route("**/cards/**", lambda route: route.abort())
    page.goto(f"{tea_url}/steep.html", wait_until="networkidle")
    assert not asked
    first(page).click()
    page.get_by_text("This could not be loaded.").wait_for()
    page.keyboard.press("Escape")
    page.unroute("**/cards/**")
    tried = len(asked)
    first(page).click()
    page.locator("#opens-card .katex-display").wait_for()
    assert len(asked) == tried + 1
    page.close()


def test_keys_open_it_and_lead_through_it_and_back_to_the_number(lesson: Any) -> None:
    page = lesson()
    card = page.locator("#opens-card")
    first(page).focus()
    for key in ("Enter", " "):
        page.keyboard.press(key)
        assert card.is_visible()
        page.keyboard.press("Escape")
        assert not card.is_visible()
        assert page.evaluate(AT_THE_NUMBER)
    page.keyboard.press("Enter")
    for _ in range(card.locator(":is(a[href], button, [tabindex='0'])").count()):
        page.keyboard.press("Tab")
        assert page.evaluate(f"document.getElementById('opens-card').contains({FOCUS})")
    page.keyboard.press("Tab")
    assert page.evaluate(AT_THE_NUMBER)
    assert not card.is_visible()


def test_every_number_is_a_button_in_no_other_and_opens_inside_the_window(lesson: Any) -> None:
    page = lesson(reduced_motion="reduce")
    numbers = page.locator("main .opens").all()
    assert len(numbers) == page.locator("main .opens[role=button]").count()
    nested = ":is(a, button, h1, h2, h3, [role=button]) .opens, #TOC .opens, .sidebar .opens"
    assert page.locator(nested).count() == 0
    page.locator(".callout-header[role=button]").click()
    for number in numbers:
        number.scroll_into_view_if_needed()
        number.click()
        assert inside(page, "#opens-card")
        page.keyboard.press("Escape")
    first(page).click()
    moves = page.locator("#opens-card").evaluate("e => getComputedStyle(e).animationName")
    assert moves == "none"


def test_on_a_phone_it_is_a_sheet_at_the_bottom_also_of_a_term(lesson: Any) -> None:
    page = lesson(viewport=PHONE, has_touch=True, reduced_motion="reduce")
    first(page).tap()
    box = page.locator("#opens-card").bounding_box()
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    assert round(box["y"] + box["height"]) == PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator(".card-close").tap()
    assert not page.locator("#opens-card").is_visible()
    here = page.url
    page.locator("a.term").first.tap()
    card = page.locator("#opens-card")
    card.wait_for(state="visible")
    box = card.bounding_box()
    assert round(box["y"] + box["height"]) == PHONE["height"]
    assert page.url == here
    assert card.inner_text().split("\n")[0] == "infusion"
    assert "What water and leaves become" in card.inner_text()
    card.get_by_text("Glossary").tap()
    page.wait_for_url("**/glossary.html#term-infusion")


def test_a_term_opens_by_keys_and_says_where_it_is_explained(lesson: Any) -> None:
    page = lesson()
    term, card = page.locator("a.term[data-place]").first, page.locator("#opens-card")
    term.focus()
    page.keyboard.press("Enter")
    card.wait_for(state="visible")
    assert not page.locator("#term-hint").is_visible()
    assert term.get_attribute("aria-expanded") == "true"
    place = card.get_by_role("link").first
    assert place.inner_text() == term.get_attribute("data-place") == "Chapter 1"
    assert place.get_attribute("href").endswith("steep.html")
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert page.evaluate("document.activeElement.className") == "term"


def test_the_glossary_has_a_filter_and_knows_where_others_went(visit: Any, tea_url: str) -> None:
    page = visit(f"{tea_url}/glossary.html")
    page.get_by_label("Filter").fill("leaves")
    assert page.locator(".glossary-entry:visible").count() == 1
    assert page.locator(".glossary-filter [role=status]").inner_text() == "1 of 4"
    page.get_by_label("Filter").fill("air")  # another spelling
    assert page.locator(".glossary-entry:visible").inner_text().startswith("draught")
    page.goto(f"{tea_url}/glossary.html#term-gone")
    page.wait_for_url("**/steep.html#term-gone")


def test_without_scripts_there_is_the_plain_number(lesson: Any) -> None:
    number = first(lesson(java_script_enabled=False))
    assert number.get_attribute("role") is None
    assert number.inner_text() == "3 min"
    assert number.evaluate("e => getComputedStyle(e).textDecorationLine") == "none"


def test_a_hint_shows_on_hover_and_on_focus(lesson: Any) -> None:
    page = lesson()
    term, hint = page.locator("a.term").first, page.locator("#term-hint")
    term.hover()
    hint.wait_for(state="visible")
    said = "What water and leaves become, in about 2^3 minutes or longer. Explained in Chapter 1."
    assert hint.inner_text() == said
    assert hint.get_attribute("role") == "tooltip"
    assert term.get_attribute("aria-describedby") == "term-hint"
    assert inside(page, "#term-hint")
    hint.hover()  # the pointer may go there and stay
    page.wait_for_timeout(400)
    assert hint.is_visible()
    page.keyboard.press("Escape")
    assert not hint.is_visible()
    assert term.get_attribute("aria-describedby") is None
    page.mouse.move(5, 5)
    page.locator(".notebook-links a, main a").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    term.focus()
    assert hint.is_visible()
    page.keyboard.press("Tab")
    assert not hint.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_and_hints_have_contrast(lesson: Any, scheme: str) -> None:
    page = lesson(color_scheme=scheme)
    first(page).click()
    assert page.evaluate(script("contrast.js")) == []
    page.keyboard.press("Escape")
    page.locator("a.term").first.hover()
    page.locator("#term-hint").wait_for(state="visible")
    assert page.evaluate(script("contrast.js")) == []
