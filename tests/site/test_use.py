"""What a reader does with a site: search, move about, switch to dark, copy, fold, choose tabs.

And what is left of it where the zip of a site is opened from disk.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exercise_book import PHONE
from kept import book

from mlsim_book.build import build

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
    assert page.locator("#search-status[role=status]").inner_text() == f"{found.count()} pages"
    chosen = page.locator("#search-results [aria-selected=true]")
    at = chosen.get_attribute
    first, last = at("href"), found.last.get_attribute("href")
    page.keyboard.press("ArrowDown")
    second = at("href")
    assert len({first, second, last}) == 3
    for key, wanted in (("Up", first), ("Up", last), ("Down", first), ("Down", second)):
        page.keyboard.press(f"Arrow{key}")
        assert at("href") == wanted
        active = page.locator("#search-input").get_attribute("aria-activedescendant")
        assert active == at("id")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{second}")
    assert "marrowfat" in page.locator("main").inner_text()


def test_the_search_gives_the_focus_back_and_stays_where_nothing_is_found(
    visit_garden: Visit,
) -> None:
    page = visit_garden("index.html")
    is_open = page.locator("#search").evaluate
    page.locator(".search-field").focus()
    page.keyboard.press("Enter")
    assert is_open("dialog => dialog.open")
    assert page.evaluate(f"{FOCUS}.id") == "search-input"
    page.keyboard.press("Escape")
    assert not is_open("dialog => dialog.open")
    assert page.evaluate(f"{FOCUS}.className").startswith("search-open")
    page.keyboard.press("Control+k")
    page.keyboard.type("zeppelin")
    page.get_by_text("Nothing found for “zeppelin”").wait_for()
    assert page.locator("#search-results [role=option]").count() == 0
    assert page.locator("#search-input").get_attribute("aria-expanded") == "false"
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert is_open("dialog => dialog.open")
    assert page.url.endswith("/index.html")


def test_a_word_that_is_near_is_an_option_that_asks_for_it(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    found = searched(page, "marrowfattt")
    page.get_by_text("Nothing found for “marrowfattt”").wait_for()
    assert found.all_inner_texts() == ["marrowfat"]
    page.keyboard.press("Enter")
    page.get_by_text("3 pages").wait_for()
    assert page.input_value("#search-input") == "marrowfat"
    assert page.evaluate(f"{FOCUS}.id") == "search-input"


def test_from_disk_search_links_and_looks_work_and_nothing_is_asked_for(
    visit: Any, tmp_path: Path
) -> None:
    site = build(book("offline", tmp_path), formats=("zip",), lenient=True, progress=str)
    with zipfile.ZipFile(site / "Clay.zip") as archive:
        archive.extractall(tmp_path / "disk")
    page = visit((tmp_path / "disk" / "Clay" / "index.html").as_uri())
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    searched(page, "célad").locator("mark").first.wait_for()
    assert page.inner_text("#search-results .result-title") == "Glaze"
    page.keyboard.press("Enter")
    page.wait_for_url("**/sub/pots.html#glaze")
    assert "celadon" in page.inner_text("main")
    page.go_back()
    page.click("main a")
    page.wait_for_url("**/sub/pots.html")
    family = page.evaluate("getComputedStyle(document.querySelector('.katex')).fontFamily")
    assert "KaTeX" in family
    page.click(".theme-toggle:visible")
    assert page.evaluate(THEME) == "dark"
    assert asked
    assert all(each.startswith(("file:", "data:")) for each in asked)


# -------------------------------------------------------------------------- navigation
def test_the_sidebar_and_the_links_at_the_end_lead_through_the_book(visit_garden: Visit) -> None:
    page = visit_garden("index.html")
    page.locator("#quarto-sidebar").get_by_text("Beds").click()
    page.wait_for_url("**/beds.html")
    assert page.locator("#quarto-sidebar .active").inner_text().endswith("Beds")
    assert page.locator("#quarto-sidebar [aria-current=page]").count() == 1
    for way, to in (("next", "sheds"), ("previous", "beds"), ("previous", "index")):
        page.locator(f".nav-page-{way} a").click()
        page.wait_for_url(f"**/{to}.html")
        assert page.locator(f".nav-page-{way} a").count() == (to == "beds")


def test_the_contents_show_where_the_reader_is(visit_garden: Visit) -> None:
    """Also one who comes by a link into the page."""
    page = visit_garden("beds.html", reduced_motion="reduce")
    here = "document.querySelector('#TOC a.active').textContent.includes('{}')"
    page.wait_for_function(here.format("Soil"))
    page.locator("#TOC a", has_text="Seeds").click()
    page.wait_for_function(here.format("Seeds"))
    assert page.locator("#TOC a.active").count() == 1
    for where, name in (("document.body.scrollHeight", "Depth"), ("0", "Soil")):
        page.evaluate(f"scrollTo(0, {where})")
        page.wait_for_function(here.format(name))
    page.goto(page.url.replace("beds.html", "index.html"))
    page.goto(page.url.partition("index.html")[0] + "beds.html#sec-depth")
    page.wait_for_function(here.format("Depth"))
    assert page.evaluate("scrollY") > 1000


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
def test_the_theme_follows_the_system_until_the_reader_chooses(visit_garden: Visit) -> None:
    """What was chosen is kept from page to page."""
    page = visit_garden("index.html", color_scheme="light")
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{THEME} === 'dark'")
    assert page.evaluate(BACKGROUND) != light
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{THEME} === 'light'")
    toggle = page.locator(".theme-toggle:visible")
    toggle.focus()
    page.keyboard.press("Enter")  # now it is the reader's
    assert page.evaluate(THEME) == page.evaluate("localStorage.getItem('theme')") == "dark"
    assert toggle.get_attribute("aria-pressed") == "true"
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        assert page.evaluate(THEME) == "dark"
    page.locator(".nav-page-next a").click()
    page.wait_for_url("**/beds.html")
    assert page.evaluate(THEME) == "dark"
    toggle.click()
    assert page.evaluate(THEME) == "light"


@pytest.mark.parametrize(("stored", "system"), [("dark", "light"), ("light", "dark")])
def test_no_flash_of_the_other_theme(visit_garden: Visit, stored: str, system: str) -> None:
    # only what stands in the page itself
    page = visit_garden(color_scheme=system, no_scripts="**/site_libs/**/*.js")
    assert page.evaluate(THEME) == system
    page.evaluate(f"localStorage.setItem('theme', '{stored}')")
    ground = page.evaluate(BACKGROUND)
    page.reload()
    assert page.evaluate(THEME) == stored
    assert page.evaluate(BACKGROUND) != ground
    early = "document.head.querySelector('script:not([src]), link[rel=stylesheet]').tagName"
    assert page.evaluate(early) == "SCRIPT"


# ------------------------------------------------------------------------- copy button
def test_the_button_copies_the_code_and_nothing_else(visit_garden: Visit) -> None:
    page = visit_garden(permissions=["clipboard-read", "clipboard-write"])
    clipboard = "navigator.clipboard.readText()"
    buttons = page.locator(".code-copy-button")
    assert buttons.count() == 2
    name = buttons.first.get_attribute("aria-label")
    buttons.first.click()
    page.wait_for_function("document.querySelector('.code-copy-button').matches('.copied')")
    code = 'def rake(rows):\n    return [row + 1 for row in rows]  # <b> & "quotes"'
    assert page.evaluate(clipboard) == code
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


def test_tabs_change_their_group_and_are_remembered(visit_garden: Visit) -> None:
    page = visit_garden()
    assert selected(page) == ["Spade", "Spade", "Fork"]
    for name, wanted in (
        ("Fork", ["Fork", "Fork", "Fork"]),
        ("Knife", ["Fork", "Fork", "Knife"]),
        ("Hoe", ["Hoe", "Fork", "Knife"]),  # the other set has no such tab
    ):
        page.get_by_role("tab", name=name).first.click()
        assert selected(page) == wanted
    page.reload()
    assert selected(page) == ["Hoe", "Spade", "Fork"]
    page.get_by_role("tab", name="Spade").first.focus()
    steps = {"ArrowRight": "Fork", "End": "Hoe", "ArrowLeft": "Fork", "Home": "Spade"}
    for key, name in [*steps.items(), ("ArrowLeft", "Hoe"), ("ArrowRight", "Spade")]:
        page.keyboard.press(key)
        assert page.evaluate(f"{FOCUS}.textContent.trim()") == selected(page)[0] == name
    page.keyboard.press("Tab")  # one stop a set: on to the panel or what follows
    assert page.evaluate(f"{FOCUS}.textContent.trim()") != "Fork"


# --------------------------------------------------------------------- folds, exercises
def test_callouts_hints_and_solutions_fold_one_by_one_by_mouse_and_by_key(
    visit_garden: Visit,
) -> None:
    page = visit_garden()
    folded = page.locator(".callout-header[role=button]", has_text="Folded").first
    text = page.get_by_text("Hidden at first")
    assert not text.is_visible()
    folded.click()
    assert text.is_visible()
    folded.click()
    text.wait_for(state="hidden")
    folded.focus()
    for key, open_ in (("Enter", True), (" ", False)):
        page.keyboard.press(key)
        assert text.is_visible() == open_
        assert folded.get_attribute("aria-expanded") == str(open_).lower()
    assert page.get_by_text("Shown at first.").is_visible()
    page.locator(".callout-header[role=button]", has_text="Unfolded").click()
    page.get_by_text("Shown at first.").wait_for(state="hidden")

    hint, solution = page.get_by_text("Count the paths"), page.get_by_text("Seven rows fit.")
    folds = page.locator(".exercise-folds .callout-header[role=button]")
    assert [each.split("\n")[-1] for each in folds.all_inner_texts()] == ["A hint", "Solution"]
    assert (hint.is_visible(), solution.is_visible()) == (False, False)
    folds.first.click()
    assert (hint.is_visible(), solution.is_visible()) == (True, False)
    folds.last.focus()
    page.keyboard.press("Enter")
    assert (hint.is_visible(), solution.is_visible()) == (True, True)
