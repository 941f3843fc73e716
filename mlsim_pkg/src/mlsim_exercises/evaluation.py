"""Exercises computed: the answer, where each wrong path leads, and all texts.

`data` describes the file, `markdown` what a page shows of it, `verdicts` the verdict on
an answer, `bank` the questions of a whole book.
Answers are expressions: they are computed whenever a page runs, so that none can go
stale. Standard library only: this runs in the chapters' own kernel, and at students'.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from mlsim_exercises.data import Exercise, ExerciseError

# What stands in a calculation by hand: numbers, and what is known without being told.
_WRITTEN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e\d+)?")
_KNOWN = {*map(float, range(13)), 24, 60, 100, 365.25, 1000, 1024, 3600, 86400, 1e6, 1e9, 1e12}
_ON_PAPER = {"ceil": math.ceil, "log2": math.log2, "sqrt": math.sqrt}
# The sentence of a solution that says why it is so: [...]{.why}, maybe with spans in it.
_WHY = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\{\.why\}")
EARNS = "This earns {share} % of the points."


@dataclass(frozen=True)
class Evaluation:
    """An exercise with everything in it computed."""

    exercise: Exercise
    answer: Any  # a float, a choice, a tuple of choices, or "" where a person marks
    wrong: tuple[Any, ...]  # what each wrong path leads to
    because: tuple[str, ...]  # the message for it, Markdown
    prompt: str  # Markdown, as are the hints and the solution
    hints: tuple[str, ...]
    solution: str
    given: Mapping[str, Any] = field(default_factory=dict)  # the values of [exercise.given]
    credits: tuple[float, ...] = ()  # the share of the points of each wrong path

    def credit(self, path: int) -> float:
        """Return the share of the points that a wrong path earns; paths count from 1."""
        return self.credits[path - 1] if self.credits else 0.0

    @property
    def why(self) -> str:
        """The sentence of the solution that says why, Markdown; "" where none is marked."""
        found = _WHY.search(self.solution)
        return " ".join(found[1].split()) if found else ""


def evaluate(exercise: Exercise, given: Mapping[str, Any] | None = None) -> Evaluation:
    """Compute an exercise's answer, wrong paths and texts.

    Parameters
    ----------
    given
        Values for the names of `[exercise.given]`; the book's own where left out.

    Raises
    ------
    ExerciseError
        Something in it raises; or a wrong path can't be told from the answer,
        or from another wrong path; or `given` has a name that the exercise lacks.

    >>> task = Exercise("e", "T", "number", "{n} times 7?", "n * 7", "It is {answer:.0f}.",
    ...                 given={"n": (6, 5)})
    >>> evaluate(task).answer, evaluate(task, {"n": 5}).prompt, evaluate(task).solution
    (42.0, '5 times 7?', 'It is 42.')
    """
    values = {name: choices[0] for name, choices in exercise.given.items()}
    for name in given or {}:
        if name not in values:
            raise ExerciseError(
                f"'{exercise.id}' has nothing called '{name}' to be given",
                file=exercise.file,
                line=exercise.line,
                hint=f"There are: {', '.join(values) or 'none'}.",
            )
    values.update(given or {})
    names: dict[str, Any] = dict(values)
    try:
        exec(compile(exercise.setup, f"<setup of {exercise.id}>", "exec"), names)  # noqa: S102 - the book's own code
    except Exception as error:
        raise _failed(exercise, "setup", error) from error
    by_hand = exercise.kind == "text"
    answer = "" if by_hand else _value(exercise, exercise.answer, names, "answer")
    wrong = _wrong_answers(exercise, names, answer)
    shown = {**names, "answer": answer}
    prompt = _filled(exercise, exercise.prompt, names, "prompt")
    _check_paper(exercise, _filled(exercise, exercise.paper, names, "paper"), prompt, answer)
    return Evaluation(
        exercise,
        answer,
        wrong,
        tuple(
            " ".join(
                [_filled(exercise, each.because, shown, "wrong path").strip(), earns(each.credit)]
            ).strip()
            for each in exercise.wrong
        ),
        prompt,
        tuple(_filled(exercise, each, names, "hint") for each in exercise.hints),
        _filled(exercise, exercise.solution, shown, "solution"),
        values,
        tuple(each.credit for each in exercise.wrong),
    )


def earns(credit: float) -> str:
    """Say which part of the points a mistake earns.

    >>> earns(0.5), earns(0)
    ('This earns 50 % of the points.', '')
    """
    return EARNS.format(share=f"{credit * 100:g}") if credit else ""


def variants(exercise: Exercise) -> Iterator[dict[str, Any]]:
    """Yield every choice of the values of `[exercise.given]`, the book's own first.

    >>> task = Exercise("e", "T", "number", "?", "n + m", "", given={"n": (1, 2), "m": (3,)})
    >>> list(variants(task))
    [{'n': 1, 'm': 3}, {'n': 2, 'm': 3}]
    """
    for values in itertools.product(*exercise.given.values()):
        yield dict(zip(exercise.given, values, strict=True))


def same_answer(exercise: Exercise, given: Any, wanted: Any) -> bool:
    """Say whether two answers count as the same: numbers within the tolerance.

    >>> task = Exercise("e", "T", "number", "?", "100", "", tolerance=0.01)
    >>> same_answer(task, 100.9, 100.0), same_answer(task, 102.0, 100.0)
    (True, False)
    """
    if exercise.kind == "number":
        return math.isclose(given, wanted, rel_tol=0, abs_tol=exercise.tolerance * abs(wanted))
    return bool(given == wanted)


def plain_number(value: Any, unit: str) -> float:
    """Return a plain number; a quantity with units is converted to the given unit.

    Raises
    ------
    ValueError
        It is no finite number; a library of quantities raises its own for a unit
        that doesn't fit.

    >>> plain_number(2, "s")
    2.0
    """
    if is_quantity(value):
        try:
            value = value.to(unit or "dimensionless").magnitude
        except TypeError:  # a unit that doesn't fit
            raise
        except Exception:
            # units that count ("times", "%") are unknown to its library
            if not unit or not getattr(value, "dimensionless", False):
                raise
            value = float(value) * (100 if unit == "%" else 1)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"got {number}")
    return number


def is_quantity(value: Any) -> bool:
    """Say whether a value carries a unit, as Pint's quantities do.

    What is a float as well, such as a share, is taken as that: 100 times it is in percent.
    """
    return hasattr(value, "magnitude") and hasattr(value, "to") and not isinstance(value, float)


def _wrong_answers(exercise: Exercise, names: dict[str, Any], answer: Any) -> tuple[Any, ...]:
    """Compute where the wrong paths lead, and see that they can be told apart."""
    wrong: list[Any] = []
    for path in exercise.wrong:
        value = _value(exercise, path.answer, names, "wrong path", line=path.line)
        for other, what in [(answer, "the answer"), *((each, "another") for each in wrong)]:
            # either way: what is within the tolerance of one may not be of the other
            if same_answer(exercise, value, other) or same_answer(exercise, other, value):
                raise ExerciseError(
                    f"the wrong path of '{exercise.id}' gives {value!r}, as does {what}"
                    f" ({other!r}, within {exercise.tolerance:g})",
                    file=exercise.file,
                    line=path.line,
                    hint="Make the tolerance smaller, change the numbers, or take the path out.",
                )
        wrong.append(value)
    return tuple(wrong)


def _check_paper(exercise: Exercise, code: str, prompt: str, answer: Any) -> None:
    """See that what is done on paper leads to the answer, and needs what the prompt says alone."""
    if not code:
        return
    told = {float(each.replace(",", "")) for each in _WRITTEN.findall(prompt)} | _KNOWN
    untold = [each for each in _WRITTEN.findall(code) if float(each) not in told]
    value = _value(exercise, code, dict(_ON_PAPER), "paper")
    if untold or not same_answer(exercise, value, answer):
        raise ExerciseError(
            f"on paper '{exercise.id}' needs {', '.join(untold)}, which its prompt doesn't say"
            if untold
            else f"on paper '{exercise.id}' gives {value:g}, where the answer is {answer:g}",
            file=exercise.file,
            line=exercise.line,
            hint="Mend `paper`, say the number in the prompt, or leave `paper` out.",
        )


def _value(
    exercise: Exercise, code: str, names: dict[str, Any], what: str, line: int | None = None
) -> Any:
    """Evaluate an answer, and see that it is one the exercise allows."""
    try:
        value = eval(code.strip(), names)  # noqa: S307 - the book's own code
        if exercise.kind == "number":
            return plain_number(value, exercise.unit)
    except Exception as error:
        raise _failed(exercise, what, error, line) from error
    if exercise.kind == "choice" and value in exercise.choices:
        return value
    if exercise.kind == "order" and sorted(value) == sorted(exercise.choices):
        return tuple(value)
    wanted = "one" if exercise.kind == "choice" else "an order"
    raise ExerciseError(
        f"the {what} of '{exercise.id}' is {value!r}, which is not {wanted} of its choices",
        file=exercise.file,
        line=line or exercise.line,
        hint=f"The choices are: {', '.join(exercise.choices)}.",
    )


def _filled(exercise: Exercise, template: str, names: dict[str, Any], what: str) -> str:
    """Return a text with its `{expression}` fields computed."""
    pieces: list[str] = []
    try:
        for text, code, spec, conversion in Formatter().parse(template):
            pieces.append(text)
            if code is not None:
                value = eval(code.strip(), names)  # noqa: S307
                value = Formatter().convert_field(value, conversion) if conversion else value
                pieces.append(format(value, spec or ""))
    except Exception as error:
        raise _failed(exercise, what, error) from error
    return "".join(pieces)


def _failed(
    exercise: Exercise, what: str, error: Exception, line: int | None = None
) -> ExerciseError:
    hint = "A brace that is no field, as in \\frac{a}{b}, is written twice: {{ and }}."
    return ExerciseError(
        f"the {what} of '{exercise.id}' raised {type(error).__name__}: {error}",
        file=exercise.file,
        line=line or exercise.line,
        hint=hint if what in {"solution", "prompt", "hint"} else None,
    )
