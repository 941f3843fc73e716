"""What a page shows of an exercise: prompt, hints that open, a solution that opens.

It is Quarto Markdown, readable by any Quarto and without scripts. The attributes tell
`exercises.js` of `mlsim_book` what it needs to check an answer in the reader's browser.
"""

from __future__ import annotations

import html
import re
from typing import Any

from mlsim_exercises.data import Exercise, SelfCheck, rubric_list
from mlsim_exercises.evaluation import Evaluation
from mlsim_exercises.verdicts import asked_for, wanted_as

# What is written around words, and what is left of it where nothing renders it.
_MARKUP = (
    (re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\{[^{}]*\}|\([^()\s]*\)|\[\])"), r"\1"),
    (re.compile(r"\$(?=\S)([^$\\\n]+?)(?<=\S)\$(?!\d)"), r"\1"),
    (re.compile(r"\^([^\s^]+)\^"), r"^\1"),
    (re.compile(r"~([^\s~]+)~"), r"\1"),
    (re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])", re.DOTALL), r"\1"),
)
_CODE = re.compile(r"(`+)(.+?)\1(?:\{[^{}]*\})?", re.DOTALL)
_EXACT = 0.005  # a count that must be met this well is a whole number


def exercise_markdown(evaluation: Evaluation, *, module: str = "") -> str:
    """Return the Markdown of a computed exercise.

    Parameters
    ----------
    module
        The module that has `check`, `hint` and `reveal`: in a notebook, a cell that
        calls them stands where the page has hints and the solution.

    >>> task = Exercise("twice", "Twice", "number", "How long?", "2", "{answer:g} s", unit="s")
    >>> from mlsim_exercises.evaluation import evaluate
    >>> print(exercise_markdown(evaluate(task)))
    ::: {#exr-twice .checked data-kind="number" data-answer="2.0" data-tolerance="0.02" data-unit="s"}
    <BLANKLINE>
    ## Twice
    <BLANKLINE>
    How long?
    <BLANKLINE>
    [Answer in s, within 2 % of the value · Level: recall · 1 point]{.exercise-about}
    <BLANKLINE>
    :::
    <BLANKLINE>
    :::: {.exercise-folds data-for="exr-twice"}
    <BLANKLINE>
    ::: {.callout-note collapse="true"}
    <BLANKLINE>
    ## Solution
    <BLANKLINE>
    2 s
    <BLANKLINE>
    :::
    <BLANKLINE>
    ::::
    <BLANKLINE>
    """  # noqa: E501 - the line as it is printed
    exercise = evaluation.exercise
    parts = [
        f"::: {{#exr-{exercise.id} .checked {_attributes(_data(evaluation))}}}",
        f"## {exercise.title}",
        evaluation.prompt.strip(),
    ]
    if exercise.choices:
        parts.append(_listed(exercise.choices))
    if exercise.rubric:
        parts += ["Points for:", rubric_list(exercise.rubric)]
    parts += [f"[{_about(exercise)}]{{.exercise-about}}", ":::"]
    folds = [f':::: {{.exercise-folds data-for="exr-{exercise.id}"}}']
    for number, hint in enumerate(evaluation.hints, start=1):
        title = f"Hint {number}" if len(evaluation.hints) > 1 else "Hint"
        folds.append(_folded("tip", title, hint.strip()))
    if exercise.wrong:
        folds.append(_folded("tip", "Another answer?", _wrong_paths(evaluation)))
    folds += [_folded("note", "Solution", evaluation.solution.strip()), "::::\n"]
    if module:
        hidden = '::::: {.content-hidden when-format="ipynb"}'
        folds = [hidden, *folds, ":::::", _notebook_cell(exercise, module)]
    return "\n\n".join([*parts, *folds])


def selfcheck_markdown(check: SelfCheck) -> str:
    """Return the Markdown of a self-check question, its answer folded away.

    >>> print(selfcheck_markdown(SelfCheck("sum", "One and one?", ("1", "2"), "2")))
    ::: {.selfcheck data-kind="choice" data-answer="2"}
    <BLANKLINE>
    One and one?
    <BLANKLINE>
    - 1
    - 2
    <BLANKLINE>
    :::
    <BLANKLINE>
    ::: {.callout-note collapse="true"}
    <BLANKLINE>
    ## Answer
    <BLANKLINE>
    **2**
    <BLANKLINE>
    :::
    <BLANKLINE>
    """
    right = check.choices.index(check.answer) + 1
    folded = _folded("note", "Answer", f"**{check.answer}**\n\n{check.because}".strip())
    return "\n\n".join(
        [
            f'::: {{.selfcheck data-kind="choice" data-answer="{right}"}}',
            check.question.strip(),
            _listed(check.choices),
            ":::",
            folded + "\n",
        ]
    )


def asking(exercise: Exercise) -> str:
    """Say how a number is to be answered, how exactly, and whether paper and pencil will do.

    >>> asking(Exercise("e", "T", "number", "?", "2", "", unit="times", tolerance=0.05))
    'Answer as a factor, within 5 % of the value'
    >>> asking(Exercise("e", "T", "number", "?", "2", "", unit="users", tolerance=0.001))
    'Answer as a whole number of users'
    >>> asking(Exercise("e", "T", "number", "?", "2", "", unit="ms", paper="1 + 1"))
    'Paper and pencil · Answer in ms, within 2 % of the value'
    """
    asked = asked_for(exercise.unit)
    start = "Paper and pencil · Answer" if exercise.paper else "Answer"
    if asked.startswith("a number of") and exercise.tolerance <= _EXACT:
        return f"{start} as a whole number of {exercise.unit}"
    asked = asked if asked.startswith("in ") else f"as {asked}"
    return f"{start} {asked}, within {exercise.tolerance * 100:g} % of the value"


def three_digits(value: float) -> str:
    """Write a number to three digits, a whole one in full, a large one with its thousands apart.

    >>> three_digits(25_190.5), three_digits(0.01234), three_digits(2416.0), three_digits(999.9)
    ('25,200', '0.0123', '2,416', '1,000')
    """
    shown = value if value.is_integer() else float(f"{value:.3g}")
    return f"{shown:,.0f}" if 1000 <= abs(shown) < 1e15 else f"{shown:.3g}"


def answer_text(exercise: Exercise, value: Any) -> str:
    """Return an answer as readers write it: three digits and the unit, or the choices.

    >>> answer_text(Exercise("e", "T", "number", "?", "2", "", unit="ms"), 12345.6)
    '12,300 ms'
    """
    if exercise.kind == "number":
        return f"{three_digits(value)} {exercise.unit}".strip()
    return ", ".join(value) if exercise.kind == "order" else str(value)


def plain_text(markdown: str) -> str:
    """Return Markdown as a text to print: the words without what marks them; code as it stands.

    >>> plain_text("A KiB is [1024 **bytes**]{.given kind='definition'}, $h$ or 2^10^: `a*b*c`.")
    'A KiB is 1024 bytes, h or 2^10: a*b*c.'
    """
    pieces = _CODE.split(markdown.strip())
    # each code span splits into its marks and itself
    return "".join(
        _unmarked(each) if n % 3 == 0 else each for n, each in enumerate(pieces) if n % 3 != 1
    )


def _unmarked(text: str) -> str:
    for pattern, left in (*_MARKUP, *_MARKUP[:1]):  # a span may stand in a span
        text = pattern.sub(left, text)
    return text


def _data(evaluation: Evaluation) -> dict[str, str]:
    """Return what the script needs, by attribute."""
    exercise = evaluation.exercise
    data = {"kind": exercise.kind, "answer": _coded(exercise, evaluation.answer)}
    if exercise.kind == "number":
        data |= {"tolerance": repr(float(exercise.tolerance)), "unit": exercise.unit}
    if exercise.unit_credit:
        data["unit-credit"] = repr(float(exercise.unit_credit))
    data |= {"topic": exercise.topic, "better": exercise.better}
    data |= {"guess": "first"} if exercise.guess else {}
    return {name: value for name, value in data.items() if value}


def _coded(exercise: Exercise, value: Any) -> str:
    """Return an answer for the script: a number, or the places of the choices, from 1."""
    if exercise.kind == "number":
        return repr(float(value))
    if exercise.kind == "text":
        return ""
    chosen = value if exercise.kind == "order" else [value]
    return " ".join(str(exercise.choices.index(each) + 1) for each in chosen)


def _attributes(data: dict[str, str]) -> str:
    return " ".join(f'data-{name}="{html.escape(value)}"' for name, value in data.items())


def _about(exercise: Exercise) -> str:
    points = f"{exercise.points} point{'s' if exercise.points != 1 else ''}"
    wanted = {
        "number": asking(exercise),
        "choice": "Choose one",
        "order": "Put them in order",
        "text": "Answer in your own words",
    }[exercise.kind]
    level = {"change": "change one thing"}.get(exercise.level, exercise.level)
    return f"{wanted} · Level: {level} · {points}"


def _wrong_paths(evaluation: Evaluation) -> str:
    """Return a line for each known wrong way: where it leads, and why it is wrong."""
    exercise = evaluation.exercise
    return "\n".join(
        f"- [**{answer_text(exercise, value)}**]{{.wrong-path"
        f' data-answer="{_coded(exercise, value)}"}}: {because.strip()}'
        for value, because in zip(evaluation.wrong, evaluation.because, strict=True)
    )


def _notebook_cell(exercise: Exercise, module: str) -> str:
    """Return a cell that only a notebook has: a place for the answer, and its check."""
    return (
        '::: {.content-visible when-format="ipynb"}\n\n'
        "``` {.python .notebook-cell}\n"
        f"from {module} import check, hint, reveal\n\n"
        f"{answer_cell(exercise, 'answer')}\n"
        f'check("{exercise.id}", answer)\n'
        "```\n\n:::\n"
    )


def answer_cell(exercise: Exercise, name: str) -> str:
    """Return code in which a student gives an answer to a name.

    >>> print(answer_cell(Exercise("e", "T", "number", "?", "2", "", unit="ms"), "answer"))
    answer = ...  # a number in ms
    """
    if exercise.kind == "text":
        return f'{name} = """\n...\n"""'
    wanted = {
        "number": wanted_as(exercise.unit),
        "choice": "one of the choices, as a text",
        "order": "a list of the choices",
    }[exercise.kind]
    return f"{name} = ...  # {wanted}"


def _folded(kind: str, title: str, body: str) -> str:
    return f'::: {{.callout-{kind} collapse="true"}}\n\n## {title}\n\n{body}\n\n:::'


def _listed(choices: tuple[str, ...]) -> str:
    return "\n".join(f"- {choice}" for choice in choices)
