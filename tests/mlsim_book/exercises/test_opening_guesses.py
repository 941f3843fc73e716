"""Guesses that open a chapter: as written in its source, and what settles them on its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import book

from mlsim_book.build import StrictError, build
from mlsim_book.check.book import check_book
from mlsim_book.errors import Problems
from mlsim_book.exercises.guesses import check_guesses, read_marks
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.lines import Reporter, split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Document, parse_blocks
from mlsim_book.render.guesses import settle_guesses
from mlsim_book.render.notebooks import make_notebooks

ASKED = '::: {.guess #gss-n kind="number" unit="users"}\nHow many?\n:::\n\n'
SETTLED = '[`{python} n`]{.settles guess="gss-n"}\n'


def document(text: str) -> Document:
    return Document({}, tuple(parse_blocks(split_lines(text, file="a.qmd"))), text)


def faults(text: str) -> list[tuple[int | None, str, str]]:
    problems = Problems()
    check_guesses(document(text), problems)
    assert {each.file for each in problems.found} <= {"a.qmd"}
    return [(each.line, each.message, each.hint or "") for each in problems.found]


def test_marks_are_read_where_they_are_meant() -> None:
    """Not in code, in comments or in a cell; attributes may go over two lines."""
    text = (
        'Write `[n]{.settles guess="gss-a"}`.\n\n```\n::: {.guess #gss-b}\n```\n\n'
        + ASKED
        + "```{python}\nx = '{.settles guess=\"gss-c\"}'\n```\n\nUp to\n[`{python} n` of [them]{.given\n"
        'kind="example"}]{.settles\nguess=gss-n} fit. A {.guessed} and a {.settles-not}.\n\n'
        "::: {.column .settles guess='gss-n'}\n`{python} m`\n:::\n"
    )
    marks = read_marks(document(text))
    assert [
        (each.name, each.line.line, each.settles, each.box, each.computed) for each in marks
    ] == [
        ("gss-n", 7, False, True, False),
        ("gss-n", 17, True, False, True),
        ("gss-n", 20, True, True, False),
    ]
    assert marks[0].given == {"kind": "number", "unit": "users"}


def test_what_a_source_can_get_wrong_is_refused_with_its_line() -> None:
    assert faults(ASKED + SETTLED) == []
    for text, line, words, hint in (
        (ASKED, 1, "nothing settles the guess 'gss-n'", '{.settles guess="gss-n"}'),
        (ASKED + SETTLED.replace("gss-n", "gss-m"), 5, "this settles the guess 'gss-m', which",
         "Did you mean 'gss-n'?"),
        (ASKED + "[`{python} n`]{.settles}\n" + SETTLED, 5, "this settles none", "Name one"),
        (SETTLED + "\n" + ASKED, 1, "settled before it is asked", "above"),
        (ASKED + SETTLED + SETTLED, 6, "settled twice, first in line 5", "one place"),
        (ASKED + ASKED + SETTLED, 5, "asked twice, first in line 1", "its own"),
        (ASKED + SETTLED.replace("`{python} n`", "199 users"), 5, "computes nothing", "not typed"),
        (ASKED.replace("number", "numbr") + SETTLED, 1, "of the kind 'numbr'", "'number'?"),
        (ASKED.replace(' kind="number"', "") + SETTLED, 1, "of the kind ''", "number, choice, order"),
        (ASKED.replace("unit", "units") + SETTLED, 1, "a guess has no 'units'", "'unit'?"),
        (ASKED.replace("number", "choice") + SETTLED, 1, "is no number, and has no unit", "Write"),
        (ASKED.replace('"users"', '"users" better="more"') + SETTLED, 1, "'more' is no way in which", "lower"),
        (ASKED.replace(" #gss-n", ""), 1, "a guess is a box with a name", "#gss-users"),
        ('A [thing]{.guess #gss-n kind="number"}.\n\n' + SETTLED, 1, "a box with a name", "Write"),
    ):  # fmt: skip
        found = faults(text)
        assert [each[0] for each in found if words in each[1] and hint in each[2]] == [line], (
            text,
            found,
        )


def settled(asked: str, told: str) -> tuple[str, list[str]]:
    """Return what is put on a guess, and what is said of it."""
    html = f'<div id="gss-n" class="guess" {asked}</div><p>{told}</p>'
    source = '# A\n\nSo [it]{.settles guess="gss-n"} is.\n'
    page = ExecutedPage(Chapter("a.qmd", "a.html", "A", 1), "", {}, {}, source)
    problems = Problems()
    done = settle_guesses(html, page, Reporter(problems, Path()))
    assert all((each.file, each.line) == ("a.qmd", 3) for each in problems.found)
    known = f'<div id="gss-n" class="guess" {asked.partition(">")[0]}'
    return done.partition(">")[0].removeprefix(known).strip(), [
        f"{each.message}\n{each.hint}" for each in problems.found
    ]


def test_a_figure_that_waits_for_no_guess_of_the_page_is_told() -> None:
    html = (
        '<div id="gss-n" class="guess"></div><span class="live-figure" data-opened-by="{}"></span>'
    )
    source = '# A\n\nlive.tank(guess="gss-m")\n'
    page = ExecutedPage(Chapter("a.qmd", "a.html", "A", 1), "", {}, {}, source)
    problems = Problems()
    for name in ("gss-n", "gss-m"):
        settle_guesses(html.format(name), page, Reporter(problems, Path()))
    (told,) = problems.found
    assert "waits for the guess 'gss-m', which this page does not ask" in told.message
    assert (told.line, told.hint) == (3, "Did you mean 'gss-n'?")


def span(words: str) -> str:
    return f'<span class="settles" data-guess="gss-n">{words}</span>'


N = '<span class="opens" data-opens="o">{}</span>'


@pytest.mark.parametrize(
    ("unit", "words", "answer"),
    [
        ("users", f"at most {N.format(199)} users", "199"),
        ("ms", N.format("4.57&nbsp;ms"), "4.57"),
        ("ms", N.format("0.0457 s"), "45.7"),
        ("s", f"{N.format(45)} ms of it", "0.045"),  # the unit may stand behind the number
        ("tokens/s", f"{N.format('1,219')} tokens per second.", "1219"),
        ("%", N.format("0.4 %"), "0.4"),
        ("times", f"{N.format(42)} times as many as {{}}", "42"),
        ("users", "so 12 of them", "12"),  # a plain value, of a book whose numbers don't open
        ("W", f'{N.format(5)} or <span class="answer">{N.format("0.7 kW")}</span>', "700"),
    ],
)
def test_a_number_is_read_off_the_page_in_the_unit_of_its_guess(
    unit: str, words: str, answer: str
) -> None:
    tag, said = settled(f'data-kind="number" data-unit="{unit}">', span(words))
    assert (tag, said) == (f'data-answer="{answer}"', [])


def test_what_was_measured_stands_beside_in_its_own_words() -> None:
    asked = 'data-kind="number" data-unit="tokens/s">'
    for measured, shown in (
        (N.format(94), "94 tokens/s"),
        (f"{N.format(94)} tokens/s on an <b>A100</b>", "94 tokens/s on an A100"),
    ):
        words = f'{N.format(219)}; measured: <span class="measured">{measured}</span>'
        tag, said = settled(asked, span(words))
        assert (tag, said) == (f'data-answer="219" data-measured="{shown}"', [])


ITEMS = "<ul>\n<li>Memory</li>\n<li><p>Memory bandwidth</p></li>\n<li>Arithmetic</li>\n</ul>"


def test_a_choice_and_an_order_are_what_the_text_names() -> None:
    for kind, words, answer in (
        ("choice", "it is memory <a>bound</a>", "1"),
        ("choice", "the memory bandwidth", "2"),  # which is not memory alone
        ("choice", 'no arithmetic: <em class="answer">memory</em>', "1"),
        ("order", "arithmetic, memory bandwidth, and last memory", "3 2 1"),
    ):
        tag, said = settled(f'data-kind="{kind}">{ITEMS}', span(words))
        assert (tag, said) == (f'data-answer="{answer}"', [])
    order = "<ul><li>cup</li><li>spoon</li><li>water</li></ul>"
    tag, said = settled(f'data-kind="order">{order}', span("the Water, a cup and a spoon"))
    assert (tag, said) == ('data-answer="3 1 2"', [])


def test_what_a_page_can_get_wrong_is_refused_at_what_settles() -> None:
    number = 'data-kind="number" data-unit="ms">'
    for asked, words, expected in (
        (number, "hardly any", "no numbers stand in what settles it\nPut a computed number in"),
        (number, f"{N.format(3)} or {N.format(4)}",
         "2 numbers stand in what settles it (3, 4)\nMark the one that is the answer"),
        (number, N.format("3 GB"), "its answer '3 GB' is no number in its unit, 'ms'\nShow it in"),
        (number, f'{N.format(3)}, <span class="measured">{N.format("4 GB")}</span>',
         "its answer '4 GB' is no number in its unit"),
        (number.replace("ms", "%"), N.format(130), "its answer, 130 %, is no part of a whole"),
        ('data-kind="choice"><p>Which?</p>', "memory", "need a list of what there is to choose"),
        (f'data-kind="choice">{ITEMS}', "the disk", "of its 3 choices, what settles it names none"),
        (f'data-kind="choice">{ITEMS}', "arithmetic or memory", "names 'Memory', 'Arithmetic'"),
        (f'data-kind="order">{ITEMS}', "memory bandwidth", "does not name 'Memory'"),
    ):  # fmt: skip
        tag, (said,) = settled(asked, span(words))
        assert tag == ""
        assert said.startswith("the guess 'gss-n': ")
        assert expected in said


def test_a_build_and_a_check_refuse_what_is_not_settled(make_book: Callable[..., Path]) -> None:
    root = make_book(index_qmd="# A\n\n" + ASKED)
    with pytest.raises(StrictError, match="1 problem"):
        build(root, progress=str)
    found = [each.text() for each in check_book(root).found]
    assert [each.partition("\n")[0] for each in found if "gss-n" in each] == [
        "index.qmd:3: nothing settles the guess 'gss-n'"
    ]


def test_a_notebook_has_the_plain_questions_in_one_list(tmp_path: Path) -> None:
    root = book("coffee", tmp_path)
    made = make_notebooks(load_project(root, Problems()), Problems())
    assert list(made) == ["coffee.ipynb"]
    cells = json.loads(made["coffee.ipynb"])["cells"]
    text = "".join("".join(each["source"]) + "\n" for each in cells)
    assert (
        "1. How long does the water take?\n\n2. What part of the heat stays in the water?\n\n"
        "3. Where does the rest go?\n\n   - the kettle\n"
    ) in text.replace(".  ", ". ").replace("    -", "   -").replace("-   ", "- ")
    assert "guess" not in text.replace("Guess", "").replace("your guesses", "")
    assert ":::" not in text
