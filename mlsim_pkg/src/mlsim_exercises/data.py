"""Exercises as data: a TOML file of questions, read strictly.

    [[exercise]]
    id = "double"                  # the page's label is exr-double
    title = "Twice the water"
    kind = "number"                # "number", "choice", "order" or "text"
    level = "recall"               # "recall", "change" or "design"
    points = 1
    topic = "boiling"              # what a reader may be good or bad at guessing
    better = "lower"               # which way is good: "lower", "higher", or left out
    prompt = "How long does it take to boil {litres} l?"
    setup = "power = 2000"         # Python, run before the expressions below
    answer = "litres * 334880 / power"  # a Python expression
    unit = "s"
    unit_credit = 0.5              # share of the points for the right digits in another unit
    tolerance = 0.02               # relative
    hints = ["Energy over power."]
    solution = "{answer:.0f} s. [Each litre takes its own energy.]{{.why}}"

    [exercise.given]               # names for all of it: the first value is the book's,
    litres = [2, 3, 5]             # the others make variants for assignments

    [[exercise.wrong]]             # an answer that a known mistake leads to
    answer = "334880 / power"
    because = "That is for one litre, not for {litres}."
    credit = 0.5                   # share of the points that it earns, if any

    [[exercise]]
    id = "why-a-lid"               # a question that a person marks
    title = "Why a lid?"
    kind = "text"
    prompt = "Why does a lid help? Two sentences."
    solution = "Steam carries heat away. A lid keeps it."

    [[exercise.rubric]]            # its points are the sum of these
    name = "Reason"
    points = 2
    full = "Says what carries the heat away."
    half = "Says only that heat is lost."

    [[selfcheck]]
    id = "unit-of-power"
    question = "What is a watt?"
    choices = ["J", "J/s"]
    answer = "J/s"
    because = "Power is energy per second."

The texts of an exercise are Markdown in which `{...}` is computed; `{{` and `}}` are
braces. The sentence of a solution in `[...]{{.why}}` is said to whoever is right. Those of a
self-check are plain Markdown. `choices` are the options of a "choice", or the things to sort of
an "order"; the answer is then one of them, or a list of all of them. A "text" has a rubric in
place of an answer, in plain Markdown; students and instructors see it. A `unit` is what stands
after the number; "times" asks for a factor, and the plural of a word, such as "users", for a
number of them. Answers may have another unit of the same kind. Standard library only: chapters
import it in their own kernel.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsim_exercises.rubrics import Criterion
from mlsim_exercises.tables import Kinds, Table, read_toml

KINDS = ("number", "choice", "order", "text")
LEVELS = ("recall", "change", "design")
WAYS = ("lower", "higher", "")  # of being better


@dataclass(frozen=True)
class WrongPath:
    """An answer that a known mistake leads to, the message for it, and its share of the points."""

    answer: str
    because: str
    line: int | None = None
    credit: float = 0.0


@dataclass(frozen=True)
class Exercise:
    """One exercise, as written; `mlsim_exercises.evaluation.evaluate` computes its answer."""

    id: str
    title: str
    kind: str
    prompt: str
    answer: str
    solution: str
    setup: str = ""
    unit: str = ""
    tolerance: float = 0.02
    choices: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    wrong: tuple[WrongPath, ...] = ()
    points: int = 1
    level: str = "recall"
    topic: str = ""
    better: str = ""
    unit_credit: float = 0.0
    rubric: tuple[Criterion, ...] = ()
    given: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class SelfCheck:
    """A question that a reader answers alone, with the answer folded away."""

    id: str
    question: str
    choices: tuple[str, ...]
    answer: str
    because: str = ""
    file: str = ""
    line: int | None = None


_NUMBER = (int, float)
_EXERCISE: Kinds = {
    "id": str, "title": str, "kind": str, "prompt": str, "answer": str, "solution": str,
    "setup": str, "unit": str, "tolerance": _NUMBER, "choices": list, "hints": list,
    "wrong": list, "points": int, "level": str, "topic": str, "better": str, "given": dict,
    "unit_credit": _NUMBER, "rubric": list,
}  # fmt: skip
_WRONG: Kinds = {"answer": str, "because": str, "credit": _NUMBER}
_RUBRIC: Kinds = {"name": str, "points": int, "full": str, "half": str}
_SELFCHECK: Kinds = {"id": str, "question": str, "choices": list, "answer": str, "because": str}
_NEEDED = ("id", "title", "kind", "prompt", "solution")
# What a question that a person marks has nothing to do with.
_COMPUTED = ("answer", "unit", "unit_credit", "tolerance", "choices", "wrong")


def load(path: str | Path) -> tuple[Exercise, ...]:
    """Return the exercises of a file.

    Raises
    ------
    ExerciseError
        With file and line: no valid TOML, an unknown, missing or repeated name,
        a value of the wrong type.
    """
    exercises = []
    for item, table in read_toml(path).items("exercise"):
        by_hand = item.get("kind") == "text"
        _check(item, table, _EXERCISE, _NEEDED if by_hand else (*_NEEDED, "answer"))
        wrong = [_wrong(each, place) for each, place in table.items("wrong")]
        _check_share(item.get("unit_credit", 0), "unit_credit", table)
        rubric = _rubric(item, table)
        values = {"answer": "", **item}
        if rubric:
            values["points"] = sum(each.points for each in rubric)
        lists = {name: tuple(item.get(name, ())) for name in ("choices", "hints")}
        own = {
            "wrong": tuple(wrong),
            "rubric": rubric,
            "given": _given(item.get("given", {}), table),
            "file": table.file,
            "line": table.line,
        }
        exercise = Exercise(**{**values, **lists, **own})
        _check_meaning(exercise, table)
        exercises.append(exercise)
        _refuse_repeat(exercises, table, "exercise")
    return tuple(exercises)


def load_selfchecks(path: str | Path) -> tuple[SelfCheck, ...]:
    """Return the self-check questions of a file."""
    checks: list[SelfCheck] = []
    for item, table in read_toml(path).items("selfcheck"):
        _check(item, table, _SELFCHECK, ("id", "question", "choices", "answer"))
        if item["answer"] not in item["choices"]:
            raise table.error("the answer is none of the choices", key="answer")
        given = {**item, "choices": tuple(item["choices"])}
        checks.append(SelfCheck(**given, file=table.file, line=table.line))
        _refuse_repeat(checks, table, "selfcheck")
    return tuple(checks)


def _wrong(item: Mapping[str, Any], table: Table) -> WrongPath:
    _check(item, table, _WRONG, ("answer", "because"))
    credit = item.get("credit", 0)
    _check_share(credit, "credit", table)
    return WrongPath(item["answer"], item["because"], table.line, float(credit))


def _rubric(item: Mapping[str, Any], table: Table) -> tuple[Criterion, ...]:
    """Return the rubric of a question that a person marks; other kinds have none."""
    rows = list(table.items("rubric"))
    if item.get("kind") != "text":
        if rows:
            raise rows[0][1].error(
                "only an exercise of kind 'text' has a rubric",
                hint="Write its mistakes as [[exercise.wrong]], each with a credit if you like.",
            )
        return ()
    for key in _COMPUTED:
        if key in item:
            raise table.error(f"an exercise of kind 'text' has no '{key}'", key=key,
                              hint="Write what a good answer says as its solution, and what earns"
                              " its points as [[exercise.rubric]].")  # fmt: skip
    for row, place in rows:
        _check(row, place, _RUBRIC, ("name", "points", "full"))
    names = [row["name"].strip().casefold() for row, _ in rows]
    if not rows or len(set(names)) < len(names) or not all(names):
        said = "two parts of the rubric have one name" if all(names) and rows else "it needs parts"
        raise table.error(
            f"an exercise of kind 'text' is marked by its rubric: {said}",
            hint="Write [[exercise.rubric]] with name, points, full and maybe half.",
        )
    total = sum(row["points"] for row, _ in rows)
    if item.get("points", total) != total:
        raise table.error(
            f"'points' is {item['points']}, but its rubric gives {total}", key="points",
            hint="Leave it out: the points are those of the rubric.",
        )  # fmt: skip
    return tuple(Criterion(**row) for row, _ in rows)


def _check_share(value: float, key: str, table: Table) -> None:
    if not 0 <= value < 1:
        raise table.error(
            f"'{key}' is {value}, which must be a share of the points: from 0 to less than 1",
            key=key, hint="Half of the points is 0.5. Leave it out to give none.",
        )  # fmt: skip


def _given(values: Mapping[str, Any], table: Table) -> dict[str, tuple[Any, ...]]:
    """Return what may vary: a name, and the values that it may have."""
    inner = table.inner("given")
    for name, choices in values.items():
        if not name.isidentifier() or keyword.iskeyword(name) or name == "answer":
            hint = "Use a name as in Python, other than answer: litres = [2, 3]."
            raise inner.error(f"'{name}' can't be a name of [exercise.given]", key=name, hint=hint)
        if not isinstance(choices, list) or not choices:
            raise inner.error(
                f"'{name}' is {choices!r}, which must be a list with a value or more",
                key=name, hint="The first is the book's own; the others make variants.",
            )  # fmt: skip
        if any(value in choices[:index] for index, value in enumerate(choices)):
            raise inner.error(f"'{name}' has a value twice", key=name)
    return {name: tuple(choices) for name, choices in values.items()}


def _check(item: Mapping[str, Any], table: Table, known: Kinds, needed: tuple[str, ...]) -> None:
    """Refuse unknown names, missing ones, and values of the wrong type."""
    for name, value in item.items():
        table.check(name, value, known)
        texts = value if isinstance(value, list) and name in {"choices", "hints"} else []
        if not all(isinstance(each, str) for each in texts):
            raise table.error(f"'{name}' must hold texts only", key=name)
    if item.get("points", 1) < 1:
        raise table.error(f"'points' is {item['points']}, which must be 1 or more", key="points")
    for name in needed:
        if name not in item:
            raise table.error(f"the key '{name}' is missing")


def _check_meaning(exercise: Exercise, table: Table) -> None:
    for name, allowed in (("kind", KINDS), ("level", LEVELS), ("better", WAYS)):
        value = getattr(exercise, name)
        if value not in allowed:
            words = ", ".join(filter(None, allowed))
            raise table.error(f"'{name}' is '{value}', which must be one of {words}", key=name)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", exercise.id):
        said = f"the id '{exercise.id}' must be lower-case words joined by hyphens"
        raise table.error(said, key="id")
    if exercise.kind != "number" and exercise.unit_credit:
        raise table.error("only a number has a unit", key="unit_credit")
    if (exercise.kind in {"number", "text"}) == bool(exercise.choices):
        rule = "needs choices" if not exercise.choices else "has no choices"
        raise table.error(f"an exercise of kind '{exercise.kind}' {rule}", key="choices")
    if not 0 < exercise.tolerance < 1:
        said = f"'tolerance' is {exercise.tolerance}, which must be between 0 and 1"
        raise table.error(said, key="tolerance")


def _refuse_repeat(read: Sequence[Exercise | SelfCheck], table: Table, kind: str) -> None:
    *before, last = read
    for each in before:
        if each.id == last.id:
            raise table.error(
                f"the {kind} '{last.id}' is written twice (first on line {each.line})",
                hint="Give one of them another id.",
            )
