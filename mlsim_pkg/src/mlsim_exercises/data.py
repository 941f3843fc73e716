"""Exercises as data: a TOML file of questions, read strictly.

    [[exercise]]
    id = "double"                  # the page's label is exr-double
    title = "Twice the water"
    kind = "number"                # "number", "choice" or "order"
    level = "recall"               # "recall", "change" or "design"
    points = 1
    topic = "boiling"              # what a reader may be good or bad at guessing
    better = "lower"               # which way is good: "lower", "higher", or left out
    prompt = "How long does it take to boil {litres} l?"
    setup = "power = 2000"         # Python, run before the expressions below
    answer = "litres * 334880 / power"  # a Python expression
    unit = "s"
    tolerance = 0.02               # relative
    hints = ["Energy over power."]
    solution = "{answer:.0f} s."

    [exercise.given]               # names for all of it: the first value is the book's,
    litres = [2, 3, 5]             # the others make variants for assignments

    [[exercise.wrong]]             # an answer that a known mistake leads to
    answer = "334880 / power"
    because = "That is for one litre, not for {litres}."

    [[selfcheck]]
    id = "unit-of-power"
    question = "What is a watt?"
    choices = ["J", "J/s"]
    answer = "J/s"
    because = "Power is energy per second."

The texts of an exercise are Markdown in which `{...}` is computed; `{{` and `}}` are
braces. Those of a self-check are plain Markdown. `choices` are the options of a
"choice", or the things to sort of an "order"; the answer is then one of them, or a
list of all of them. A `unit` is what stands after the number; "times" asks for a factor,
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

KINDS = ("number", "choice", "order")
LEVELS = ("recall", "change", "design")
WAYS = ("lower", "higher", "")  # of being better


@dataclass(frozen=True)
class WrongPath:
    """An answer that a known mistake leads to, and the message for it."""

    answer: str
    because: str
    line: int | None = None


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
}  # fmt: skip
_WRONG: Mapping[str, type | tuple[type, ...]] = {"answer": str, "because": str}
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
    data, where = _read(path)
    exercises = []
    for index, item in enumerate(data.get("exercise", [])):
        table = ("exercise", index)
        _check(
            item, _EXERCISE, ("id", "title", "kind", "prompt", "answer", "solution"), where, table
        )
        wrong = item.get("wrong", [])
        for number, each in enumerate(wrong):
            _check(each, _WRONG, ("answer", "because"), where, (*table, "wrong", number))
        exercise = Exercise(
            **{name: value for name, value in item.items() if name not in _LISTS},
            choices=tuple(item.get("choices", ())),
            hints=tuple(item.get("hints", ())),
            given=_given(item.get("given", {}), where, table),
            wrong=tuple(
                WrongPath(each["answer"], each["because"], where.line(*table, "wrong", number))
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
    data, where = _read(path)
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


_LISTS = {"choices", "hints", "wrong", "given"}


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


@dataclass(frozen=True)
class ShownText:
    """A text of a file that readers see: Markdown, with `{...}` fields if computed."""

    text: str
    line: int  # of its key
    computed: bool = False


def read_texts(path: str | Path) -> tuple[ShownText, ...]:
    """Return the texts of a file that readers see, but for the choices, in order."""
    data, where = _read(path)
    found: list[ShownText] = []

    def take(
        item: Mapping[str, Any], table: tuple[str | int, ...], *keys: str, computed: bool = False
    ) -> None:
        for key in keys:
            given = item.get(key, [])
            found.extend(
                ShownText(text, where.line(*table, key) or 1, computed=computed)
                for text in (given if isinstance(given, list) else [given])
                if isinstance(text, str)
            )

    for index, item in enumerate(data.get("exercise", [])):
        table = ("exercise", index)
        take(item, table, "title")
        take(item, table, "prompt", "hints", "solution", computed=True)
        for number, each in enumerate(item.get("wrong", [])):
            take(each, (*table, "wrong", number), "because", computed=True)
    for index, item in enumerate(data.get("selfcheck", [])):
        take(item, ("selfcheck", index), "question", "because")
    return tuple(found)


def _read(path: str | Path) -> tuple[dict[str, Any], _Toml]:
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
    if (exercise.kind == "number") == bool(exercise.choices):
        rule = "has no choices" if exercise.kind == "number" else "needs choices"
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
