"""What builds here must render in Quarto: inline expressions that it prints raw are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import StrictError, build
from mlsim_book.errors import CellError, Problems
from mlsim_book.read.document import Markdown
from mlsim_book.read.lines import split_lines
from mlsim_book.run.inline import Inline, find_inline
from mlsim_book.run.quarto_inline import quarto_only, value_fault, written_fault

MakeBook = Callable[..., Path]
SETUP = """# A

```{python}
#| echo: false
from IPython.display import HTML, Latex, Markdown
import numpy as np
n, unit = 3, "cups"

class Box:
    def _repr_html_(self): return "<div>box</div>"

class Gap:
    def _repr_html_(self): return "<b>a</b>\\n\\n<b>b</b>"
```

"""
RAW = {
    "one\ntwo `{python} max(n,\n4)` three": "over two lines",
    "so `{python}  n` it": "more than one blank",
    "so `{python} n ` it": "more than one blank",
    "so `{python} n``{python} unit` it": "touches the expression before it",
    'before `{python} ""` after': "its result is empty",
    "before `{python} HTML('')` after": "its result is empty",
    "a box `{python} Box()` there": "its HTML holds a <div>",
    "a gap `{python} Gap()` there": "its HTML holds an empty line",
    "a tick `{python} HTML('<code>a\\x60b</code>')` there": "holds a backtick",
    'two `{python} Markdown("upper\\n\\nlower")` and': "more than a paragraph",
    'a list `{python} Markdown("\\n\\n- red\\n- blue\\n")`': "more than a paragraph",
    "a formula `{python} Latex('$a_1$')` here": "not the formula",
    "of numpy `{python} np.float64(1.5)` here": "Quarto prints np.float64(1.5)",
    "a break `{python} 'up\\ndown'` here": "each backslash of this text twice",
    "in maths $x = `{python} f'{n:.1f}'`$": "also in a formula",
    "in maths $y = `{python} HTML('<b>1</b>')`$": "since its result is HTML",
    "so `{python} 'it costs $5$'` here": "reads $5$ in this text as markup",
    "so `{python} 'see @name'` here": "reads @n in this text as markup",
}
SOUND = (
    "`{python} n`, `{python} unit`, `{python} f'{n:.2f}'` and `{python} n`/`{python} n`\n\n"
    "`{python} Markdown('*a*')`, `{python} HTML('<b>b</b>')`, `{python} None`, `{python} [n]`\n\n"
    "$x = `{python} n`$ and `{python} '$5 or $7'` and `{python} '5 % of 3-4 (x) a_b'`\n\n"
    "`{python} Markdown('- a list\\n- alone')`\n"
)


def test_what_quarto_shows_is_built(make_book: MakeBook) -> None:
    said: list[str] = []
    build(make_book(index_qmd=SETUP + SOUND), progress=said.append)
    assert not [each for each in said if each.startswith(("WARN", "ERROR"))]


def test_what_quarto_prints_raw_is_refused_by_line(make_book: MakeBook) -> None:
    lines = SETUP.count("\n")
    text, places = SETUP, {}
    for source, reason in RAW.items():
        places[reason] = lines + 1 + source.split("`")[0].count("\n")
        text += f"{source}\n\n"
        lines += source.count("\n") + 2
    book = make_book(index_qmd=text)
    said: list[str] = []
    with pytest.raises(StrictError, match=f"{len(RAW)} problems; the site was not changed"):
        build(book, progress=said.append)
    told = [each for each in said if each.startswith("ERROR")]
    for source, reason in RAW.items():
        (one, *more) = [each for each in told if reason in each]
        assert one.startswith("ERROR: index.qmd:"), source
        assert "\n  " in one  # what to do
        if not more:
            assert one.startswith(f"ERROR: index.qmd:{places[reason]}: "), source
    assert not (book / "_book").exists()


def test_leniently_it_is_told_and_built(make_book: MakeBook) -> None:
    said: list[str] = []
    text = f"{SETUP}One `{{python}} max(n,\n4)` two, `{{python}} n``{{python}} unit` three.\n"
    site = build(make_book(index_qmd=text), lenient=True, progress=said.append)
    assert sum(each.startswith("WARN: index.qmd:") for each in said) == 2
    page = (site / "index.html").read_text("utf-8")
    assert re.search(r"One 4\s+two, 3cups three\.", page)


@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_no_python_as_written_stops_any_build(make_book: MakeBook, lenient: bool) -> None:
    book = make_book(index_qmd=f"{SETUP}The sum `{{python}} n +\nn` has no brackets.\n")
    with pytest.raises(CellError, match=r"index.qmd:\d+: .*`n \+ n` raised SyntaxError") as caught:
        build(book, lenient=lenient, progress=str)
    assert "on one line" in str(caught.value)
    assert not (book / "_book").exists()


def test_a_notebook_s_markdown_is_not_judged(make_book: MakeBook) -> None:
    notebook = (
        '{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": '
        '"# B\\n\\nAs `{python}  n` it is."}], "metadata": {"kernelspec": {"name": "python3", '
        '"display_name": "p"}}, "nbformat": 4, "nbformat_minor": 5}'
    )
    book = make_book(index_qmd="# A\n")
    (book / "b.ipynb").write_text(notebook)
    yaml = (book / "_quarto.yml").read_text()
    (book / "_quarto.yml").write_text(yaml + "    - b.ipynb\n")
    build(book, progress=str)


def test_several_kinds_are_judged_by_the_one_that_quarto_takes() -> None:
    place = Inline("x", 0, 0, "a.qmd", 1)
    both = {"text/html": "<b>5</b>", "text/markdown": "a\n\nb", "text/plain": "''"}
    assert value_fault(both, place) is None
    assert value_fault({**both, "text/html": "<p>5</p>"}, place)
    assert value_fault({"image/png": "iVBOR", "text/plain": "<Image>"}, place)


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


def test_problems_are_told_once(make_book: MakeBook) -> None:
    from mlsim_book.read.project import load_project
    from mlsim_book.run.pages import parse_pages

    problems = Problems()
    project = load_project(
        make_book(index_qmd="# A\n\n`{python}  n` and `{python}  n`\n"), problems
    )
    parse_pages(project, problems)
    assert len(problems) == 1
