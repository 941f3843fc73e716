"""Inline expressions: which are found, what their values become, and what Quarto prints raw.

What builds here must render in Quarto: expressions that it prints raw are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import cases

from mlsim_book.build import StrictError, build
from mlsim_book.errors import Problems
from mlsim_book.read.lines import split_lines
from mlsim_book.read.qmd import Markdown, read_document
from mlsim_book.run.inline import (
    Inline,
    check_values,
    check_written,
    find_inline,
    quarto_only,
    render,
    substitute,
    value_fault,
    written_fault,
)

PLACE = Inline("x", 0, 0, "a.qmd", 1)
THREE = {"text/plain": "3"}


def run(text: str) -> Markdown:
    return Markdown(split_lines(text, file="a.qmd"))


def test_what_is_found() -> None:
    for text, found in cases("inline_found.toml"):
        assert [each.expression for each in find_inline(run(text))] == found, text
    text = "Text\n\n$a = `{python} a`$ costs `{python} b`,\n$$\nc = `{python} c`\n$$\n"
    assert [(e.line, e.math) for e in find_inline(run(text))] == [(3, True), (3, False), (5, True)]
    for text in (
        "It costs $5 and `{python} n` more.",
        "It costs $ 5 and `{python} n`$ more.",
        "It costs $5 and `{python} n` $ more.",
        "From $5 `{python} n` to $6.",
        r"A \$x `{python} n`$.",
        "So $x$ `{python} n` $y$.",
        "So $x$`{python} n`$y$.",
        "So $$x$$ `{python} n` $$y$$.",
    ):
        (only,) = find_inline(run(text))
        assert not only.math, text


def test_what_touches_and_what_stands_alone() -> None:
    text = "`{python} a +\nb``{python} c` and `{python} d`\n\n  `{python} e` \n"
    inlines = find_inline(run(text))
    found = [(each.line, each.touching, each.alone, each.written) for each in inlines]
    places = [text[each.start : each.end] for each in inlines]
    assert places == [f"`{{python}}{written}`" for *_, written in found]
    assert found == [
        (1, False, False, " a +\nb"), (2, True, False, " c"), (2, False, False, " d"),
        (4, False, True, " e"),
    ]  # fmt: skip


def test_values_are_put_in_place() -> None:
    for data, shown in cases("inline_values.toml"):
        assert render(data, PLACE) == shown, data
    place = Inline("x", 0, 0, "a", 1, math=True)
    assert render({"text/plain": r"'3 \\times 10^{5}'"}, place) == r"3 \times 10^{5}"
    block = run("a `{python} x` b `{{python}} y` c `{python} z`\n\n`` `{python} w` ``\n")
    values = [{"text/plain": "1"}, {"text/plain": "'z'"}]
    assert substitute(block, values) == "a 1 b `{python} y` c z\n\n`` `{python} w` ``\n"
    assert substitute(run("so `{python} x``{python} y` go\n"), values) == "so 1z go\n"


# ------------------------------------------------------- what Quarto prints raw
def told(path: Path, text: str, *values: dict[str, str]) -> list[tuple[int | None, str]]:
    """Return line and words of what is noted of a page whose expressions give these values."""
    path.write_text(text, "utf-8")
    document = read_document(path, root=path.parent, problems=Problems())
    problems = Problems()
    check_written(document, problems)
    check_values(document, values or [THREE] * text.count("{python}"), problems)
    assert all(each.file == path.name and each.hint for each in problems.found)
    return [(each.line, each.message) for each in problems.found]


WRITTEN = {
    "one\ntwo `{python} max(n,\n4)` three": "over two lines",
    "so `{python}  n` it": "more than one blank",
    "so `{python} n ` it": "more than one blank",
    "so `{python} n``{python} unit` it": "touches the expression before it",
}


def test_what_quarto_prints_raw_is_told_by_line(tmp_path: Path) -> None:
    """Two lines above it there is another one, which is fine."""
    start, page = "# A\n\n`{python} n`\n\n", tmp_path / "a.qmd"
    for text, words in WRITTEN.items():
        [(line, said)] = told(page, start + text)
        assert (line, words in said) == (5 + text.split("`")[0].count("\n"), True), text
    for text, value, words in cases("quarto_values.toml"):
        found = told(page, start + text.format("`{python} x`"), THREE, value)
        assert [line for line, _ in found] == [5] * bool(words), value
        for _, said in found:
            assert said.startswith("the inline expression `x`: "), said
            assert words in said, said
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "As `{python}  n` it is."}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert told(tmp_path / "b.ipynb", json.dumps(notebook), {"text/plain": "''"}) == []


def test_a_build_refuses_it_unless_it_is_lenient(make_book: Callable[..., Path]) -> None:
    text = "# A\n\nOne `{python} max(3,\n4)` two, `{python} 3``{python} 'cups'` three.\n\n"
    book = make_book(index_qmd=f"{text}And `{{python}} ''`nothing.\n")
    said: list[str] = []
    with pytest.raises(StrictError, match="3 problems; the site was not changed"):
        build(book, progress=said.append)
    errors = [each.split(": ")[1] for each in said if each.startswith("ERROR")]
    assert errors == ["index.qmd:3", "index.qmd:4", "index.qmd:6"]
    assert not (book / "_book").exists()
    site = build(book, lenient=True, progress=said.append)
    assert sum(each.startswith("WARN: index.qmd:") for each in said) == 3
    page = (site / "index.html").read_text("utf-8")
    assert re.search(r"One 4\s+two, 3cups three\.", page)


def test_several_kinds_are_judged_by_the_one_that_quarto_takes() -> None:
    both = {"text/html": "<b>5</b>", "text/markdown": "a\n\nb", "text/plain": "''"}
    assert value_fault(both, PLACE) is None
    assert value_fault({**both, "text/html": "<p>5</p>"}, PLACE)
    for written, sound in ((" n", True), ("\tn", True), ("  n", False), (" n ", False)):
        assert (written_fault(Inline("n", 0, 0, "a", 1, written=written)) is None) == sound


def test_places_that_only_quarto_runs_are_found() -> None:
    text = "`{python} n`\n\n```\n`{python} a`\n```\n\n<!-- `{python} b` --> `` `{python} c` ``\n"
    assert [(line, source) for _, line, source in quarto_only(run(text))] == [
        (4, "`{python} a`"), (7, "`{python} b`"), (7, "`{python} c`"),
    ]  # fmt: skip
