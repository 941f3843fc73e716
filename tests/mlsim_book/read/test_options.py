"""Cell options: checked values, the cascade of defaults, and hints for typing errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.options import merge, page_defaults, parse_options
from mlsim_book.read.qmd import read_document


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("echo: maybe", "`true` or `false` or `fenced`"),
        ("eval: 1", "`true` or `false`"),
        ("output: raw", "`asis`"),
        ("code-fold: hide", "`show`"),
        ("fig-width: wide", "a number"),
        ("fig-align: middle", "`center`"),
        ("tags: one", "a list of texts"),
        ("classes: [a, b]", "a text"),
        ("layout-ncol: 1.5", "a whole number"),
        ("warning: no", "has no yes"),
        ("label: two words", "space"),
        ("just words", "name: value"),
    ],
)
def test_wrong_values_are_refused(option: str, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_options(["error: false", option] if ":" in option else [option], file="a", line=4)
    assert caught.value.line == (5 if ":" in option else 4)
    assert words in str(caught.value)


def test_right_values() -> None:
    given = parse_options(
        """\
echo: fenced
output: asis
code-fold: show
fig-cap: [a, b]
fig-subcap: true
flavour: mint
code-line-numbers: 1-3
fig-cap-location: margin""".splitlines(),
        file="a",
        line=1,
    )
    assert given["fig-cap"] == ["a", "b"]
    assert given["flavour"] == "mint"


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
    assert page_defaults({}).of({}, "echo") is True


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
