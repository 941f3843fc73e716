"""`mlsim-book grade`: what is read before anything runs, and all that is written after it.

The instructor's files lie beside the key: `overrides.csv` is only read; `hand/` is read, and gets
rows for new texts. Both are read before anything runs, so a slip in them costs no time.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.progress import Teller
from mlsim_grading.assignment import Assignment, other_version, read_key
from mlsim_grading.class_lists import told_roster
from mlsim_grading.decisions import (
    HAND,
    OVERRIDES,
    PENALTY,
    LateRule,
    Overrides,
    half_filled,
    read_due,
    read_hand,
    read_overrides,
    write_hand,
)
from mlsim_grading.grade import (
    NOT_GRADED,
    Folders,
    Result,
    absent,
    grade,
    make_matcher,
    not_graded,
    told,
    whose,
)
from mlsim_grading.gradebook import Gradebook, Rules, export, gradebook_csv, make_gradebook
from mlsim_grading.matching import as_known
from mlsim_grading.overview import (
    alike_table,
    find_alike,
    mistakes_table,
    overview,
    publish_results,
    questions_table,
)
from mlsim_grading.process import named
from mlsim_grading.submissions import find_submissions
from mlsim_grading.tables import csv_text
from mlsim_grading.walls.choose import TRUST, choose
from mlsim_grading.walls.supervise import Limits

_TRUSTED = (
    "no walls: these notebooks run as you do. A hook inside Python refuses the usual slips in"
    " words; one line of plain Python takes it off. No result is kept for the next run."
)


def run(options: argparse.Namespace) -> int:
    """Grade what was handed in; return 1 if something could not be run."""
    say = Teller()
    folders = Folders.of(
        options.folder, key=options.key, submissions=options.submissions, out=options.out
    )
    limits = Limits(
        cell_seconds=options.cell_seconds, seconds=options.seconds,
        memory=options.memory * 2**20, home=options.home * 2**20, processes=options.processes,
    )  # fmt: skip
    trusted = options.walls == TRUST
    if trusted:
        say(f"WARN: {_TRUSTED}")
    assignment = read_key(folders.key)
    roster = assignment.roster
    if options.students:
        newer = told_roster(options.students, options.id, say)
        roster = as_known(newer, assignment.students, roster)
    elif options.id:
        roster = roster.identified(options.id)
    assignment = replace(assignment, roster=roster)
    collected = find_submissions(folders.submissions)
    if other := other_version(assignment.made_with):
        say(f"WARN: {other}")
    rules = _rules(options, folders.root, assignment)
    for kind in options.export:  # what it lacks is told now, not after everything ran
        export(make_gradebook([], assignment, rules), kind, options.export_as)
    matcher = make_matcher(folders, assignment, rules.groups)
    results = grade(
        folders, limits=limits, jobs=options.jobs, again=options.again, walls=options.walls,
        executor=named(options.executor) if options.executor else None,
        collected=collected, matcher=matcher, progress=say,
    )  # fmt: skip
    write_hand(folders.root / HAND, rules.hand, results, blind=options.blind)
    if not _called(assignment):  # without a class list, students are those who handed in
        names = {each.student: each.student for each in results if each.student}
        rules = replace(rules, overrides=_overrides(options, folders.root, assignment, names))
    passed = whose(collected.passed, matcher)
    book = make_gradebook(results, assignment, rules, absent(not_graded(results, passed)))
    exported = [export(book, kind, options.export_as) for kind in options.export]
    notes = list(dict.fromkeys(note for each in exported for note in each.notes))
    alike = find_alike(book, assignment)
    extra = {
        "gradebook.csv": gradebook_csv(book), "alike.csv": csv_text(alike_table(alike)),
        "questions.csv": csv_text(questions_table(book)),
        "mistakes.csv": csv_text(mistakes_table(book)),
        "overview.html": overview(book, alike, notes, len(passed)),
    }  # fmt: skip
    for each in exported:
        extra |= each.files
    publish_results(
        book.results, assignment, folders.results, keep=not trusted, passed=passed, extra=extra
    )
    own = [each for each in book.results if not each.of_group]
    say(_counted(own))
    say(f"{folders.results / 'gradebook.csv'} has a row for each student; overview.html tells it")
    say(f"pages for students in {folders.results / 'feedback'}")
    for line in told(not_graded(book.results, passed), str(folders.results / NOT_GRADED)):
        say(line)
    _tell(book, folders.root, say)
    for note in notes:
        say(f"export: {note}")
    if not options.executor and (counted := choose(options.walls).counted):
        say(f"walls: {counted}")
    failed = any(each.failed for each in own)
    if failed:
        say("What could not be run is tried again by the next run.")
    return int(failed)


def _rules(options: argparse.Namespace, folder: Path, assignment: Assignment) -> Rules:
    """Return what options and the instructor's files decide.

    Raises
    ------
    SourceError
        An option says something that can't be, or a file does; with file and line.
    """
    if options.overrides and not options.overrides.exists():
        raise SourceError("there is no such file of overrides", file=options.overrides)
    called = _called(assignment)
    return Rules(
        options.take,
        _late_rule(options),
        _overrides(options, folder, assignment, called) if called else {},
        read_hand(folder / HAND, [each.exercise for each in assignment.questions]),
        assignment.roster.groups(options.groups) if options.groups else {},
    )


def _overrides(
    options: argparse.Namespace, folder: Path, assignment: Assignment, called: Mapping[str, str]
) -> Overrides:
    points = {each.exercise.id: each.exercise.points for each in assignment.questions}
    return read_overrides(options.overrides or folder / OVERRIDES, called, points)


def _late_rule(options: argparse.Namespace) -> LateRule | None:
    """Return the rule for being late that options declare, None without `--due`."""
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
        most = math.inf if name == "grace" else 100
        if not 0 <= value <= most or value == math.inf:
            option = {"per_day": "--late-per-day", "at_most": "--late-at-most"}.get(name, "--grace")
            raise SourceError(f"{option} {value:g} must be from 0 to {most:g}")
    return LateRule(read_due(options.due), **given)


def _called(assignment: Assignment) -> Mapping[str, str]:
    """Return what students may be called in the instructor's files, and their names."""
    found: dict[str, str] = {}
    for each in assignment.roster.students:
        for said in (*each.also, *each.ids):
            found[said] = "" if said in found else each.name  # what two share names nobody
    found |= {name: name for name in (*assignment.roster.names, *assignment.students)}
    return {said: name for said, name in found.items() if name}


def _counted(results: Sequence[Result]) -> str:
    """Say how many submissions were graded, and how."""
    full = sum(result.points == result.of for result in results)
    odd = sum(bool(result.notes) for result in results)
    done = sum(not (each.failed or each.undecided or each.unread) for each in results)
    of = f" of {len(results)}" if done < len(results) else ""
    many = f"{done}{of} submission{'s' if len(results) != 1 else ''}"
    return f"{many} graded, {full} with all points, {odd} with notes"


def _tell(book: Gradebook, folder: Path, say: Callable[[str], None]) -> None:
    """Say what the instructor should do next."""
    for question, line in half_filled(book.rules.hand):
        say(f"WARN: {HAND}/{question}.csv, line {line}, is filled in part: not counted yet")
    if unmarked := sum(len(each.open) for each in book.entries):
        texts = "1 text" if unmarked == 1 else f"{unmarked} texts"
        say(f"{texts} to be marked in {folder / HAND}; fill in the points and grade again")
    late = book.rules.late
    if unpunished := sum(each.unpunished for each in book.entries):
        how = (
            f"write '{PENALTY}' into {folder / OVERRIDES}" if late
            else "give --due, and only what the system times can lose points"
        )  # fmt: skip
        say(f"WARN: {unpunished} late, says the course system, and nothing was taken off: {how}")
    if late is not None:
        many = sum(bool(each.taken_off) for each in book.entries)
        say(f"{many} with points taken off. {late.words}")
