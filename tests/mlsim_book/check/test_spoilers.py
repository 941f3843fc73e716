"""Answers that stand before their questions are found, and what only looks alike is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kept import book

from mlsim_book.build import build
from mlsim_book.check.answers import find_told
from mlsim_book.check.book import check_book
from mlsim_book.check.told import read_told
from mlsim_book.errors import SourceError

TELLS = """\
before.qmd:14: printed output tells '150' (its name) gss-time
before.qmd:19: folded code tells '150' (its name) gss-time
before.qmd:1: the search index tells '150.0' (its name) gss-time
before.qmd:23: the data of a figure tells '150' (its name) gss-time
before.qmd:3: the text tells '2.2 kW' (derived from the same) gss-time
before.qmd:8: a table tells '150' (its name) gss-time
index.qmd:3: the text tells '149 s' (derived from the same) gss-time
kettles.qmd:11: an alternative text tells '150' (its name) gss-time
kettles.qmd:11: the text tells '150' (its name) gss-time
kettles.qmd:24: a heading tells '150' (its unit) gss-time
kettles.qmd:36: the text tells '62.5' (its unit) exr-share
kettles.qmd:8: the text tells '150 s' (the same result) gss-time
kettles.qmd:9: a link tells '@fig-heat' (it settles the guess) gss-where
kettles.qmd:9: the text tells '{python} where' (the same result) gss-where
notebooks/kettles.ipynb:1: the notebook tells '150.00' (its name) gss-time
"""


def told(root: Path) -> list[str]:
    """Return what tells an answer, with the answer's name."""
    found = [each.text().partition("\n")[0] for each in check_book(root).found]
    return sorted(
        f"{each.partition(': the answer')[0]} {each.split(chr(39))[-2]}"
        for each in found
        if " tells '" in each
    )


def test_planted_spoilers_of_each_kind(tmp_path: Path) -> None:
    root = book("spoilers", tmp_path)
    site = build(root, progress=str)
    part = [["before.html", "Before", "Before", "The boiling time is 150.0 s."]]
    (site / "site_libs/search/t-more.js").write_text(
        f'bookSearch.part("t-more",{json.dumps(part)});\n', encoding="utf-8"
    )
    cell = {"cell_type": "code", "source": [], "outputs": [{"text": ["boiling time 150.00\n"]}]}
    (root / "notebooks").mkdir()
    (root / "notebooks/kettles.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    assert "\n".join(told(root)) + "\n" == TELLS
    (root / "spoilers.toml").write_text(
        '[[exempt]]\npage = "before.qmd"\nbecause = "It will be rewritten."\n\n[[exempt]]\n'
        'page = "kettles.qmd"\ntells = "gss-time"\nbecause = "So."\n\n[[exempt]]\n'
        'page = "after.qmd"\nbecause = "Old."\n',
        encoding="utf-8",
    )
    assert told(root) == [
        each
        for each in TELLS.splitlines()
        if each.startswith(("index", "kettles")) and not (
            each.startswith("kettles") and each.endswith("gss-time")
        )
    ]  # fmt: skip
    advice = [each.text() for each in check_book(root).advice]
    assert [each.partition("\n")[0] for each in advice if "exempts" in each] == [
        "spoilers.toml:10: this exempts what after.qmd does not tell"
    ]
    for text, words in (("[[exempt]]\npage = 'a.qmd'", "toml:1: this exemption has page"),
                        ("[[exempt", "invalid TOML")):  # fmt: skip
        (root / "spoilers.toml").write_text(text, encoding="utf-8")
        with pytest.raises(SourceError, match=words):
            check_book(root)


ASKED = (
    '<main><p>{}</p><div id="gss-n" class="guess" data-kind="number" data-unit="ms"'
    ' data-answer="45.7"></div><p class="settles" data-guess="gss-n">'
    '<span class="opens" data-opens="a">45.7 ms</span></p></main>'
    '<template id="a"><p>step_latency = 45.7 ms</p></template>'
    '<template id="b"><p>pause = 45.7 ms</p></template>'
    '<template id="c"><p>step latency = 45.9 ms</p></template>'
    '<template id="d"><p>step latency = 48.9 ms</p></template>'
)


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        ("It takes 45.7 ms", True, "its unit"),
        ("It takes 0.0457 s", True, "its unit"),
        ("It takes 45.7 ms", False, ""),  # on another page, perhaps of something else
        ("The latency of a step is 45.7 ms", False, "its name"),
        ("Its step latency is 46", True, "its name"),
        ("Its step latency is 46", False, ""),  # two digits are soon alike
        ("Its step latency is 45.8 ms", False, ""),
        ("A step latency of 45.7 MB", True, ""),
        ('A step latency of <span class="given">45.7 ms</span>', True, ""),
        ('<span class="opens" data-opens="a">46 ms</span>', False, "the same result"),
        ('<span class="opens" data-opens="b">45.7 ms</span>', True, ""),
        ('<span class="opens" data-opens="c">45.9 ms</span>', False, "derived from the same"),
        ('<span class="opens" data-opens="d">48.9 ms</span>', False, ""),
    ],
)
def test_what_tells_an_answer(text: str, own: bool, expected: str) -> None:
    page = read_told(ASKED.format(text), "a.html")
    (question,) = page.questions
    before = [each for each in page.told if each.start < question.start]
    found = [how for each in before for *_, how in find_told(question, each, page, own=own)]
    assert found == [expected] * bool(expected)


def test_nothing_tells_what_is_measured_as_the_page_is_made() -> None:
    html = ASKED.format("Machines differ").replace('<p class="settles"', '<div class="settles"')
    cell = html.replace("</p></main>", '<div class="cell measured">45.7 ms</div></div></main>')
    assert [len(read_told(each, "a.html").questions) for each in (html, cell)] == [1, 0]
