"""What a page weighs, how long its lines are, and what comes out on paper."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LINES = """() => {
  const counts = [];
  for (const p of document.querySelectorAll("main p")) {
    if (p.closest(".column-margin, aside, table, header, .footnotes, li, dd, blockquote, .callout, .theorem")
      || p.querySelector(".katex, br, code") || !p.checkVisibility()) continue;
    const range = document.createRange(), lines = [];
    const walker = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
    let top = -1e9;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let i = 0; i < node.length; i += 1) {
        range.setStart(node, i);
        range.setEnd(node, i + 1);
        const box = range.getClientRects()[0];
        if (!box) continue;
        if (box.top > top + 10) { lines.push(0); top = box.top; }
        lines[lines.length - 1] += 1;
      }
    }
    counts.push(...lines.slice(0, -1)); // the last line of a paragraph ends where it ends
  }
  return counts.sort((a, b) => a - b);
}"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark of pages."""
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("bench_pages")
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def show(browser: Any) -> Iterator[Any]:
    """Open an address in a window of some width."""
    contexts = []

    def shown(url: str, width: int = 1280) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.goto(url)
        return page

    yield shown
    for context in contexts:
        context.close()


@pytest.mark.slow
def test_a_first_visit_to_any_page_is_light(built_book: Path, browser: Any, bench: Any) -> None:
    with bench.gzip_server(built_book) as url:
        for path in bench.pages_of(built_book):
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


def test_a_site_that_is_none_is_refused(
    bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        bench.main([str(tmp_path)])
    assert "holds no index.html" in capsys.readouterr().err


def test_lines_of_text_keep_the_measure(built_book: Path, book_url: str, show: Any) -> None:
    seen = 0
    for path in sorted(
        each.relative_to(built_book).as_posix() for each in built_book.rglob("*.html")
    ):
        page = show(f"{book_url}/{path}")
        counts = page.evaluate(LINES)
        page.close()
        if len(counts) < 10:
            continue
        seen += 1
        middle, long = counts[len(counts) // 2], counts[len(counts) * 9 // 10]
        assert 60 <= middle <= 75, (path, middle)
        assert long <= 78, (path, long)
    assert seen >= 3


def test_paper_is_white_and_has_no_navigation(kettle_url: str, show: Any) -> None:
    page = show(f"{kettle_url}/lesson.html")
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


PAPER = """<main id="quarto-document-content"><p>See <a id="out" href="https://example.org/a">it</a>,
<a id="in" href="#x">there</a>.</p>
<div class="theorem exercise" id="x"><p>What is it?</p></div>
<div class="callout"><div class="callout-header collapsed">Hint</div><div class="callout-collapse"><p>H</p></div></div>
<div class="callout"><div class="callout-header">Open</div><div class="callout-collapse show"><p>O</p></div></div>
<div class="callout"><div class="callout-header collapsed">Solution</div><div class="callout-collapse"><p>S</p></div></div>
<p>Between.</p>
<div class="callout"><div class="callout-header collapsed">Aside</div><div class="callout-collapse"><p>A</p></div></div>
</main>"""


def test_paper_keeps_solutions_back_and_says_where_links_lead(kettle_url: str, show: Any) -> None:
    page = show(f"{kettle_url}/lesson.html")
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
