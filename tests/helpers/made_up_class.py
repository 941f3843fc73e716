"""A class of made-up results: an assignment, its class list, and what was handed in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlsim_exercises.data import Criterion, Exercise, WrongPath
from mlsim_exercises.verdicts import judge
from mlsim_grading.assignment import Assignment, make_assignment
from mlsim_grading.class_lists import Roster, Student
from mlsim_grading.grade import Mark, Result

BOIL = Exercise(
    "boil", "Boil", "number", "How long for {n} l?", "n * 167.44", "", unit="s", points=4,
    unit_credit=0.25, given={"n": (2, 3, 5, 7, 11)},
    wrong=(WrongPath("167.44", "That is for one litre, not {n}.", credit=0.5), WrongPath("n", "No.")),
)  # fmt: skip
COOL = Exercise(
    "cool", "Cool", "number", "How long for {m} l?", "m * 90.0", "", unit="s", points=2,
    given={"m": (2, 3, 5, 7, 11)}, wrong=(WrongPath("m", "That is the water."),),
)  # fmt: skip
WHY = Exercise(
    "why", "Why", "text", "Why?", "", "Steam.", points=3,
    rubric=(Criterion("Reason", 2, "Says *why*."), Criterion("Number", 1, "Has one.")),
)  # fmt: skip
QUESTIONS = (BOIL, COOL, WHY)


def made(
    students: Iterable[Student | str] = ("Ada", "Alan", "Grace"), columns: Sequence[str] = ()
) -> Assignment:
    """An assignment of these questions, with numbers for each student."""
    people = [each if isinstance(each, Student) else Student(each) for each in students]
    assignment = make_assignment("Week 2", QUESTIONS, [each.name for each in people])
    return replace(assignment, roster=Roster(tuple(people), tuple(columns)))


def handed(assignment: Assignment, student: str, *answers: object, **given: object) -> Result:
    """A result with these answers, judged; the right ones, and a text, where none is given."""
    numbers = assignment.students.get(student) or (0,) * len(assignment.questions)
    marks = []
    for index, question in enumerate(assignment.questions):
        version = question.versions[numbers[index]]
        answer = answers[index] if index < len(answers) else version.answer or "Because."
        verdict = judge(version, answer)
        shown = f"{answer:.6g}" if isinstance(answer, int | float) else str(answer or "")
        exercise = question.exercise
        marks.append(
            Mark(
                exercise.id, exercise.title, verdict.score * exercise.points, exercise.points,
                verdict.kind, verdict.message, shown, verdict.path or 0,
            )
        )  # fmt: skip
    fields = {"file": f"{student}.ipynb", **given}
    return Result(student=student, marks=tuple(marks), **fields)  # type: ignore[arg-type]
