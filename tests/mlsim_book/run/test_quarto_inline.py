"""What builds here must render in Quarto: inline expressions that it prints raw are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import StrictError, build
from mlsim_book.errors import Problems
from mlsim_book.read.document import Markdown
from mlsim_book.read.lines import split_lines
from mlsim_book.read.qmd import read_document
from mlsim_book.run.inline import Inline, find_inline
from mlsim_book.run.quarto_inline import (
    check_values,
    check_written,
    quarto_only,
    value_fault,
    written_fault,
)

MakeBook = Callable[..., Path]
Value = dict[str, str]


def plain(text: str) -> Value:
    return {"text/plain": text}


def html(text: str) -> Value:
    return {"text/plain": "<HTML object>", "text/html": text}


def markdown(text: str) -> Value:
    return {"text/plain": "<Markdown object>", "text/markdown": text}


def latex(text: str) -> Value:
    return {"text/plain": "<Latex object>", "text/latex": text}


WRITTEN = {
    "one\ntwo `{python} max(n,\n4)` three": "over two lines",
    "so `{python}  n` it": "more than one blank",
    "so `{python} n ` it": "more than one blank",
    "so `{python} n``{python} unit` it": "touches the expression before it",
}
# what stands in the page, what the expression gives, what Quarto makes of it
VALUES: list[tuple[str, Value, str]] = [
    ("before {} after", plain("''"), "its result is empty"),
    ("before {} after", html(" \n"), "its result is empty"),
    ("before {} after", markdown(" "), "its result is empty"),
    ("a box {} there", html("<div>box</div>"), "its HTML holds a <div>, which ends"),
    ("a box {} there", html("<b>a</b></P >"), "its HTML holds a <p>, which ends"),
    ("a gap {} there", html("<b>a</b>\n \n<b>b</b>"), "its HTML holds an empty line"),
    ("a tick {} there", html("<code>a`b</code>"), "holds a backtick"),
    ("two {} and", markdown("upper\n\nlower"), "more than a paragraph"),
    ("a list {}", markdown("a\n::: {.b}"), "more than a paragraph"),
    ("a box {}", markdown("<div>x</div>"), "more than a paragraph"),
    ("a formula {} here", latex("$a_1$"), "prints <Latex object>, not the formula"),
    ("of numpy {} here", plain("np.float64(1.5)"), "Quarto prints np.float64(1.5)"),
    ("of numpy {} here", plain(f"np.str_('{'long ' * 20}')"), f"np.str_('{'long ' * 6}…"),
    ("a break {} here", plain(r"'up\ndown'"), "each backslash of this text twice"),
    ("in maths $x = {}$", plain("'3.0'"), "a backslash before '.' in this text, also in a formula"),
    ("in maths $y = {}$", html("<b>1</b>"), "since its result is HTML"),
    ("so {} here", plain("'it costs $5$'"), "reads $5$ in this text as markup"),
    ("so {} here", plain('"see @name"'), "reads @n in this text as markup"),
    ("so {} here", {"image/png": "iVBOR", "text/plain": "<Image>"}, "letters of a picture's data"),
    ("so {} here", {"image/svg+xml": "<svg><p></p></svg>"}, "its HTML holds a <p>"),
]
SOUND: list[tuple[str, Value]] = [
    ("so {} here", plain("3")),
    ("so {} here", plain("None")),
    ("so {} here", plain("'cups'")),
    ("so {} here", plain("[1, 'a\\nb']")),
    ("so {} here", plain("'$5 or $7'")),
    ("so {} here", plain("'5 % of 3-4 (x) a_b'")),
    ("so {} here", markdown("*a*")),
    ("so {} here", html("<b>b</b>")),
    ("so {} here", {"image/svg+xml": "<svg/>"}),
    ("$x = {}$", plain("3.5")),
    ("$x = {}$", plain("'35'")),
    ("{}", markdown("- a list\n\n- alone\n\n<div>x</div>")),
]


def told(folder: Path, text: str, *values: Value) -> list[tuple[int | None, str]]:
    """Return line and words of what is noted of a page whose expressions give these values."""
    (folder / "a.qmd").write_text(text, "utf-8")
    document = read_document(folder / "a.qmd", root=folder, problems=Problems())
    problems = Problems()
    check_written(document, problems)
    check_values(document, values or [plain("3")] * text.count("{python}"), problems)
    assert all(each.file == "a.qmd" and each.hint for each in problems.found)
    return [(each.line, each.message) for each in problems.found]


def test_what_quarto_prints_raw_is_told_by_line(tmp_path: Path) -> None:
    """Two lines above it there is another one, which is fine."""
    start = "# A\n\n`{python} n`\n\n"
    for text, words in WRITTEN.items():
        [(line, said)] = told(tmp_path, start + text)
        assert (line, words in said) == (5 + text.split("`")[0].count("\n"), True), text
    for text, value, words in VALUES:
        page = start + text.format("`{python} x`")
        [(line, said)] = told(tmp_path, page, plain("3"), value)
        assert line == 5, text
        assert said.startswith("the inline expression `x`: "), said
        assert words in said, said


def test_what_quarto_shows_is_not_told_of(tmp_path: Path) -> None:
    for text, value in SOUND:
        assert told(tmp_path, f"# A\n\n{text.format('`{python} x`')}\n", value) == [], value


def test_a_build_refuses_it_unless_it_is_lenient(make_book: MakeBook) -> None:
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


def test_a_notebook_s_markdown_is_not_judged(tmp_path: Path) -> None:
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "As `{python}  n` it is."}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "b.ipynb").write_text(json.dumps(notebook))
    document = read_document(tmp_path / "b.ipynb", root=tmp_path, problems=Problems())
    problems = Problems()
    check_written(document, problems)
    check_values(document, [plain("''")], problems)
    assert not problems.found


def test_several_kinds_are_judged_by_the_one_that_quarto_takes() -> None:
    place = Inline("x", 0, 0, "a.qmd", 1)
    both = {"text/html": "<b>5</b>", "text/markdown": "a\n\nb", "text/plain": "''"}
    assert value_fault(both, place) is None
    assert value_fault({**both, "text/html": "<p>5</p>"}, place)


def test_places_that_only_quarto_runs_are_found() -> None:
    text = "`{python} n`\n\n```\n`{python} a`\n```\n\n<!-- `{python} b` --> `` `{python} c` ``\n"
    run = Markdown(split_lines(text, file="a.qmd"))
    assert [(line, source) for _, line, source in quarto_only(run)] == [
        (4, "`{python} a`"), (7, "`{python} b`"), (7, "`{python} c`"),
    ]  # fmt: skip
    assert [each.expression for each in find_inline(run)] == ["n"]


def test_blanks_as_quarto_wants_them() -> None:
    for written, sound in ((" n", True), ("\tn", True), ("  n", False), (" n ", False)):
        assert (written_fault(Inline("n", 0, 0, "a", 1, written=written)) is None) == sound
