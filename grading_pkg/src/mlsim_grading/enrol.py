"""What may change in an assignment that was handed out: students who come late, a wrong answer.

Nothing moves for anybody else: no numbers, and no notebook that a student has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_exercises.data import Exercise
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import Evaluation, evaluate
from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.handouts import SOLUTIONS, put, rubric_text, student_files
from mlsim_grading.key import key_text, read_key


def add_students(assignment: Assignment, project: Project, out: Path) -> list[str]:
    """Add the students that an assignment has and its folder has not; return their names.

    Submissions and results may be there. Students who left the list stay in the key.

    Raises
    ------
    SourceError
        There is no assignment, or its questions, numbers or answers are not those of this one.
    """
    old = read_key(out / "key.json")
    _check_same(old, assignment, out)
    new = {name: own for name, own in assignment.students.items() if name not in old.students}
    there = {each.name for each in assignment.roster.students}
    left = [each for each in old.roster.students if each.name not in there]
    roster = assignment.roster
    roster = replace(roster, students=(*roster.students, *left)) if roster.students else old.roster
    merged = replace(old, students={**old.students, **new}, roster=roster)
    try:
        for name, text in student_files(merged, project, new):
            put(out / name, text)
        put(out / "key.json", key_text(merged))  # last: what was cut short is done again
    except OSError as error:
        raise SourceError(f"the notebooks can't be written: {error.strerror}", file=out) from error
    return list(new)


def correct_answers(assignment: Assignment, project: Project, out: Path) -> list[str]:
    """Replace the answers of an assignment by those that its questions have now.

    Numbers and notebooks stay, submissions and results may be there: the next grading compares
    what was handed in with the new answers. Return the questions that differ.

    Raises
    ------
    SourceError
        There is no assignment, its questions are others, or one can't be computed with the
        numbers that somebody was given.
    """
    old = read_key(out / "key.json")
    asked = [(each.exercise.id, each.exercise.kind) for each in old.questions]
    if asked != [(each.exercise.id, each.exercise.kind) for each in assignment.questions]:
        raise SourceError(
            "its questions are not those of this assignment", file=out / "key.json",
            hint=f"Name the same, in the same order: {', '.join(name for name, _ in asked)}.",
        )  # fmt: skip
    questions = tuple(
        Question(new.exercise, tuple(_anew(new.exercise, each.given, out) for each in was.versions))
        for was, new in zip(old.questions, assignment.questions, strict=True)
    )
    merged = replace(old, questions=questions)
    everyone = old.students or {"": (0,) * len(questions)}
    try:
        for name, text in student_files(merged, project, everyone):
            if name.startswith(SOLUTIONS):
                put(out / name, text)
        put(out / "rubric.md", rubric_text(merged))
        put(out / "key.json", key_text(merged))  # last: what was cut short is done again
    except OSError as error:
        raise SourceError(f"the answers can't be written: {error.strerror}", file=out) from error
    pairs = zip(_asked(old)[1], _asked(merged)[1], strict=True)
    return [new["id"] for was, new in pairs if was != new]


def _anew(exercise: Exercise, given: Mapping[str, Any], out: Path) -> Evaluation:
    try:
        return evaluate(exercise, given) if given else evaluate(exercise)
    except ExerciseError as error:
        numbers = ", ".join(f"{name} = {value!r}" for name, value in given.items())
        raise SourceError(
            f"'{exercise.id}' can't be corrected for {numbers or 'its numbers'}: {error}", file=out,
            hint="Students have these numbers: mend the question so that it works with them.",
        ) from error  # fmt: skip


def _check_same(old: Assignment, new: Assignment, out: Path) -> None:
    if not (old.students and new.students):
        raise SourceError(
            "this assignment is the same for all, so a student more needs nothing", file=out,
            hint="Hand out the same notebook." if not old.students else "Add --variant-by CSV.",
        )  # fmt: skip
    same = "Use the same command, with the package that made it, and the longer list."
    if _asked(old) != _asked(new):
        made = f" (made with {' '.join(old.made_with).strip()})" if old.made_with else ""
        raise SourceError(
            f"its questions or their answers are not those of this assignment{made}",
            file=out / "key.json", hint=same,
        )  # fmt: skip
    moved = [name for name, own in new.students.items() if old.students.get(name, own) != own]
    if moved:
        raise SourceError(
            f"this would give other numbers to {len(moved)} students: {', '.join(moved[:3])}",
            file=out / "key.json", hint=f"Another --seed? {same}",
        )  # fmt: skip


def _asked(assignment: Assignment) -> Any:
    data = json.loads(key_text(assignment))
    return data["title"], data["questions"]
