"""Exercises: strict files, computed answers, credit for a mistake, and texts that a person marks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import cases, text

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import (
    Exercise,
    ExerciseError,
    WrongPath,
    load,
    load_selfchecks,
    read_texts,
)
from mlsim_exercises.evaluation import evaluate, same_answer, variants
from mlsim_exercises.markdown import exercise_markdown
from mlsim_exercises.verdicts import judge

Kept = Callable[[str], Path]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return a function that writes a kept file of exercises, and returns its path."""

    def write(name: str) -> Path:
        path = tmp_path / "x.exercises.toml"
        path.write_text(text(f"{name}.exercises.toml"), encoding="utf-8")
        return path

    return write


def number(answer: str = "1", **more: object) -> Exercise:
    return Exercise("e", "T", "number", "?", answer, "", **more)  # type: ignore[arg-type]


def test_computed(kept: Kept) -> None:
    double, order = load(kept("strict"))
    assert (double.line, double.wrong[1].line) == (1, 25)
    done = evaluate(double)
    assert done.answer == pytest.approx(334.88)
    assert done.wrong == (pytest.approx(167.44), 669_760_000.0)
    assert done.solution == r"$t = \frac{mc}{P}$ = 335 s, 2 times as long."
    assert evaluate(order).answer == ("a", "b")
    assert evaluate(order).solution == "a, b"
    choice = Exercise("e", "T", "choice", "?", "'a'", "", choices=("a", "b"))
    assert evaluate(choice).answer == "a"
    assert not same_answer(choice, "b", "a")


def test_variants_change_answer_and_texts(kept: Kept) -> None:
    (task,) = load(kept("kettle"))
    assert list(variants(task)) == [{"litres": 2}, {"litres": 3}]
    other = evaluate(task, {"litres": 3})
    assert other.answer == pytest.approx(502.32)
    assert other.because == ("That is for one litre, not for 3.",)
    assert other.given == {"litres": 3}
    with pytest.raises(ExerciseError, match="nothing called 'cups' to be given"):
        evaluate(task, {"cups": 3})


@pytest.mark.parametrize(
    "table", ["strict_faults", "strict_values", "kettle_faults", "credit_faults"]
)
def test_a_fault_names_its_line(kept: Kept, table: str) -> None:
    """A file is strict, and what it declares is checked and can be computed."""
    file = kept(table.partition("_")[0])
    good, wrong = file.read_text(encoding="utf-8"), []
    for old, new, line, words in cases(f"{table}.toml"):
        assert good.count(old) == 1
        file.write_text(good.replace(old, new), encoding="utf-8")
        try:
            load_selfchecks(file)
            for exercise in load(file):
                evaluate(exercise)
        except ExerciseError as error:
            told = (error.file, error.line) == (str(file), line) and words in str(error)
            wrong += [] if told else [f"{new}: {error}"]
        else:
            wrong.append(f"{new} is read")
    assert wrong == []


def test_quantities_are_converted() -> None:
    class Quantity:
        """Stands for any quantity with units."""

        dimensionless = True

        def __init__(self, magnitude: float) -> None:
            self.magnitude = magnitude

        def to(self, unit: str) -> Quantity:
            return Quantity(self.magnitude * {"ms": 1000, "dimensionless": 1}[unit])

        def __float__(self) -> float:
            return self.magnitude

    module = type(sys)("a_module_of_quantities")
    module.q = Quantity(0.25)  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    setup = f"from {module.__name__} import q"
    for unit, answer in {"ms": 250, "": 0.25, "times": 0.25, "%": 25}.items():
        assert evaluate(number("q", unit=unit, setup=setup)).answer == answer


def test_numbers_of_mlsim_are_taken_in_the_unit_that_is_asked_for() -> None:
    """Of the T4's time at batch 64, 68 % is memory-bound; 100 times the share is not 6,754 %.

    A count knows its own unit, such as users; "times" and "GPUs" are words to its library.
    """
    setup = (
        "from mlsim import Engine; p = Engine.solve(model='ResNet50', hardware='T4', batch_size=64)"
    )
    share = number("100 * p.memory_bound_share", unit="%", setup=setup)
    assert evaluate(share).answer == pytest.approx(67.54, abs=0.01)
    setup = "from mlsim import Engine; s = Engine.serve(model='Llama3_8B', hardware='H100')"
    for unit in ("times", "GPUs", ""):
        assert evaluate(number("s.largest_batch", unit=unit, setup=setup)).answer > 100


def test_a_declared_mistake_earns_its_share(kept: Kept) -> None:
    boil = evaluate(load(kept("credit"))[0])
    assert [judge(boil, each).score for each in (334.88, 167.44, 1000, 0.33488, 5e9)] == [
        1, 0.5, 0, 0.25, 0,
    ]  # fmt: skip
    assert judge(boil, 167.44).message == "That is for one litre. This earns 50 % of the points."
    assert judge(boil, 1000).message == "That is a guess."
    assert judge(boil, 0.33488).message.endswith("in s. This earns 25 % of the points.")
    # another unit than the one asked for, with digits that nothing compares
    assert judge(boil, "167.44 ms").score == 0
    shown = exercise_markdown(boil)
    assert 'data-unit-credit="0.25"' in shown
    assert "That is for one litre. This earns 50 % of the points." in shown
    made = number("4", wrong=(WrongPath("2", "Half.", credit=0.75), WrongPath("3", "No.")))
    assert [judge(evaluate(made), each).score for each in (2, 3, 4)] == [0.75, 0, 1]


def test_a_text_has_a_rubric_and_no_answer(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    file = kept("credit")
    lid = load(file)[1]
    assert (lid.points, lid.answer, [each.head for each in lid.rubric]) == (
        3, "", ["Reason (2)", "Number (1)"],
    )  # fmt: skip
    other = evaluate(lid, {"n": 3})
    assert other.prompt == "Why does a lid help with 3 l?"
    assert (judge(other, "Steam.").kind, judge(other, "Steam.").score) == ("unmarked", 0)
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
    told = {each.text: each.computed for each in read_texts(file)}
    assert (told["Says what carries *the heat* away."], told[lid.prompt]) == (False, True)
    file.write_text(file.read_text().partition("[[exercise.rubric]]")[0])
    with pytest.raises(ExerciseError, match="is marked by its rubric") as caught:
        load(file)
    assert caught.value.line == 21
    with pytest.raises(ExerciseError, match="no such exercise file"):
        load("nowhere.toml")
