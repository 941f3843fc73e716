"""What a page claims at some expense: sweeps, and answers that nothing else on the page needs.

`claims/llm_serving.py` holds the claims of `tutorials/llm_serving.qmd`: plain asserts at top
level, with the imports they need. They are run after the page's cells, in their namespace, each
statement on its own, so that all that fail are listed. A claim that costs one line and no time
stays on the page, in a hidden cell before its sentence.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import page_numbers
import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = Path(__file__).parent / "claims"
PAGES = {Path(source).stem: page for source, page in page_numbers.pages(ROOT).items()}


def broken(path: Path, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the claims of a file that do not hold, each with its place."""
    text = path.read_text(encoding="utf-8")
    known, tree = dict(names), ast.parse(text, path.name)
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        yield f"{path.name}: asserts nothing"
    for statement in tree.body:
        try:
            exec(compile(ast.Module([statement], []), path.name, "exec"), known)
        except Exception as error:  # noqa: BLE001 - a claim may raise anything
            frames = traceback.extract_tb(error.__traceback__)
            line = max(each.lineno or 0 for each in frames if each.filename == path.name)
            found = "" if type(error) is AssertionError else f"{type(error).__name__}: "
            yield f"{path.name}:{line}: {found}{str(error) or text.splitlines()[line - 1].strip()}"


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("*.py")), ids=lambda path: path.stem)
def test_claims_hold_of_their_page(path: Path) -> None:
    assert path.stem in PAGES, f"{path.name}: no page of that name runs code: {sorted(PAGES)}"
    with page_numbers.after_its_cells(PAGES[path.stem], ROOT) as names:
        assert list(broken(path, names)) == []


def test_no_other_file_lies_among_the_claims() -> None:
    """Whatever is not named for a page would not be run."""
    assert {each.name for each in CLAIMS.iterdir()} <= {f"{stem}.py" for stem in PAGES} | {
        "__pycache__"
    }
    assert len(PAGES) == len(page_numbers.pages(ROOT)), "two pages have one name"


def test_a_claim_that_fails_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "_quarto.yml").write_text(
        "project: {type: book}\nbook: {title: Pots, chapters: [pots.qmd]}\n", encoding="utf-8"
    )
    (tmp_path / "pots.qmd").write_text(
        "# Pots\n\n```{python}\ncups = [1, 2]\ndef full(pot):\n    return pot < cups[0]\n```\n"
        "\n```{python}\n#| eval: false\ncups = []\n```\n",
        encoding="utf-8",
    )
    claims = tmp_path / "pots.py"
    claims.write_text(
        "from math import isclose\nassert isclose(sum(cups), 3)\nassert full(3)\n"
        "for pot in cups:\n    more = 0\n    assert pot < 2, f'{pot} cups'\n"
        "assert lid\nassert len(cups) == 2\n",
        encoding="utf-8",
    )
    [page] = page_numbers.pages(tmp_path).values()
    with page_numbers.after_its_cells(page, tmp_path) as names:
        assert list(broken(claims, names)) == [
            "pots.py:3: assert full(3)",
            "pots.py:6: 2 cups",
            "pots.py:7: NameError: name 'lid' is not defined",
        ]
        claims.write_text("len(cups)\n", encoding="utf-8")
        assert list(broken(claims, names)) == ["pots.py: asserts nothing"]
