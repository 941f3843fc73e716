"""Exercises on a page: the prompt, hints that open, and a computed solution that opens.

In a chapter:

    ```{python}
    #| echo: false
    #| output: asis
    from mlsim_book.exercises import show
    show("hello.exercises.toml", "double")
    ```

What is printed is Quarto Markdown. The answer and each wrong path are computed
whenever the page runs, so none of them can go stale. `exercise_data` describes
the file. Standard library only: this runs in the chapters' own kernel.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.exercise_data import Exercise, SelfCheck, WrongPath, load, load_selfchecks

__all__ = [
    "Evaluation",
    "Exercise",
    "SelfCheck",
    "WrongPath",
    "evaluate",
    "exercise_markdown",
    "load",
    "load_selfchecks",
    "same_answer",
    "show",
    "show_selfcheck",
]


@dataclass(frozen=True)
class Evaluation:
    """An exercise with everything in it computed."""

    exercise: Exercise
    answer: Any  # a float, a choice, or a tuple of choices
    wrong: tuple[Any, ...]  # what each wrong path leads to
    solution: str  # Markdown


def evaluate(exercise: Exercise) -> Evaluation:
    """Compute an exercise's answer, wrong paths and solution.

    Raises
    ------
    SourceError
        Something in it raises; or a wrong path can't be told from the answer,
        or from another wrong path.

    >>> task = Exercise("e", "T", "number", "?", "6 * 7", "It is {answer:.0f}.")
    >>> evaluate(task).answer, evaluate(task).solution
    (42.0, 'It is 42.')
    """
    names: dict[str, Any] = {}
    try:
        exec(compile(exercise.setup, f"<setup of {exercise.id}>", "exec"), names)  # noqa: S102 - the book's own code
    except Exception as error:
        raise _failed(exercise, "setup", error) from error
    answer = _value(exercise, exercise.answer, names, "answer")
    wrong: list[Any] = []
    for path in exercise.wrong:
        value = _value(exercise, path.answer, names, "wrong path", line=path.line)
        for other, what in [(answer, "the answer"), *((each, "another") for each in wrong)]:
            if same_answer(exercise, value, other):
                raise SourceError(
                    f"the wrong path of '{exercise.id}' gives {value!r}, as does {what}"
                    f" ({other!r}, within {exercise.tolerance:g})",
                    file=exercise.file,
                    line=path.line,
                    hint="Make the tolerance smaller, change the numbers, or take the path out.",
                )
        wrong.append(value)
    solution = _filled(exercise, {**names, "answer": answer})
    return Evaluation(exercise, answer, tuple(wrong), solution)


def same_answer(exercise: Exercise, given: Any, wanted: Any) -> bool:
    """Say whether two answers count as the same: numbers within the tolerance.

    >>> task = Exercise("e", "T", "number", "?", "100", "", tolerance=0.01)
    >>> same_answer(task, 100.9, 100.0), same_answer(task, 102.0, 100.0)
    (True, False)
    """
    if exercise.kind == "number":
        return math.isclose(given, wanted, rel_tol=0, abs_tol=exercise.tolerance * abs(wanted))
    return bool(given == wanted)


def show(path: str | Path, name: str) -> None:
    """Print the exercise `name` of a file as Markdown, for a cell with `output: asis`."""
    exercise = _find(path, name, load(path), "exercise")
    print(exercise_markdown(evaluate(exercise)))


def show_selfcheck(path: str | Path, name: str) -> None:
    """Print a self-check question as Markdown, its answer folded away."""
    check = _find(path, name, load_selfchecks(path), "selfcheck")
    answer = f"**{check.answer}**\n\n{check.because}".strip()
    print(f"{check.question.strip()}\n\n{_listed(check.choices)}\n")
    print(_folded("note", "Answer", answer))


def exercise_markdown(evaluation: Evaluation) -> str:
    """Return the Markdown of a computed exercise.

    >>> task = Exercise("twice", "Twice", "number", "How long?", "2", "{answer:g} s", unit="s")
    >>> print(exercise_markdown(evaluate(task)))
    ::: {#exr-twice}
    <BLANKLINE>
    ## Twice
    <BLANKLINE>
    How long?
    <BLANKLINE>
    [Answer in s, within 2 % of the value · Level: recall · 1 point]{.exercise-about}
    <BLANKLINE>
    :::
    <BLANKLINE>
    ::: {.callout-note collapse="true"}
    <BLANKLINE>
    ## Solution
    <BLANKLINE>
    2 s
    <BLANKLINE>
    :::
    <BLANKLINE>
    """
    exercise = evaluation.exercise
    parts = [f"::: {{#exr-{exercise.id}}}", f"## {exercise.title}", exercise.prompt.strip()]
    if exercise.choices:
        parts.append(_listed(exercise.choices))
    parts += [f"[{_about(exercise)}]{{.exercise-about}}", ":::"]
    for number, hint in enumerate(exercise.hints, start=1):
        title = f"Hint {number}" if len(exercise.hints) > 1 else "Hint"
        parts.append(_folded("tip", title, hint.strip()).rstrip())
    if exercise.wrong:
        parts.append(_folded("tip", "Another answer?", _wrong_paths(evaluation)).rstrip())
    parts.append(_folded("note", "Solution", evaluation.solution.strip()))
    return "\n\n".join(parts)


def _about(exercise: Exercise) -> str:
    points = f"{exercise.points} point{'s' if exercise.points != 1 else ''}"
    wanted = {
        "number": f"Answer in {exercise.unit}, " if exercise.unit else "Answer ",
        "choice": "Choose one",
        "order": "Put them in order",
    }[exercise.kind]
    if exercise.kind == "number":
        wanted += f"within {exercise.tolerance * 100:g} % of the value"
    level = {"change": "change one thing"}.get(exercise.level, exercise.level)
    return f"{wanted} · Level: {level} · {points}"


def _wrong_paths(evaluation: Evaluation) -> str:
    """Return a line for each known wrong way: where it leads, and why it is wrong."""
    exercise = evaluation.exercise
    lines = []
    for path, value in zip(exercise.wrong, evaluation.wrong, strict=True):
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        if isinstance(value, float):
            shown = f"{three_digits(value)} {exercise.unit}".strip()
        lines.append(f"- **{shown}**: {path.because.strip()}")
    return "\n".join(lines)


def three_digits(value: float) -> str:
    """Write a number to three digits, a large one with its thousands apart.

    >>> three_digits(25_190.0), three_digits(0.01234)
    ('25,200', '0.0123')
    """
    if not 1000 <= abs(value) < 1e15:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.0f}"


def _folded(kind: str, title: str, body: str) -> str:
    return f'::: {{.callout-{kind} collapse="true"}}\n\n## {title}\n\n{body}\n\n:::\n'


def _listed(choices: tuple[str, ...]) -> str:
    return "\n".join(f"- {choice}" for choice in choices)


def _find(path: str | Path, name: str, found: tuple[Any, ...], kind: str) -> Any:
    for each in found:
        if each.id == name:
            return each
    near = difflib.get_close_matches(name, [each.id for each in found], n=1)
    known = ", ".join(each.id for each in found) or "none"
    raise SourceError(
        f"there is no {kind} '{name}'",
        file=str(path),
        hint=f"Did you mean '{near[0]}'?" if near else f"There are: {known}.",
    )


def _value(
    exercise: Exercise, code: str, names: dict[str, Any], what: str, line: int | None = None
) -> Any:
    """Evaluate an answer, and see that it is one the exercise allows."""
    try:
        value = eval(code.strip(), names)  # noqa: S307 - the book's own code
        if exercise.kind == "number":
            return _number(value, exercise.unit)
    except Exception as error:
        raise _failed(exercise, what, error, line) from error
    if exercise.kind == "choice" and value in exercise.choices:
        return value
    if exercise.kind == "order" and sorted(value) == sorted(exercise.choices):
        return tuple(value)
    wanted = "one" if exercise.kind == "choice" else "an order"
    raise SourceError(
        f"the {what} of '{exercise.id}' is {value!r}, which is not {wanted} of its choices",
        file=exercise.file,
        line=line or exercise.line,
        hint=f"The choices are: {', '.join(exercise.choices)}.",
    )


def _number(value: Any, unit: str) -> float:
    """Return a plain number; a quantity with units is converted to the exercise's unit."""
    if hasattr(value, "magnitude") and hasattr(value, "to"):
        value = value.to(unit or "dimensionless").magnitude
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"got {number}")
    return number


def _filled(exercise: Exercise, names: dict[str, Any]) -> str:
    """Return the solution with its `{expression}` fields computed."""
    pieces: list[str] = []
    try:
        for text, code, spec, conversion in Formatter().parse(exercise.solution):
            pieces.append(text)
            if code is not None:
                value = eval(code.strip(), names)  # noqa: S307
                value = Formatter().convert_field(value, conversion) if conversion else value
                pieces.append(format(value, spec or ""))
    except Exception as error:
        raise _failed(exercise, "solution", error) from error
    return "".join(pieces)


def _failed(
    exercise: Exercise, what: str, error: Exception, line: int | None = None
) -> SourceError:
    hint = "A brace that is no field, as in \\frac{a}{b}, is written twice: {{ and }}."
    return SourceError(
        f"the {what} of '{exercise.id}' raised {type(error).__name__}: {error}",
        file=exercise.file,
        line=line or exercise.line,
        hint=hint if what == "solution" else None,
    )
