"""A book's questions: found by name, checked, hinted at, shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from kept import text

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import ExerciseError
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
    for given, told in [
        ((), "· Not attempted yet.\n"),
        ((167.44,), "✗ That is for one litre, not for 2.\n"),
        ((334.88,), "✓ Right. reveal('boil') explains.\n"),
    ]:
        bank.check("boil", *given)
        assert said(capsys) == told
    assert bank.verdict("boil", 334.88).score == 1
    for _ in range(3):
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


def test_shown_on_a_page_and_in_a_notebook(
    bank: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank.show("boil")
    printed = said(capsys)
    assert "How long for 2 l of {water}?" in printed
    assert 'data-topic="boiling" data-better="lower"' in printed
    assert '::::: {.content-hidden when-format="ipynb"}' in printed
    assert "from kettles import check, hint, reveal\n\nanswer = ...  # a number in s\n" in printed
    assert 'check("boil", answer)' in printed
    bank.show("volt")
    assert 'data-answer="2"' in said(capsys)
    # without a module, there is a page alone
    file = tmp_path / "strict.toml"
    file.write_text(text("strict.exercises.toml"), encoding="utf-8")
    strict = Bank(file)
    strict.show("double")
    printed = said(capsys)
    head, _, rest = printed.partition("\n")
    assert head.startswith('::: {#exr-double .checked data-kind="number" data-answer="334.88')
    assert rest.startswith("\n## Twice the water\n\nHow long for 2 kg?")
    about = "Answer in s, within 1 % of the value · Level: change one thing · 2 points"
    assert f"[{about}]{{.exercise-about}}\n\n:::\n" in printed
    assert '## Another answer?\n\n- [**167 s**]{.wrong-path data-answer="167.44"}: ' in printed
    assert '::: {.callout-tip collapse="true"}\n\n## Hint 2\n\nMind the mass.\n\n:::' in printed
    assert '::: {.callout-note collapse="true"}\n\n## Solution\n\n$t =' in printed
    assert printed.count(":::") == 12
    strict.show("order-them", "watt")
    printed = said(capsys)
    assert "- b\n- a\n" in printed
    assert "## Answer\n\n**J/s**\n\nEnergy per second." in printed


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
    # a wrong id within a run shows nothing, and names the nearest
    for wrong, near in (("bol", "boil"), ("wat", "watt")):
        said_of = f"there is no exercise or self-check '{wrong}'(.*\n)+.*Did you mean '{near}'"
        with pytest.raises(ExerciseError, match=said_of):
            bank.show("sip", wrong, "volt")
    assert said(capsys) == ""


def test_names_that_are_not_there_or_twice(bank: Bank, tmp_path: Path) -> None:
    with pytest.raises(ExerciseError, match="Did you mean 'boil'"):
        bank.check("boli", 3)
    with pytest.raises(ExerciseError, match="There are: sip, boil"):
        bank.hint("zzz")
    file = tmp_path / "more.exercises.toml"
    file.write_text(KETTLE.replace('"watt"', '"amp"'))
    with pytest.raises(ExerciseError, match=r"'boil' is used twice \(also in .*kettle"):
        Bank(tmp_path).check("boil")
    file.write_text(KETTLE.replace('"watt"', '"boil"'))
    with pytest.raises(ExerciseError, match=r":21: the id 'boil' is used twice .*line 1\)"):
        Bank(file).show("boil")


def test_a_notebook_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import mlsim_exercises.bank; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'yaml', 'nbclient', 'nbformat', 'numpy', 'pint', 'pypandoc', 'jupyter_client', 'mlsim'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
