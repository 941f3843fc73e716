"""Inline expressions: which are found, and what their values become."""

from __future__ import annotations

import pytest

from mlsim_book.read.document import Markdown
from mlsim_book.read.lines import split_lines
from mlsim_book.run.inline import Inline, find_inline, render, substitute


def run(text: str) -> Markdown:
    return Markdown(split_lines(text, file="a.qmd"))


def expressions(text: str) -> list[str]:
    return [each.expression for each in find_inline(run(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`{python} a` and `{python}\tb`", ["a", "b"]),
        ("# Head `{python} 6 * 7` {#x}", ["6 * 7"]),
        ("| a | `{python} n` |", ["n"]),
        ("![cap `{python} n`](x.svg){#fig-x}", ["n"]),
        ("[to `{python} n`](https://e.org)", ["n"]),
        ("`{python} a +\nb`", ["a +\nb"]),
        ("`{python} a``{python} b` and `{python} c``d`", ["a", "b", "c"]),
        ("`d``{python} a`", []),
        ("`` `{python} n` ``", []),
        ("`{{python}} n`", []),
        (r"\`{python} n\`", []),
        ("`python n` `{python}n` `{r} n`", []),
        ("```\n`{python} n`\n```", []),
        ("<!-- `{python} n` -->", []),
        ("<!--\n`{python} n`\n-->\n`{python} m`", ["m"]),
        ("a lone ` tick, then\n\n`{python} n`", ["n"]),
        ("$ `{python} n`", ["n"]),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert expressions(text) == found


def test_lines_and_maths() -> None:
    text = "Text\n\n$a = `{python} a`$ costs `{python} b`,\n$$\nc = `{python} c`\n$$\n"
    a, b, c = find_inline(run(text))
    assert [(each.line, each.math) for each in (a, b, c)] == [(3, True), (3, False), (5, True)]


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


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and `{python} n` more.",
        "It costs $ 5 and `{python} n`$ more.",
        "It costs $5 and `{python} n` $ more.",
        "From $5 `{python} n` to $6.",
        r"A \$x `{python} n`$.",
        "So $x$ `{python} n` $y$.",
        "So $$x$$ `{python} n` $$y$$.",
    ],
)
def test_dollars_that_are_no_maths(text: str) -> None:
    (only,) = find_inline(run(text))
    assert not only.math


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"text/plain": "0.6666666666666666"}, "0.6666666666666666"),
        ({"text/plain": "'kettle'"}, "kettle"),
        ({"text/plain": "'*x* a_b <y> & $z | w'"}, r"\*x\* a\_b \<y\> \& \$z \| w"),
        ({"text/plain": "'1--2...'"}, r"1\-\-2\.\.\."),
        ({"text/plain": "'-3.5e-05'"}, "-3.5e-05"),
        ({"text/plain": '"it\'s"'}, "it's"),
        ({"text/plain": r"'two\nlines'"}, "two lines"),
        ({"text/plain": "[1, 'a']"}, "[1, 'a']"),
        ({"text/plain": "np.float64(0.5)"}, "0.5"),
        ({"text/plain": "np.str_('a_b')"}, r"a\_b"),
        ({"text/plain": "<M>", "text/markdown": "**m**\n"}, "**m**"),
        ({"text/plain": "x", "text/latex": "$x^2$"}, "$x^2$"),
        ({"text/plain": "H", "text/html": "<b>`h`</b>"}, "``<b>`h`</b>``{=html}"),
        ({"text/html": "<b>a\nb</b>"}, "`<b>a b</b>`{=html}"),
        ({"text/html": "<b>h</b>", "text/markdown": "*m*"}, "`<b>h</b>`{=html}"),
        (
            {"text/html": "<b>5</b>", "text/markdown": '[5]{.opens opens="x"}'},
            '[5]{.opens opens="x"}',
        ),
        ({"text/plain": "S", "image/svg+xml": "<svg></svg>\n"}, "`<svg></svg>`{=html}"),
    ],
)
def test_values(data: dict[str, str], shown: str) -> None:
    assert render(data, Inline("x", 0, 0, "a", 1)) == shown


def test_nothing_is_escaped_in_maths() -> None:
    place = Inline("x", 0, 0, "a", 1, math=True)
    assert render({"text/plain": r"'3 \\times 10^{5}'"}, place) == r"3 \times 10^{5}"


def test_what_touches_is_put_in_place() -> None:
    block = run("so `{python} x``{python} y` go\n")
    assert substitute(block, [{"text/plain": "1"}, {"text/plain": "2"}]) == "so 12 go\n"


def test_substitution_in_place() -> None:
    block = run("a `{python} x` b `{{python}} y` c `{python} z`\n\n`` `{python} w` ``\n")
    values = [{"text/plain": "1"}, {"text/plain": "'z'"}]
    assert substitute(block, values) == "a 1 b `{python} y` c z\n\n`` `{python} w` ``\n"
