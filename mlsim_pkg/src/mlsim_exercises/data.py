"""Exercises as data: a TOML file of questions, read strictly.

    [[exercise]]
    id = "double"                  # the page's label is exr-double
    title = "Twice the water"
    kind = "number"                # "number", "choice", "order" or "text"
    level = "recall"               # "recall", "change" or "design"
    points = 1
    topic = "boiling"              # what a reader may be good or bad at guessing
    better = "lower"               # which way is good: "lower", "higher", or left out
    guess = "heat is underrated"   # ask for a guess first: why intuition errs, for authors
    prompt = "How long do 2,000 W take to boil {liters} l, of 334,880 J each?"
    setup = "power = 2000"         # Python, run before the expressions below
    answer = "liters * 334880 / power"  # a Python expression
    paper = "{liters} * 334880 / 2000"  # the same from the prompt's numbers: it is marked as such
    unit = "s"
    unit_credit = 0.5              # share of the points for the right digits in another unit
    tolerance = 0.02               # relative
    hints = ["Energy over power."]
    solution = "{answer:.0f} s. [Each liter takes its own energy.]{{.why}}"

    [exercise.given]               # names for all of it: the first value is the book's,
    liters = [2, 3, 5]             # the others make variants for assignments

    [[exercise.wrong]]             # an answer that a known mistake leads to
    answer = "334880 / power"
    because = "That is for one liter, not for {liters}."
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
number of them. Answers may have another unit of the same kind. With `paper`, readers are told that
paper and pencil will do: it must lead to the answer, and no number may stand in it that the prompt
doesn't give. Standard library only: chapters import it in their own kernel.

What can be wrong with an exercise, and where in its file.

The lines of a data file on which its keys stand, which Python's readers don't give. A reader of a
format says which line each key is on; errors then name the line of a key, or of the nearest thing
around it. The TOML of exercises is read here, the YAML of a book in `mlsim_book.read.yamlfile`.

TOML of exercises, table by table: what is wrong in one is an error with its line.

The texts of exercises that readers see, for whoever checks how a book is written.

A rubric as data: what earns the points of an answer that a person reads.
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class LocatedError(Exception):
    r"""Something is wrong at a place that its author knows.

    Parameters
    ----------
    message
        What was given and what is allowed.
    file, line
        Where, as the author knows it.
    hint
        What to do next.

    >>> str(LocatedError("unknown key 'lvel'", file="tea.exercises.toml", line=4))
    "tea.exercises.toml:4: unknown key 'lvel'"
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.hint = message, file, line, hint
        place = ":".join(str(part) for part in (file, line) if part)
        head = f"{place}: {message}" if place else message
        super().__init__(f"{head}\n  {hint}" if hint else head)


class ExerciseError(LocatedError, ValueError):
    """An exercise file says something that isn't allowed, or that can't be computed."""


Key = tuple[str | int, ...]  # names of tables and keys, and numbers of items in lists


@dataclass(frozen=True)
class Places:
    """A file's name, and the line on which each of its keys stands.

    >>> places = Places("tea.toml", {("tea",): 3, ("tea", "heat"): 4})
    >>> places.line("tea", "heat"), places.line("tea", "cup"), places.line("pot")
    (4, 3, None)
    """

    file: str
    lines: Mapping[Key, int]

    def line(self, *path: str | int) -> int | None:
        """Return the line of a key, or of the nearest thing around it."""
        around = (path[:end] for end in range(len(path), -1, -1))
        return next((self.lines[each] for each in around if each in self.lines), None)


def toml_lines(text: str) -> dict[Key, int]:
    r"""Return the line of each table and key of a TOML text.

    >>> toml_lines('[[tea]]\nheat = 80\n\n[tea.given]\ncup = 1\n')
    {('tea', 0): 1, ('tea', 0, 'heat'): 2, ('tea', 0, 'given'): 4, ('tea', 0, 'given', 'cup'): 5}
    """
    lines: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    quote: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if quote is None and (header := re.match(r"\s*(\[\[?)([\w.]+)\]", line)):
            *above, name = header[2].split(".")
            table = (*(table[:2] if above else ()), name)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines[table] = number
        elif quote is None and (key := re.match(r"\s*([\w-]+)\s*=", line)):
            lines.setdefault((*table, key.group(1)), number)
        for mark in re.findall(r'"""|\'\'\'', line):
            quote = None if quote == mark else quote or mark
    return lines


# Of each key that a table may have, the type of its value.
Kinds = Mapping[str, type | tuple[type, ...]]


@dataclass(frozen=True)
class Table:
    """A table of a file: what it says, and the way to it from the top."""

    places: Places
    data: Any
    path: Key = ()

    @property
    def file(self) -> str:
        """The file, as it was named."""
        return self.places.file

    @property
    def line(self) -> int | None:
        """The line of its head."""
        return self.places.line(*self.path)

    def inner(self, *path: str | int) -> Table:
        """Return a table in it, which may be missing."""
        return Table(self.places, {}, (*self.path, *path))

    def items(self, name: str) -> Iterator[tuple[dict[str, Any], Table]]:
        """Yield the tables of a list in it: what each says, and the table."""
        for number, each in enumerate(self.data.get(name, [])):
            yield each, Table(self.places, each, (*self.path, name, number))

    def line_of(self, key: str) -> int | None:
        """Return the line of a key."""
        return self.places.line(*self.path, key)

    def error(self, message: str, *, key: str = "", hint: str | None = None) -> ExerciseError:
        """Return an error with the line of a key, or of the table."""
        line = self.line_of(key) if key else self.line
        return ExerciseError(message, file=self.file, line=line, hint=hint)

    def check(self, name: str, value: Any, known: Kinds) -> None:
        """Refuse a key that is unknown, and a value of the wrong type.

        Raises
        ------
        ExerciseError
            With file and line.
        """
        if name not in known:
            hint = f"Known are: {', '.join(known)}."
            raise self.error(f"unknown key '{name}'", key=name, hint=hint)
        wanted = known[name]
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "number" if isinstance(wanted, tuple) else wanted.__name__
            raise self.error(f"'{name}' is {value!r}, which must be a {kind}", key=name)


def read_toml(path: str | Path) -> Table:
    """Return what a file of exercises says; its tables are not checked yet.

    Raises
    ------
    ExerciseError
        If there is no such file, it is no TOML, or has other tables.
    """
    file = Path(path)
    if not file.is_file():
        raise ExerciseError(
            "there is no such exercise file",
            file=str(path),
            hint=f"Looked in {file.resolve().parent}: the path starts from the chapter's folder.",
        )
    text = file.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else None
        raise ExerciseError(f"invalid TOML: {error}", file=str(path), line=line) from None
    top = Table(Places(str(path), toml_lines(text)), data)
    for key in data:
        if key not in {"exercise", "selfcheck"}:
            hint = "Use [[exercise]] and [[selfcheck]]."
            raise top.inner(key, 0).error(f"unknown table '{key}'", hint=hint)
        if not isinstance(data[key], list):
            raise top.inner(key).error(f"'{key}' must be written [[{key}]]")
    return top


@dataclass(frozen=True)
class ShownText:
    """A text of a file that readers see: Markdown, with `{...}` fields if computed."""

    text: str
    line: int  # of its key
    computed: bool = False


def read_texts(path: str | Path) -> tuple[ShownText, ...]:
    """Return the texts of a file that readers see, but for the choices, in order."""
    top = read_toml(path)
    found: list[ShownText] = []

    def take(table: Table, *keys: str, computed: bool = False) -> None:
        for key in keys:
            given = table.data.get(key, [])
            found.extend(
                ShownText(text, table.line_of(key) or 1, computed=computed)
                for text in (given if isinstance(given, list) else [given])
                if isinstance(text, str)
            )

    for _, exercise in top.items("exercise"):
        take(exercise, "title")
        take(exercise, "prompt", "hints", "solution", computed=True)
        for _, wrong in exercise.items("wrong"):
            take(wrong, "because", computed=True)
        for _, part in exercise.items("rubric"):
            take(part, "name", "full", "half")
    for _, check in top.items("selfcheck"):
        take(check, "question", "because")
    return tuple(found)


@dataclass(frozen=True)
class Criterion:
    """One part of a rubric: its name, the most that it gives, and what earns that or half of it."""

    name: str
    points: int
    full: str
    half: str = ""

    @property
    def head(self) -> str:
        """How it is called at the top of a column.

        >>> Criterion("Reason", 2, "Says why.").head
        'Reason (2)'
        """
        return f"{self.name} ({self.points})"


def rubric_list(rubric: Iterable[Criterion]) -> str:
    """Return a rubric as a list in Markdown, as students and instructors read it.

    >>> print(rubric_list([Criterion("Reason", 2, "Says why.", "Says that."), Criterion("Unit", 1, "Has it.")]))
    - **Reason** (2 points): Says why. *Half of them:* Says that.
    - **Unit** (1 point): Has it.
    """  # noqa: E501 - the line as it is written
    return "\n".join(_line(each) for each in rubric)


def _line(criterion: Criterion) -> str:
    points = f"{criterion.points} point{'s' if criterion.points != 1 else ''}"
    half = f" *Half of them:* {' '.join(criterion.half.split())}" if criterion.half else ""
    return f"- **{criterion.name}** ({points}): {' '.join(criterion.full.split())}{half}"


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
    guess: str = ""
    paper: str = ""
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
    "unit_credit": _NUMBER, "rubric": list, "guess": str, "paper": str,
}  # fmt: skip
_WRONG: Kinds = {"answer": str, "because": str, "credit": _NUMBER}
_RUBRIC: Kinds = {"name": str, "points": int, "full": str, "half": str}
_SELFCHECK: Kinds = {"id": str, "question": str, "choices": list, "answer": str, "because": str}
_NEEDED = ("id", "title", "kind", "prompt", "solution")
# What a question that a person marks has nothing to do with.
_COMPUTED = ("answer", "unit", "unit_credit", "tolerance", "choices", "wrong", "guess", "paper")


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
            hint = "Use a name as in Python, other than answer: liters = [2, 3]."
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
    for key in ("guess", "paper"):
        if exercise.kind != "number" and getattr(exercise, key):
            raise table.error(f"only a number has a '{key}'", key=key)
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
