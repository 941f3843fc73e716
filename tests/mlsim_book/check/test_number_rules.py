"""Which numbers in prose are bare, and which are not."""

from __future__ import annotations

import pytest

from mlsim_book.check.number_rules import Counts, Judge, Rules, read_rules
from mlsim_book.check.passages import passages
from mlsim_book.errors import SourceError
from mlsim_book.read.lines import split_lines

RULES = read_rules(
    {"mlsim-book": {"numbers": {
        "units": ["FLOP", "FLOP/byte", "TFLOP/s", "images", "images/s"],
        "names": ["A100 80 GB", "Pot 2"],
    }}}
)  # fmt: skip


def judged(markdown: str) -> tuple[list[tuple[int, str]], Counts]:
    """Return the bare numbers of a text with their lines, and the counts."""
    assert RULES
    judge = Judge(RULES)
    found = [
        (passage.line(each.start).line, each.text)
        for passage in passages(split_lines(markdown, file="a.qmd"))
        for each in judge.judge(passage)
    ]
    return found, judge.counts


def bare(markdown: str) -> list[str]:
    return [text for _, text in judged(markdown)[0]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # numerals with a unit
        ("It is 100 % of it.", ["100 %"]),
        ("It is 84% of it.", ["84%"]),
        ("100\\ \\%", ["100\\ \\%"]),
        ("At 2.0 TB/s it ends.", ["2.0 TB"]),
        ("It holds 24 GB.", ["24 GB"]),
        ("It holds 24GB.", ["24GB"]),
        ("a 24-GB card", ["24-GB"]),
        ("24&nbsp;GB, 24\u00a0GB, 24\u202fGB", ["24&nbsp;GB", "24 GB", "24 GB"]),
        ("It takes 5 µs or 5 us or 5 μs.", ["5 µs", "5 us", "5 μs"]),
        ("It takes\n5\nms.", ["5 ms"]),
        ("It takes **5** ms, _6 ms_ and *7* **ms**.", ["5** ms", "6 ms", "7* **ms"]),
        ("1,024 bytes, 0.5 h, .5 s, 1e9 J", ["1,024 bytes", "0.5 h", ".5 s", "1e9 J"]),
        ("10^12^ FLOP, 3 × 10^9^ B, 2·10⁶ B", ["10^12^ FLOP", "3 × 10^9^ B", "2·10⁶ B"]),
        ("5–10 ms, 5-10 ms, 5 to 10 ms, 5--10 ms", ["5–10 ms", "5-10 ms", "5 to 10 ms", "5--10 ms"]),
        ("It costs $5, \\$1,000 or USD 7 or 8 USD.", ["$5", "$1,000", "USD 7", "8 USD"]),
        ("16 percent, 16 per cent", ["16 percent", "16 per cent"]),
        ("It stores 32 bits.", ["32 bits"]),
        ("312 TFLOP/s of 64 images", ["312 TFLOP/s", "64 images"]),
        ("[12 GB](a.html)", ["12 GB"]),
        ("[12](a.html) GB", ["12](a.html) GB"]),
        # multiples
        ("It is 3.1 times as fast.", ["3.1 times"]),
        ("It is ten times as fast.", ["ten times"]),
        ("Ten times, twenty times", ["Ten times", "twenty times"]),
        ("2x faster, 2 × as fast, 3× more", ["2x", "2 ×", "3×"]),
        ("a speed-up of ×3", ["×3"]),
        ("3-fold, 3 fold, threefold is a word", ["3-fold", "3 fold"]),
        ("by a factor of 4", ["factor of 4"]),
        ("3&times; as fast", ["3&times;"]),
        # wherever prose stands
        ("## In 5 ms {#sec-x}", ["5 ms"]),
        ("- a list\n- of 5 ms", ["5 ms"]),
        ("1. in 5 ms", ["5 ms"]),
        ("> in 5 ms", ["5 ms"]),
        ("::: {.callout-note}\n## In 5 ms\nOr 6 ms.\n:::", ["5 ms", "6 ms"]),
        ('::: {.callout-note title="In 5 ms"}\nText.\n:::', ["5 ms"]),
        ('![In 5 ms](a.svg){fig-alt="Or 6 ms" width=50%}', ["5 ms", "6 ms"]),
        ("| a | 5 ms |\n|---|---|\n| b | 6 ms |\n\n: In 7 ms {#tbl-x}", ["5 ms", "6 ms", "7 ms"]),
        ("Note.[^1]\n\n[^1]: In 5 ms.", ["5 ms"]),
        ("term\n:   in 5 ms", ["5 ms"]),
        ("- a\n\n    in 5 ms", ["5 ms"]),
        # a column whose heading gives the unit
        ("| a | t (ms) | % |\n|---|--:|--:|\n| 1 | 5 | 20 |", ["5", "20"]),
        # a number that opens but was typed
        ('[5 ms]{.opens opens="x"}', ["5 ms"]),
        # computed is only what is computed
        ("`{python} x` ms, not 5 ms", ["5 ms"]),
    ],
)  # fmt: skip
def test_bare(text: str, found: list[str]) -> None:
    assert bare(text) == found


@pytest.mark.parametrize(
    "text",
    [
        # no unit, or the name of a kind
        "A batch of 64 in chapter 2, section 3.1, in 2017 and the 1990s.",
        "ten operators, five minutes, batch 1, version 1.5",
        "8-bit and 16-bit numbers, a 7-day week, FP16, INT8, A100, ResNet-50",
        "a 3x3 window on 224x224 or 224 × 224 points, 3 x 4",
        "ResNet-50 images and 50 of them",
        "twice as much, half of it, several times, at times, sometimes",
        "1s and 0s",
        "The A100 80 GB and the A100\n80 GB, and the Pot 2",
        # no prose
        "`5 ms`, ``5 ` ms``, `5 ms`{.python}",
        "$5$ ms and $t = 5\\,\\mathrm{ms}$",
        "$$\n5 ms\n$$",
        "```python\n5 ms\n```",
        "```{python}\n# 5 ms\n```",
        "Text.\n\n    5 ms\n",
        "<!-- 5 ms -->",
        "<!--\n5 ms\n-->",
        '<div style="width: 50%">x</div>',
        "<svg><text>5 ms</text></svg>",
        "[data](files/5 ms.csv) and <https://a.org/5%20ms> and https://a.org/100%",
        "![a](a.svg){width=50%}",
        '::: {.column width="50%"}\nText.\n:::',
        "[data]: https://a.org/100%",
        "{{< var peak 5 ms >}}",
        # computed
        "`{python} x` ms, **`{python} x`** %, `{python} x` times",
        "`{python} a` × `{python} b`",
        # cited in the sentence
        "It takes 5 ms [@leaf1999].",
        "It takes 5 ms, says @leaf1999, p. 3.",
        "It takes 5 ms, e.g. as in Fig. 3 of [@leaf1999, p. 2].",
        "It takes\n5 ms [see\n@leaf1999].",
        "| 5 ms | [@leaf1999] |\n|---|---|\n",
        "| a |\n|---|\n| 5 ms |\n| 6 ms |\n\n: Times [@leaf1999] {#tbl-x}",
        "Table: Times [@leaf1999]\n\n| a |\n|---|\n| 5 ms |\n",
        '![Caption [@leaf1999]](a.svg){fig-alt="5 ms"}',
        # given
        '[5 ms]{.given kind="example"}',
        "[a time of **5 ms**]{.given kind=definition}",
        '[5 ms [@x]]{#id .given .big kind="assumption"}',
        '| [t (ms)]{.given kind="example"} |\n|---|\n| 5 |\n',
    ],
)
def test_not_bare(text: str) -> None:
    assert bare(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "It takes 5 ms. So says @leaf1999.",
        "It takes 5 ms [@fig-x].",
        "It takes 5 ms, see @sec-leaf.",
        "It takes 5 ms, writes ada@leaf.org.",
        "It takes 5 ms, says `@leaf1999`.",
        "- It takes 5 ms.\n- As in [@leaf1999]",
        "| 5 ms | b |\n|---|---|\n| c | [@leaf1999] |\n",
        "It takes 5 ms.\n\nNext [@leaf1999].",
        '[5 s]{.given kind="example"} is not 5 ms.',
    ],
)
def test_not_covered(text: str) -> None:
    assert bare(text) == ["5 ms"]


@pytest.mark.parametrize(
    ("mark", "kind"),
    [('kind="result"', "result"), ('kind="guess"', "guess"), ("", ""), ('kind=""', "")],
)
def test_results_can_not_be_marked(mark: str, kind: str) -> None:
    judge = Judge(Rules())
    (passage,) = passages(split_lines(f"Of [5 ms]{{.given {mark}}}.", file="a.qmd"))
    (finding,) = judge.judge(passage)
    assert (finding.text, finding.wrong_kind) == ("5 ms", kind)
    assert judge.counts == Counts(bare=1)


def test_lines_and_counts() -> None:
    text = (
        "# A\n\nIn 5 ms\nand in\n6 ms [@a]. In 7 ms.\n\n"
        '- x\n- [8 ms]{.given kind="example"}, 9 ms\n\n| 10 ms |\n| 11 ms |\n'
    )
    found, counts = judged(text)
    assert found == [(5, "7 ms"), (8, "9 ms"), (10, "10 ms"), (11, "11 ms")]
    assert counts == Counts(cited=2, given=1, bare=4)
    assert counts.text() == "0 computed, 2 cited, 1 given, 4 bare"


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"unit": ["a"]}, "Did you mean 'units'"),
        ({"units": "GB"}, "must be a list of texts"),
        ({"names": [3]}, "must be a list of texts"),
        ({"given-kinds": ["result"]}, "may not hold 'result'"),
        (["GB"], "or be false"),
    ],
)
def test_wrong_settings(numbers: object, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        read_rules({"mlsim-book": {"numbers": numbers}})


def test_the_check_can_be_switched_off() -> None:
    assert read_rules({"mlsim-book": {"numbers": False}}) is None


def test_units_add_and_kinds_replace() -> None:
    rules = read_rules({"mlsim-book": {"numbers": {"units": ["pots"], "given-kinds": ["menu"]}}})
    assert rules
    assert {"pots", "GB"} <= set(rules.units)
    assert rules.kinds == ("menu",)
