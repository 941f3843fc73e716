"""What comes after grading: the instructor's own files, and all that is written.

The instructor's files lie beside the key: `overrides.csv` is only read; `hand/` is read, and gets
rows for new texts. Both are read before anything runs, so a slip in them costs no time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_grading.alike import alike_csv, find_alike
from mlsim_grading.assignment import Assignment
from mlsim_grading.exports import Export, export
from mlsim_grading.finish_options import HAND, OVERRIDES
from mlsim_grading.gradebook import Gradebook, Rules, gradebook_csv, make_gradebook
from mlsim_grading.hand import half_filled, read_hand, write_hand
from mlsim_grading.late import LateRule, read_due
from mlsim_grading.overrides import PENALTY, read_overrides
from mlsim_grading.overview import overview
from mlsim_grading.results import Result
from mlsim_grading.tallies import mistakes_csv, questions_csv


@dataclass(frozen=True)
class Finish:
    """What was decided by options and by hand, read before anything runs."""

    rules: Rules
    folder: Path
    blind: bool = False
    exports: tuple[str, ...] = ()
    column: str = ""
    overrides: Path = Path(OVERRIDES)

    @classmethod
    def of(cls, options: argparse.Namespace, folder: Path, assignment: Assignment) -> Finish:
        """Read options and the instructor's files.

        Raises
        ------
        SourceError
            An option says something that can't be, or a file does; with file and line.
        """
        overrides = options.overrides or folder / OVERRIDES
        if options.overrides and not overrides.exists():
            raise SourceError("there is no such file of overrides", file=overrides)
        called = _called(assignment)
        rules = Rules(
            options.take,
            late_rule(options),
            # without a class list, students are those who handed in: `book` reads it
            read_overrides(overrides, called, _points(assignment)) if called else {},
            read_hand(folder / HAND, [each.exercise for each in assignment.questions]),
            assignment.roster.groups(options.groups) if options.groups else {},
        )
        made = cls(
            rules, folder, options.blind, tuple(options.export), options.export_as, overrides
        )  # fmt: skip
        for kind in made.exports:  # what it lacks is told now, not after everything ran
            export(make_gradebook([], assignment, rules), kind, made.column)
        return made

    def book(
        self, results: Sequence[Result], assignment: Assignment, absent: Mapping[str, str]
    ) -> Gradebook:
        """Return the gradebook, and give the instructor the texts that are new.

        Parameters
        ----------
        absent
            What to say of students who handed in no notebook.

        Raises
        ------
        SourceError
            There is no class list, and somebody in the overrides has handed in nothing.
        """
        write_hand(self.folder / HAND, self.rules.hand, results, blind=self.blind)
        rules = self.rules
        if not _called(assignment):
            names = {each.student: each.student for each in results if each.student}
            own = read_overrides(self.overrides, names, _points(assignment))
            rules = replace(rules, overrides=own)
        return make_gradebook(results, assignment, rules, absent)

    def files(
        self, book: Gradebook, assignment: Assignment, passed: int = 0
    ) -> tuple[Mapping[str, str], tuple[str, ...]]:
        """Return what is written beside the results, by name, and what must be known of it.

        Raises
        ------
        SourceError
            An export lacks what its course system needs.
        """
        exported: list[Export] = [export(book, kind, self.column) for kind in self.exports]
        notes = tuple(dict.fromkeys(note for each in exported for note in each.notes))
        alike = find_alike(book, assignment)
        found = {
            "gradebook.csv": gradebook_csv(book),
            "questions.csv": questions_csv(book),
            "mistakes.csv": mistakes_csv(book),
            "alike.csv": alike_csv(alike),
            "overview.html": overview(book, alike, notes, passed),
        }
        for each in exported:
            found.update(each.files)
        return found, notes

    def tell(self, book: Gradebook, notes: Sequence[str], say: Callable[[str], None]) -> None:
        """Say what the instructor should do next."""
        for question, line in half_filled(self.rules.hand):
            say(f"WARN: {HAND}/{question}.csv, line {line}, is filled in part: not counted yet")
        unmarked = sum(len(each.open) for each in book.entries)
        if unmarked:
            one = unmarked == 1
            say(
                f"{unmarked} text{'' if one else 's'} to be marked in {self.folder / HAND};"
                " fill in the points and grade again"
            )
        if late := sum(each.unpunished for each in book.entries):
            how = (
                f"write '{PENALTY}' into {self.folder / OVERRIDES}" if self.rules.late
                else "give --due, and only what the system times can lose points"
            )  # fmt: skip
            say(f"WARN: {late} late, says the course system, and nothing was taken off: {how}")
        if self.rules.late is not None:
            late = sum(bool(each.taken_off) for each in book.entries)
            say(f"{late} with points taken off. {self.rules.late.words}")
        for note in notes:
            say(f"export: {note}")


def late_rule(options: argparse.Namespace) -> LateRule | None:
    """Return the rule for being late that options declare, None without `--due`.

    Raises
    ------
    SourceError
        There is no due date for it, or a number is out of its range.
    """
    given = {
        "per_day": options.late_per_day, "at_most": options.late_at_most, "grace": options.grace,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    if options.due is None:
        if given:
            raise SourceError(
                "nothing says when it was due", hint="Add --due 2026-11-30T23:59+01:00."
            )
        return None
    for name, value in given.items():
        most = float("inf") if name == "grace" else 100
        if not 0 <= value <= most or value == float("inf"):
            option = {"per_day": "--late-per-day", "at_most": "--late-at-most"}.get(name, "--grace")
            raise SourceError(f"{option} {value:g} must be from 0 to {most:g}")
    return LateRule(read_due(options.due), **given)


def _points(assignment: Assignment) -> Mapping[str, float]:
    return {each.exercise.id: each.exercise.points for each in assignment.questions}


def _called(assignment: Assignment) -> Mapping[str, str]:
    """Return what students may be called in the instructor's files, and their names."""
    found: dict[str, str] = {}
    for each in assignment.roster.students:
        for said in (*each.also, *each.ids):
            # what two students share names nobody
            found[said] = "" if said in found else each.name
    found.update({name: name for name in assignment.roster.names})
    found.update({name: name for name in assignment.students})
    return {said: name for said, name in found.items() if name}
