"""Tables wider than the text: seen whole where there is room, and a cue where there isn't."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mlsim_book.build import build

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
YAML = """project:
  type: book
book:
  title: Kilns
  chapters: [index.qmd]
"""
COLUMNS = [f"Column {letter}" for letter in "ABCDEFGHIJKL"]
CHAPTER = f"""# Kilns

::: {{.sortable}}

| {" | ".join(COLUMNS)} |
|{"---:|" * len(COLUMNS)}
| {" | ".join(["1,000"] * len(COLUMNS))} |

:::

| Kiln | Pots |
|---|---:|
| Low | 3 |
"""
# Each box around a table: how far what is in it reaches beyond it, in pixels.
BEYOND = """() => [...document.querySelectorAll("main .table-scroll")]
  .filter((each) => each.checkVisibility())
  .map((each) => each.scrollWidth - each.clientWidth)"""


@pytest.fixture(scope="module")
def url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """A page with a table of twelve columns and one of two."""
    root = tmp_path_factory.mktemp("wide")
    (root / "_quarto.yml").write_text(YAML, encoding="utf-8")
    (root / "index.qmd").write_text(CHAPTER, encoding="utf-8")
    yield from serve_folder(build(root, progress=str))


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open an address in some size and look."""
    contexts = []

    def opened(address: str, size: dict[str, int], **options: Any) -> Any:
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(address, wait_until="networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()


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


def test_no_table_of_the_book_widens_the_page_of_a_phone(
    visit: Any, book_url: str, built_book: Path
) -> None:
    """What is wider than the page scrolls in its own box, which has the cue."""
    for path in sorted(built_book.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        if '<div class="table-scroll">' not in text:
            continue
        page = visit(f"{book_url}/{path.relative_to(built_book).as_posix()}", PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
        assert page.evaluate(
            """[...document.querySelectorAll("main table")].filter((each) =>
              each.checkVisibility() && each.scrollWidth > innerWidth)
              .every((each) => each.closest(".table-scroll"))"""
        ), path
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_a_shadow_lies_where_there_is_more_of_a_table(
    visit: Any, url: str, scheme: str, scripts: bool
) -> None:
    page = visit(f"{url}/index.html", PHONE, color_scheme=scheme, java_script_enabled=scripts)
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
    page = visit(f"{url}/index.html", PHONE)
    page.emulate_media(media="print")
    assert page.locator(".table-scroll").first.evaluate(
        "box => getComputedStyle(box).backgroundImage"
    ) == "none"  # fmt: skip
