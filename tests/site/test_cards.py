"""Numbers that open and terms with hints, as a reader meets them, by mouse, key and touch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TEA = Path(__file__).parents[1] / "mlsim_book" / "books" / "tea"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FOCUS = "document.activeElement"
# What numbers open to is loaded when the first is neared.
COME_NEAR = "document.querySelector('main .opens').dispatchEvent(new Event('focus'))"


@pytest.fixture(scope="module")
def tea_url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """The address of the small book that has numbers and terms."""
    from mlsim_book.build import build

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


def inside(page: Any, selector: str, viewport: dict[str, int]) -> bool:
    """Say whether an element is inside the window."""
    box = page.locator(selector).bounding_box()
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return bool(
        box["x"] >= 0 and box["y"] >= 0
        and right <= viewport["width"] and bottom <= viewport["height"]
    )  # fmt: skip


def test_a_click_opens_the_card_and_another_closes_it(lesson: Any) -> None:
    page = lesson()
    number, card = first(page), page.locator("#opens-card")
    assert number.get_attribute("aria-expanded") == "false"
    number.click()
    assert number.get_attribute("aria-expanded") == "true"
    assert card.get_attribute("role") == "dialog"
    assert page.get_by_role("dialog", name="3 min").count() == 1
    assert card.locator(".katex-display").is_visible()
    assert card.locator("tbody tr").count() == 3
    assert inside(page, "#opens-card", WIDE)
    assert page.evaluate(f"{FOCUS}.id") == "opens-card"
    number.click()
    assert not card.is_visible()


def test_what_numbers_open_to_comes_with_the_first_of_them(browser: Any, tea_url: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{tea_url}/steep.html", wait_until="networkidle")
    assert not any("/cards/" in url for url in asked)
    first(page).click()
    page.locator("#opens-card .katex-display").wait_for()
    assert sum("/cards/" in url for url in asked) == 1
    page.close()


def test_a_card_that_does_not_come_says_so_and_is_asked_for_again(
    browser: Any, tea_url: str
) -> None:
    page = browser.new_page()
    page.route("**/cards/**", lambda route: route.abort())
    page.goto(f"{tea_url}/steep.html")
    first(page).click()
    page.get_by_text("This could not be loaded.").wait_for()
    page.keyboard.press("Escape")
    page.unroute("**/cards/**")
    first(page).click()
    page.locator("#opens-card .katex-display").wait_for()
    page.close()


@pytest.mark.parametrize("key", ["Enter", " "])
def test_keys_open_it_and_escape_gives_the_focus_back(lesson: Any, key: str) -> None:
    page = lesson()
    first(page).focus()
    page.keyboard.press(key)
    assert page.locator("#opens-card").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#opens-card").is_visible()
    assert page.evaluate(f"{FOCUS} === document.querySelector('main .opens')")


def test_tab_goes_through_the_card_and_back_to_the_number(lesson: Any) -> None:
    page = lesson()
    first(page).focus()
    page.keyboard.press("Enter")
    stops = page.locator("#opens-card :is(a[href], button, [tabindex='0'])").count()
    for _ in range(stops):
        page.keyboard.press("Tab")
        assert page.evaluate(f"document.getElementById('opens-card').contains({FOCUS})")
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUS} === document.querySelector('main .opens')")
    assert not page.locator("#opens-card").is_visible()


def test_a_click_outside_closes_it(lesson: Any) -> None:
    page = lesson()
    first(page).click()
    page.locator("#opens-card p").first.click()
    assert page.locator("#opens-card").is_visible()
    page.mouse.click(700, 880)
    assert not page.locator("#opens-card").is_visible()
    assert page.evaluate(f"{FOCUS} === document.querySelector('main .opens')")


def test_another_number_takes_the_card_over(lesson: Any) -> None:
    page = lesson()
    first(page).click()
    # the open card may lie over it: the number is what matters, not where it stands
    page.locator("main .opens", has_text="12 %").first.dispatch_event("click")
    assert "Twelve parts" in page.locator("#opens-card").inner_text()
    assert page.locator("[aria-expanded=true]").count() == 1


def test_every_number_is_a_button_but_none_is_in_another(lesson: Any) -> None:
    page = lesson()
    assert page.locator("main .opens").count() == page.locator("main .opens[role=button]").count()
    nested = ":is(a, button, h1, h2, h3, [role=button]) .opens, #TOC .opens, .sidebar .opens"
    assert page.locator(nested).count() == 0


def test_all_numbers_of_the_page_open_inside_the_window(lesson: Any) -> None:
    page = lesson()
    page.locator(".callout-header[role=button]").click()
    for number in page.locator("main .opens").all():
        number.scroll_into_view_if_needed()
        number.click()
        assert inside(page, "#opens-card", WIDE)
        page.keyboard.press("Escape")


def test_on_a_phone_it_is_a_sheet_at_the_bottom(lesson: Any) -> None:
    page = lesson(viewport=PHONE, has_touch=True, reduced_motion="reduce")
    first(page).tap()
    box = page.locator("#opens-card").bounding_box()
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    assert round(box["y"] + box["height"]) == PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator(".card-close").tap()
    assert not page.locator("#opens-card").is_visible()


def test_without_scripts_there_is_the_plain_number(lesson: Any) -> None:
    page = lesson(java_script_enabled=False)
    number = first(page)
    assert number.get_attribute("role") is None
    assert number.inner_text() == "3 min"
    style = page.locator("main .opens").first.evaluate
    assert style("e => getComputedStyle(e).textDecorationLine") == "none"


def test_paper_shows_only_the_number(lesson: Any) -> None:
    page = lesson()
    first(page).click()
    page.emulate_media(media="print")
    assert not page.locator("#opens-card").is_visible()
    assert first(page).evaluate("e => getComputedStyle(e).textDecorationLine") == "none"


def test_no_motion_for_those_who_want_none(lesson: Any) -> None:
    page = lesson(reduced_motion="reduce")
    first(page).click()
    moves = page.locator("#opens-card").evaluate("e => getComputedStyle(e).animationName")
    assert moves == "none"


def test_a_hint_shows_on_hover_and_on_focus(lesson: Any) -> None:
    page = lesson()
    term, hint = page.locator("a.term").first, page.locator("#term-hint")
    term.hover()
    hint.wait_for(state="visible")
    assert hint.inner_text() == "What water and leaves become, in about 2^3 minutes or longer."
    assert hint.get_attribute("role") == "tooltip"
    assert term.get_attribute("aria-describedby") == "term-hint"
    assert inside(page, "#term-hint", WIDE)
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


def test_a_tap_on_a_term_follows_the_link(lesson: Any) -> None:
    page = lesson(viewport=PHONE, has_touch=True)
    page.locator("a.term").first.tap()
    page.wait_for_url("**/glossary.html#term-infusion")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_and_hints_have_contrast(lesson: Any, scheme: str) -> None:
    page = lesson(color_scheme=scheme)
    first(page).click()
    for selector in ("#opens-card", "#opens-card .card-close", "a.term"):
        text, ground = page.locator(selector).first.evaluate(
            """e => {
              const light = (c) => c.match(/[\\d.]+/g).slice(0, 3).map((v) => ((v /= 255) <= 0.03928
                ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
              return [light(getComputedStyle(e).color), light(getComputedStyle(document.body).backgroundColor)];
            }"""
        )
        high, low = max(text, ground), min(text, ground)
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector
