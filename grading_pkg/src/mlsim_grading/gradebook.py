"""The gradebook: one row a student, from whatever was handed in and whatever was decided by hand.

First the points of texts that a person marked, then overrides, then what is taken off for being
late; then the latest or the best of a student's submissions is taken. Those who handed in nothing
have a row, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.cells import csv_text, number, some
from mlsim_grading.hand import Hand, marked
from mlsim_grading.late import LateRule, read_time
from mlsim_grading.left import NOTHING
from mlsim_grading.overrides import PENALTY, Override, Overrides
from mlsim_grading.results import Mark, Result

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
        _entry(name, roster.get(name, {}), by_student[name], blank, rules)
        if by_student[name]
        else _nothing(name, roster.get(name, {}), blank, rules, nothing.get(name, NOTHING))
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
    name: str,
    about: Mapping[str, str],
    own: Sequence[Result],
    blank: tuple[Mark, ...],
    rules: Rules,
) -> Entry:
    taken, notes = _taken(own, rules)
    if (name, PENALTY) not in rules.overrides:
        if rules.late and not taken.handed_at:
            notes.append(NOT_TIMED if taken.late else "nothing says when it was handed in")
        elif taken.late and not rules.late:
            notes.append(NO_RULE)
    changed = _changed(name, blank, rules)
    return Entry(
        name, about, taken.marks, taken, len(own), taken.taken_off, taken.late_words, changed,
        (*notes, *taken.notes),
    )  # fmt: skip


def _nothing(
    name: str, about: Mapping[str, str], blank: tuple[Mark, ...], rules: Rules, note: str
) -> Entry:
    """Return the row of a student of whom there is no notebook."""
    marks = tuple(_overridden(mark, name, rules) for mark in blank)
    changed = _changed(name, blank, rules)
    return Entry(name, about, marks, None, 0, changed=changed, notes=(note,))


def _changed(name: str, blank: tuple[Mark, ...], rules: Rules) -> tuple[str, ...]:
    asked = (*(mark.question for mark in blank), PENALTY)
    return tuple(each for each in asked if (name, each) in rules.overrides)


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
    result = entry.result
    return [
        entry.student, *(entry.about.get(each, "") for each in book.columns),
        result.file if result else "", str(entry.attempts),
        result.handed_at if result else "", number(entry.points), str(entry.of),
        f"{entry.percent:.1f}", number(entry.taken_off), entry.late,
        *(number(mark.points) for mark in entry.marks), ", ".join(entry.changed),
        ", ".join(entry.open), "; ".join(_whys(entry, book.rules)),
    ]  # fmt: skip


def _whys(entry: Entry, rules: Rules) -> Iterable[str]:
    """Yield the notes of a row, with the reasons of what was overridden."""
    yield from entry.notes
    for question in entry.changed:
        own = rules.overrides[entry.student, question]
        yield f"{question}: {number(own.points)}, {own.why}"
