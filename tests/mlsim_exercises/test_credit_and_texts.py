"""Part of the points for a declared mistake, and questions that a person marks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kept import cases, text

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import Exercise, WrongPath, load
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import evaluate
from mlsim_exercises.markdown import exercise_markdown
from mlsim_exercises.rubrics import Criterion
from mlsim_exercises.texts import read_texts
from mlsim_exercises.verdicts import judge

TEXT = text("credit.exercises.toml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.exercises.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_declared_mistake_earns_its_share(file: Path) -> None:
    boil = evaluate(load(file)[0])
    assert [judge(boil, each).score for each in (334.88, 167.44, 1000, 0.33488, 5e9)] == [
        1, 0.5, 0, 0.25, 0,
    ]  # fmt: skip
    assert judge(boil, 167.44).message == "That is for one litre. This earns 50 % of the points."
    assert judge(boil, 1000).message == "That is a guess."
    assert WrongPath("2", "No.").credit == 0
    assert Exercise("e", "T", "number", "?", "1", "").points == 1
    assert judge(boil, 0.33488).message.endswith("in s. This earns 25 % of the points.")
    # another unit than the one asked for, with digits that nothing compares
    assert judge(boil, "167.44 ms").score == 0
    shown = exercise_markdown(boil)
    assert 'data-unit-credit="0.25"' in shown
    assert "That is for one litre. This earns 50 % of the points." in shown


def test_a_text_has_a_rubric_and_no_answer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lid = load(file)[1]
    assert (lid.points, lid.answer, [each.head for each in lid.rubric]) == (
        3, "", ["Reason (2)", "Number (1)"],
    )  # fmt: skip
    other = evaluate(lid, {"n": 3})
    assert other.prompt == "Why does a lid help with 3 l?"
    assert judge(other, "Steam.").kind == "unmarked"
    assert judge(other, "Steam.").score == 0
    for blank in (None, ..., "", " ... ", "\n...\n"):
        assert judge(other, blank).kind == "not attempted"
    for odd in (3, ["Steam."], b"x", 2j):
        assert judge(other, odd).kind == "no answer"
    bank = Bank(file, module="kettles")
    bank.show("lid")
    shown = capsys.readouterr().out
    assert '{#exr-lid .checked data-kind="text"}' in shown
    assert "Points for:\n\n- **Reason** (2 points): Says what carries *the heat* away." in shown
    assert "*Half of them:* Says only that heat is lost." in shown
    assert 'answer = """\n...\n"""\ncheck("lid", answer)' in shown
    bank.check("lid", "Steam.")
    assert capsys.readouterr().out.startswith("· Compare it with the rubric")
    bank.reveal("lid")
    assert "Points for:\n- Reason (2 points): Says what carries the heat away." in (
        capsys.readouterr().out
    )
    assert {"Says what carries *the heat* away.", "Number"} <= {e.text for e in read_texts(file)}


@pytest.mark.parametrize(("old", "new", "words"), cases("credit_faults.toml"))
def test_what_is_declared_is_checked(file: Path, old: str, new: str, words: str) -> None:
    # the last one: "credit" stands in "unit_credit", too
    head, _, tail = TEXT.rpartition(old)
    file.write_text(head + new + tail, encoding="utf-8")
    with pytest.raises(ExerciseError, match=re.escape(words)) as caught:
        load(file)
    assert caught.value.line


def test_a_text_without_a_rubric_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.exercises.toml"
    path.write_text(TEXT[: TEXT.index("[[exercise.rubric]]")])
    with pytest.raises(ExerciseError, match="is marked by its rubric") as caught:
        load(path)
    assert caught.value.line == 21


def test_paths_and_texts_made_in_python() -> None:
    path = WrongPath("2", "Half.", credit=0.75)
    assert (
        judge(evaluate(Exercise("e", "T", "number", "?", "4", "", wrong=(path,))), 2).score == 0.75
    )
    text = Exercise("t", "T", "text", "?", "", "S", rubric=(Criterion("R", 2, "f"),))
    assert evaluate(text).answer == ""
