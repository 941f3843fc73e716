"""What a reader's browser sees of a site: its pages, what they weigh, paper, no scripts, search."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from exercise_book import PHONE, WIDE
from kept import script, text

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LINES = script("line_lengths.js")
# Whether each table that is wider than a window stands in a box that scrolls.
BOXED = """() => [...document.querySelectorAll("main table")]
  .filter((each) => each.checkVisibility() && each.scrollWidth > innerWidth)
  .every((each) => each.closest(".table-scroll"))"""
FOLDED = ("Its heat is small", "gives the same")


def test_no_page_complains_asks_elsewhere_or_is_too_wide(
    browser: Any, looked_at: list[str], book_url: str
) -> None:
    """Each is opened once, without a network; its lines of text keep the measure."""
    found: dict[str, list[str]] = defaultdict(list)
    measured = 0
    for path in looked_at:
        with browser.new_context(viewport=WIDE, color_scheme="light") as context:
            page, note = context.new_page(), found[path].append
            page.on("console", lambda m, note=note: m.type == "error" and note(m.text))
            page.on("pageerror", lambda error, note=note: note(str(error)))
            page.on("requestfailed", lambda r, note=note: note(f"failed: {r.url}"))
            elsewhere = re.compile(rf"^(?!{re.escape(book_url)}|data:)")
            page.route(elsewhere, lambda route: route.abort())
            page.goto(f"{book_url}/{path}")
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            page.wait_for_load_state("networkidle")
            counts = page.evaluate(LINES)
            if len(counts) >= 10:
                measured += 1
                middle, long = counts[len(counts) // 2], counts[len(counts) * 9 // 10]
                if not (60 <= middle <= 75 and long <= 78):
                    note(f"lines of {middle} letters, a tenth {long} or more")
            page.set_viewport_size(PHONE)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                    note(f"wider than a phone, {scheme}")
            if not page.evaluate(BOXED):
                note("a wide table in no box that scrolls")
    assert {path: said for path, said in found.items() if said} == {}
    assert measured >= 3


@pytest.mark.slow
def test_a_first_visit_and_a_first_search_are_light(
    built_book: Path, looked_at: list[str], browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("bench_pages")
    with bench.gzip_server(built_book) as url:
        for path in looked_at:
            found = bench.visit(browser, url, path)
            assert found.weight <= bench.PAGE, (path, found.loaded)
            assert found.blocking == [], path
            assert 0 < found.early <= bench.EARLY, path
        for query in ("memory bandwidth", "training", "the of a m"):
            taken = bench.visit(browser, url, "index.html", query=query).search
            assert "site_libs/search/index.js" in taken
            assert sum(taken.values()) <= bench.SEARCH, taken


@pytest.mark.parametrize("size", ["A4", "Letter"])
def test_the_numbers_to_remember_print_on_one_sheet(
    size: str, built_book: Path, book_url: str, browser: Any
) -> None:
    if not (built_book / "numbers.html").is_file():
        pytest.skip("this book has no such page")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{book_url}/numbers.html")
        assert page.pdf(format=size).count(b"/Type /Page\n") == 1


def test_an_old_address_leads_to_the_page_that_has_the_section_now(
    built_book: Path, book_url: str, browser: Any
) -> None:
    if not (built_book / "tutorials" / "hardware_ecosystem.html").is_file():
        pytest.skip("no page of this book has moved")
    with browser.new_context() as context:
        page = context.new_page()
        for old, new in {
            "": "tutorials/gpu.html",
            "#eq-amdahl": "tutorials/gpu.html#eq-amdahl",
            "#sec-eco-systolic": "tutorials/reuse.html#sec-eco-systolic",
            "#exr-growth-gap": "zoo/models.html#exr-growth-gap",
            "#gone": "tutorials/gpu.html#gone",
        }.items():
            page.goto("about:blank")
            page.goto(f"{book_url}/tutorials/hardware_ecosystem.html{old}")
            page.wait_for_url(f"{book_url}/{new}")


def test_nothing_strange_runs_or_is_asked_for(
    built_book: Path, book_url: str, browser: Any
) -> None:
    """The browser holds this book to its Content-Security-Policy: nothing but its own origin."""
    if "Content-Security-Policy" not in (built_book / "index.html").read_text("utf-8"):
        pytest.skip("this book asks for no policy")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{book_url}/index.html")
        refused, strange = page.evaluate(script("try_strange.js"), "http://127.0.0.1:9")
        assert not strange
        assert refused == ["connect-src", "img-src", "script-src-elem"]


def test_search_finds_a_section_and_the_first_tab_stop_skips_to_the_text(
    looked_at: list[str], visit: Any, built_book: Path, book_url: str
) -> None:
    section = re.compile(r"<section [^>]*>\s*<h[23]")
    with_one = (
        path for path in looked_at if section.search((built_book / path).read_text("utf-8"))
    )
    page = visit(f"{book_url}/{next(path for path in with_one if path != 'index.html')}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "quarto-document-content"
    heading = page.locator("main section[id] > :is(h2, h3)").first
    words = heading.evaluate(
        "h => [...h.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(' ').trim()"
    )
    page.keyboard.press("/")
    assert page.locator("#search").evaluate("dialog => dialog.open")
    page.keyboard.type(words or page.locator("h1.title .chapter-title").inner_text())
    result = page.locator("#search-results a[role=option]").first
    result.wait_for(timeout=10_000)
    target = result.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")


def test_what_is_folded_opens_by_a_link_on_paper_and_without_scripts(
    visit: Any, kettle_url: str
) -> None:
    lesson = f"{kettle_url}/lesson.html"
    assert visit(f"{lesson}#callout-2").get_by_text(FOLDED[0]).is_visible()
    page = visit(lesson)
    assert not page.get_by_text(FOLDED[0]).is_visible()
    page.emulate_media(media="print")
    for shown in (page, visit(lesson, java_script_enabled=False)):
        assert all(shown.get_by_text(each).is_visible() for each in FOLDED)


def test_paper_is_white_has_no_navigation_and_keeps_solutions_back(
    kettle_url: str, visit: Any
) -> None:
    page = visit(f"{kettle_url}/lesson.html")
    page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
    page.emulate_media(media="print", color_scheme="dark")
    off_paper = page.locator(
        "#quarto-sidebar, #topbar, #quarto-margin-sidebar, .page-navigation, .notebook-links,"
        " .code-copy-button, .nav-tabs"
    )
    assert off_paper.count() > 5
    assert not any(each.is_visible() for each in off_paper.all())
    style = "(e) => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    assert page.locator("body").evaluate(style) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    wide = page.evaluate("""() => [...document.querySelectorAll("main pre")]
      .filter((each) => each.checkVisibility() && getComputedStyle(each).whiteSpace !== "pre-wrap").length""")
    assert wide == 0
    page.evaluate(
        "(html) => { document.querySelector('main').outerHTML = html; }", text("paper.html")
    )
    shown = page.locator("main .callout").evaluate_all(
        "all => all.filter((each) => each.checkVisibility()).map((each) => each.innerText.split('\\n')[0])"
    )
    assert shown == ["Open", "Aside"]
    assert page.get_by_text("A", exact=True).is_visible()  # what is folded is open
    after = "(e) => getComputedStyle(e, '::after').content"  # where a link leads
    assert page.locator("#out").evaluate(after) not in {"none", "normal"}
    assert page.locator("#in").evaluate(after) == "none"
