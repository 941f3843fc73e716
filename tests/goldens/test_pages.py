"""Every number of every page has the magnitude, the unit and the origin that it had.

A page takes up to half a minute, so it runs once: its claims (see `page_claims`) are tried then.
"""

from __future__ import annotations

from functools import cache

import goldens
import page_numbers
import pytest
from page_claims import broken, claims_of
from what_moved import Move, moves

PAGES = page_numbers.pages(goldens.ROOT)
RENEW = "\n`make goldens` writes them anew: list in the pull request what moved, and why."


@cache
def faults(source: str) -> tuple[list[Move], list[str]]:
    """Run a page; return the numbers of it that moved, and the claims that do not hold."""
    claims = claims_of(source)
    with page_numbers.ran(PAGES[source], goldens.ROOT) as (new, names):
        failed = list(broken(claims, names)) if claims.is_file() else []
    return moves(goldens.kept_numbers(goldens.page_file(source)), new), failed


@pytest.mark.parametrize("source", PAGES)
def test_no_number_moved(source: str) -> None:
    moved, _ = faults(source)
    assert moved == [], f"{source}: {len(moved)} moved\n" + "\n".join(map(str, moved)) + RENEW


@pytest.mark.parametrize("source", [each for each in PAGES if claims_of(each).is_file()])
def test_claims_hold_of_their_page(source: str) -> None:
    _, failed = faults(source)
    assert failed == []


def test_each_file_has_its_page() -> None:
    kept = set(goldens.FOLDER.glob("pages/**/*.csv"))
    assert len(kept) > 15
    assert kept <= {goldens.page_file(source) for source in PAGES}, RENEW
