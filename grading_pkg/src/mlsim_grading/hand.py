"""Points by hand: texts that a person marks, in one table a question, which is read back.

`DIR/hand/QUESTION.csv` has a row for each text, with a column for each part of the rubric. The
instructor fills it in; the next grading reads it, adds rows for new texts, and keeps every row in
which something is written. A row is known by its first cell, which follows from student, question
and text: a text that is handed in again, changed, is a new row.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_exercises.data import Exercise
from mlsim_exercises.markdown import plain_text
from mlsim_grading.cells import csv_text, number, unsafe
from mlsim_grading.overrides import read_points
from mlsim_grading.results import Mark, Result
from mlsim_grading.tables import read_table

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
    table = read_table(path)
    head = [cell.strip() for cell in table.rows[0][1]] if table.rows else []
    wanted = Sheet(exercise).head
    missing = [name for name in wanted if name not in head]
    if missing:
        raise SourceError(
            f"there is no column {', '.join(missing)}", file=path, line=1,
            hint="Its columns must stay as they were written; you may add some of your own.",
        )  # fmt: skip
    rows: dict[str, Row] = {}
    for line, values in table.rows[1:]:
        cells = {
            name: unsafe(values[at]) if at < len(values) else ""
            for at, name in enumerate(head)
            if name
        }
        name = cells[ROW].strip()
        written = any(cells[each].strip() for each in (*wanted[3:],))
        if not re.fullmatch(rf"[a-z]{{{_LETTERS}}}", name):
            if written or name:
                raise SourceError("the first cell of this row is not as it was written: nothing"
                                  " says whose text it is", file=path, line=line)  # fmt: skip
            continue
        if name in rows:
            raise SourceError(
                f"this row stands here twice (line {rows[name].line})", file=path, line=line
            )
        rows[name] = Row(line, cells, _points(exercise, cells, path, line), cells[COMMENT].strip())
    columns = tuple(dict.fromkeys(name for name in head if name and name not in wanted))
    return Sheet(exercise, rows, columns, table.delimiter or ",")


def _points(
    exercise: Exercise, cells: Mapping[str, str], path: Path, line: int
) -> tuple[float, ...] | None:
    """Return the points of a row, None while a part of the rubric has none."""
    given = [cells[each.head].strip() for each in exercise.rubric]
    found = [
        read_points(cell, each.points, path, line) if cell else None
        for cell, each in zip(given, exercise.rubric, strict=True)
    ]
    return None if None in found else tuple(each for each in found if each is not None)


def half_filled(hand: Hand) -> list[tuple[str, int]]:
    """Return question and line of the rows that have points for some parts of the rubric only."""
    return [
        (question, row.line)
        for question, sheet in hand.items()
        for row in sheet.rows.values()
        if row.points is None
        and any(row.cells[each.head].strip() for each in sheet.exercise.rubric)
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
        if name not in texts and any(row.cells[each].strip() for each in sheet.head[3:])
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
