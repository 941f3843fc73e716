"""How pages of a genuine Quarto look: this book's additions to its themes, numbers that open.

The first page has the elements and classes that Quarto writes, and what made this book's pages too
wide. Of Quarto's own style it gets only the rules that matter here. It is looked at without the
additions, too: there it must show the fault.

On the second, which has no script of ours, are inline results: Quarto puts their HTML between
backticks with `{=html}`, and leaves the rest to pandoc, as is done here.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exercise_book import PHONE, WIDE
from kept import text
from PIL import Image

from mlsim import Engine, Hardware, show, table
from mlsim_book.check.quarto import scan_page
from mlsim_book.render.pandoc import run_pandoc

ADDED = Path(__file__).parents[2] / "for_quarto"
ADDRESS = "https://example.org/" + "a_document_of_a_maker_" * 30
FORMULA = '<span style="display: inline-block; min-width: 60em">T = x</span>'
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
        parts = {"ENTRY": "T.", "EQUATION": "x", "GROUND": ground, **parts}
        parts["ADDED"] = "".join(rules(name) for name in added)
        html = text("quarto_page.html")
        for part, new in parts.items():
            html = html.replace(part, new)
        path = tmp_path / "page.html"
        path.write_text(html, "utf-8")
        return visit(path.as_uri(), size)

    return opened


def beyond(page: Any) -> int:
    """Return by how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_no_page_scrolls_sideways(quarto: Visit) -> None:
    """A formula that is too wide scrolls by itself."""
    for size, times in ((PHONE, "60em"), (WIDE, "120em")):
        for part in ({"ENTRY": ADDRESS}, {"EQUATION": FORMULA.replace("60em", times)}):
            assert beyond(quarto(size=size, **part)) > 0
            assert beyond(quarto("book.scss", size=size, **part)) <= 0
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


@pytest.fixture(scope="module")
def quarto_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sentences and a table with numbers that open."""
    profile = Engine.solve(model="ResNet50", hardware="A100")
    number, figure = show(profile), show(Hardware.Cloud.A100, "memory.bandwidth")
    rows = table([{"Device": "A100", "GB/s": figure.without_unit()}])
    written = (
        f"It takes `{number._repr_html_()}`{{=html}} on a device that moves\n"
        f"`{figure._repr_html_()}`{{=html}}, as the table says.\n\n{rows.markdown()}\n"
    )
    html, _ = run_pandoc(["--from=markdown", "--to=html"], written)
    path = tmp_path_factory.mktemp("quarto") / "page.html"
    path.write_text(text("quarto_numbers.html").replace("HTML", html))
    return path


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_number_opens_beside_itself_in_the_look_of_the_page(
    visit: Any, quarto_page: Path, size: dict[str, int]
) -> None:
    assert scan_page(quarto_page.read_text("utf-8")) == []
    page = visit(quarto_page.as_uri(), size, java_script_enabled=False)
    assert page.locator("main p").count() == 1
    said = " ".join(page.locator("main p").inner_text().split())
    assert said == "It takes 55.5 µs on a device that moves 2,039 GB/s, as the table says."
    assert page.locator("td").all_inner_texts() == ["A100", "2,039"]
    shown = {
        "55.5 µs": ["memory_time = bytes_moved / memory_bandwidth", "NVIDIA 2022", "2.039 TB/s"],
        "2,039 GB/s": ["memory bandwidth: 2,039 GB/s, datasheet"],
    }
    for at, (name, parts) in enumerate(shown.items()):
        button, note = page.get_by_role("button", name=name), page.locator("[popover]").nth(at)
        assert not note.is_visible()
        button.click()
        assert all(each in note.inner_text() for each in parts)
        number, box = button.bounding_box(), note.bounding_box()
        assert 0 <= box["y"] - (number["y"] + number["height"]) < 8
        assert 0 <= box["x"] <= number["x"] <= box["x"] + box["width"] <= size["width"]
        look = note.evaluate(
            "n => { const s = getComputedStyle(n);"
            " return [s.backgroundColor, s.color, s.borderTopWidth, s.fontWeight] }"
        )
        assert look == ["rgb(34, 34, 34)", "rgb(238, 238, 238)", "1px", "400"]
        page.keyboard.press("Escape")
        assert not note.is_visible()
    bold = "all => all.map(note => note.querySelector('b')?.textContent === note.textContent)"
    assert page.locator("[popover]").evaluate_all(bold) == [False] * 3  # a line is no title
    page.reload()
    for key in ("Tab", "Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    assert page.locator("td [popover]").is_visible()
