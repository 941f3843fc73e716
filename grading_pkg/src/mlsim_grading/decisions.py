"""Points that no program decides: being late, the instructor's overrides, what a person marks.

`overrides.csv` is read at each grading. It is the instructor's own file: nothing here writes it.

    student,question,points,why
    Ada Lovelace,kv-70b,2,Asked in the office hour
    Alan Turing,late penalty,0,Was ill

`DIR/hand/QUESTION.csv` has a row for each text, with a column for each part of the rubric. The
instructor fills it in; the next grading reads it, adds rows for new texts, and keeps every row in
which something is written. A row is known by its first cell, which follows from student, question
and text: a text that is handed in again, changed, is a new row.

A project has a sheet: from a rubric, a TOML file, and a list of students comes a table to fill in;
from the filled table come totals and a page for each student (`mlsim-book sheet`).
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import math
import re
import tempfile
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.progress import Teller
from mlsim_exercises.data import Criterion, Exercise
from mlsim_exercises.markdown import plain_text
from mlsim_grading.class_lists import file_name, fold, read_roster, tidy
from mlsim_grading.grade import Mark, Result
from mlsim_grading.tables import csv_text, number, read_columns, unsafe

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Late:
    """How late something is, the share of its points that is taken off, and both in words."""

    by: timedelta
    share: float
    words: str


@dataclass(frozen=True)
class LateRule:
    """Percent of the points that were earned, taken off for each day that has begun.

    `due` has a time zone. Within the `grace` (in minutes) nothing is late; after it, days count
    from when the work was due. No more than `at_most` percent is taken off.
    """

    due: datetime
    per_day: float = 10.0
    at_most: float = 100.0
    grace: float = 0.0

    @property
    def words(self) -> str:
        """The rule as it is told.

        >>> LateRule(read_due("2026-11-30T23:59+01:00"), grace=15, at_most=50).words
        'Due 2026-11-30 23:59 (UTC+01:00), with 15 minutes of grace. After that, 10 % of the points that were earned are taken off for each day that has begun, 50 % at most.'
        """  # noqa: E501 - the sentence as it is told
        grace = f", with {self.grace:g} minutes of grace" if self.grace else ""
        return (
            f"Due {self.due:%Y-%m-%d %H:%M} ({self.due.tzname()}){grace}. After that,"
            f" {self.per_day:g} % of the points that were earned are taken off for each day that"
            f" has begun, {self.at_most:g} % at most."
        )

    def of(self, handed_at: str) -> Late | None:
        """Return how late a time is, None if it is in time or nothing says when it was.

        A time without a zone, as in the zip of a course system, is one where it was due.

        >>> rule = LateRule(read_due("2026-11-30T23:59+00:00"), grace=15)
        >>> rule.of("2026-12-01T00:10:00"), rule.of("")
        (None, None)
        >>> rule.of("2026-12-02T01:00:00").words
        'Handed in 1 day 1 h after it was due: 20 % is taken off.'
        """
        at = read_time(handed_at, self.due)
        by = at - self.due if at else timedelta(0)
        if by <= timedelta(minutes=self.grace):
            return None
        share = min(self.at_most, self.per_day * math.ceil(by / _DAY)) / 100
        return Late(
            by, share, f"Handed in {_span(by)} after it was due: {share * 100:g} % is taken off."
        )


def _span(by: timedelta) -> str:
    minutes = max(1, int(by.total_seconds() // 60))
    days, hours = minutes // 1440, minutes // 60 % 24
    parts = [f"{days} day{'s' if days != 1 else ''}"] if days else []
    parts += [f"{hours} h"] if hours else []
    parts += [f"{minutes % 60} min"] if not days and minutes % 60 else []
    return " ".join(parts)


def read_time(text: str, like: datetime) -> datetime | None:
    """Return a time that was noted somewhere, None if it is none; without a zone, in another's."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=like.tzinfo)


def read_due(text: str) -> datetime:
    """Return the time at which something is due.

    Raises
    ------
    SourceError
        It is no date of ISO 8601, or has no time or no zone.

    >>> read_due("2026-11-30T23:59Z").isoformat()
    '2026-11-30T23:59:00+00:00'
    """
    hint = "Write date, time and zone, as in 2026-11-30T23:59+01:00."
    try:
        due = datetime.fromisoformat(text)
    except ValueError:
        raise SourceError(f"--due {text}: this is no date as ISO 8601 has it", hint=hint) from None
    if due.tzinfo is None or len(text) < len("2026-11-30T00"):
        lacks = "its zone" if due.tzinfo is None and "T" in text.upper() else "a time and its zone"
        raise SourceError(f"--due {text}: it lacks {lacks}", hint=hint)
    return due


HAND, OVERRIDES = "hand", "overrides.csv"  # the instructor's own, beside the key
HEAD = ("student", "question", "points", "why")
PENALTY = "late penalty"  # in place of a question: how many points are taken off


@dataclass(frozen=True)
class Override:
    """Points that a person gave, and why."""

    points: float
    why: str


Overrides = Mapping[tuple[str, str], Override]


def read_overrides(
    path: Path, students: Mapping[str, str], questions: Mapping[str, float]
) -> Overrides:
    """Return what is overridden, by student and question; nothing if there is no such file.

    Parameters
    ----------
    students
        What a student may be called there (a name, an id), and the name that it stands for.
    questions
        The points that each question can give.

    Raises
    ------
    SourceError
        A column is missing; a student or question is unknown (with the nearest), or stands there
        twice; points are no number that the question can give; there is no reason. With the line.
    """
    if not path.exists():
        return {}
    rows, _ = read_columns(path, HEAD)
    known = {fold(tidy(each)): name for each, name in students.items()}
    allowed = {**questions, PENALTY: sum(questions.values())}
    found: dict[tuple[str, str], Override] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, row in rows:
        names = (row["student"], unsafe(row["student"]))
        student = next(filter(None, (known.get(fold(tidy(each))) for each in names)), None)
        if student is None:
            raise _unknown("student", row["student"], students, path, line)
        if row["question"] not in allowed:
            raise _unknown("question", row["question"], allowed, path, line)
        place = (student, row["question"])
        if place in found:
            raise SourceError(
                f"'{row['question']}' of '{student}' stands here twice (line {lines[place]})",
                file=path, line=line, hint="Leave one of the two lines.",
            )  # fmt: skip
        points = read_points(row["points"], allowed[row["question"]], path, line)
        if not row["why"]:
            raise SourceError("this line doesn't say why", file=path, line=line,
                              hint="Write a reason: you will be asked for it.")  # fmt: skip
        found[place], lines[place] = Override(points, row["why"]), line
    return found


def read_points(cell: str, most: float, path: Path, line: int, what: str = "") -> float:
    """Return points that a person wrote, with a point or a comma.

    Raises
    ------
    SourceError
        They are no number from 0 to `most`.
    """
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise SourceError(f"{what}{cell!r} is no number from 0 to {most:g}", file=path, line=line)
    return value


def _unknown(what: str, given: str, known: Iterable[str], path: Path, line: int) -> SourceError:
    names = {fold(tidy(each)): each for each in known}
    near = difflib.get_close_matches(fold(tidy(given)), names, n=1, cutoff=0.5)
    nearest = names[near[0]] if near else ""
    shown = ", ".join([*names.values()][:12]) + (" …" if len(names) > 12 else "")
    hint = f"Did you mean '{nearest}'?" if nearest else f"There are: {shown or 'none'}."
    return SourceError(f"there is no {what} '{given}'", file=path, line=line, hint=hint)


ROW, STUDENT, ANSWER, COMMENT = "row", "student", "answer", "comment"
MARKED = "by hand"
_LETTERS = 10


@dataclass(frozen=True)
class Row:
    """A row of a table: what was written in the columns of the rubric, and whatever else."""

    line: int
    cells: Mapping[str, str]
    points: tuple[float, ...] | None  # one for each part of the rubric; None while some are open
    comment: str = ""


@dataclass(frozen=True)
class Sheet:
    """The table of a question: its rows by their first cell, and how its file was written."""

    exercise: Exercise
    rows: Mapping[str, Row] = field(default_factory=dict)
    columns: tuple[str, ...] = ()  # that the instructor added
    delimiter: str = ","

    @property
    def head(self) -> list[str]:
        """The columns, in order."""
        parts = [each.head for each in self.exercise.rubric]
        return [ROW, STUDENT, ANSWER, *parts, COMMENT, *self.columns]


Hand = Mapping[str, Sheet]


def row_name(question: str, student: str, answer: str) -> str:
    """Return the name of a row: letters only, which no spreadsheet takes for a number.

    >>> row_name("why", "Ada", "Because."), row_name("why", "Ada", " Because. ")
    ('tkxjpkniuh', 'tkxjpkniuh')
    """
    text = " ".join(unicodedata.normalize("NFC", answer).split())
    digest = hashlib.sha256(
        f"{question}\x00{student}\x00{text}".encode("utf-8", "replace")
    ).digest()
    return "".join(chr(ord("a") + each % 26) for each in digest[:_LETTERS])


def read_hand(folder: Path, exercises: Iterable[Exercise]) -> Hand:
    """Read the tables of the questions that a person marks, as far as there are any.

    Raises
    ------
    SourceError
        A column of the rubric is missing, points are none that it gives, a row has lost its
        first cell or stands there twice; with file and line.
    """
    return {
        each.id: _read(folder / f"{each.id}.csv", each) for each in exercises if each.kind == "text"
    }


def _read(path: Path, exercise: Exercise) -> Sheet:
    if not path.exists():
        return Sheet(exercise)
    wanted = Sheet(exercise).head
    hint = "Its columns must stay as they were written; you may add some of your own."
    read, table = read_columns(path, wanted, hint)
    rows: dict[str, Row] = {}
    for line, guarded in read:
        cells = {name: unsafe(cell) for name, cell in guarded.items()}
        name = cells[ROW]
        if not re.fullmatch(rf"[a-z]{{{_LETTERS}}}", name):
            if name or any(cells[each] for each in wanted[3:]):
                raise SourceError("the first cell of this row is not as it was written: nothing"
                                  " says whose text it is", file=path, line=line)  # fmt: skip
            continue
        if name in rows:
            raise SourceError(
                f"this row stands here twice (line {rows[name].line})", file=path, line=line
            )
        points = tuple(
            read_points(cells[each.head], each.points, path, line)
            for each in exercise.rubric
            if cells[each.head]
        )
        whole = len(points) == len(exercise.rubric)
        rows[name] = Row(line, cells, points if whole else None, cells[COMMENT])
    usual = {each.casefold() for each in wanted}
    head = (cell.strip() for cell in table.rows[0][1])
    columns = tuple(dict.fromkeys(each for each in head if each and each.casefold() not in usual))
    return Sheet(exercise, rows, columns, table.delimiter or ",")


def half_filled(hand: Hand) -> list[tuple[str, int]]:
    """Return question and line of the rows that have points for some parts of the rubric only."""
    return [
        (question, row.line)
        for question, sheet in hand.items()
        for row in sheet.rows.values()
        if row.points is None and any(row.cells[each.head] for each in sheet.exercise.rubric)
    ]


def marked(result: Result, hand: Hand) -> Result:
    """Return a result with the points that a person gave to its texts."""
    if not any(mark.kind == "unmarked" for mark in result.marks):
        return result
    return replace(result, marks=tuple(_mark(each, result.student, hand) for each in result.marks))


def _mark(mark: Mark, student: str, hand: Hand) -> Mark:
    sheet = hand.get(mark.question)
    if mark.kind != "unmarked" or sheet is None:
        return mark
    row = sheet.rows.get(row_name(mark.question, student, mark.given))
    if row is None or row.points is None:
        return mark
    said = [
        f"{each.name}: {number(points)} of {each.points}."
        + ("" if points == each.points else f" All points: {plain_text(each.full)}")
        for each, points in zip(sheet.exercise.rubric, row.points, strict=True)
    ]
    message = " ".join([*said, row.comment]).strip()
    return replace(mark, points=sum(row.points), kind=MARKED, message=message)


def sheet_text(sheet: Sheet, results: Iterable[Result], *, blind: bool = False) -> str:
    """Return the table of a question: what was written in it, and a row for each new text.

    Parameters
    ----------
    blind
        Leave the names out, and put the rows in an order that says nothing.
    """
    texts: dict[str, tuple[str, str]] = {}
    for result in results:
        for mark in result.marks:
            if mark.question == sheet.exercise.id and mark.kind in {"unmarked", MARKED}:
                name = row_name(mark.question, result.student, mark.given)
                texts[name] = (result.student, mark.given)
    kept = {
        name: row
        for name, row in sheet.rows.items()
        if name not in texts and any(row.cells[each] for each in sheet.head[3:])
    }
    order = sorted(texts) if blind else sorted(texts, key=lambda name: (texts[name], name))
    rows = [sheet.head]
    for name in [*order, *kept]:
        old = sheet.rows[name].cells if name in sheet.rows else {}
        student, answer = texts.get(name) or (old.get(STUDENT, ""), old.get(ANSWER, ""))
        own = [name, "" if blind else student, answer]
        rows.append(own + [old.get(each, "") for each in sheet.head[3:]])
    return csv_text(rows, delimiter=sheet.delimiter, lines=True)


def write_hand(folder: Path, hand: Hand, results: Sequence[Result], *, blind: bool = False) -> None:
    """Write the tables anew where there is something new; each is whole at every moment.

    Raises
    ------
    SourceError
        One can't be written, as when another program holds it.
    """
    known = [each for each in results if each.student]
    for question, sheet in hand.items():
        path = folder / f"{question}.csv"
        if not path.exists() and sheet_text(sheet, known).count("\n") < 2:
            continue  # nobody has written anything
        # with a mark by which spreadsheets know UTF-8
        data = ("\ufeff" + sheet_text(sheet, known, blind=blind)).encode("utf-8", "replace")
        try:
            if path.exists() and path.read_bytes() == data:
                continue
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
                file.write(data)
            Path(file.name).replace(path)
        except OSError as error:
            raise SourceError(
                f"this table can't be written: {error.strerror}", file=path,
                hint="Close it in the program that has it open, and grade again.",
            ) from error  # fmt: skip


# ------------------------------------------------------------------------ projects
@dataclass(frozen=True)
class Rubric:
    """What a project is graded by."""

    title: str
    criteria: tuple[Criterion, ...]

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(each.points for each in self.criteria)

    @property
    def head(self) -> list[str]:
        """The columns of its sheet."""
        return [STUDENT, *(each.head for each in self.criteria), COMMENT]


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
            "a rubric has a title and criteria", file=path,
            hint='Write title = "..." and, for each, [[criterion]] with name, points, full, half.',
        )  # fmt: skip
    kinds = {"name": str, "points": int, "full": str, "half": str}
    for place, row in enumerate(rows, start=1):
        for key, kind in kinds.items():
            if not isinstance(row, dict) or type(row.get(key)) is not kind or not row[key]:
                raise SourceError(f"criterion {place} needs {key}", file=path)
        if row["points"] < 1 or set(row) - set(kinds):
            raise SourceError(
                f"criterion {place} has points from 1 up, and no other key", file=path
            )
    criteria = tuple(Criterion(**row) for row in rows)
    if len({each.name for each in criteria}) < len(criteria):
        raise SourceError("two criteria have the same name", file=path)
    return Rubric(data["title"], criteria)


def read_sheet(rubric: Rubric, path: Path) -> dict[str, tuple[tuple[float, ...], str]]:
    """Return each student's points by criterion, and the comment; rows without points are left out.

    Raises
    ------
    SourceError
        If a column is missing, a cell is no number from 0 to its criterion's points, a row is
        filled in part, or a student stands twice; names the line.
    """
    hint = "Make it again with --students, and fill in the copy."
    rows, _ = read_columns(path, rubric.head, hint)
    found: dict[str, tuple[tuple[float, ...], str]] = {}
    for line, row in rows:
        student = row[STUDENT]
        if not any(row[each.head] for each in rubric.criteria):
            continue
        if not student or student in found:
            said = f"'{student}' stands twice" if student else "this row names no student"
            raise SourceError(said, file=path, line=line)
        points = tuple(
            read_points(row[each.head], each.points, path, line, f"{each.name}: ")
            for each in rubric.criteria
        )
        found[student] = points, row[COMMENT]
    return found


def sheet(options: argparse.Namespace) -> int:
    """Run `mlsim-book sheet`."""
    say, out = Teller(), options.out
    rubric = load_rubric(options.rubric)
    if (options.students is None) == (options.filled is None):
        raise SourceError(
            "give either --students or --filled",
            hint="First the list of students makes a sheet; filled, it makes the feedback.",
        )
    if options.filled is not None:
        graded = read_sheet(rubric, options.filled)
        (out / "feedback").mkdir(parents=True, exist_ok=True)
        totals = [[STUDENT, "points", "of"]]
        for student, (points, comment) in graded.items():
            totals.append([student, f"{sum(points):g}", str(rubric.points)])
            text = _feedback(rubric, student, points, comment)
            (out / "feedback" / f"{file_name(student)}.md").write_text(text, encoding="utf-8")
        (out / "totals.csv").write_text(csv_text(totals), encoding="utf-8")
        say(f"{len(graded)} graded of {rubric.points} points: {out / 'totals.csv'}")
        return 0
    students = read_roster(options.students).names
    place = out / "sheet.csv"
    if place.exists():
        raise SourceError("there is a sheet already, which may be filled in", file=place)
    out.mkdir(parents=True, exist_ok=True)
    rows = [rubric.head, *([each, *[""] * (len(rubric.head) - 1)] for each in students)]
    place.write_text(csv_text(rows), encoding="utf-8")
    say(f"a row for each of {len(students)} students, {rubric.points} points: {place}")
    return 0


def _feedback(rubric: Rubric, student: str, points: Sequence[float], comment: str) -> str:
    """Return a student's page: points, and for what is missing, what would have earned it."""
    lines = [f"# {rubric.title}: {student}", "", f"{sum(points):g} of {rubric.points} points", ""]
    for each, own in zip(rubric.criteria, points, strict=True):
        lines.append(f"- **{each.name}**: {own:g} of {each.points}")
        if own < each.points:
            lines.append(f"  All points: {each.full}")
    return "\n".join([*lines, *(["", comment] if comment else [])]) + "\n"
