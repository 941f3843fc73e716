"""Exercises: a strict file, computed answers, and Markdown that any Quarto renders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kept import cases, text

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import Exercise, load, load_selfchecks
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import evaluate, same_answer

TEXT = text("strict.exercises.toml")


def read_all(path: Path) -> None:
    """Read everything in a file and compute it."""
    load_selfchecks(path)
    for exercise in load(path):
        evaluate(exercise)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.exercises.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_computed(file: Path) -> None:
    double, order = load(file)
    assert (double.line, double.wrong[1].line) == (1, 25)
    done = evaluate(double)
    assert done.answer == pytest.approx(334.88)
    assert done.wrong == (pytest.approx(167.44), 669_760_000.0)
    assert done.solution == r"$t = \frac{mc}{P}$ = 335 s, 2 times as long."
    assert evaluate(order).answer == ("a", "b")
    assert evaluate(order).solution == "a, b"


def test_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = Bank(file)
    bank.show("double")
    printed = capsys.readouterr().out
    head, _, rest = printed.partition("\n")
    assert head.startswith('::: {#exr-double .checked data-kind="number" data-answer="334.88')
    assert rest.startswith("\n## Twice the water\n\nHow long for 2 kg?")
    about = "Answer in s, within 1 % of the value · Level: change one thing · 2 points"
    assert f"[{about}]{{.exercise-about}}\n\n:::\n" in printed
    assert '## Another answer?\n\n- [**167 s**]{.wrong-path data-answer="167.44"}: ' in printed
    assert '::: {.callout-tip collapse="true"}\n\n## Hint 2\n\nMind the mass.\n\n:::' in printed
    assert '::: {.callout-note collapse="true"}\n\n## Solution\n\n$t =' in printed
    assert printed.count(":::") == 12
    bank.show("order-them")
    assert "- b\n- a\n" in capsys.readouterr().out
    bank.show("watt")
    assert "## Answer\n\n**J/s**\n\nEnergy per second." in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new", "line", "words"), cases("strict_faults.toml"))
def test_a_strict_file(file: Path, old: str, new: str, line: int, words: str) -> None:
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(ExerciseError) as caught:
        read_all(file)
    assert caught.value.line == line
    assert caught.value.file == str(file)
    assert words in str(caught.value)


@pytest.mark.parametrize(("old", "new", "line", "words"), cases("strict_values.toml"))
def test_what_can_not_be_computed(file: Path, old: str, new: str, line: int, words: str) -> None:
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(ExerciseError) as caught:
        read_all(file)
    assert caught.value.line == line
    assert words in str(caught.value)


def test_quantities_are_converted() -> None:
    class Quantity:
        """Stands for any quantity with units."""

        def __init__(self, magnitude: float) -> None:
            self.magnitude = magnitude

        def to(self, unit: str) -> Quantity:
            return Quantity(self.magnitude * {"ms": 1000, "dimensionless": 1}[unit])

    task = Exercise("e", "T", "number", "?", "q", "{answer:g}", unit="ms")
    module = type(sys)("a_module_of_quantities")
    module.q = Quantity(0.25)  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    task = Exercise(**{**task.__dict__, "setup": f"from {module.__name__} import q"})
    assert evaluate(task).answer == 250.0


def test_a_share_that_is_a_float_as_well_is_a_number() -> None:
    """Of the T4's time at batch 64, 68 % is memory-bound; 100 times the share is not 6,754 %."""
    ask = (
        "from mlsim import Engine; p = Engine.solve(model='ResNet50', hardware='T4', batch_size=64)"
    )
    task = Exercise(
        "e", "T", "number", "?", "100 * p.memory_bound_share", "{answer:.0f}", unit="%", setup=ask
    )
    assert evaluate(task).answer == pytest.approx(67.54, abs=0.01)


def test_what_counts_is_a_number_whatever_the_exercise_calls_it() -> None:
    """A count knows its own unit, such as users; "times" and "GPUs" are words to its library."""
    ask = "from mlsim import Engine; s = Engine.serve(model='Llama3_8B', hardware='H100')"
    task = Exercise("e", "T", "number", "?", "s.largest_batch", "{answer:g}", setup=ask)
    for unit in ("times", "GPUs", ""):
        task = Exercise(**{**task.__dict__, "unit": unit})
        assert evaluate(task).answer > 100


def test_choices() -> None:
    task = Exercise("e", "T", "choice", "?", "'a'", "", choices=("a", "b"))
    assert evaluate(task).answer == "a"
    assert not same_answer(task, "b", "a")


def test_names_that_are_not_there(file: Path) -> None:
    with pytest.raises(ExerciseError, match="Did you mean 'double'"):
        Bank(file).show("dubble")
    with pytest.raises(ExerciseError, match="There are: double, order-them, watt"):
        Bank(file).show("zzz")
    with pytest.raises(ExerciseError, match="no such exercise file"):
        load("nowhere.toml")


def test_it_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import mlsim_exercises.evaluation; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'yaml', 'nbclient', 'nbformat', 'numpy', 'pypandoc', 'jupyter_client', 'mlsim'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
