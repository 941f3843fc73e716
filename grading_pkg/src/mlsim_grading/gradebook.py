"""The gradebook: one row a student, from whatever was handed in and whatever was decided by hand.

First the points of texts that a person marked, then overrides, then what is taken off for being
late; then the latest or the best of a student's submissions is taken. Those who handed in nothing
have a row, too.

Course systems read it as one of these.

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

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mlsim_book.errors import SourceError
from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.class_lists import names_of_columns
from mlsim_grading.decisions import PENALTY, Hand, LateRule, Override, Overrides, marked, read_time
from mlsim_grading.grade import NOTHING, Mark, Result
from mlsim_grading.tables import csv_text, is_formula, number, some

_NOWHEN = datetime(1970, 1, 1, tzinfo=UTC)
NOT_TIMED = "late, says the course system, but not by how much: nothing was taken off"
NO_RULE = "late, says the course system: nothing was taken off, as --due says no rule"


@dataclass(frozen=True)
class Rules:
    """What decides points besides the answers."""

    take: str = "latest"
    late: LateRule | None = None
    overrides: Overrides = field(default_factory=dict)
    hand: Hand = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # who hands in together


@dataclass(frozen=True)
class Entry:
    """A student's row. `result` is the submission that counts, None if there is none."""

    student: str
    about: Mapping[str, str]  # what the class list says
    marks: tuple[Mark, ...]
    result: Result | None
    attempts: int
    taken_off: float = 0.0
    late: str = ""
    changed: tuple[str, ...] = ()  # what was overridden
    notes: tuple[str, ...] = ()
    known: bool = True  # whether the key has numbers for this student

    @property
    def points(self) -> float:
        """Points in all."""
        return max(0.0, sum(mark.points for mark in self.marks) - self.taken_off)

    @property
    def of(self) -> int:
        """Points that could be had."""
        return sum(mark.of for mark in self.marks)

    @property
    def percent(self) -> float:
        """The share of the points, in percent."""
        return 100 * self.points / self.of if self.of else 0.0

    @property
    def open(self) -> tuple[str, ...]:
        """The questions whose text nobody has marked yet."""
        return tuple(mark.question for mark in self.marks if mark.kind == "unmarked")

    @property
    def unpunished(self) -> bool:
        """Whether a course system says that this is late, and nothing is taken off for it."""
        return any(each in {NOT_TIMED, NO_RULE} for each in self.notes)

    @property
    def graded(self) -> bool:
        """Whether there is anything to give points for."""
        there = self.result is not None and not self.result.failed and self.known
        return there or bool(self.changed)


@dataclass(frozen=True)
class Gradebook:
    """All rows, in the order of the class list, and all results as they were decided."""

    title: str
    questions: tuple[Question, ...]
    columns: tuple[str, ...]  # of the class list
    entries: tuple[Entry, ...]
    results: tuple[Result, ...]
    rules: Rules

    @property
    def of(self) -> int:
        """Points that could be had."""
        return sum(each.exercise.points for each in self.questions)


def make_gradebook(
    results: Sequence[Result],
    assignment: Assignment,
    rules: Rules | None = None,
    absent: Mapping[str, str] | None = None,
) -> Gradebook:
    """Decide the points of each result, and which of them counts for each student.

    Results that are nobody's have no row; `Gradebook.results` has them. What a member of a group
    handed in is a result of each of its members.

    Parameters
    ----------
    absent
        What to say of students who handed in no notebook, where that isn't nothing.
    """
    rules = rules or Rules()
    read = [own for each in results for own in _shared(marked(each, rules.hand), rules.groups)]
    decided = [_decided(each, rules) for each in read]
    by_student: dict[str, list[Result]] = defaultdict(list)
    for each in decided:
        if each.student:
            by_student[each.student].append(each)
    roster = {each.name: each.columns for each in assignment.roster.students}
    names = dict.fromkeys([*roster, *assignment.students, *sorted(by_student)])
    names |= dict.fromkeys(student for student, _ in rules.overrides)
    blank = tuple(
        Mark(each.exercise.id, each.exercise.title, 0.0, each.exercise.points, "", "", "")
        for each in assignment.questions
    )
    nothing = absent or {}
    entries = [
        _entry(
            name,
            roster.get(name, {}),
            by_student[name],
            blank,
            rules,
            nothing=nothing.get(name, NOTHING),
        )
        for name in names
    ]
    counted = {id(each.result) for each in entries}
    final = [
        replace(each, counts=False) if each.student and id(each) not in counted else each
        for each in decided
    ]
    columns = assignment.roster.columns
    return Gradebook(
        assignment.title, assignment.questions, columns, tuple(entries), tuple(final), rules
    )


def _shared(result: Result, groups: Mapping[str, Sequence[str]]) -> Iterator[Result]:
    """Yield a result, and its copies for the others of the student's group."""
    yield result
    for group, members in groups.items():
        for name in members if result.student in members else ():
            if name != result.student:
                note = f"handed in by {result.student}, for {group}"
                notes = (*result.notes, note)
                yield replace(result, student=name, notes=notes, of_group=result.student)


def _decided(result: Result, rules: Rules) -> Result:
    """Return a result with what was decided by hand and what is taken off."""
    found = result
    if rules.overrides and found.student:
        marks = tuple(_overridden(each, found.student, rules) for each in found.marks)
        found = replace(found, marks=marks)
    own = rules.overrides.get((found.student, PENALTY))
    if own is not None:
        words = f"What is taken off was set by hand: {number(own.points)}."
        return replace(found, taken_off=own.points, late_words=words)
    late = rules.late.of(found.handed_at) if rules.late else None
    if late is None:
        return found
    return replace(found, taken_off=found.points * late.share, late_words=late.words)


def _overridden(mark: Mark, student: str, rules: Rules) -> Mark:
    own: Override | None = rules.overrides.get((student, mark.question))
    if own is None:
        return mark
    message = f"{mark.message} Your instructor set these points.".strip()
    return replace(mark, points=own.points, kind="override", message=message)


def _entry(
    name: str, about: Mapping[str, str], own: Sequence[Result], blank: tuple[Mark, ...],
    rules: Rules, *, nothing: str,
) -> Entry:  # fmt: skip
    asked = (*(mark.question for mark in blank), PENALTY)
    changed = tuple(each for each in asked if (name, each) in rules.overrides)
    if not own:
        marks = tuple(_overridden(mark, name, rules) for mark in blank)
        return Entry(name, about, marks, None, 0, changed=changed, notes=(nothing,))
    taken, notes = _taken(own, rules)
    if (name, PENALTY) not in rules.overrides:
        if rules.late and not taken.handed_at:
            notes.append(NOT_TIMED if taken.late else "nothing says when it was handed in")
        elif taken.late and not rules.late:
            notes.append(NO_RULE)
    return Entry(
        name, about, taken.marks, taken, len(own), taken.taken_off, taken.late_words, changed,
        (*notes, *taken.notes),
    )  # fmt: skip


def _taken(own: Sequence[Result], rules: Rules) -> tuple[Result, list[str]]:
    """Return the submission that counts, and what the instructor should know of the others."""
    if len(own) == 1:
        return own[0], []
    when = _when(own, rules)
    in_order = sorted(own, key=when)
    best = max(reversed(in_order), key=lambda each: each.final)
    if rules.take == "best":
        return best, []
    if when(in_order[0])[:-1] == when(in_order[-1])[:-1]:
        others = some([each.file for each in own if each is not best])
        said = "nothing says which is the latest: the one with most points was taken"
        return best, [f"{said}, not {others}"]
    latest = in_order[-1]
    if best.final > latest.final:
        return latest, [f"an earlier one has more points: {number(best.final)} ({best.file})"]
    return latest, []


def _when(
    own: Sequence[Result], rules: Rules
) -> Callable[[Result], tuple[datetime, int, int, str, str]]:
    """Return the key by which submissions are in order: times count if all have one."""
    like = rules.late.due if rules.late else _NOWHEN
    timed = all(read_time(each.handed_at, like) for each in own)
    packed = all(each.packed_at for each in own)

    def when(each: Result) -> tuple[datetime, int, int, str, str]:
        at = read_time(each.handed_at, like) if timed else None
        last = each.packed_at if packed else ""
        return at or _NOWHEN, each.order, each.attempt, last, each.file

    return when


def gradebook_csv(book: Gradebook) -> str:
    """Return the gradebook as a table."""
    own = [
        "file", "submissions", "handed in", "points", "of", "percent", "taken off", "late",
        *(each.exercise.id for each in book.questions), "set by hand", "to be marked", "notes",
    ]  # fmt: skip
    columns = [each if each not in {"student", *own} else f"list: {each}" for each in book.columns]
    return csv_text([["student", *columns, *own], *(_row(book, each) for each in book.entries)])


def _row(book: Gradebook, entry: Entry) -> list[str]:
    result, whys = entry.result, []
    for question in entry.changed:  # why it was overridden
        own = book.rules.overrides[entry.student, question]
        whys.append(f"{question}: {number(own.points)}, {own.why}")
    return [
        entry.student, *(entry.about.get(each, "") for each in book.columns),
        result.file if result else "", str(entry.attempts),
        result.handed_at if result else "", number(entry.points), str(entry.of),
        f"{entry.percent:.1f}", number(entry.taken_off), entry.late,
        *(number(mark.points) for mark in entry.marks), ", ".join(entry.changed),
        ", ".join(entry.open), "; ".join([*entry.notes, *whys]),
    ]  # fmt: skip


CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_OWN = (
    "Current Score", "Current Points", "Current Grade", "Final Score", "Final Points",
    "Final Grade", "Override Score", "Override Grade", "Override Status",
)  # fmt: skip
WORKSHEET = ("Identifier", "Grade", "Last modified (grade)")
_MOST = 100  # that Moodle takes unless its settings say otherwise


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
        "canvas" or "moodle".
    column
        What the assignment is called there; its title if empty.

    Raises
    ------
    SourceError
        The class list has no column by which the system knows a student, or the name is one that
        the system keeps for itself.
    """
    made = (_canvas if kind == "canvas" else _moodle)(book, column or book.title)
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


def _column(book: Gradebook, wanted: str) -> str:
    """Return the column of the class list that holds something, "" if there is none."""
    said = names_of_columns()["exports"].get(wanted, (wanted.casefold(),))
    by_name = {each.strip().casefold(): each for each in reversed(book.columns)}
    return next((by_name[each] for each in said if each in by_name), "")


def _float(text: str) -> float:
    try:
        return max(0.0, float(text.replace(",", ".")))
    except ValueError:
        return 0.0
