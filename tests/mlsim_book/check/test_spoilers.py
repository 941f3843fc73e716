"""Answers that stand before their questions are found, and what only looks alike is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kept import book

from mlsim_book.build import build
from mlsim_book.check.answers import Words, find_told
from mlsim_book.check.book import check_book
from mlsim_book.check.chosen import find_chosen
from mlsim_book.check.told import read_told
from mlsim_book.errors import SourceError

TELLS = """\
before.qmd:14: printed output tells '150' (its name) gss-time
before.qmd:19: folded code tells '150' (its name) gss-time
before.qmd:1: the search index tells '150.0' (its name) gss-time
before.qmd:23: the data of a figure tells '150' (its name) gss-time
before.qmd:26: the search index tells '418.0' (its words and unit) exr-soup
before.qmd:26: the text tells '418' (its words and unit) exr-soup
before.qmd:27: a table tells 'zinc' (its order) exr-noise
before.qmd:3: the text tells '2.2 kW' (derived from the same) gss-time
before.qmd:8: a table tells '150' (its name) gss-time
index.qmd:3: the text tells '149 s' (derived from the same) gss-time
kettles.qmd:11: an alternative text tells '150' (its name) gss-time
kettles.qmd:11: the text tells '150' (its name) gss-time
kettles.qmd:24: a heading tells '150' (its unit) gss-time
kettles.qmd:37: the text tells '4' (its words and unit) exr-pitch
kettles.qmd:37: the text tells 'handle' (its words) exr-part
kettles.qmd:38: the text tells '25' (its words and unit) exr-pitch
kettles.qmd:39: the text tells 'zinc' (its order) exr-noise
kettles.qmd:43: folded code tells '418' (its words and unit) exr-soup
kettles.qmd:48: printed output tells 'zinc' (its order) exr-noise
kettles.qmd:52: the data of a figure tells '418' (its words and unit) exr-soup
kettles.qmd:55: an alternative text tells '418' (its words and unit) exr-soup
kettles.qmd:55: the text tells '418' (its words and unit) exr-soup
kettles.qmd:57: a heading tells '418' (its words and unit) exr-soup
kettles.qmd:59: the text tells '62.5' (its words and unit) exr-share
kettles.qmd:8: the text tells '150 s' (the same result) gss-time
kettles.qmd:9: a link tells '@fig-heat' (it settles the guess) gss-where
kettles.qmd:9: the text tells '{python} where' (the same result) gss-where
notebooks/kettles.ipynb:1: the notebook tells '150.00' (its name) gss-time
notebooks/kettles.ipynb:1: the notebook tells '418.00' (its words and unit) exr-soup
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
    part = [
        [
            "before.html",
            "Before",
            "Before",
            "The boiling time is 150.0 s. A litre of soup: 418.0 kJ of heat.",
        ]
    ]
    (site / "site_libs/search/t-more.js").write_text(
        f'bookSearch.part("t-more",{json.dumps(part)});\n', encoding="utf-8"
    )
    lines = ["boiling time 150.00\n", "a litre of soup: 418.00 kJ of heat\n"]
    cell = {"cell_type": "code", "source": [], "outputs": [{"text": lines}]}
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
        if not each.startswith("before") and not ("kettles." in each and "gss-time" in each)
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
def test_what_tells_a_guess(text: str, own: bool, expected: str) -> None:
    page = read_told(ASKED.format(text), "a.html")
    (question,) = page.questions
    before = [each for each in page.told if each.start < question.start]
    words = Words([page])
    found = [how for each in before for *_, how in find_told(question, each, page, words, own=own)]
    assert found == [expected] * bool(expected)


def above(text: str, question: str, **data: str) -> list[str]:
    """Return how what stands above an exercise tells its answer."""
    given = " ".join(f'data-{key}="{value}"' for key, value in data.items())
    page = read_told(
        f'<main>{text}<div id="exr-a" class="exercise" {given}>{question}</div></main>'
        '<template id="a"><p>x = 2,044 kJ</p></template>',
        "a.html",
    )
    (asked,), words = page.questions, Words([page])
    before = [each for each in page.told if each.start < asked.start]
    found = [how for each in before for *_, how in find_told(asked, each, page, words, own=True)]
    return found + [how for *_, how in find_chosen(asked, before, words)]


HEAT = "<p>How many {unit} do two litres of cold soup need, for the cook?</p>"


@pytest.mark.parametrize(
    ("text", "unit", "answer", "expected"),
    [
        ("<p>Cold soup needs 2 MJ.</p>", "MJ", "2.044", "its words and unit"),
        ("<p>Cold soup needs 2 kJ.</p>", "MJ", "2.044", ""),
        ("<p>Cold soup needs 2.04.</p>", "MJ", "2.044", ""),  # of what?
        ("<p>It needs 2 MJ.</p>", "MJ", "2.044", ""),
        ("<p>Soup 2 MJ. Salt. So cold.</p>", "MJ", "2.044", ""),  # said of something else
        ('<p>So <a class="opens" data-opens="a">2 MJ</a>.</p>', "kJ", "2044", "the same result"),
        ("<table><tr><th>Of</th><th>kJ</th></tr><tr><td>soup</td><td>2044</td></tr></table>",
         "kJ", "2044", "its words and unit"),
        ("<table><tr><th>Of</th><th>km</th></tr><tr><td>soup</td><td>2044</td></tr></table>",
         "kJ", "2044", ""),
        ("<table><tr><th>Of</th><th>kJ</th></tr><tr><td>soup 2044</td><td>1</td></tr></table>",
         "kJ", "2044", ""),
        ("<p>Cold soup takes 1.02 times as much.</p>", "times", "1.0249", ""),
        ("<p>Cold soup keeps 20 %.</p>", "times", "5", "its words and unit"),
        ("<p>Table 5: cold soup for two litres</p>", "times", "5", ""),
    ],
)  # fmt: skip
def test_what_tells_an_exercise(text: str, unit: str, answer: str, expected: str) -> None:
    found = above(text, HEAT.format(unit=unit), kind="number", unit=unit, answer=answer)
    assert found == [expected] * bool(expected)


ROWS = "<table><tr><th>Noise of kettles</th><th>dB</th></tr>{}</table>"
LOUD = "<tr><td>{}</td><td>{}</td><td>{}</td></tr>"
PRINT = '<div class="cell-output-stdout"><pre>{}</pre></div>'
METALS = ("tin", "zinc", "brass")


@pytest.mark.parametrize(
    ("text", "choice", "order"),
    [
        ("The noise of kettles is due to brass.", "its words", "its words"),
        ("The noise of kettles is due to zinc.", "", ""),
        ("The noise of kettles is due to tin, zinc or brass.", "", "its order"),
        ("The noise of kettles is due to zinc, tin or brass.", "", ""),
        ("Brass is an alloy.", "", ""),
        ("Noise of kettles: zinc 3, brass 5, tin 1.", "its order", "its order"),
        ("Noise of kettles: zinc 6, brass 5, tin 1.", "", ""),
        ("<pre>noise of kettles\nzinc 3, brass\n 5, tin 1</pre>", "its order", "its order"),
        (PRINT.format("brass 5 g, noise of kettles"), "", ""),  # it is the name of a number
        (((5, 1), (9, 2), (7, 3)), "", "its order"),
        (((1, 1), (2, 9), (3, 3)), "its order", "its order"),
        (((5, 1), (9, 9), (7, 3)), "", ""),  # the middle
    ],
)
def test_what_tells_a_choice_and_an_order(
    text: str | tuple[tuple[int, int], ...], choice: str, order: str
) -> None:
    if not isinstance(text, str):
        lines = [LOUD.format(name, *row) for name, row in zip(METALS, text, strict=True)]
        text = ROWS.format("".join(lines)) + "<p>Which metal?</p>"
    items = "</li> <li>".join(METALS)
    asked = f"<p>Noise of kettles: which metal?</p> <ul><li>{items}</li></ul>"
    for kind, answer, expected in (("choice", "3", choice), ("order", "1 2 3", order)):
        found = above(f"<p>{text}</p>", asked, kind=kind, answer=answer)
        assert found == [expected] * bool(expected), kind


def test_nothing_tells_what_is_measured_as_the_page_is_made() -> None:
    html = ASKED.format("Machines differ").replace('<p class="settles"', '<div class="settles"')
    cell = html.replace("</p></main>", '<div class="cell measured">45.7 ms</div></div></main>')
    assert [len(read_told(each, "a.html").questions) for each in (html, cell)] == [1, 0]
