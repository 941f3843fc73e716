"""How pages of a genuine Quarto look with this book's own additions to its themes.

The pages are those on record of the conformance books, with what made this book's pages too
wide. Of Quarto's own style they get only the rules that matter here. Each page is looked at
without the additions, too: there it must show the fault.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from recorded_pages import recorded

PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
ADDED = Path(__file__).parents[2] / "for_quarto"
QUARTO = """
body { margin: 0 1rem; background: GROUND; } table { width: 100%; border-collapse: collapse }
img { max-width: 100%; } .csl-entry { margin-left: 2em; text-indent: -2em; }
.quarto-figure-center > figure > p, .quarto-figure-center > figure > div { text-align: center; }
"""
ADDRESS = "https://example.org/" + "a_document_of_a_maker_" * 30
FORMULA = '<span style="display: inline-block; min-width: 60em">T = x</span>'
DRAWING = (
    "data:image/svg+xml;base64,"
    + base64.b64encode(
        b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60">'
        b'<rect width="90" height="60" fill="#fff"/><rect x="60" width="30" height="60"/></svg>'
    ).decode()
)
Visit = Callable[..., Any]


def rules(name: str) -> str:
    """Return the rules of one of our additions: plain CSS below the line that Quarto asks for."""
    first, _, css = (ADDED / name).read_text("utf-8").partition("\n")
    assert first == "/*-- scss:rules --*/"
    return css


@pytest.fixture
def visit(browser: Any, conformance: Path, tmp_path: Path) -> Iterator[Visit]:
    """Open a recorded page, changed, in a window of some size, with some of our additions."""
    pages: list[Any] = []

    def opened(
        book: str, old: str, new: str, *added: str, size: dict[str, int] = PHONE,
        ground: str = "#fff",
    ) -> Any:  # fmt: skip
        html = next(page for page in recorded(conformance / book).values() if old in page)
        css = QUARTO.replace("GROUND", ground) + "".join(rules(name) for name in added)
        path = tmp_path / "page.html"
        path.write_text(
            "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>A</title><style>{css}</style>{html.replace(old, new)}",
            "utf-8",
        )
        pages.append(browser.new_page(viewport=size))
        pages[-1].goto(path.as_uri())
        return pages[-1]

    yield opened
    for page in pages:
        page.close()


def beyond(page: Any) -> int:
    """Return by how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("size", [PHONE, WIDE])
@pytest.mark.parametrize(
    ("book", "old", "new"),
    [
        ("cite-basic", 'role="listitem">', f'role="listitem"> {ADDRESS} '),
        ("xref-equations", "\\[ v = a t \\tag{1.1}\\]", FORMULA),
    ],
)
def test_no_page_scrolls_sideways(
    visit: Visit, book: str, old: str, new: str, size: dict[str, int]
) -> None:
    wide = new if size is PHONE else new.replace("60em", "120em")
    assert beyond(visit(book, old, wide, size=size)) > 0
    assert beyond(visit(book, old, wide, "book.scss", size=size)) <= 0


def test_a_formula_that_is_too_wide_scrolls_by_itself(visit: Visit) -> None:
    page = visit("xref-equations", "\\[ v = a t \\tag{1.1}\\]", FORMULA, "book.scss")
    box = page.locator(".math.display").first
    assert box.evaluate("each => each.scrollWidth > each.clientWidth")
    assert box.evaluate("each => each.scrollHeight == each.clientHeight")


def test_words_of_a_captioned_table_stand_as_in_any_table(visit: Visit) -> None:
    def sides(*added: str) -> list[str]:
        page = visit("xref-tables", "lid", "lid", *added)
        cells = page.locator("#tbl-mass tbody tr").first.locator("td").all()
        return [each.evaluate("cell => getComputedStyle(cell).textAlign") for each in cells]

    assert sides() == ["center", "right"]
    assert sides("book.scss") == ["start", "right"]


def test_a_figure_is_no_white_box_in_the_dark_look(visit: Visit) -> None:
    def gray(target: Any, across: float, down: float) -> int:
        picture = Image.open(io.BytesIO(target.screenshot())).convert("L")
        return picture.getpixel((int(across * picture.width), int(down * picture.height)))

    def shades(*added: str) -> tuple[int, int, int]:
        page = visit("cell-figure-one", "index_files/figure-html/fig-tall-output-1.png", DRAWING,
                     *added, ground="#222")  # fmt: skip
        drawn = page.locator("#fig-tall img")
        return gray(drawn, 0.3, 0.5), gray(drawn, 0.9, 0.5), gray(page, 0.01, 0.01)

    paper, ink, ground = shades("book.scss")
    assert (paper, ink, ground) == (255, 0, 0x22)
    paper, ink, ground = shades("book.scss", "dark.scss")
    assert abs(paper - ground) <= 2
    assert ink > 200
