"""The key of an assignment: a JSON file that only the instructor has.

It holds the answers as they were computed when the assignment was made, so that a later
change of the book changes no grade.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_exercises.data import Exercise
from mlsim_exercises.evaluation import Evaluation
from mlsim_exercises.rubrics import Criterion
from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.roster import Roster, Student

VERSION = 1
_KEPT = ("id", "title", "kind", "unit", "tolerance", "choices", "points", "level", "unit_credit")


def key_text(assignment: Assignment) -> str:
    """Return the key as JSON."""
    data = {
        "version": VERSION,
        "title": assignment.title,
        "questions": [_question_data(each) for each in assignment.questions],
        "made_with": list(assignment.made_with) if assignment.made_with else None,
        "private": list(assignment.private),
        "students": {name: list(numbers) for name, numbers in assignment.students.items()},
        "roster": asdict(assignment.roster),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_key(path: Path) -> Assignment:
    """Return the assignment of a key.

    Raises
    ------
    SourceError
        There is no such file, or it is no key of this version.
    """
    if not path.is_file():
        raise SourceError(
            "there is no key here",
            file=path,
            hint="Name the folder that 'mlsim-book assign' wrote, or its key: --key FILE.",
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise SourceError(f"this key has version {data['version']}, not {VERSION}", file=path)
        questions = tuple(_question(each) for each in data["questions"])
        students = {name: tuple(numbers) for name, numbers in data["students"].items()}
        made_with = None
        if data.get("made_with"):
            package, made_version, commit = map(str, data["made_with"])
            made_with = (package, made_version, commit)
        private = tuple(map(str, data.get("private", ())))
        roster = _roster(data.get("roster") or {})
        return Assignment(data["title"], questions, students, made_with, private, roster)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"this is no key: {type(error).__name__}: {error}",
            file=path,
            hint="Write it again with the 'mlsim-book assign' that made the assignment.",
        ) from error


def _question_data(question: Question) -> dict[str, Any]:
    exercise = question.exercise
    return {
        **{name: getattr(exercise, name) for name in _KEPT},
        "rubric": [asdict(each) for each in exercise.rubric],
        "versions": [
            {
                "given": each.given,
                "answer": each.answer,
                "wrong": [
                    {"answer": wrong, "because": because, "credit": each.credit(path)}
                    for path, (wrong, because) in enumerate(
                        zip(each.wrong, each.because, strict=True), start=1
                    )
                ],
            }
            for each in question.versions
        ],
    }


def _question(data: dict[str, Any]) -> Question:
    exercise = Exercise(
        prompt="", answer="", solution="",
        # a key of an older version has no credit and no rubric
        rubric=tuple(Criterion(**each) for each in data.get("rubric", ())),
        **{name: _tuples(data[name]) for name in _KEPT if name in data or name != "unit_credit"},
    )  # fmt: skip
    versions = tuple(
        Evaluation(
            exercise,
            _tuples(each["answer"]),
            tuple(_tuples(path["answer"]) for path in each["wrong"]),
            tuple(path["because"] for path in each["wrong"]),
            "", (), "", each["given"],
            tuple(float(path.get("credit", 0)) for path in each["wrong"]),
        )
        for each in data["versions"]
    )  # fmt: skip
    if not versions:
        raise ValueError(f"the question '{exercise.id}' has no version")
    return Question(exercise, versions)


def _roster(data: dict[str, Any]) -> Roster:
    students = tuple(
        Student(**{name: _tuples(value) for name, value in each.items()})
        for each in data.get("students", ())
    )
    columns, notes = (tuple(map(str, data.get(name, ()))) for name in ("columns", "notes"))
    return Roster(students, columns, str(data.get("id_column", "")), notes)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
