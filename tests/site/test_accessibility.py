"""Every page for every reader: axe-core, contrast, keyboard, motion, landmarks, names.

axe-core judges whole pages, light and dark, on a phone and on a desk. What it gives
up on (text over a half-transparent ground, formulas) is measured here, and so is
what only shows in use: the menu, search, the focus. Cards are in test_cards.py.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe
import pytest
from axe import NEXT_FRAME, axe_script

from mlsim_book.errors import ToolError

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
KINDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = [("light", WIDE), ("light", PHONE), ("dark", WIDE), ("dark", PHONE)]

# All rules look at a page once; those that a window's width or colours can change, again.
# Contrast is measured by CONTRAST, which is quicker and judges what axe-core gives up on.
# Set MLSIM_AXE=full for all rules in all looks (minutes). Pages of equations are all made by one
# cell, so a plain run looks at two of them; `MLSIM_JUDGE=1` (or `make judge`) at all.
WIDTH = ["target-size", "scrollable-region-focusable", "region"]
COLOURS = ["link-in-text-block"]
FULL = os.environ.get("MLSIM_AXE") == "full"

EQUATIONS = "math_"
WHOLE = FULL or bool(os.environ.get("MLSIM_JUDGE"))

RUN_AXE = """
async ([kind, values, contrast]) => {
  const options = { runOnly: { type: kind, values }, resultTypes: ["violations"] };
  if (!contrast) options.rules = kind === "tag" ? { "color-contrast": { enabled: false } } : {};
  const found = await axe.run(document, options);
  return found.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.html.slice(0, 160)} ${node.failureSummary.split("\\n")[1]}`));
}
"""

# A formula is thousands of elements, hidden from assistive technology, and MathML
# that is not: for axe-core a word of the same size stands in its place.
PLAIN_FORMULAS = """
() => {
  const all = [...document.querySelectorAll(".katex")], boxes = all.map((each) => each.getBoundingClientRect());
  all.forEach((each, i) => {
    each.textContent = "formula";
    const [width, height] = [`${boxes[i].width}px`, `${boxes[i].height}px`];
    Object.assign(each.style, { display: "inline-block", overflow: "hidden", width, height });
  });
}
"""

# Bodies of folds are looked at too.
OPEN_ALL = """
() => {
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  document.querySelectorAll(".callout-header.collapsed").forEach((each) => each.click());
}
"""

CONTRAST = """
() => {
  const color = (text) => {
    const parts = text.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...parts.slice(0, 3).map((v) => v * scale), parts[3] ?? 1];
  };
  const over = (top, below) => [...top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3])), 1];
  const light = (c) => c.slice(0, 3).map((v) => ((v /= 255) <= 0.04045
    ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const grounds = new Map([[null, [255, 255, 255, 1]]]);
  const ground = (node) => {
    if (!grounds.has(node)) grounds.set(node, over(color(getComputedStyle(node).backgroundColor), ground(node.parentElement)));
    return grounds.get(node);
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!own || node.closest("svg, script, style, template, .katex-mathml, .skip-link")) continue;
    // formulas have the colour of their text, but where \\color gave them another
    if (node.closest(".katex") && !node.closest("[style*=color]")) continue;
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(node), below = ground(node);
    const [a, b] = [light(over(color(style.color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5) - 0.005)
      bad.push(`${ratio.toFixed(2)} ${node.tagName}.${node.className} ${node.textContent.trim().slice(0, 30)}`);
  }
  return bad;
}
"""


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open an address without motion, in some size and colours."""
    contexts = []

    def opened(url: str, size: dict[str, int] = WIDE, **options: Any) -> Any:
        options = {"reduced_motion": "reduce", **options}
        # bypass_csp: axe is put into the page, whose policy forbids strangers
        context = browser.new_context(viewport=size, bypass_csp=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


def violations(page: Any, rules: list[str] | None = None) -> list[str]:
    """Return what axe-core finds on a page as it is: by all rules, or by some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_script())
    chosen = ["tag", KINDS, FULL] if rules is None or FULL else ["rule", rules, FULL]
    return list(page.evaluate(RUN_AXE, chosen))


def in_looks(page: Any) -> Iterator[tuple[str, dict[str, int]]]:
    """Show a page in each of its looks."""
    for scheme, size in LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.bsTheme === '{scheme}'")
        page.evaluate(NEXT_FRAME)
        yield scheme, size


def looked_at(site: Path) -> list[str]:
    """The pages of a site, of equations two that a seed chooses."""
    paths = sorted(each.relative_to(site).as_posix() for each in site.rglob("*.html"))
    alike = [path for path in paths if path.startswith(EQUATIONS)]
    if WHOLE or len(alike) <= 2:
        return paths
    seen = random.Random(20).sample(alike, 2)
    return [path for path in paths if path not in alike or path in seen]


@pytest.mark.slow
def test_no_page_has_a_violation_in_any_look(
    built_book: Path, book_url: str, kettle_site: Path, kettle_url: str, visit: Any
) -> None:
    axe_script()
    found = []
    for site, url in ((built_book, book_url), (kettle_site, kettle_url)):
        for path in looked_at(site):
            page = visit(f"{url}/{path}")
            page.evaluate(OPEN_ALL)
            for scheme, size in in_looks(page):
                bad = page.evaluate(CONTRAST)
                found += [f"{path} {scheme} {size['width']}: contrast {each}" for each in bad]
            page.evaluate(PLAIN_FORMULAS)
            for scheme, size in in_looks(page):
                rules = {("light", 1280): None, ("light", 390): WIDTH}.get(
                    (scheme, size["width"]), COLOURS
                )
                bad = violations(page, rules)
                found += [f"{path} {scheme} {size['width']}: {each}" for each in bad]
            page.close()
    assert found == [], "\n".join(found[:20])


def test_the_open_menu_and_the_open_search_have_no_violation(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/index.html", PHONE)
    page.locator(".menu-open").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("kettle")
    page.locator("#search-results [role=option]").first.wait_for(timeout=10_000)
    assert violations(page) == []


def test_leaving_the_menu_by_tab_closes_it(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html", PHONE)
    page.locator(".menu-open").click()
    page.locator("#quarto-sidebar a:visible").last.focus()
    page.keyboard.press("Tab")
    assert not page.evaluate(
        "document.querySelector('#quarto-sidebar').contains(document.activeElement)"
    )
    assert page.locator(".menu-open").get_attribute("aria-expanded") == "false"


def test_what_scrolls_sideways_has_a_tab_stop_and_a_name(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html", PHONE)
    page.evaluate(OPEN_ALL)
    page.wait_for_timeout(100)
    boxes = page.locator("main :is(pre, .table-scroll)").evaluate_all(
        """boxes => boxes.filter((box) => box.checkVisibility()).map((box) => [
          box.scrollWidth > box.clientWidth + 1, box.tabIndex === 0 && box.getAttribute("role") === "group"
            && box.getAttribute("aria-label").endsWith("scrolls sideways")])"""
    )
    assert any(scrolls for scrolls, _ in boxes)
    assert all(scrolls == named for scrolls, named in boxes)
    page.set_viewport_size({"width": 3000, "height": 900})
    page.wait_for_function("!document.querySelector('main .table-scroll').hasAttribute('tabindex')")


def test_each_tab_stop_shows_that_it_has_the_focus(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html")
    unseen, stops = [], 0
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => { const at = document.activeElement, style = getComputedStyle(at);
              return [at === document.body, at.outerHTML.slice(0, 90), style.outlineStyle !== "none"
                && parseFloat(style.outlineWidth) >= 2 && at.checkVisibility({ opacityProperty: true })]; }"""
        )
        if stop[0]:
            break
        stops += 1
        unseen += [] if stop[2] else [stop[1]]
    assert stops > 15
    assert unseen == []


def test_nothing_moves_for_those_who_want_no_motion(kettle_url: str, visit: Any) -> None:
    page = visit(f"{kettle_url}/lesson.html")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((each) => { const style = getComputedStyle(each);
          return style.animationName !== "none" || style.scrollBehavior === "smooth"
            || style.transitionDuration.split(",").some((time) => parseFloat(time) > 0
              && style.transitionProperty !== "none"); }).map((each) => each.outerHTML.slice(0, 90))"""
    )
    assert moving == []


def test_without_axe_and_network_the_tests_say_why_they_skip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object) -> None:
        raise ToolError("npm could not fetch: network down")

    monkeypatch.delenv("AXE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(axe, "_npm_ci", refused)
    with pytest.raises(pytest.skip.Exception, match="network down"):
        axe.axe_script.__wrapped__()
    assert list((tmp_path / "mlsim-book" / "test-tools").iterdir()) == []
