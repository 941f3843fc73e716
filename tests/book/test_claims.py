"""The files of claims: each belongs to a page, and each claim that fails is named.

`goldens/test_pages.py` runs them, after their page.
"""

from __future__ import annotations

from pathlib import Path

import page_numbers
from page_claims import FOLDER, broken, claims_of

ROOT = Path(__file__).parents[2]


def test_no_other_file_lies_among_the_claims() -> None:
    """Whatever is not named for a page would not be run."""
    pages = page_numbers.pages(ROOT)
    of_pages = {claims_of(source).name for source in pages}
    assert {each.name for each in FOLDER.iterdir()} <= of_pages | {"__pycache__"}
    assert len(of_pages) == len(pages), "two pages have one name"


def test_a_claim_that_fails_is_named_by_file_and_line(tmp_path: Path) -> None:
    names = {"cups": [1, 2], "full": lambda pot: pot < 1}
    claims = tmp_path / "pots.py"
    claims.write_text(
        "from math import isclose\nassert isclose(sum(cups), 3)\nassert full(3)\n"
        "for pot in cups:\n    more = 0\n    assert pot < 2, f'{pot} cups'\n"
        "assert lid\nassert len(cups) == 2\n"
    )
    assert list(broken(claims, names)) == [
        "pots.py:3: assert full(3)",
        "pots.py:6: 2 cups",
        "pots.py:7: NameError: name 'lid' is not defined",
    ]
    claims.write_text("len(cups)\n")
    assert list(broken(claims, names)) == ["pots.py: asserts nothing"]
