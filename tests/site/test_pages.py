"""What a page weighs, how long its lines are, and what comes out on paper."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept import text

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark of pages."""
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("bench_pages")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.slow
def test_a_first_visit_to_any_page_is_light(
    built_book: Path, looked_at: list[str], browser: Any, bench: Any
) -> None:
    with bench.gzip_server(built_book) as url:
        for path in looked_at:
            found = bench.visit(browser, url, path)
            assert found.weight <= bench.PAGE, (path, found.loaded)
            assert found.blocking == [], path
            assert 0 < found.early <= bench.EARLY, path


@pytest.mark.parametrize("query", ["memory bandwidth", "training", "the of a m"])
def test_a_first_search_is_light(built_book: Path, browser: Any, bench: Any, query: str) -> None:
    with bench.gzip_server(built_book) as url:
        found = bench.visit(browser, url, "index.html", query=query).search
    assert "site_libs/search/index.js" in found
    assert sum(found.values()) <= bench.SEARCH, found


def test_what_a_page_loads_is_weighed_as_it_comes(
    kettle_site: Path, browser: Any, bench: Any
) -> None:
    import gzip

    with bench.gzip_server(kettle_site) as url:
        found = bench.visit(browser, url, "lesson.html")
    for name, size in found.loaded.items():
        data = (kettle_site / name).read_bytes()
        if name.endswith((".html", ".css", ".js", ".svg")):
            data = gzip.compress(data, compresslevel=6, mtime=0)
        assert 0 <= size - len(data) < 400, name  # the rest is headers
    assert any(name.endswith(".woff2") for name in found.loaded)
    assert found.weight < bench.PAGE


def test_paper_is_white_and_has_no_navigation(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html")
    page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
    page.emulate_media(media="print", color_scheme="dark")
    for selector in ("#quarto-sidebar", "#topbar", "#quarto-margin-sidebar", ".page-navigation",
                     ".notebook-links", ".code-copy-button", ".nav-tabs"):  # fmt: skip
        for each in page.locator(selector).all():
            assert not each.is_visible(), selector
    style = "(e) => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    assert page.locator("body").evaluate(style) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    wide = page.evaluate("""() => [...document.querySelectorAll("main pre")]
      .filter((each) => each.checkVisibility() && getComputedStyle(each).whiteSpace !== "pre-wrap").length""")
    assert wide == 0


PAPER = text("paper.html")


def test_paper_keeps_solutions_back_and_says_where_links_lead(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html")
    page.evaluate("(html) => { document.querySelector('main').outerHTML = html; }", PAPER)
    page.emulate_media(media="print")
    shown = page.locator("main .callout").evaluate_all(
        "all => all.filter((each) => each.checkVisibility()).map((each) => each.innerText.split('\\n')[0])"
    )
    assert shown == ["Open", "Aside"]
    assert page.get_by_text("A", exact=True).is_visible()  # what is folded is open
    after = "(e) => getComputedStyle(e, '::after').content"
    assert page.locator("#out").evaluate(after) not in {"none", "normal"}
    assert page.locator("#in").evaluate(after) == "none"
