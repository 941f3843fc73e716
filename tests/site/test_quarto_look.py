"""How pages of a genuine Quarto look with this book's own additions to its themes.

The page has the elements and classes that Quarto writes, and what made this book's pages too wide.
Of Quarto's own style it gets only the rules that matter here. It is looked at without the
additions, too: there it must show the fault.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept import text
from PIL import Image

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
def quarto(visit: Any, tmp_path: Path) -> Visit:
    """Open the page with these parts in it, in a window of some size, with our additions."""

    def opened(
        *added: str, size: dict[str, int] = PHONE, ground: str = "#fff", **parts: str
    ) -> Any:
        html = text("quarto_page.html")
        for part, usual in {"ENTRY": "T.", "EQUATION": "x", "DRAWING": DRAWING}.items():
            html = html.replace(part, parts.get(part, usual))
        css = QUARTO.replace("GROUND", ground) + "".join(rules(name) for name in added)
        path = tmp_path / "page.html"
        path.write_text(
            "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>A</title><style>{css}</style>{html}",
            "utf-8",
        )
        return visit(path.as_uri(), size)

    return opened


def beyond(page: Any) -> int:
    """Return by how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("size", [PHONE, WIDE])
@pytest.mark.parametrize("part", [{"ENTRY": ADDRESS}, {"EQUATION": FORMULA}])
def test_no_page_scrolls_sideways(
    quarto: Visit, part: dict[str, str], size: dict[str, int]
) -> None:
    wide = {
        name: new if size is PHONE else new.replace("60em", "120em") for name, new in part.items()
    }
    assert beyond(quarto(size=size, **wide)) > 0
    assert beyond(quarto("book.scss", size=size, **wide)) <= 0


def test_a_formula_that_is_too_wide_scrolls_by_itself(quarto: Visit) -> None:
    box = quarto("book.scss", EQUATION=FORMULA).locator(".math.display").first
    assert box.evaluate("each => each.scrollWidth > each.clientWidth")
    assert box.evaluate("each => each.scrollHeight == each.clientHeight")


def test_words_of_a_captioned_table_stand_as_in_any_table(quarto: Visit) -> None:
    def sides(*added: str) -> list[str]:
        cells = quarto(*added).locator("#tbl-mass tbody tr").first.locator("td").all()
        return [each.evaluate("cell => getComputedStyle(cell).textAlign") for each in cells]

    assert sides() == ["center", "right"]
    assert sides("book.scss") == ["start", "right"]


def test_a_figure_is_no_white_box_in_the_dark_look(quarto: Visit) -> None:
    def gray(target: Any, across: float, down: float) -> int:
        picture = Image.open(io.BytesIO(target.screenshot())).convert("L")
        return picture.getpixel((int(across * picture.width), int(down * picture.height)))

    def shades(*added: str) -> tuple[int, int, int]:
        page = quarto(*added, ground="#222")
        drawn = page.locator("#fig-tall img")
        return gray(drawn, 0.3, 0.5), gray(drawn, 0.9, 0.5), gray(page, 0.01, 0.01)

    paper, ink, ground = shades("book.scss")
    assert (paper, ink, ground) == (255, 0, 0x22)
    paper, ink, ground = shades("book.scss", "dark.scss")
    assert abs(paper - ground) <= 2
    assert ink > 200
