"""What all pages of a site share: the picture that browsers show beside its title."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import build

MakeBook = Callable[..., Path]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle r="1"/></svg>'


@pytest.mark.usefixtures("with_assets")
def test_a_book_has_its_own_favicon_or_ours(make_book: MakeBook) -> None:
    pages = {"index_qmd": "# A\n", "more__two_qmd": "# B\n"}
    for extra, expected in (("", "<svg"), ("  favicon: logos/mine.svg\n", SVG)):
        book = make_book(extra, **pages, **{"logos/mine.svg": SVG})
        said: list[str] = []
        site = build(book, progress=said.append)
        assert not any("favicon" in each for each in said)
        for page in (site / "index.html", site / "more" / "two.html"):
            (name,) = re.findall(r'<link rel="icon" href="([^"]+)"', page.read_text("utf-8"))
            shown = (page.parent / name).read_text("utf-8")
            assert shown.startswith(expected)
            assert (shown == SVG) == bool(extra)
