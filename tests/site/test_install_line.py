"""The line that installs a site's package: copied by mouse and keys, named, no wider than a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe_script
from pots import write_book

from mlsim_book.build import build

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
NAME = "Copy the line that installs the package"
CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture(scope="module")
def site_url(
    tmp_path_factory: pytest.TempPathFactory, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    book = write_book(tmp_path_factory.mktemp("clay"), "site-url: https://a.org/clay")
    yield from serve_folder(build(book, progress=lambda line: None))


@pytest.fixture
def page(site_url: str, visit: Any) -> Any:
    rights = ["clipboard-read", "clipboard-write"]
    return visit(f"{site_url}/sub/glaze.html", permissions=rights, bypass_csp=True)


def test_it_is_copied_by_mouse_and_by_keys(page: Any) -> None:
    line = 'pip install "pots[all] @ https://a.org/clay/notebooks/pots-1.0-py3-none-any.whl"'
    button = page.get_by_role("navigation", name="Notebook of this chapter").get_by_role(
        "button", name=NAME
    )
    button.click()
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


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_it_fits_and_is_read_out(page: Any, size: dict[str, int], look: str) -> None:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=look)
    page.reload()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    box = page.locator(".install-line pre")
    button = page.locator(".install-line button")
    first, second = box.bounding_box(), button.bounding_box()
    assert first["x"] + first["width"] <= second["x"]  # the button hides none of the line
    middles = [each["y"] + each["height"] / 2 for each in (first, second)]
    assert abs(middles[0] - middles[1]) < 1
    assert box.get_attribute("aria-label") == "Code, scrolls sideways"
    page.evaluate(axe_script())
    found = page.evaluate("axe.run('.notebook-links')")["violations"]
    assert [each["id"] for each in found] == []
