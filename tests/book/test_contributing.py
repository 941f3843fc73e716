"""The recipes of CONTRIBUTING run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import page_numbers

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^\*\*([^*\n]+)\.\*\*(?:(?!^\*\*).)*?^````markdown\n(.*?)^````$", re.MULTILINE | re.DOTALL
)


def test_each_recipe_of_a_chapter_runs_as_it_stands(tmp_path: Path) -> None:
    """Each is a page of its own, so none leans on what another has imported."""
    recipes = dict(FENCE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    names = ["A sentence with a number, in one line", "A table", "A figure", "An exercise"]
    assert list(recipes) == names
    pages = [f"{name.split()[1]}.qmd" for name in names]
    (tmp_path / "_quarto.yml").write_text(
        f"project: {{type: book}}\nbook: {{title: New, chapters: [{', '.join(pages)}]}}\n"
    )
    for page, text in zip(pages, recipes.values(), strict=True):
        (tmp_path / page).write_text(f"# New\n\n{text}", encoding="utf-8")
    sentence, table, figure, exercise = (
        page_numbers.entries_of(page, tmp_path) for page in page_numbers.pages(tmp_path).values()
    )
    assert len(sentence) == 4
    assert all(each.name and each.origin for each in sentence)
    assert [each.text for each in table if each.text[0].isdigit()] == [
        "55.5",
        "84 %",
        "32.3",
        "98 %",
    ]
    assert figure == exercise == []
