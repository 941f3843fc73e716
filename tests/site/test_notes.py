"""Numbers that open on a page that Quarto made: no script of ours, only what stands in the text.

Quarto puts an inline result's HTML between backticks with `{=html}`, and leaves the rest to
pandoc, as is done here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine, Hardware, show, table
from mlsim_book.check.quarto_scan import scan_page
from mlsim_book.render.pandoc import run_pandoc

PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def quarto_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page as Quarto makes it: two sentences and a table with numbers that open."""
    profile = Engine.solve(model="ResNet50", hardware="A100")
    number, figure = show(profile), show(Hardware.Cloud.A100, "memory.bandwidth")
    rows = table([{"Device": "A100", "GB/s": figure.without_unit()}])
    text = (
        f"It takes `{number._repr_html_()}`{{=html}} on a device that moves\n"
        f"`{figure._repr_html_()}`{{=html}}, as the table says.\n\n{rows.markdown()}\n"
    )
    html, _ = run_pandoc(["--from=markdown", "--to=html"], text)
    path = tmp_path_factory.mktemp("quarto") / "page.html"
    dark = ":root { --bs-body-bg: #222; --bs-body-color: #eee }"  # as Quarto's dark look has them
    path.write_text(
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>A</title><style>{dark}</style><main>{html}</main>"
    )
    return path


@pytest.fixture
def number_page(visit: Any, quarto_page: Path) -> Any:
    """Open the page in a window of some size."""
    return lambda size: visit(quarto_page.as_uri(), size, java_script_enabled=False)


def test_nothing_breaks_the_sentence(quarto_page: Path, number_page: Any) -> None:
    assert scan_page(quarto_page.read_text("utf-8")) == []
    page = number_page(WIDE)
    assert page.locator("main p").count() == 1
    said = " ".join(page.locator("main p").inner_text().split())
    assert said == "It takes 55.5 µs on a device that moves 2,039 GB/s, as the table says."
    assert page.locator("td").all_inner_texts() == ["A100", "2,039"]


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_click_shows_formula_and_source(number_page: Any, size: dict[str, int]) -> None:
    page = number_page(size)
    note = page.locator("[popover]").first
    assert not note.is_visible()
    page.get_by_role("button", name="55.5 µs").click()
    assert note.is_visible()
    for part in ("memory_time = bytes_moved / memory_bandwidth", "NVIDIA 2022", "2.039 TB/s"):
        assert part in note.inner_text()
    box = note.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    page.keyboard.press("Escape")
    assert not note.is_visible()


def test_keys_open_a_number_in_a_table(number_page: Any) -> None:
    page = number_page(WIDE)
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    note = page.locator("td [popover]")
    assert note.is_visible()
    assert "memory bandwidth: 2,039 GB/s, datasheet" in note.inner_text()


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_note_stands_beside_its_number_in_the_look_of_the_page(
    number_page: Any, size: dict[str, int]
) -> None:
    page = number_page(size)
    for at, name in enumerate(("55.5 µs", "2,039 GB/s")):
        button, note = page.get_by_role("button", name=name), page.locator("[popover]").nth(at)
        button.click()
        number, box = button.bounding_box(), note.bounding_box()
        assert 0 <= box["y"] - (number["y"] + number["height"]) < 8
        assert box["x"] <= number["x"] <= box["x"] + box["width"]
        assert box["x"] + box["width"] <= size["width"]
        look = note.evaluate(
            "n => { const s = getComputedStyle(n);"
            " return [s.backgroundColor, s.color, s.borderTopWidth, s.fontWeight] }"
        )
        assert look == ["rgb(34, 34, 34)", "rgb(238, 238, 238)", "1px", "400"]
        page.keyboard.press("Escape")
    bold = "all => all.map(note => note.querySelector('b')?.textContent === note.textContent)"
    assert page.locator("[popover]").evaluate_all(bold) == [False] * 3  # a line is no title
