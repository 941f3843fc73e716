"""Which numbers in prose are bare, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mlsim_book.check.number_rules import Counts, Judge, Rules, read_rules
from mlsim_book.check.passages import passages
from mlsim_book.errors import SourceError
from mlsim_book.read.lines import split_lines

CASES = Path(__file__).parents[2] / "fixtures" / "bare_numbers.yml"
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


def test_bare_numbers_and_others() -> None:
    """`not_covered`: a citation or a mark elsewhere covers no number."""
    cases = yaml.safe_load(CASES.read_text("utf-8"))
    wanted = dict(cases["bare"])
    wanted |= {text: [] for text in cases["not_bare"]}
    wanted |= {text: ["5 ms"] for text in cases["not_covered"]}
    assert {text: bare(text) for text in wanted} == wanted


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
