"""Tables wider than the text: seen whole where there is room, and a cue where there isn't."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
# Each box around a table: how far what is in it reaches beyond it, in pixels.
BEYOND = """() => [...document.querySelectorAll("main .table-scroll")]
  .filter((each) => each.checkVisibility())
  .map((each) => each.scrollWidth - each.clientWidth)"""


@pytest.fixture
def url(small_url: Callable[[str], str]) -> str:
    """A page with a table of twelve columns and one of two."""
    return f"{small_url('kilns')}/index.html"


def edges(box: Any) -> tuple[float, float]:
    """Return how far a box's left and right edges differ from its middle, in the margin below.

    The rows' last line of pixels holds no words.
    """
    picture = Image.open(io.BytesIO(box.screenshot())).convert("L")
    width, line = picture.width, picture.height - 3

    def shade(at: int) -> float:
        return abs(picture.getpixel((at, line)) - picture.getpixel((width // 2, line)))

    return shade(1), shade(width - 2)


def test_on_a_laptop_all_columns_of_the_hardware_table_are_seen(
    visit: Any, book_url: str, built_book: Path
) -> None:
    if not (built_book / "zoo" / "hardware.html").exists():
        pytest.skip("a book without a zoo")
    page = visit(f"{book_url}/zoo/hardware.html", LAPTOP)
    box = page.locator(".table-scroll").first
    right, seen = box.evaluate(
        """box => [box.querySelector("tr").lastElementChild.getBoundingClientRect().right,
                   box.getBoundingClientRect().right]"""
    )
    assert right <= seen + 0.5
    last = box.locator("tr").first.locator("th").last
    assert last.inner_text().strip() == "Class"
    assert float(last.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")) >= 14


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_a_shadow_lies_where_there_is_more_of_a_table(
    visit: Any, url: str, scheme: str, scripts: bool
) -> None:
    page = visit(url, PHONE, color_scheme=scheme, java_script_enabled=scripts)
    wide, narrow = page.locator(".table-scroll").first, page.locator(".table-scroll").last
    assert edges(narrow) == (0, 0)
    left, right = edges(wide)
    assert left == 0
    assert right > 15
    if scripts:
        assert page.evaluate(BEYOND)[0] > 100
        wide.evaluate("box => (box.scrollLeft = box.scrollWidth)")
        left, right = edges(wide)
        assert right == 0


def test_paper_has_no_shadow(visit: Any, url: str) -> None:
    page = visit(url, PHONE)
    page.emulate_media(media="print")
    assert page.locator(".table-scroll").first.evaluate(
        "box => getComputedStyle(box).backgroundImage"
    ) == "none"  # fmt: skip
