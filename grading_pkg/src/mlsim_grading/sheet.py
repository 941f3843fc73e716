"""A grading sheet for work that people read: a rubric, a row for each student, feedback.

A project is not graded by a program. Its rubric is a TOML file with criteria, their points
and what earns them. From it and a list of students comes a table to fill in; from the
filled table come totals and a page for each student.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_grading.names import file_name

_STUDENT, _COMMENT = "student", "comment"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One part of a rubric.

    Attributes
    ----------
    name
        What is judged, such as "Design".
    points
        The most that it gives.
    full, half
        What earns all of them, and what about half.
    """

    name: str
    points: int
    full: str
    half: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a project is graded by."""

    title: str
    criteria: tuple[Criterion, ...]

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(each.points for each in self.criteria)

    def head(self) -> list[str]:
        """Return the columns of its sheet."""
        return [_STUDENT, *(f"{each.name} ({each.points})" for each in self.criteria), _COMMENT]


def load_rubric(path: Path) -> Rubric:
    """Read a rubric.

    Raises
    ------
    SourceError
        If there is no such file, it is no TOML, or a criterion lacks a part; says which.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"there is no rubric to read: {error.strerror}", file=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"this is no TOML: {error}", file=path) from error
    rows = data.get("criterion")
    if not isinstance(rows, list) or not rows or not isinstance(data.get("title"), str):
        raise SourceError(
            "a rubric has a title and criteria",
            file=path,
            hint='Write title = "..." and, for each, [[criterion]] with name, points, full, half.',
        )
    criteria = tuple(_criterion(row, number, path) for number, row in enumerate(rows, start=1))
    names = [each.name for each in criteria]
    if len(set(names)) < len(names):
        raise SourceError("two criteria have the same name", file=path)
    return Rubric(data["title"], criteria)


def _criterion(row: object, number: int, path: Path) -> Criterion:
    kinds = {"name": str, "points": int, "full": str, "half": str}
    found = row if isinstance(row, dict) else {}
    for key, kind in kinds.items():
        if type(found.get(key)) is not kind or not found[key]:
            raise SourceError(f"criterion {number} needs {key}", file=path)
    if found["points"] < 1 or set(found) - set(kinds):
        raise SourceError(f"criterion {number} has points from 1 up, and no other key", file=path)
    return Criterion(**found)


def empty_sheet(rubric: Rubric, students: Sequence[str]) -> str:
    """Return the table to fill in, as CSV: a row for each student.

    >>> rubric = Rubric("Project", (Criterion("Design", 10, "all", "some"),))
    >>> print(empty_sheet(rubric, ["ada"]))
    student,Design (10),comment
    ada,,
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rubric.head())
    writer.writerows([student, *[""] * (len(rubric.criteria) + 1)] for student in students)
    return out.getvalue().rstrip("\n")


@dataclass(frozen=True, slots=True)
class Graded:
    """A filled row: points by criterion, and what was said."""

    student: str
    points: tuple[float, ...]
    comment: str

    @property
    def total(self) -> float:
        """All points."""
        return sum(self.points)


def read_sheet(rubric: Rubric, path: Path) -> list[Graded]:
    """Read a filled sheet; rows without any points are left out.

    Raises
    ------
    SourceError
        If a column is missing, a cell is no number from 0 to its criterion's points, a row is
        filled in part, or a student stands twice; names the line.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except OSError as error:
        raise SourceError(f"there is no sheet to read: {error.strerror}", file=path) from error
    missing = [name for name in rubric.head() if rows and name not in rows[0]]
    if missing or not rows:
        raise SourceError(
            f"the sheet lacks {', '.join(missing) or 'rows'}", file=path,
            hint="Make it again with --students, and fill in the copy.",
        )  # fmt: skip
    found: dict[str, Graded] = {}
    for line, row in enumerate(rows, start=2):
        student = (row[_STUDENT] or "").strip()
        cells = [(row[name] or "").strip() for name in rubric.head()[1:-1]]
        if not any(cells):
            continue
        if not student or student in found:
            said = f"'{student}' stands twice" if student else "this row names no student"
            raise SourceError(said, file=path, line=line)
        points = tuple(
            _points(cell, each, path, line)
            for cell, each in zip(cells, rubric.criteria, strict=True)
        )
        found[student] = Graded(student, points, (row[_COMMENT] or "").strip())
    return list(found.values())


def _points(cell: str, criterion: Criterion, path: Path, line: int) -> float:
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        value = -1.0
    if not 0 <= value <= criterion.points:
        raise SourceError(
            f"{criterion.name}: {cell!r} is no number from 0 to {criterion.points}",
            file=path,
            line=line,
        )
    return value


def feedback(rubric: Rubric, graded: Graded) -> str:
    """Return a student's page: points, and for what is missing, what would have earned it."""
    lines = [f"# {rubric.title}: {graded.student}", ""]
    lines += [f"{graded.total:g} of {rubric.points} points", ""]
    for each, points in zip(rubric.criteria, graded.points, strict=True):
        lines.append(f"- **{each.name}**: {points:g} of {each.points}")
        if points < each.points:
            lines.append(f"  All points: {each.full}")
    if graded.comment:
        lines += ["", graded.comment]
    return "\n".join(lines) + "\n"


def write_feedback(rubric: Rubric, rows: Sequence[Graded], out: Path) -> Path:
    """Write `totals.csv` and a page for each student; return the table's path."""
    pages = out / "feedback"
    pages.mkdir(parents=True, exist_ok=True)
    for each in rows:
        (pages / f"{file_name(each.student)}.md").write_text(
            feedback(rubric, each), encoding="utf-8"
        )
    table = out / "totals.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([_STUDENT, "points", "of"])
        writer.writerows([each.student, f"{each.total:g}", rubric.points] for each in rows)
    return table
