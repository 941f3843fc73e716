"""A page that measures runs alone: no cell of another page runs at the same time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import execute_pages

# Each page notes when its cell began and ended.
CELL = """
```{{python}}
import json, time
began = time.monotonic()
time.sleep(0.2)
open("{name}.json", "w").write(json.dumps([began, time.monotonic()]))
```
"""
ALONE = "---\nmlsim-book: {alone: true}\n---\n\n"


def spans(root: Path, names: str) -> dict[str, list[float]]:
    execute_pages(load_project(root, Problems()), Problems(), jobs=4)
    return {name: json.loads((root / f"{name}.json").read_text()) for name in names}


def test_nothing_runs_beside_a_page_that_asks_for_it(make_book) -> None:
    root = make_book(
        index_qmd=f"# A\n{CELL.format(name='a')}",
        b_qmd=f"{ALONE}# B\n{CELL.format(name='b')}",
        c_qmd=f"# C\n{CELL.format(name='c')}",
        d_qmd=f"{ALONE}# D\n{CELL.format(name='d')}",
    )
    found = spans(root, "abcd")
    for name in "bd":
        start, end = found[name]
        others = [span for other, span in found.items() if other != name]
        assert all(last <= start or first >= end for first, last in others), (name, found)


def test_pages_stay_in_their_order(make_book) -> None:
    root = make_book(
        index_qmd=f"{ALONE}# A\n\n```{{python}}\n1\n```\n", b_qmd="# B\n\n```{python}\n2\n```\n"
    )
    done = execute_pages(load_project(root, Problems()), Problems())
    assert [page.chapter.source for page in done] == ["index.qmd", "b.qmd"]
    assert ["1" in done[0].markdown, "2" in done[1].markdown] == [True, True]


@pytest.mark.parametrize("given", ["yes please", "1", "[true]"])
def test_a_wish_that_is_no_yes_or_no_is_refused(make_book, given: str) -> None:
    page = f"---\nmlsim-book: {{alone: {given}}}\n---\n\n# A\n\n```{{python}}\n1\n```\n"
    root = make_book(index_qmd=page)
    with pytest.raises(SourceError, match=r"index\.qmd: `mlsim-book: alone:` is .*`true`"):
        execute_pages(load_project(root, Problems()), Problems())
