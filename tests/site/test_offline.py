"""The zip of a site, unpacked and opened from disk: pages, search, no request elsewhere."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept import book

from mlsim_book.build import build


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the zip of a small book holds."""
    root = book("offline", tmp_path_factory.mktemp("offline"))
    site = build(root, formats=("zip",), lenient=True, progress=str)
    with zipfile.ZipFile(site / "Clay.zip") as archive:
        archive.extractall(root / "disk")
    return root / "disk" / "Clay"


@pytest.fixture
def page(browser: Any, unpacked: Path) -> Iterator[Any]:
    """A page of the unpacked zip; at the end it must have had no errors."""
    tab = browser.new_page()
    errors: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: message.type == "error" and errors.append(message.text))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((unpacked / "index.html").as_uri())
    yield tab
    assert errors == []
    assert all(each.startswith(("file:", "data:")) for each in asked)
    tab.close()


def test_search_from_disk(page: Any) -> None:
    page.keyboard.press("/")
    page.fill("#search-input", "célad")
    page.wait_for_selector("#search-results li mark")
    assert page.inner_text("#search-results .result-title") == "Glaze"
    page.keyboard.press("Enter")
    page.wait_for_url("**/sub/pots.html#glaze")
    assert "celadon" in page.inner_text("main")


def test_links_and_looks_from_disk(page: Any) -> None:
    page.click("main a")
    page.wait_for_url("**/sub/pots.html")
    family = page.evaluate("getComputedStyle(document.querySelector('.katex')).fontFamily")
    assert "KaTeX" in family
    page.click(".theme-toggle:visible")
    assert page.get_attribute("html", "data-bs-theme") == "dark"
