"""What a reader's browser sees of a built site. Runs on the real book once there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PHRASE = os.environ.get("MLSIM_PHRASE", "")  # to search for; the first heading when empty


@pytest.fixture
def open_page(browser: Any, book_url: str) -> Iterator[Any]:
    """Open pages of the book with the network cut to this machine, noting complaints."""
    contexts = []

    def opened(path: str = "index.html", *, url: str = book_url, **options: Any) -> Any:
        context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("requestfailed", lambda r: page.complaints.append(f"failed {r.url}"))

        def local_only(route: Any) -> None:
            if route.request.url.startswith((url, "data:")):
                route.continue_()
            else:
                page.complaints.append(f"request to {route.request.url}")
                route.abort()

        page.route("**/*", local_only)
        page.goto(f"{url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()


def pages_of(site: Path) -> list[str]:
    """Return the paths of a site's pages."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def test_pages_load_without_complaint_or_request_elsewhere(
    built_book: Path, open_page: Any
) -> None:
    for path in pages_of(built_book):
        page = open_page(path)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_load_state("networkidle")
        assert page.complaints == [], path


def test_nothing_overflows_a_phone(built_book: Path, open_page: Any) -> None:
    for path in pages_of(built_book):
        page = open_page(path, viewport=PHONE, color_scheme="light")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= PHONE["width"], (path, scheme)
        page.close()


def test_search_finds_a_section_by_keyboard(built_book: Path, open_page: Any) -> None:
    page = open_page(next(p for p in pages_of(built_book) if p != "index.html"))
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
    assert page.complaints == []


def test_dark_mode_toggles_and_is_remembered(open_page: Any) -> None:
    page = open_page(color_scheme="light")
    theme = "document.documentElement.dataset.bsTheme"
    assert page.evaluate(theme) == "light"
    page.locator(".sidebar .theme-toggle").click()
    assert page.evaluate(theme) == "dark"
    page.reload()
    assert page.evaluate(theme) == "dark"


def test_dark_mode_follows_the_system(open_page: Any) -> None:
    page = open_page(color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.bsTheme") == "dark"


def test_the_first_tab_stop_skips_to_the_text(open_page: Any) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "quarto-document-content"


def test_menu_opens_on_a_phone_and_closes_with_escape(open_page: Any) -> None:
    page = open_page(viewport=PHONE)
    sidebar = page.locator("#quarto-sidebar")
    assert not sidebar.is_visible()
    page.locator(".menu-open").click()
    assert sidebar.is_visible()
    page.keyboard.press("Escape")
    sidebar.wait_for(state="hidden")


def test_print_opens_what_is_folded_and_drops_navigation(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html", url=kettle_url)
    assert not page.get_by_text("Its heat is small").is_visible()
    page.emulate_media(media="print")
    assert page.get_by_text("Its heat is small").is_visible()
    assert page.get_by_text("gives the same").is_visible()
    assert not page.locator("#quarto-sidebar").is_visible()


def test_callouts_and_tabs_work_by_keyboard(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html", url=kettle_url)
    page.locator(".callout-header[role=button]").focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("Its heat is small").is_visible()
    page.locator("[role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_text("gives the same").is_visible()
    assert page.complaints == []


def test_a_link_into_something_folded_opens_it(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html#callout-2", url=kettle_url)
    assert page.get_by_text("Its heat is small").is_visible()


def test_page_is_readable_without_scripts(open_page: Any, kettle_url: str) -> None:
    page = open_page("lesson.html", url=kettle_url, java_script_enabled=False)
    assert page.get_by_text("Its heat is small").is_visible()
    assert page.get_by_text("gives the same").is_visible()


CONTRAST = """
() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = [r, g, b].map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll("p, a, code span, th, td, figcaption, li, h1, h2, summary")) {
    if (!node.textContent.trim() || !node.checkVisibility() || node.closest(".katex")) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${node.tagName}.${node.className} ${node.textContent.slice(0, 30)}`);
  }
  return bad;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_code_have_contrast(open_page: Any, kettle_url: str, scheme: str) -> None:
    page = open_page("lesson.html", url=kettle_url, color_scheme=scheme)
    assert page.evaluate(CONTRAST) == []
