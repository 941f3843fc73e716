"""Margin notes, images that open in full, and the menu for code, as a reader meets them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
YAML = """\
project: {type: book}
book: {title: Notes, chapters: [index.qmd]}
format:
  html: {reference-location: margin, lightbox: true, code-tools: true, code-fold: true}
"""
LONG = "Tea is made of leaves and of water, and of time. " * 8
PAGE = f"""\
# Notes

{LONG}^[First.] {LONG}

{LONG}^[Second.]

![A cup](cup.svg){{#fig-cup fig-cap-location=margin width=100%}}

![A wide cup](cup.svg){{#fig-wide .column-page}}

```{{python}}
#| eval: false
pour()
```

::: {{.panel-tabset}}
## Black

[Four minutes.]{{.aside}}

## Green

[Two minutes.]{{.aside}}
:::
"""
CUP = '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="200"><rect width="400" height="200"/></svg>'
BOX = (
    "each => { const b = each.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] }"
)


@pytest.fixture(scope="module")
def notes_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a small book with much in its margin."""
    from mlsim_book.build import build

    book = tmp_path_factory.mktemp("notes")
    for name, text in {"_quarto.yml": YAML, "index.qmd": PAGE, "cup.svg": CUP}.items():
        (book / name).write_text(text, encoding="utf-8")
    site: Path = build(book, progress=str)
    return (site / "index.html").as_uri()


@pytest.fixture
def page(browser: Any, notes_url: str) -> Iterator[Any]:
    """Open the page at a size; it may not complain, nor be wider than the window."""
    opened = []

    def at(viewport: dict[str, int]) -> Any:
        page = browser.new_page(viewport=viewport)
        opened.append(page)
        page.goto(notes_url)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        return page

    yield at
    for each in opened:
        each.close()


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
