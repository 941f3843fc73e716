"""Exercises as data: the TOML file beside a chapter, read strictly.

    [[exercise]]
    id = "double"                  # the page's label is exr-double
    title = "Twice the water"
    kind = "number"                # "number", "choice" or "order"
    level = "recall"               # "recall", "change" or "design"
    points = 1
    prompt = "How long does it take?"
    setup = "power = 2000"         # Python, run before the expressions below
    answer = "2 * 334880 / power"  # a Python expression
    unit = "s"
    tolerance = 0.02               # relative
    hints = ["Energy over power."]
    solution = "{answer:.0f} s."   # Markdown; {...} is computed, {{ and }} are braces

    [[exercise.wrong]]             # an answer that a known mistake leads to
    answer = "334880 / power"
    because = "That is for one litre."

    [[selfcheck]]
    id = "unit-of-power"
    question = "What is a watt?"
    choices = ["J", "J/s"]
    answer = "J/s"
    because = "Power is energy per second."

`choices` are the options of a "choice", or the things to sort of an "order";
the answer is then one of them, or a list of all of them.
Standard library only: chapters import it in their own kernel.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError

KINDS = ("number", "choice", "order")
LEVELS = ("recall", "change", "design")


@dataclass(frozen=True)
class WrongPath:
    """An answer that a known mistake leads to, and what to tell who gave it."""

    answer: str
    because: str
    line: int | None = None


@dataclass(frozen=True)
class Exercise:
    """One exercise, as written; `mlsim_book.exercises.evaluate` computes its answer."""

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
    "wrong": list, "points": int, "level": str,
}  # fmt: skip
_WRONG: Mapping[str, type | tuple[type, ...]] = {"answer": str, "because": str}
_SELFCHECK: Mapping[str, type | tuple[type, ...]] = {
    "id": str, "question": str, "choices": list, "answer": str, "because": str,
}  # fmt: skip


def load(path: str | Path) -> tuple[Exercise, ...]:
    """Return the exercises of a file.

    Raises
    ------
    SourceError
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


_LISTS = {"choices", "hints", "wrong"}


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

    def take(item: Mapping[str, Any], table: tuple[str | int, ...], *keys: str) -> None:
        for key in keys:
            given = item.get(key, [])
            found.extend(
                ShownText(text, where.line(*table, key) or 1, computed=key == "solution")
                for text in (given if isinstance(given, list) else [given])
                if isinstance(text, str)
            )

    for index, item in enumerate(data.get("exercise", [])):
        table = ("exercise", index)
        take(item, table, "title", "prompt", "hints", "solution")
        for number, each in enumerate(item.get("wrong", [])):
            take(each, (*table, "wrong", number), "because")
    for index, item in enumerate(data.get("selfcheck", [])):
        take(item, ("selfcheck", index), "question", "because")
    return tuple(found)


class _Places:
    """Finds the lines of tables and keys: Python's TOML reader doesn't tell them."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._lines: dict[tuple[str | int, ...], int] = {}
        counts: dict[tuple[str | int, ...], int] = {}
        table: tuple[str | int, ...] = ()
        quote: str | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if quote is None and (header := re.match(r"\s*\[\[([\w.]+)\]\]", line)):
                name = tuple(header.group(1).split("."))
                base: tuple[str | int, ...] = table[:2] if len(name) > 1 else ()
                place = (*base, name[-1])
                table = (*place, counts.get(place, 0))
                counts[place] = counts.get(place, 0) + 1
                self._lines[table] = number
            elif quote is None and (key := re.match(r"\s*([\w-]+)\s*=", line)):
                self._lines.setdefault((*table, key.group(1)), number)
            for mark in re.findall(r'"""|\'\'\'', line):
                quote = None if quote == mark else quote or mark

    def line(self, *path: str | int) -> int | None:
        """Return the line of a table or key, or of the nearest thing around it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._lines:
                return self._lines[path[:end]]
        return None

    def error(
        self, message: str, *table: str | int, key: str | None = None, hint: str | None = None
    ) -> SourceError:
        """Return an error that names the line of a key in a table."""
        place = (*table, key) if key else table
        return SourceError(message, file=self.file, line=self.line(*place), hint=hint)


def _read(path: str | Path) -> tuple[dict[str, Any], _Places]:
    file = Path(path)
    if not file.is_file():
        raise SourceError(
            "there is no such exercise file",
            file=str(path),
            hint=f"Looked in {file.resolve().parent}: the path starts from the chapter's folder.",
        )
    text = file.read_text(encoding="utf-8")
    where = _Places(text, str(path))
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found.group(1)) if found else None
        raise SourceError(f"invalid TOML: {error}", file=where.file, line=line) from None
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
    where: _Places,
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
    for name in needed:
        if name not in item:
            raise where.error(f"the key '{name}' is missing", *table)


def _check_meaning(exercise: Exercise, where: _Places, table: tuple[str | int, ...]) -> None:
    for name, allowed in (("kind", KINDS), ("level", LEVELS)):
        value = getattr(exercise, name)
        if value not in allowed:
            raise where.error(
                f"'{name}' is '{value}', which must be one of {', '.join(allowed)}",
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


def _refuse_repeats(ids: list[tuple[str, int | None]], where: _Places, kind: str) -> None:
    first: dict[str, int | None] = {}
    for name, line in ids:
        if name in first:
            raise SourceError(
                f"the {kind} '{name}' is written twice (first on line {first[name]})",
                file=where.file,
                line=line,
                hint="Give one of them another id.",
            )
        first[name] = line
