"""Exercises: a strict file, computed answers, and Markdown that any Quarto renders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlsim_exercises.bank import Bank
from mlsim_exercises.data import Exercise, load, load_selfchecks
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import evaluate, same_answer

TEXT = '''\
[[exercise]]
id = "double"
title = "Twice the water"
kind = "number"
level = "change"
points = 2
prompt = """
How long for 2 kg?
answer = "not a key: inside a text"
"""
setup = """
power = 2000
heat = 4186 * 80
"""
answer = "2 * heat / power"
unit = "s"
tolerance = 0.01
hints = ["Energy over power.", "Mind the mass."]
solution = "$t = \\\\frac{{mc}}{{P}}$ = {answer:.0f} s, {answer / (heat / power):.0f} times as long."

[[exercise.wrong]]
answer = "heat / power"
because = "That is for 1 kg."

[[exercise.wrong]]
answer = "heat * power"
because = "Divide."

[[exercise]]
id = "order-them"
title = "Put in order"
kind = "order"
prompt = "Smallest first."
choices = ["b", "a"]
answer = "sorted(['b', 'a'])"
solution = "{', '.join(answer)}"

[[selfcheck]]
id = "watt"
question = "A watt is?"
choices = ["J", "J/s"]
answer = "J/s"
because = "Energy per second."
'''


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


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('unit = "s"', 'units = "s"', 16, "unknown key 'units'"),
        ('kind = "number"', 'kind = "guess"', 4, "number, choice, order"),
        ('level = "change"', 'level = "hard"', 5, "recall, change, design"),
        ("points = 2", 'points = "2"', 6, "must be a int"),
        ("tolerance = 0.01", "tolerance = 2", 17, "between 0 and 1"),
        ('because = "That is for 1 kg."', "", 21, "'because' is missing"),
        ('because = "That is for 1 kg."', 'why = "x"', 23, "unknown key 'why'"),
        ('id = "order-them"', 'id = "double"', 29, "written twice (first on line 1)"),
        ('id = "order-them"', 'id = "Order"', 30, "lower-case"),
        ('kind = "order"', 'kind = "number"', 34, "has no choices"),
        ('hints = ["Energy over power.", "Mind the mass."]', "hints = [1]", 18, "texts only"),
        ("points = 2", "points = ", 6, "invalid TOML"),
        ('answer = "J/s"', 'answer = "W"', 42, "none of the choices"),
        ("[[selfcheck]]", "[[selfchek]]", 38, "unknown table 'selfchek'"),
    ],
)
def test_a_strict_file(file: Path, old: str, new: str, line: int, words: str) -> None:
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(ExerciseError) as caught:
        read_all(file)
    assert caught.value.line == line
    assert caught.value.file == str(file)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("power = 2000", "power = wattage", 1, "the setup of 'double' raised NameError"),
        ('"2 * heat / power"', '"2 * heat / pwr"', 1, "the answer of 'double' raised NameError"),
        ('"2 * heat / power"', '"1e400"', 1, "raised ValueError: got inf"),
        ('"heat / power"', '"2.001 * heat / power"', 21, "as does the answer"),
        ('"heat * power"', '"heat / power"', 25, "as does another"),
        ("frac{{mc}}", "frac{mc}", 1, "written twice"),
        ("\"sorted(['b', 'a'])\"", '"[1]"', 29, "not an order of its choices"),
    ],
)
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
