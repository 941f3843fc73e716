"""Every number of every page has the magnitude, the unit and the origin that it had."""

from __future__ import annotations

import goldens
import page_numbers
import pytest
from what_moved import moves

PAGES = page_numbers.pages(goldens.ROOT)
RENEW = "\n`make goldens` writes them anew: list in the pull request what moved, and why."


@pytest.mark.parametrize("source", PAGES)
def test_no_number_moved(source: str) -> None:
    new = page_numbers.entries_of(PAGES[source], goldens.ROOT)
    moved = moves(goldens.kept_numbers(goldens.page_file(source)), new)
    assert moved == [], f"{source}: {len(moved)} moved\n" + "\n".join(map(str, moved)) + RENEW


def test_each_file_has_its_page() -> None:
    kept = set(goldens.FOLDER.glob("pages/**/*.csv"))
    assert len(kept) > 15
    assert kept <= {goldens.page_file(source) for source in PAGES}, RENEW
