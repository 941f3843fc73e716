"""Students who come late: notebooks and numbers for them, and nothing moved for anybody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.grading.assignment import Assignment
from mlsim_book.grading.handouts import put, student_files
from mlsim_book.grading.key import key_text, read_key
from mlsim_book.model import Project


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
