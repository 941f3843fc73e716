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
    solution = "{answer:.0f} s."

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
braces. Those of a self-check are plain Markdown. `choices` are the options of a
"choice", or the things to sort of an "order"; the answer is then one of them, or a
list of all of them. A "text" has a rubric in place of an answer, in plain Markdown; students and
instructors see it. A `unit` is what stands after the number; "times" asks for a factor,
and the plural of a word, such as "users", for a number of them. Standard library only:
chapters import it in their own kernel.
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.places import Places, toml_lines
from mlsim_exercises.rubrics import Criterion

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


_EXERCISE: Mapping[str, type | tuple[type, ...]] = {
    "id": str, "title": str, "kind": str, "prompt": str, "answer": str, "solution": str,
    "setup": str, "unit": str, "tolerance": (int, float), "choices": list, "hints": list,
    "wrong": list, "points": int, "level": str, "topic": str, "better": str, "given": dict,
    "unit_credit": (int, float), "rubric": list,
}  # fmt: skip
_WRONG: Mapping[str, type | tuple[type, ...]] = {
    "answer": str, "because": str, "credit": (int, float),
}  # fmt: skip
_RUBRIC: Mapping[str, type | tuple[type, ...]] = {
    "name": str, "points": int, "full": str, "half": str,
}  # fmt: skip
_NEEDED = ("id", "title", "kind", "prompt", "solution")
# What a question that a person marks has nothing to do with.
_COMPUTED = ("answer", "unit", "unit_credit", "tolerance", "choices", "wrong")
_SELFCHECK: Mapping[str, type | tuple[type, ...]] = {
    "id": str, "question": str, "choices": list, "answer": str, "because": str,
}  # fmt: skip


def load(path: str | Path) -> tuple[Exercise, ...]:
    """Return the exercises of a file.

    Raises
    ------
    ExerciseError
        With file and line: no valid TOML, an unknown, missing or repeated name,
        a value of the wrong type.
    """
    data, where = read_toml(path)
    exercises = []
    for index, item in enumerate(data.get("exercise", [])):
        table = ("exercise", index)
        by_hand = item.get("kind") == "text"
        _check(item, _EXERCISE, _NEEDED if by_hand else (*_NEEDED, "answer"), where, table)
        wrong = item.get("wrong", [])
        for number, each in enumerate(wrong):
            place = (*table, "wrong", number)
            _check(each, _WRONG, ("answer", "because"), where, place)
            _check_share(each.get("credit", 0), "credit", where, place)
        _check_share(item.get("unit_credit", 0), "unit_credit", where, table)
        rubric = _rubric(item, where, table)
        values = {"answer": "", **item}
        if rubric:
            values["points"] = sum(each.points for each in rubric)
        exercise = Exercise(
            **{name: value for name, value in values.items() if name not in _LISTS},
            rubric=rubric,
            choices=tuple(item.get("choices", ())),
            hints=tuple(item.get("hints", ())),
            given=_given(item.get("given", {}), where, table),
            wrong=tuple(
                WrongPath(
                    each["answer"],
                    each["because"],
                    where.line(*table, "wrong", number),
                    float(each.get("credit", 0)),
                )
                for number, each in enumerate(wrong)
            ),
            file=where.file,
            line=where.line(*table),
        )
        _check_meaning(exercise, where, table)
        exercises.append(exercise)
    _refuse_repeats([(each.id, each.line) for each in exercises], where, "exercise")
    return tuple(exercises)


def load_selfchecks(path: str | Path) -> tuple[SelfCheck, ...]:
    """Return the self-check questions of a file."""
    data, where = read_toml(path)
    checks = []
    for index, item in enumerate(data.get("selfcheck", [])):
        table = ("selfcheck", index)
        _check(item, _SELFCHECK, ("id", "question", "choices", "answer"), where, table)
        if item["answer"] not in item["choices"]:
            raise where.error("the answer is none of the choices", *table, key="answer")
        given = {**item, "choices": tuple(item["choices"])}
        checks.append(SelfCheck(**given, file=where.file, line=where.line(*table)))
    _refuse_repeats([(each.id, each.line) for each in checks], where, "selfcheck")
    return tuple(checks)


_LISTS = {"choices", "hints", "wrong", "given", "rubric"}


def _rubric(
    item: Mapping[str, Any], where: _Toml, table: tuple[str | int, ...]
) -> tuple[Criterion, ...]:
    """Return the rubric of a question that a person marks; other kinds have none."""
    rows = item.get("rubric", [])
    if item.get("kind") != "text":
        if rows:
            raise where.error(
                "only an exercise of kind 'text' has a rubric", *table, "rubric", 0,
                hint="Write its mistakes as [[exercise.wrong]], each with a credit if you like.",
            )  # fmt: skip
        return ()
    for key in _COMPUTED:
        if key in item:
            raise where.error(f"an exercise of kind 'text' has no '{key}'", *table, key=key,
                              hint="Write what a good answer says as its solution, and what earns"
                              " its points as [[exercise.rubric]].")  # fmt: skip
    for number, row in enumerate(rows):
        _check(row, _RUBRIC, ("name", "points", "full"), where, (*table, "rubric", number))
    names = [row["name"].strip().casefold() for row in rows]
    if not rows or len(set(names)) < len(names) or not all(names):
        said = "two parts of the rubric have one name" if all(names) and rows else "it needs parts"
        raise where.error(
            f"an exercise of kind 'text' is marked by its rubric: {said}", *table,
            hint="Write [[exercise.rubric]] with name, points, full and maybe half.",
        )  # fmt: skip
    total = sum(row["points"] for row in rows)
    if item.get("points", total) != total:
        raise where.error(
            f"'points' is {item['points']}, but its rubric gives {total}", *table, key="points",
            hint="Leave it out: the points are those of the rubric.",
        )  # fmt: skip
    return tuple(Criterion(**row) for row in rows)


def _check_share(value: float, key: str, where: _Toml, table: tuple[str | int, ...]) -> None:
    if not 0 <= value < 1:
        raise where.error(
            f"'{key}' is {value}, which must be a share of the points: from 0 to less than 1",
            *table, key=key, hint="Half of the points is 0.5. Leave it out to give none.",
        )  # fmt: skip


def _given(
    values: Mapping[str, Any], where: _Toml, table: tuple[str | int, ...]
) -> dict[str, tuple[Any, ...]]:
    """Return what may vary: a name, and the values that it may have."""
    for name, choices in values.items():
        if not name.isidentifier() or keyword.iskeyword(name) or name == "answer":
            raise where.error(
                f"'{name}' can't be a name of [exercise.given]",
                *table,
                "given",
                key=name,
                hint="Use a name as in Python, other than answer: litres = [2, 3].",
            )
        if not isinstance(choices, list) or not choices:
            raise where.error(
                f"'{name}' is {choices!r}, which must be a list with a value or more",
                *table,
                "given",
                key=name,
                hint="The first is the book's own; the others make variants.",
            )
        if any(value in choices[:index] for index, value in enumerate(choices)):
            raise where.error(f"'{name}' has a value twice", *table, "given", key=name)
    return {name: tuple(choices) for name, choices in values.items()}


def read_toml(path: str | Path) -> tuple[dict[str, Any], _Toml]:
    """Return what a file of exercises says, and where; its tables are not read yet."""
    file = Path(path)
    if not file.is_file():
        raise ExerciseError(
            "there is no such exercise file",
            file=str(path),
            hint=f"Looked in {file.resolve().parent}: the path starts from the chapter's folder.",
        )
    text = file.read_text(encoding="utf-8")
    where = _Toml(str(path), toml_lines(text))
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found.group(1)) if found else None
        raise ExerciseError(f"invalid TOML: {error}", file=where.file, line=line) from None
    for key in data:
        if key not in {"exercise", "selfcheck"}:
            raise where.error(
                f"unknown table '{key}'", key, 0, hint="Use [[exercise]] and [[selfcheck]]."
            )
        if not isinstance(data[key], list):
            raise where.error(f"'{key}' must be written [[{key}]]", key)
    return data, where


def _check(
    item: dict[str, Any],
    known: Mapping[str, type | tuple[type, ...]],
    needed: tuple[str, ...],
    where: _Toml,
    table: tuple[str | int, ...],
) -> None:
    """Refuse unknown names, missing ones, and values of the wrong type."""
    for name, value in item.items():
        if name not in known:
            hint = f"Known are: {', '.join(known)}."
            raise where.error(f"unknown key '{name}'", *table, key=name, hint=hint)
        wanted = known[name]
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "number" if isinstance(wanted, tuple) else wanted.__name__
            raise where.error(f"'{name}' is {value!r}, which must be a {kind}", *table, key=name)
        texts = value if isinstance(value, list) and name in {"choices", "hints"} else []
        if not all(isinstance(each, str) for each in texts):
            raise where.error(f"'{name}' must hold texts only", *table, key=name)
    if item.get("points", 1) < 1:
        raise where.error(
            f"'points' is {item['points']}, which must be 1 or more", *table, key="points"
        )
    for name in needed:
        if name not in item:
            raise where.error(f"the key '{name}' is missing", *table)


def _check_meaning(exercise: Exercise, where: _Toml, table: tuple[str | int, ...]) -> None:
    for name, allowed in (("kind", KINDS), ("level", LEVELS), ("better", WAYS)):
        value = getattr(exercise, name)
        if value not in allowed:
            words = ", ".join(filter(None, allowed))
            raise where.error(
                f"'{name}' is '{value}', which must be one of {words}",
                *table,
                key=name,
            )
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", exercise.id):
        raise where.error(
            f"the id '{exercise.id}' must be lower-case words joined by hyphens", *table, key="id"
        )
    if exercise.kind != "number" and exercise.unit_credit:
        raise where.error("only a number has a unit", *table, key="unit_credit")
    if (exercise.kind in {"number", "text"}) == bool(exercise.choices):
        rule = "needs choices" if not exercise.choices else "has no choices"
        raise where.error(f"an exercise of kind '{exercise.kind}' {rule}", *table, key="choices")
    if not 0 < exercise.tolerance < 1:
        raise where.error(
            f"'tolerance' is {exercise.tolerance}, which must be between 0 and 1",
            *table,
            key="tolerance",
        )


def _refuse_repeats(ids: list[tuple[str, int | None]], where: _Toml, kind: str) -> None:
    first: dict[str, int | None] = {}
    for name, line in ids:
        if name in first:
            raise ExerciseError(
                f"the {kind} '{name}' is written twice (first on line {first[name]})",
                file=where.file,
                line=line,
                hint="Give one of them another id.",
            )
        first[name] = line


class _Toml(Places):
    """The places of a file of exercises."""

    def error(
        self, message: str, *table: str | int, key: str | None = None, hint: str | None = None
    ) -> ExerciseError:
        """Return an error that names the line of a key in a table."""
        place = (*table, key) if key else table
        return ExerciseError(message, file=self.file, line=self.line(*place), hint=hint)
