"""A book's questions: found by name, checked, hinted at, shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from kept import cases, text

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import load
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import evaluate, variants
from mlsim_exercises.markdown import plain_text

KETTLE = text("kettle.exercises.toml")


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "kettle.exercises.toml").write_text(KETTLE, encoding="utf-8")
    (tmp_path / "cup.exercises.toml").write_text(
        KETTLE.replace('"boil"', '"sip"').replace('"watt"', '"volt"'), encoding="utf-8"
    )
    (tmp_path / "notes.toml").write_text("not = [read")
    return Bank(tmp_path, module="kettles")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed since the last time."""
    return capsys.readouterr().out


def test_check_hint_reveal(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.check("boil")
    assert said(capsys) == "· Not attempted yet.\n"
    bank.check("boil", 167.44)
    assert said(capsys) == "✗ That is for one litre, not for 2.\n"
    bank.check("boil", 334.88)
    assert said(capsys) == "✓ Right. reveal('boil') explains.\n"
    assert bank.verdict("boil", 334.88).score == 1
    bank.hint("boil")
    bank.hint("boil")
    bank.hint("boil")
    hints = "Hint 1 of 2: Energy over power.\nHint 2 of 2: 2 l weigh as many kg.\n"
    assert said(capsys) == hints + "There are no more hints: reveal('boil') shows the solution.\n"
    bank.hint("sip")
    assert said(capsys).startswith("Hint 1 of 2")
    bank.reveal("boil")
    assert said(capsys) == "Answer: 335 s\n\n335 s.\n"


def test_words_are_printed_without_what_marks_them() -> None:
    for given, printed in [
        ("a [*kettle* of [2 l]{.x}]{.given kind='definition'}", "a kettle of 2 l"),
        ("see [the page](a.html#b) or ![a pot](pot.png)", "see the page or a pot"),
        ("2^10^ and H~2~O and $h$ and **so** *it is*", "2^10 and H2O and h and so it is"),
        ("`a * b * c` and ``x[1](2)`` and `y`{.python}", "a * b * c and x[1](2) and y"),
        ("$5 and $6, 2 * 3 * 4, a_b_c, 5 ~ 6", "$5 and $6, 2 * 3 * 4, a_b_c, 5 ~ 6"),
    ]:
        assert plain_text(given) == printed


def test_shown_on_a_page_and_in_a_notebook(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.show("boil")
    text = said(capsys)
    assert "How long for 2 l of {water}?" in text
    assert 'data-topic="boiling" data-better="lower"' in text
    assert '::::: {.content-hidden when-format="ipynb"}' in text
    assert "from kettles import check, hint, reveal\n\nanswer = ...  # a number in s\n" in text
    assert 'check("boil", answer)' in text
    bank.show("volt")
    assert 'data-answer="2"' in said(capsys)


def test_a_run_is_shown_as_its_questions_one_by_one(
    bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("sip", "watt", "boil")
    for name in names:
        bank.show(name)
    alone = said(capsys)
    bank.show(*names)
    assert said(capsys) == alone
    assert alone.index("#exr-sip") < alone.index("A watt is?") < alone.index("#exr-boil")
    assert not re.search(r":::\n:::", alone)  # blocks stand apart


def test_a_wrong_id_within_a_run_shows_nothing_and_names_the_nearest(
    bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, near in (("bol", "boil"), ("wat", "watt")):
        said_of = f"there is no exercise or self-check '{wrong}'(.*\n)+.*Did you mean '{near}'"
        with pytest.raises(ExerciseError, match=said_of):
            bank.show("sip", wrong, "volt")
    assert said(capsys) == ""


def test_an_exercise_and_a_self_check_share_no_id(tmp_path: Path) -> None:
    file = tmp_path / "kettle.exercises.toml"
    file.write_text(KETTLE.replace('"watt"', '"boil"'), encoding="utf-8")
    with pytest.raises(ExerciseError, match=r":21: the id 'boil' is used twice .*line 1\)"):
        Bank(file).show("boil")


def test_variants_change_answer_and_texts(bank: Bank) -> None:
    task = bank.exercises["boil"]
    assert list(variants(task)) == [{"litres": 2}, {"litres": 3}]
    other = evaluate(task, {"litres": 3})
    assert other.answer == pytest.approx(502.32)
    assert other.because == ("That is for one litre, not for 3.",)
    assert other.given == {"litres": 3}
    with pytest.raises(ExerciseError, match="nothing called 'cups' to be given"):
        evaluate(task, {"cups": 3})


@pytest.mark.parametrize(("old", "new", "line", "words"), cases("kettle_faults.toml"))
def test_faults_name_their_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    file = tmp_path / "kettle.exercises.toml"
    assert KETTLE.count(old) == 1
    file.write_text(KETTLE.replace(old, new), encoding="utf-8")
    with pytest.raises(ExerciseError) as caught:
        [evaluate(task) for task in load(file)]
    assert words in str(caught.value)
    assert caught.value.line == line


def test_names_that_are_not_there(bank: Bank, tmp_path: Path) -> None:
    with pytest.raises(ExerciseError, match="Did you mean 'boil'"):
        bank.check("boli", 3)
    with pytest.raises(ExerciseError, match="There are: sip, boil"):
        bank.hint("zzz")
    (tmp_path / "more.exercises.toml").write_text(KETTLE.replace('"watt"', '"amp"'))
    with pytest.raises(ExerciseError, match=r"'boil' is used twice \(also in .*kettle"):
        Bank(tmp_path).check("boil")


def test_a_notebook_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import mlsim_exercises.bank; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'yaml', 'nbclient', 'nbformat', 'numpy', 'pint', 'jupyter_client', 'mlsim'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
