"""What the instructor decides by hand: `overrides.csv`, which is read at each grading.

    student,question,points,why
    Ada Lovelace,kv-70b,2,Asked in the office hour
    Alan Turing,late penalty,0,Was ill

It is the instructor's own file. Nothing here writes it, so a new grading loses nothing.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_grading.cells import unsafe
from mlsim_grading.tables import read_table

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
    rows = read_table(path).rows
    places = _places(path, rows[0][1] if rows else ())
    known = {tidy(each): name for each, name in students.items()}
    allowed = {**questions, PENALTY: sum(questions.values())}
    found: dict[tuple[str, str], Override] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, cells in rows[1:]:
        row = {name: cells[at].strip() if at < len(cells) else "" for name, at in places.items()}
        student = known.get(tidy(row["student"])) or known.get(tidy(unsafe(row["student"])))
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


def read_points(cell: str, most: float, path: Path, line: int) -> float:
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
        raise SourceError(f"{cell!r} is no number from 0 to {most:g}", file=path, line=line)
    return value


def _places(path: Path, head: Iterable[str]) -> dict[str, int]:
    names = [each.strip().casefold() for each in head]
    missing = [name for name in HEAD if name not in names]
    if missing:
        raise SourceError(
            f"there is no column {', '.join(missing)}", file=path, line=1,
            hint=f"Its first line is: {','.join(HEAD)}",
        )  # fmt: skip
    return {name: names.index(name) for name in HEAD}


def tidy(text: str) -> str:
    """Return a name as it is compared: caseless, composed, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _unknown(what: str, given: str, known: Iterable[str], path: Path, line: int) -> SourceError:
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(tidy(given), [tidy(each) for each in names], n=1, cutoff=0.5)
    nearest = next((each for each in names if near and tidy(each) == near[0]), "")
    shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
    hint = f"Did you mean '{nearest}'?" if nearest else f"There are: {shown or 'none'}."
    return SourceError(f"there is no {what} '{given}'", file=path, line=line, hint=hint)
