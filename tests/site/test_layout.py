"""Where things stand on a page: margin notes, wide tables, the line for pip, images in full."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe_script
from exercise_book import PHONE, WIDE
from PIL import Image
from pots import write_book

from mlsim_book.build import build

LAPTOP = {"width": 1280, "height": 800}
PAGE_WIDTH = "document.documentElement.scrollWidth"
BOX = (
    "each => { const b = each.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] }"
)
# Each box around a table: how far what is in it reaches beyond it, in pixels.
BEYOND = """() => [...document.querySelectorAll("main .table-scroll")]
  .filter((each) => each.checkVisibility())
  .map((each) => each.scrollWidth - each.clientWidth)"""
CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture
def notes(visit: Any, small_url: Callable[[str], str]) -> Any:
    """Open a page with notes at a size; it may not complain, nor be wider than the window."""

    def at(viewport: dict[str, int]) -> Any:
        page = visit(f"{small_url('notes')}/index.html", viewport)
        assert page.evaluate(PAGE_WIDTH) <= viewport["width"]
        return page

    return at


def test_notes_stand_beside_their_lines_apart_and_off_a_wide_figure(notes: Any) -> None:
    wide = notes(WIDE)
    text = wide.locator("main p").first.evaluate(BOX)
    found = [each.evaluate(BOX) for each in wide.locator("main .column-margin:visible").all()]
    assert len(found) == 2  # neighbours share a container, as in Quarto
    assert all(text[2] <= left and right <= WIDE["width"] for left, _, right, _ in found), found
    assert text[1] <= found[0][1] < text[3], (text, found)
    assert all(above[3] <= below[1] for above, below in itertools.pairwise(found))
    assert wide.locator("figcaption.margin-caption").evaluate(BOX)[0] >= text[2]
    image = wide.locator("img.column-page").evaluate(BOX)
    for each in found:
        assert each[3] <= image[1] or each[1] >= image[3] or each[0] >= image[2]
    phone = notes(PHONE)
    text = phone.locator("main p").first.evaluate(BOX)
    note = phone.locator("main .column-margin").first.evaluate(BOX)
    assert note[0] < text[2]
    assert note[1] >= text[3]


def test_tabs_have_their_own_notes_images_open_in_full_and_the_menu_shows_code(notes: Any) -> None:
    wide = notes(WIDE)
    four, two = (wide.locator("main").get_by_text(f"{n} minutes.") for n in ("Four", "Two"))
    assert [four.is_visible(), two.is_visible()] == [True, False]
    wide.get_by_role("tab", name="Green").click()
    assert [four.is_visible(), two.is_visible()] == [False, True]
    wide.locator("a.lightbox").first.focus()
    for key, is_open in (("Enter", True), ("Escape", False)):
        wide.keyboard.press(key)
        assert wide.locator("dialog.lightbox-box").is_visible() == is_open
    wide.locator(".code-tools > summary").click()
    wide.locator("#quarto-show-all-code").click()
    assert wide.locator("details.code-fold").evaluate("each => each.open")
    wide.locator(".code-tools > summary").click()
    wide.locator("#quarto-view-source").click()
    assert "fig-cap-location=margin" in wide.locator("dialog[open] pre").inner_text()


def edges(box: Any) -> tuple[float, float]:
    """Return how far a box's left and right edges differ from its middle, in the margin below.

    The rows' last line of pixels holds no words.
    """
    picture = Image.open(io.BytesIO(box.screenshot())).convert("L")
    width, line = picture.width, picture.height - 3
    left, middle, right = (picture.getpixel((x, line)) for x in (1, width // 2, width - 2))
    return abs(left - middle), abs(right - middle)


def test_on_a_laptop_all_columns_of_the_hardware_table_are_seen(
    visit: Any, book_url: str, built_book: Path
) -> None:
    if not (built_book / "zoo" / "hardware.html").exists():
        pytest.skip("a book without a zoo")
    box = visit(f"{book_url}/zoo/hardware.html", LAPTOP).locator(".table-scroll").first
    last = box.locator("tr").first.locator("th").last
    assert last.inner_text().strip() == "Class"
    assert last.evaluate(BOX)[2] <= box.evaluate(BOX)[2] + 0.5
    assert float(last.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")) >= 14


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_a_shadow_lies_where_there_is_more_of_a_table(
    visit: Any, small_url: Callable[[str], str], scheme: str, scripts: bool
) -> None:
    """A table of twelve columns, and one of two; paper has no shadow."""
    url = f"{small_url('kilns')}/index.html"
    page = visit(url, PHONE, color_scheme=scheme, java_script_enabled=scripts)
    wide, narrow = page.locator(".table-scroll").first, page.locator(".table-scroll").last
    assert edges(narrow) == (0, 0)
    left, right = edges(wide)
    assert left == 0
    assert right > 15
    if scripts:
        assert page.evaluate(BEYOND)[0] > 100
        wide.evaluate("box => (box.scrollLeft = box.scrollWidth)")
        assert edges(wide)[1] == 0
    page.emulate_media(media="print")
    assert wide.evaluate("box => getComputedStyle(box).backgroundImage") == "none"


@pytest.fixture(scope="module")
def clay_url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    book = write_book(tmp_path_factory.mktemp("clay"), "site-url: https://a.org/clay")
    yield from serve_folder(build(book, progress=str))


def test_the_line_that_installs_a_package_is_copied_fits_and_is_read_out(
    clay_url: str, visit: Any
) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    page = visit(f"{clay_url}/sub/glaze.html", permissions=rights, bypass_csp=True)
    line = 'pip install "pots[all] @ https://a.org/clay/notebooks/pots-1.0-py3-none-any.whl"'
    links = page.get_by_role("navigation", name="Notebook of this chapter")
    links.get_by_role("button", name="Copy the line that installs the package").click()
    page.wait_for_function(f"{CLIPBOARD}.then(text => text.length)")
    assert page.evaluate(CLIPBOARD) == line
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("link", name="Download notebook").focus()
    for _ in range(3):  # the box is a stop on the way where it scrolls
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            break
    page.keyboard.press("Enter")
    page.wait_for_function(f"{CLIPBOARD}.then(text => text.length)")
    assert page.evaluate(CLIPBOARD) == line
    for size, look in itertools.product((WIDE, PHONE), ("light", "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=look)
        page.reload()
        assert page.evaluate(PAGE_WIDTH) <= size["width"]
        box = page.locator(".install-line pre")
        first, second = box.evaluate(BOX), page.locator(".install-line button").evaluate(BOX)
        assert first[2] <= second[0]  # the button hides none of the line
        assert abs(first[1] + first[3] - second[1] - second[3]) < 2
        assert box.get_attribute("aria-label") == "Code, scrolls sideways"
        page.evaluate(axe_script())
        found = page.evaluate("axe.run('.notebook-links')")["violations"]
        assert [each["id"] for each in found] == []


@pytest.fixture(scope="module")
def long_url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """The address of a book with a part of twelve pages, and a table of sixty rows."""
    root = tmp_path_factory.mktemp("long")
    names = [f"p{number}" for number in range(12)]
    part = "".join(f"        - {each}.qmd\n" for each in names)
    head = "project: {type: book}\nbook:\n  title: Long\n  chapters:\n    - index.qmd\n"
    (root / "_quarto.yml").write_text(f"{head}    - part: Many\n      chapters:\n{part}", "utf-8")
    for each in names:
        (root / f"{each}.qmd").write_text(f"# Page {each}\n", "utf-8")
    rows = "".join(f"| {number} | {number**2} |\n" for number in range(60))
    (root / "index.qmd").write_text(f"# Long\n\n| n | square |\n|---|---|\n{rows}", "utf-8")
    yield from serve_folder(build(root, progress=str))


@pytest.mark.parametrize("scripts", [True, False])
def test_a_long_part_folds_by_key_and_the_head_of_a_long_table_stays(
    visit: Any, long_url: str, scripts: bool
) -> None:
    page = visit(f"{long_url}/index.html", LAPTOP, java_script_enabled=scripts)
    link = page.locator("#quarto-sidebar").get_by_text("Page p7")
    assert not link.is_visible()
    page.locator("#quarto-sidebar summary").focus()
    page.keyboard.press("Enter")
    assert link.is_visible()
    box, head = page.locator(".table-scroll"), page.locator("thead th").last
    page.locator("tbody tr").last.scroll_into_view_if_needed()
    assert 0 <= head.evaluate(BOX)[1] - box.evaluate(BOX)[1] < 2
    if scripts:
        assert box.get_attribute("aria-label") == "Table, scrolls"
    page.emulate_media(media="print")
    assert box.evaluate("each => each.scrollHeight - each.clientHeight") == 0
    page.emulate_media(media="screen")
    link.click()
    page.wait_for_url("**/p7.html")
    assert page.locator("#quarto-sidebar .active").is_visible()
