"""Cell options: checked values, the cascade of defaults, and hints for typing errors."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.options import CELL, merge, page_defaults, parse_options
from mlsim_book.read.qmd import check_metadata, read_document
from mlsim_book.read.yamlfile import load_yaml

UNCHECKED = {"slideshow", "export"}  # they take anything


VALUES = Path(__file__).parents[2] / "fixtures" / "option_values.csv"


def give(where: str, option: str, value: str) -> None:
    """Give an option a value, on line 2."""
    if where == "cell":
        parse_options(["flavour: mint", f"{option}: {value}"], file="a", line=1)
        return
    blocks = {"execute": "{execute: {%s}}", "html": "{format: {html: {%s}}}"}
    text = f"# options\n{blocks[where] % f'{option}: {value}'}"
    check_metadata(load_yaml(text, file="a"))


def test_options_take_what_quarto_s_take() -> None:
    rows = list(csv.DictReader(VALUES.read_text("utf-8").splitlines()[2:]))
    assert {row["option"] for row in rows if row["where"] == "cell"} >= {*CELL} - UNCHECKED
    odd = []
    for row in rows:
        where, option = row["where"], row["option"]
        for value in row["takes"].split(" | "):
            try:
                give(where, option, value)
            except SourceError as error:
                odd.append(str(error))
        for value in filter(None, row["refuses"].split(" | ")):
            try:
                give(where, option, value)
            except SourceError as error:
                odd += [] if error.line == 2 and f"'{option}' is " in str(error) else [str(error)]
            else:
                odd.append(f"{where}: {option}: {value} was taken")
    assert odd == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("echo: maybe", "which must be `true` or `false` or `fenced`"),
        ("fig-width: wide", "which must be a number"),
        ("tags: one", "which must be a list of texts"),
        ("layout-ncol: 1.5", "which must be a whole number"),
        ("warning: no", "YAML as Quarto reads it has no yes"),
        ("label: two words", "space"),
        ("label: '{two}'", "brace"),
        ("just words", "must be `name: value`, got 'just words'"),
    ],
)
def test_what_is_told_of_wrong_values(option: str, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_options(["error: false", option] if ":" in option else [option], file="a", line=4)
    assert caught.value.line == (5 if ":" in option else 4)
    assert words in str(caught.value)


def test_options_over_several_lines() -> None:
    lines = ["fig-cap: |", "  One", "  two", "label: fig-a"]
    assert parse_options(lines, file="a", line=1) == {"fig-cap": "One\ntwo\n", "label": "fig-a"}


def test_cascade() -> None:
    book = {"execute": {"echo": False, "warning": False}, "format": {"html": {"code-fold": True}}}
    folder = {"execute": {"echo": True}}
    page = {"execute": {"output": False}, "fig-width": 4}
    defaults = page_defaults(merge(merge(book, folder), page))
    assert defaults.of({}, "echo") is True
    assert defaults.of({}, "warning") is False
    assert defaults.of({}, "output") is False
    assert defaults.of({"output": True}, "output") is True
    assert defaults.of({}, "code-fold") is True
    assert (defaults.values["fig-width"], defaults.values["fig-height"]) == (4, 5)
    built_in = {
        name: value for name, value in page_defaults({}).values.items() if value is not None
    }
    assert built_in == {
        "echo": True, "eval": True, "output": True, "include": True, "warning": True, "error": False,
        "fig-width": 7, "fig-height": 5, "fig-dpi": 96, "fig-format": "svg",
        "figure-theme": False, "figure-data": False,
    }  # fmt: skip
    assert defaults.of({}, "flavour") is None


def test_format_beats_execute_beats_top() -> None:
    data: dict[str, Any] = {"echo": False, "execute": {"echo": True}}
    assert page_defaults(data).of({}, "echo") is True
    data["format"] = {"html": {"echo": False}}
    assert page_defaults(data).of({}, "echo") is False


def test_mistyped_options_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.qmd"
    path.write_text(
        "```{python}\n#| fig-capt: A\n#| flavour: mint\n#| fig-cap: '`{python} n` cups'\n1\n#| echo: false\n```\n"
    )
    problems = Problems()
    read_document(path, root=tmp_path, problems=problems)
    below = problems.found.pop(0)
    assert (below.line, "below code" in below.message) == (6, True)
    assert [problem.line for problem in problems.found] == [2, 4]
    assert "'fig-cap'" in (problems.found[0].hint or "")
    assert "isn't run" in problems.found[1].message
