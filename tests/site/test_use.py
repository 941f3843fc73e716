"""What a reader does with a site: search, move about, switch to dark, copy, fold, choose tabs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
THEME = "document.documentElement.dataset.bsTheme"
FOCUS = "document.activeElement"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


Visit = Callable[..., Any]


@pytest.fixture
def visit_garden(visit: Any, small_url: Callable[[str], str]) -> Visit:
    """Open a page of a small book without code that runs; none may complain."""

    def opened(path: str = "sheds.html", **options: Any) -> Any:
        return visit(f"{small_url('gardens')}/{path}", **options)

    return opened


# ------------------------------------------------------------------------------ search
def searched(page: Any, words: str) -> Any:
    page.keyboard.press("/")
    page.keyboard.type(words)
    return page.locator("#search-results [role=option]")


def test_arrows_choose_a_result_and_enter_goes_there(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    found = searched(page, "marrowfat")
    found.first.wait_for()
    page.wait_for_load_state("networkidle")  # parts of the index that come late may add results
    assert found.count() >= 3
    assert page.locator("#search-status[role=status]").inner_text() == f"{found.count()} results"
    chosen = page.locator("#search-results [aria-selected=true]")
    first = chosen.get_attribute("href")
    box = page.locator("#search-input")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("ArrowDown")
    second = chosen.get_attribute("href")
    assert second != first
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("ArrowUp")
    assert chosen.get_attribute("href") == first
    page.keyboard.press("ArrowUp")  # round to the last
    assert chosen.get_attribute("href") == found.last.get_attribute("href")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{second}")
    assert "marrowfat" in page.locator("main").inner_text()


def test_a_search_without_result_says_so_and_enter_does_nothing(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    found = searched(page, "zeppelin")
    page.get_by_text("Nothing found for “zeppelin”").wait_for()
    assert found.count() == 0
    assert page.locator("#search-input").get_attribute("aria-expanded") == "false"
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator("#search").evaluate("dialog => dialog.open")
    assert page.url.endswith("/index.html")


def test_escape_closes_the_search_and_gives_the_focus_back(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    page.locator(".search-field").focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#search")
    assert dialog.evaluate("dialog => dialog.open")
    assert page.evaluate(f"{FOCUS}.id") == "search-input"
    page.keyboard.press("Escape")
    assert not dialog.evaluate("dialog => dialog.open")
    assert page.evaluate(f"{FOCUS}.className").startswith("search-open")
    page.keyboard.press("Control+k")
    assert dialog.evaluate("dialog => dialog.open")


# -------------------------------------------------------------------------- navigation
def test_the_sidebar_and_the_links_at_the_end_lead_through_the_book(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    page.locator("#quarto-sidebar").get_by_text("Beds").click()
    page.wait_for_url("**/beds.html")
    assert page.locator("#quarto-sidebar .active").inner_text().endswith("Beds")
    assert page.locator("#quarto-sidebar [aria-current=page]").count() == 1
    page.locator(".nav-page-next a").click()
    page.wait_for_url("**/sheds.html")
    assert page.locator(".nav-page-next a").count() == 0
    page.locator(".nav-page-previous a").click()
    page.wait_for_url("**/beds.html")
    page.locator(".nav-page-previous a").click()
    page.wait_for_url("**/index.html")
    assert page.locator(".nav-page-previous a").count() == 0


def test_the_contents_show_where_the_reader_is(visit_garden: Visit) -> None:
    page = visit_garden("beds.html", reduced_motion="reduce")
    here = page.locator("#TOC a.active")
    assert "Soil" in here.inner_text()
    page.locator("#TOC a", has_text="Seeds").click()
    page.wait_for_function("document.querySelector('#TOC a.active').textContent.includes('Seeds')")
    assert here.count() == 1
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function("document.querySelector('#TOC a.active').textContent.includes('Depth')")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("document.querySelector('#TOC a.active').textContent.includes('Soil')")


def test_the_menu_of_a_phone_leads_and_closes(visit_garden: Visit) -> None:
    page = visit_garden("index.html", viewport=PHONE)
    button, menu = page.locator(".menu-open"), page.locator("#quarto-sidebar")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert page.evaluate(f"document.getElementById('quarto-sidebar').contains({FOCUS})")
    page.mouse.click(PHONE["width"] - 5, PHONE["height"] - 5)  # beside it
    menu.wait_for(state="hidden")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    page.keyboard.press("Escape")
    menu.wait_for(state="hidden")
    assert page.evaluate(f"{FOCUS}.classList.contains('menu-open')")
    button.click()
    menu.get_by_text("Sheds").click()
    page.wait_for_url("**/sheds.html")
    assert not menu.is_visible()


# --------------------------------------------------------------------------- dark mode
def test_dark_mode_is_kept_from_page_to_page(visit_garden: Visit) -> None:
    page = visit_garden("index.html", color_scheme="light")
    toggle = page.locator(".theme-toggle:visible")
    toggle.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(THEME) == "dark"
    assert toggle.get_attribute("aria-pressed") == "true"
    assert page.evaluate("localStorage.getItem('theme')") == "dark"
    page.locator(".nav-page-next a").click()
    page.wait_for_url("**/beds.html")
    assert page.evaluate(THEME) == "dark"
    page.locator(".theme-toggle:visible").click()
    assert page.evaluate(THEME) == "light"


def test_the_theme_follows_the_system_until_the_reader_chooses(visit_garden: Visit) -> None:
    page = visit_garden(color_scheme="light")
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{THEME} === 'dark'")
    assert page.evaluate(BACKGROUND) != light
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{THEME} === 'light'")
    page.locator(".theme-toggle:visible").click()  # now it is the reader's
    assert page.evaluate(THEME) == "dark"
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        assert page.evaluate(THEME) == "dark"


@pytest.mark.parametrize(("stored", "system"), [("dark", "light"), ("light", "dark")])
def test_no_flash_of_the_other_theme(visit_garden: Visit, stored: str, system: str) -> None:
    page = visit_garden(
        color_scheme=system, no_scripts="**/site_libs/**/*.js"
    )  # only what stands in the page itself
    assert page.evaluate(THEME) == system
    page.evaluate(f"localStorage.setItem('theme', '{stored}')")
    ground = page.evaluate(BACKGROUND)
    page.reload()
    assert page.evaluate(THEME) == stored
    assert page.evaluate(BACKGROUND) != ground
    order = page.evaluate(
        "[...document.head.querySelectorAll('script:not([src]), link[rel=stylesheet]')]"
        ".map(each => each.tagName)"
    )
    assert order[0] == "SCRIPT"


# ------------------------------------------------------------------------- copy button
def test_the_button_copies_the_code_and_nothing_else(visit_garden: Visit) -> None:
    page = visit_garden(permissions=["clipboard-read", "clipboard-write"])
    clipboard = "navigator.clipboard.readText()"
    buttons = page.locator(".code-copy-button")
    assert buttons.count() == 2
    name = buttons.first.get_attribute("aria-label")
    buttons.first.click()
    page.wait_for_function("document.querySelector('.code-copy-button').matches('.copied')")
    assert page.evaluate(clipboard) == (
        'def rake(rows):\n    return [row + 1 for row in rows]  # <b> & "quotes"'
    )
    assert buttons.first.get_attribute("aria-label") != name
    buttons.last.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"{clipboard}.then(text => text.startsWith('tool'))")
    assert page.evaluate(clipboard).rstrip() == 'tool = "hoe"'  # no mark of the annotation
    page.wait_for_function("!document.querySelector('.code-copy-button.copied')")
    assert buttons.first.get_attribute("aria-label") == name


# -------------------------------------------------------------------------------- tabs
def selected(page: Any) -> list[str]:
    """Return the name of the chosen tab of each set, and check that its panel shows alone."""
    tabs = page.locator("[role=tab][aria-selected=true]")
    for tab in tabs.all():
        panel = page.locator(f"#{tab.get_attribute('aria-controls')}")
        assert panel.is_visible()
        assert tab.get_attribute("tabindex") == "0"
    assert page.locator("[role=tabpanel]:visible").count() == tabs.count()
    return [text.strip() for text in tabs.all_inner_texts()]


def test_tabs_by_mouse_change_their_group_and_are_remembered(visit_garden: Visit) -> None:
    page = visit_garden()
    assert selected(page) == ["Spade", "Spade", "Fork"]
    page.get_by_role("tab", name="Fork").first.click()
    assert selected(page) == ["Fork", "Fork", "Fork"]
    page.get_by_role("tab", name="Knife").click()
    assert selected(page) == ["Fork", "Fork", "Knife"]
    page.get_by_role("tab", name="Hoe").click()  # the other set has no such tab
    assert selected(page) == ["Hoe", "Fork", "Knife"]
    page.reload()
    assert selected(page) == ["Hoe", "Spade", "Fork"]


def test_tabs_by_key(visit_garden: Visit) -> None:
    page = visit_garden()
    page.get_by_role("tab", name="Spade").first.focus()
    steps = [("ArrowRight", "Fork"), ("End", "Hoe"), ("ArrowRight", "Spade"),
             ("ArrowLeft", "Hoe"), ("Home", "Spade")]  # fmt: skip
    for key, name in steps:
        page.keyboard.press(key)
        assert page.evaluate(f"{FOCUS}.textContent.trim()") == name
        assert selected(page)[0] == name
    page.keyboard.press("Tab")  # one stop a set: on to the panel or what follows
    assert page.evaluate(f"{FOCUS}.textContent.trim()") != "Fork"


# --------------------------------------------------------------------- folds, exercises
def test_callouts_fold_by_mouse_and_by_key(visit_garden: Visit) -> None:
    page = visit_garden()
    folded = page.locator(".callout-header[role=button]", has_text="Folded").first
    text = page.get_by_text("Hidden at first")
    assert not text.is_visible()
    folded.click()
    assert text.is_visible()
    assert folded.get_attribute("aria-expanded") == "true"
    folded.click()
    text.wait_for(state="hidden")
    folded.focus()
    for key, open_ in (("Enter", True), (" ", False)):
        page.keyboard.press(key)
        assert text.is_visible() == open_
        assert folded.get_attribute("aria-expanded") == str(open_).lower()
    shown = page.locator(".callout-header[role=button]", has_text="Unfolded")
    assert page.get_by_text("Shown at first.").is_visible()
    shown.click()
    page.get_by_text("Shown at first.").wait_for(state="hidden")


def test_exercises_open_their_hint_and_solution_one_by_one(visit_garden: Visit) -> None:
    page = visit_garden()
    hint, solution = page.get_by_text("Count the paths"), page.get_by_text("Seven rows fit.")
    folds = page.locator(".exercise-folds .callout-header[role=button]")
    assert [each.split("\n")[-1] for each in folds.all_inner_texts()] == ["A hint", "Solution"]
    assert not hint.is_visible()
    assert not solution.is_visible()
    folds.first.click()
    assert hint.is_visible()
    assert not solution.is_visible()
    folds.last.focus()
    page.keyboard.press("Enter")
    assert hint.is_visible()
    assert solution.is_visible()
    assert page.locator("#exr-rows").is_visible()


def test_a_link_into_another_page_opens_at_its_section(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    page.goto(page.url.replace("index.html", "beds.html#sec-depth"))
    page.wait_for_function("document.querySelector('#TOC a.active').textContent.includes('Depth')")
    assert page.evaluate("scrollY") > 1000
