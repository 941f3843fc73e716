"""A page judges answers as Python does, and only pages with exercises load what does it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from kept import cases

from mlsim_book.errors import ToolError
from mlsim_book.exercises.files import FOLDER, exercises_script, guesses_page, has_exercises
from mlsim_book.render.assets import find_node
from mlsim_exercises.data import Criterion, Exercise, SelfCheck, WrongPath
from mlsim_exercises.evaluation import Evaluation, evaluate
from mlsim_exercises.markdown import exercise_markdown, selfcheck_markdown
from mlsim_exercises.verdicts import judge, rules

PATHS = (WrongPath("50", "Half."), WrongPath("-100", "The sign."), WrongPath("250", "More."))
WRITTEN = [given for (given,) in cases("written_answers.toml")]
SWEEP = [f"{sign}{100 * 1.07**power:.6g}" for power in range(-400, 400, 3) for sign in ("", "-")]
FACTORS = [f"{100.5 * factor!r}" for factor in (1e3, 1e-3, 1024, 1 / 60, 3600, 1e12, 24, 0.01)]


def number(answer: str = "100", **given: Any) -> Evaluation:
    fields = {"unit": "ms", "tolerance": 0.01, "wrong": PATHS, **given}
    return evaluate(Exercise("e", "T", "number", "?", answer, "", **fields))


def as_task(found: Evaluation) -> dict[str, Any]:
    """Return an exercise as a page's script reads it."""
    exercise = found.exercise
    return {
        "kind": exercise.kind, "unit": exercise.unit, "tolerance": exercise.tolerance,
        "unitCredit": exercise.unit_credit,
        "answer": coded(exercise, found.answer), "wrong": [coded(exercise, w) for w in found.wrong],
    }  # fmt: skip


def coded(exercise: Exercise, value: Any) -> str:
    if exercise.kind == "number":
        return repr(value)
    chosen = value if exercise.kind == "order" else [value]
    return " ".join(str(exercise.choices.index(each) + 1) for each in chosen)


def by_script(cases: list[tuple[dict[str, Any], str]]) -> list[dict[str, Any]]:
    """Return what the page's script says to each answer."""
    try:
        node = find_node()
    except ToolError as error:
        pytest.skip(str(error))
    script = (
        f"const RULES = {json.dumps(rules())};\n{(FOLDER / 'verdicts.js').read_text('utf-8')}\n"
        "const cases = JSON.parse(require('fs').readFileSync(0, 'utf-8'));\n"
        "console.log(JSON.stringify(cases.map(([task, given]) => judge(task, given))));"
    )
    run = subprocess.run(
        [node, "-e", script], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    return list(json.loads(run.stdout))


def test_script_and_python_say_the_same_to_numbers() -> None:
    asked = number()
    plain = (
        "users",
        "billion",
        "KiB",
        "kB",
        "FLOP/byte",
        "requests/s",
        "g/kWh",
        "1e24 FLOP",
        "",
        "times",
    )
    tasks = [
        asked, *(number(unit=unit, wrong=()) for unit in plain), number(unit="%"), number(unit_credit=0.55),
        number("0.01", wrong=()), number("-100", wrong=()), number("0", wrong=()),
        number("669.76", unit="µs", tolerance=0.3, wrong=()),
    ]  # fmt: skip
    tried = [(task, given) for task in tasks for given in [*WRITTEN, *FACTORS]]
    tried += [(task, given) for task in (asked, tasks[10]) for given in SWEEP]
    said = by_script([(as_task(task), given) for task, given in tried])
    kinds = set()
    for (task, given), found in zip(tried, said, strict=True):
        verdict = judge(task, given)
        assert (found["kind"], found.get("path")) == (verdict.kind, verdict.path), given
        if verdict.path is None:
            assert found["message"] == verdict.message, given
        kinds.add(verdict.kind)
    assert kinds == {
        "not attempted", "no answer", "right", "wrong path", "wrong unit", "order of magnitude", "wrong"
    }  # fmt: skip


def test_numbers_as_people_write_them() -> None:
    for given, unit, kind in cases("numbers_as_written.toml"):
        assert judge(number(unit=unit), given).kind == kind, (given, unit)


def test_script_and_python_say_the_same_to_choices_orders_and_texts() -> None:
    choices = ("a", "b", "c")
    back, other = (WrongPath("['c', 'a', 'b']", "Back."),), (WrongPath("'c'", "C."),)
    order = evaluate(
        Exercise("e", "T", "order", "?", "['b', 'a', 'c']", "", choices=choices, wrong=back)
    )
    choice = evaluate(Exercise("e", "T", "choice", "?", "'b'", "", choices=choices, wrong=other))
    words = evaluate(Exercise("e", "T", "text", "?", "", "S.", rubric=(Criterion("R", 1, "f"),)))
    tried: list[tuple[Evaluation, Any]] = [(choice, each) for each in choices]
    tried += [(order, each) for each in (["b", "a", "c"], ["c", "a", "b"], ["a", "b", "c"])]
    asked = [(as_task(task), coded(task.exercise, given)) for task, given in tried]
    texts = ["", " ... ", "Because it waits.", "42"]
    asked += [({"kind": "text", "wrong": []}, each) for each in texts]
    tried += [(words, each) for each in texts]
    for (task, given), found in zip(tried, by_script(asked), strict=True):
        verdict = judge(task, given)
        assert (found["kind"], found.get("path")) == (verdict.kind, verdict.path)
        assert found["message"] == ("" if verdict.path else verdict.message)


def test_only_pages_with_exercises_load_the_script() -> None:
    shown = exercise_markdown(number())
    assert ".checked" in shown  # which pandoc and the filter make the classes below
    assert has_exercises('<div id="exr-e" class="theorem exercise checked" data-kind="number">')
    assert ".selfcheck" in selfcheck_markdown(SelfCheck("s", "?", ("a", "b"), "a"))
    assert has_exercises('<div class="selfcheck" data-kind="choice">')
    assert has_exercises('<div id="g" class="calibration">')
    assert not has_exercises('<p>class="selfcheck"</p><div class="theorem exercise">')
    assert guesses_page([("a.html", "<p>nothing</p>")]) == ""


def test_the_script_is_one_scope_with_the_rules_in_it() -> None:
    script = exercises_script()
    assert script.startswith("(() => {")
    assert '"use strict";\nconst RULES = {"slips":[[1000.0,' in script
    assert "\n//" not in script
    assert len(script.encode()) < 39_000  # a tenth are the units, which pages and Python share
