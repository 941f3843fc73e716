"""Grades as course systems read them: Canvas, Moodle, or a plain table.

Canvas (its importer, instructure/canvas-lms, lib/gradebook_importer.rb, and the "four required
components" in teaching.resources.osu.edu, "Import CSV File for Carmen Grades"): the first row has
`Student`, `ID`, `SIS User ID`, `SIS Login ID`, `Section` in this order and then assignments, the
second `Points Possible`. A student is known by ID, else by SIS ID, else by name. An assignment is
known by `Title (number)`, else by its title; any other is made anew. Columns whose name holds one
of `CANVAS_OWN` are left out.

Moodle, grade import (docs.moodle.org, "Grade import"; moodle/moodle,
grade/import/csv/classes/load_data.php): any columns, one of which names the user by e-mail (whose
case counts), ID number or username. One user who isn't found stops the whole import, and so does a
grade above 100 unless the site allows it. An empty grade is none.

Moodle, offline grading worksheet (mod/assign/feedback/offline/importgradeslib.php): the file that
was downloaded, in UTF-8 with commas, with `Identifier`, `Grade` and `Last modified (grade)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlsim_book.errors import SourceError
from mlsim_grading.cells import csv_text, is_formula, number, some
from mlsim_grading.gradebook import Entry, Gradebook

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_OWN = (
    "Current Score", "Current Points", "Current Grade", "Final Score", "Final Points",
    "Final Grade", "Override Score", "Override Grade", "Override Status",
)  # fmt: skip
WORKSHEET = ("Identifier", "Grade", "Last modified (grade)")
_MOST = 100  # that Moodle takes unless its settings say otherwise
# What a class list calls a column, for each that a course system wants.
_SAID: Mapping[str, tuple[str, ...]] = {
    "Email address": ("email address", "email", "e-mail", "e-mail address", "mail",
                      "e-mail-adresse", "adresse de courriel", "dirección de correo"),
    "ID number": ("id number", "idnumber", "id-nummer", "matrikelnummer", "student id",
                  "student number", "sis user id", "sid", "numéro d'identification",
                  "número de id"),
    "Username": ("username", "user name", "login", "sis login id", "anmeldename", "benutzername",
                 "nom d'utilisateur", "nombre de usuario"),
    "First name": ("first name", "firstname", "vorname", "prénom", "nombre"),
    "Last name": ("last name", "lastname", "surname", "nachname", "nom", "apellido(s)"),
}  # fmt: skip


@dataclass(frozen=True)
class Export:
    """Files by name, and what the instructor must know of them."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def export(book: Gradebook, kind: str, column: str = "") -> Export:
    """Return the grades as a course system reads them.

    Parameters
    ----------
    kind
        "canvas", "moodle" or "csv".
    column
        What the assignment is called there; its title if empty.

    Raises
    ------
    SourceError
        The class list has no column by which the system knows a student, or the name is one that
        the system keeps for itself.
    """
    made = _KINDS[kind](book, column or book.title)
    return Export(made.files, (*made.notes, *_told(book)))


def _told(book: Gradebook) -> Iterable[str]:
    """Yield what holds for each export."""
    absent = [each.student for each in book.entries if not each.graded]
    if absent:
        yield f"{_many(absent)} without a grade, as nothing of theirs was graded: {some(absent)}"
    unmarked = [each.student for each in book.entries if each.open]
    if unmarked:
        yield f"{_many(unmarked)} with a text that nobody has marked, so far 0: {some(unmarked)}"
    odd = [
        each.student
        for each in book.entries
        if any(map(is_formula, (each.student, *each.about.values())))
    ]
    if odd:
        said = "with a cell that a spreadsheet may take for a formula; it has ' in front there"
        yield f"{_many(odd)} {said}: {some(odd)}"
    nobodys = sum(not each.student for each in book.results)
    if nobodys:
        yield f"{nobodys} submission{'s' if nobodys > 1 else ''} of nobody that is known: not in it"


def _many(students: Sequence[str]) -> str:
    return f"{len(students)} student{'s' if len(students) > 1 else ''}"


def _grade(entry: Entry) -> str:
    return number(entry.points) if entry.graded else ""


def _canvas(book: Gradebook, column: str) -> Export:
    own = [each for each in CANVAS_OWN if each in column]
    if own:
        raise SourceError(
            f"Canvas reads no column whose name holds '{own[0]}'",
            hint="Call it something else: --export-as NAME.",
        )
    find = {name: _column(book, name) for name in CANVAS}
    # a list that isn't from Canvas may have the same under another name
    find["SIS User ID"] = find["SIS User ID"] or _column(book, "ID number")
    find["SIS Login ID"] = (
        find["SIS Login ID"] or _column(book, "Username") or _column(book, "Email address")
    )
    rows = [[*CANVAS, column], ["    Points Possible", "", "", "", "", str(book.of)]]
    rows += [
        [
            entry.about.get(find["Student"], "") or entry.student,
            *(entry.about.get(find[name], "") for name in CANVAS[1:]), _grade(entry),
        ]
        for entry in book.entries
    ]  # fmt: skip
    known = any(find[name] for name in ("ID", "SIS User ID", "SIS Login ID"))
    said = (
        "the class list has no ID of Canvas: it will look for students by name. Export the"
        " gradebook from Canvas and use that file as the class list."
    )
    return Export({"canvas.csv": csv_text(rows)}, () if known else (said,))


def _moodle(book: Gradebook, column: str) -> Export:
    if _column(book, WORKSHEET[0]) and all(_column(book, name) for name in WORKSHEET):
        return _worksheet(book)
    keys = {name: _column(book, name) for name in ("ID number", "Email address", "Username")}
    keys = {name: found for name, found in keys.items() if found}
    if not keys:
        raise SourceError(
            "nothing in the class list tells Moodle who is who",
            hint="It needs a column 'Email address', 'ID number' or 'Username'. There are: "
            f"{', '.join(book.columns) or 'no columns'}.",
        )
    names = {name: found for name in ("First name", "Last name") if (found := _column(book, name))}
    shown = {**names, **keys}
    there = [each for each in book.entries if any(each.about.get(at) for at in keys.values())]
    rows = [[*shown, column]]
    rows += [[*(each.about.get(at, "") for at in shown.values()), _grade(each)] for each in there]
    named = {each.student for each in there}
    out = [each.student for each in book.entries if each.student not in named]
    notes = [f"choose to map from '{next(iter(keys))}' in Moodle's import"]
    for name, at in keys.items():
        empty = [each.student for each in there if not each.about.get(at)]
        if empty:
            notes.append(f"{_many(empty)} without {name}, so don't map from it: {some(empty)}")
    if out:
        notes.append(f"{_many(out)} left out, as nothing names them to Moodle: {some(out)}")
    if book.of > _MOST:
        notes.append(f"Moodle takes no grade above {_MOST} unless its settings allow it")
    return Export({"moodle.csv": csv_text(rows)}, tuple(notes))


def _worksheet(book: Gradebook) -> Export:
    """Return the worksheet that was the class list, with grades."""
    grade, most = _column(book, "Grade"), _column(book, "Maximum Grade")
    rows = [list(book.columns)]
    scales: dict[str, None] = {}
    out = []
    for entry in book.entries:
        if not entry.about.get(_column(book, "Identifier")):
            out.append(entry.student)
            continue
        top = _float(entry.about.get(most, "")) or book.of
        cells = dict(entry.about)
        if entry.graded:
            cells[grade] = number(entry.points * top / book.of)
        scales[number(top)] = None
        rows.append([cells.get(each, "") for each in book.columns])
    notes = ["this is the worksheet that was the class list; upload it in the assignment"]
    other = [each for each in scales if each != number(book.of)]
    if other:
        notes.append(f"points of {book.of} were scaled to Moodle's maximum of {', '.join(other)}")
    if out:
        notes.append(f"{_many(out)} left out, as they stand in no worksheet: {some(out)}")
    return Export({"moodle-worksheet.csv": csv_text(rows)}, tuple(notes))


def _plain(book: Gradebook, column: str) -> Export:
    rows = [["student", *book.columns, column, "of", "percent"]]
    rows += [
        [
            each.student, *(each.about.get(at, "") for at in book.columns), _grade(each),
            str(each.of), f"{each.percent:.1f}" if each.graded else "",
        ]
        for each in book.entries
    ]  # fmt: skip
    return Export({"grades.csv": csv_text(rows)}, ())


_KINDS: Mapping[str, Callable[[Gradebook, str], Export]] = {
    "canvas": _canvas, "moodle": _moodle, "csv": _plain,
}  # fmt: skip


def _column(book: Gradebook, wanted: str) -> str:
    """Return the column of the class list that holds something, "" if there is none."""
    said = _SAID.get(wanted, (wanted.casefold(),))
    by_name = {each.strip().casefold(): each for each in reversed(book.columns)}
    return next((by_name[each] for each in said if each in by_name), "")


def _float(text: str) -> float:
    try:
        return max(0.0, float(text.replace(",", ".")))
    except ValueError:
        return 0.0
