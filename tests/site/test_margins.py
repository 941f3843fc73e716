"""Margin notes, images that open in full, and the menu for code, as a reader meets them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
BOX = (
    "each => { const b = each.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] }"
)


@pytest.fixture
def page(visit: Any, small_url: Callable[[str], str]) -> Any:
    """Open the page at a size; it may not complain, nor be wider than the window."""

    def at(viewport: dict[str, int]) -> Any:
        page = visit(f"{small_url('notes')}/index.html", viewport)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        return page

    return at


def test_notes_stand_beside_their_lines_and_apart(page: Any) -> None:
    wide = page(WIDE)
    text = wide.locator("main p").first.evaluate(BOX)
    notes = [each.evaluate(BOX) for each in wide.locator("main .column-margin:visible").all()]
    assert len(notes) == 2  # neighbours share a container, as in Quarto
    assert all(text[2] <= left and right <= WIDE["width"] for left, _, right, _ in notes), notes
    assert text[1] <= notes[0][1] < text[3], (text, notes)
    assert all(above[3] <= below[1] for above, below in itertools.pairwise(notes))
    caption = wide.locator("figcaption.margin-caption").evaluate(BOX)
    assert caption[0] >= text[2]


def test_a_wide_figure_keeps_off_the_notes(page: Any) -> None:
    wide = page(WIDE)
    image = wide.locator("img.column-page").evaluate(BOX)
    for each in wide.locator("main .column-margin:visible").all():
        note = each.evaluate(BOX)
        assert note[3] <= image[1] or note[1] >= image[3] or note[0] >= image[2]


def test_on_a_phone_they_stand_in_the_text(page: Any) -> None:
    phone = page(PHONE)
    text = phone.locator("main p").first.evaluate(BOX)
    note = phone.locator("main .column-margin").first.evaluate(BOX)
    assert note[0] < text[2]
    assert note[1] >= text[3]


def test_a_tab_has_its_own_notes(page: Any) -> None:
    wide = page(WIDE)
    four, two = (wide.locator("main").get_by_text(f"{n} minutes.") for n in ("Four", "Two"))
    assert four.is_visible()
    assert not two.is_visible()
    wide.get_by_role("tab", name="Green").click()
    assert two.is_visible()
    assert not four.is_visible()


def test_images_open_and_close_by_keyboard(page: Any) -> None:
    wide = page(WIDE)
    wide.locator("a.lightbox").first.focus()
    wide.keyboard.press("Enter")
    box = wide.locator("dialog.lightbox-box")
    assert box.is_visible()
    wide.keyboard.press("Escape")
    assert not box.is_visible()


def test_the_menu_unfolds_code_and_shows_the_source(page: Any) -> None:
    wide = page(WIDE)
    wide.locator(".code-tools > summary").click()
    wide.locator("#quarto-show-all-code").click()
    assert wide.locator("details.code-fold").evaluate("each => each.open")
    wide.locator(".code-tools > summary").click()
    wide.locator("#quarto-view-source").click()
    assert "fig-cap-location=margin" in wide.locator("dialog[open] pre").inner_text()
