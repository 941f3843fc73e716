"""The commands that grading adds to `mlsim-book`, and what `mlsim-book doctor` says of walls."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.progress import Teller
from mlsim_exercises.data import Exercise
from mlsim_grading.finish_options import add_finish
from mlsim_grading.limits import Limits
from mlsim_grading.results import Result
from mlsim_grading.roster import Roster

if TYPE_CHECKING:
    from mlsim_book.doctor import Finding

ENGINES = ("podman", "docker")  # as `walls.container` has them; reading that takes time
TRUST = "none"
_TRUSTED = (
    "no walls: these notebooks run as you do. A hook inside Python refuses the usual slips in"
    " words; one line of plain Python takes it off. No result is kept for the next run."
)
_say = Teller()


def add_commands(commands: Any) -> None:
    """Add the commands to those of `mlsim-book`."""
    assign = commands.add_parser(
        "assign", help="make notebooks for students from exercises, with solutions and a rubric"
    )
    assign.add_argument(
        "wanted", nargs="*", metavar="CHAPTER",
        help="a chapter, an exercise's id, or a .exercises.toml file; several are joined",
    )  # fmt: skip
    assign.add_argument(
        "--exam", type=Path, action="append", default=[], metavar="FILE",
        help="a private .exercises.toml file, which may lie nowhere that others can read",
    )  # fmt: skip
    assign.add_argument(
        "--private-seed", type=Path, metavar="FILE",
        help="a private file with any text: numbers are drawn from it, in place of public ones",
    )  # fmt: skip
    assign.add_argument("--out", type=Path, required=True, metavar="DIR", help="where it goes")
    assign.add_argument(
        "--variant-by", type=Path, metavar="CSV",
        help="a class list, as of Moodle, Canvas or Gradescope: students get numbers of their own",
    )  # fmt: skip
    _identified(assign)
    assign.add_argument("--title", default="Assignment", help="how it is called")
    assign.add_argument(
        "--seed", default="", metavar="TEXT", help="another text gives students other numbers"
    )
    there = assign.add_mutually_exclusive_group()
    there.add_argument("--replace", action="store_true", help="even if another assignment is there")
    there.add_argument(
        "--add", action="store_true",
        help="give notebooks to students who came late; nobody else's numbers change",
    )  # fmt: skip
    there.add_argument(
        "--correct", action="store_true",
        help="take the answers that the questions have now; nobody's numbers change",
    )  # fmt: skip
    assign.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="the book's folder (default: here)"
    )
    assign.set_defaults(run=_assign)
    grade = commands.add_parser("grade", help="grade the notebooks that were handed in")
    grade.add_argument("folder", type=Path, metavar="DIR", help="the folder that assign wrote")
    grade.add_argument(
        "--submissions", type=Path, metavar="PLACE",
        help="a folder, or a zip as a course platform makes it (default: DIR/submissions)",
    )  # fmt: skip
    grade.add_argument(
        "--students", type=Path, metavar="CSV", help="a class list, if newer than that of assign"
    )
    _identified(grade)
    grade.add_argument("--key", type=Path, metavar="FILE", help="default: DIR/key.json")
    grade.add_argument("--out", type=Path, metavar="DIR", help="default: DIR/results")
    grade.add_argument("--again", action="store_true", help="also what has a result already")
    for name, default, words in [
        ("--cell-seconds", Limits.cell_seconds, "seconds that one cell may run"),
        ("--seconds", Limits.seconds, "seconds for a submission"),
        ("--memory", Limits.memory // 2**20, "MiB of memory for a submission, files included"),
        ("--home", Limits.home // 2**20, "MiB of files that a submission may write"),
        ("--processes", Limits.processes, "processes and threads of a submission"),
    ]:
        grade.add_argument(
            name, type=_positive, default=default, metavar="N", help=f"{words} (default: {default})"
        )
    grade.add_argument(
        "-j", "--jobs", type=_positive, metavar="N",
        help="submissions at a time (default: one for each processor)",
    )  # fmt: skip
    grade.add_argument(
        "--executor", metavar="MODULE:FUNCTION",
        help="a function that returns a concurrent.futures executor, as of a cluster",
    )  # fmt: skip
    around = grade.add_mutually_exclusive_group()
    around.add_argument(
        "--walls", choices=("auto", "bubblewrap", *ENGINES), default="auto",
        help="what keeps submissions away from the machine (default: what works)",
    )  # fmt: skip
    around.add_argument(
        "--trust-submissions", dest="walls", action="store_const", const=TRUST,
        help="run them without walls: they can do whatever you can",
    )  # fmt: skip
    add_finish(grade)
    grade.set_defaults(run=_grade)
    sheet = commands.add_parser(
        "sheet", help="a grading sheet for work that people read, from a rubric"
    )
    sheet.add_argument("rubric", type=Path, metavar="RUBRIC.toml", help="criteria and points")
    sheet.add_argument(
        "--students", type=Path, metavar="CSV", help="a list of students: makes the empty sheet"
    )
    sheet.add_argument(
        "--filled", type=Path, metavar="CSV", help="the filled sheet: makes totals and feedback"
    )
    sheet.add_argument("--out", type=Path, required=True, metavar="DIR", help="where it goes")
    sheet.set_defaults(run=_sheet)


def _identified(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--id", default="", metavar="COLUMN",
        help="the class list's column that tells students apart, such as 'SIS Login ID'",
    )  # fmt: skip


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return int(text)


def _assign(options: argparse.Namespace) -> int:
    from mlsim_book.exercises.files import exercise_files
    from mlsim_book.read.project import load_project
    from mlsim_grading.assignment import choose, make_assignment
    from mlsim_grading.enrol import add_students, correct_answers
    from mlsim_grading.exams import check_private, made_with, private_files
    from mlsim_grading.handouts import write_assignment
    from mlsim_grading.key import read_key
    from mlsim_grading.people import as_known

    project = load_project(options.root, Problems())
    if not (options.wanted or options.exam):
        raise SourceError(
            "nothing says what to ask", hint="Name chapters or exercises, or --exam FILE."
        )
    files = exercise_files(project, [each.source for each in project.chapters])
    if options.id and not options.variant_by:
        raise SourceError(
            "--id names a column of a class list, and there is none",
            hint="Name the list, too: --variant-by CSV.",
        )
    roster = _class_list(options.variant_by, options.id) if options.variant_by else Roster()
    if options.add and roster.students:
        before = read_key(options.out / "key.json")
        roster = as_known(roster, before.students, before.roster)
    students = roster.names
    secret = [*options.exam, *private_files(options.wanted, project, files)]
    secret += [options.private_seed] if options.private_seed else []
    private = tuple(check_private(each, project, options.out) for each in secret)
    chosen = [*(choose(options.wanted, files) if options.wanted else ()), *_exams(options.exam)]
    seed = options.private_seed.read_text(encoding="utf-8").strip() if options.private_seed else ""
    if options.private_seed and not seed:
        raise SourceError("this seed is empty: write any text into it", file=options.private_seed)
    assignment = make_assignment(options.title, chosen, students, options.seed, private_seed=seed)
    assignment = replace(assignment, made_with=made_with(project), private=private, roster=roster)
    if options.add:
        new = add_students(assignment, project, options.out)
        _say(
            f"{len(new)} students more in {options.out / 'students'}: {', '.join(new) or 'nobody'}"
        )
        return 0
    if options.correct:
        changed = correct_answers(assignment, project, options.out)
        _say(f"corrected: {', '.join(changed) or 'nothing, as no answer differs'}")
        _say(f"now: mlsim-book grade {options.out}, which runs no notebook again")
        return 0
    write_assignment(assignment, project, options.out, replace=options.replace)
    fixed = [each.exercise.id for each in assignment.questions if len(each.versions) == 1]
    if students and fixed:
        _say(f"the same for all, as they have no [exercise.given]: {', '.join(fixed)}")
    audience = f" for {len(students)} students" if students else ""
    count = len(assignment.questions)
    asked = f"{count} question{'s' if count != 1 else ''}, {assignment.points} points{audience}"
    _say(f"{asked}: {options.out}")
    _say(f"hand out {options.out / 'students'}; keep the rest to yourself")
    return 0


def _class_list(path: Path, column: str) -> Roster:
    from mlsim_grading.class_lists import read_roster

    roster = read_roster(path, column)
    for note in roster.notes:
        _say(f"{path}: {note}")
    return roster


def _exams(files: Sequence[Path]) -> list[Exercise]:
    from mlsim_exercises.data import load

    found = [each for file in files for each in load(file)]
    for file in files:
        if not load(file):
            raise SourceError("there is no exercise in it", file=file)
    return found


def _sheet(options: argparse.Namespace) -> int:
    from mlsim_grading import sheet
    from mlsim_grading.assignment import read_students

    rubric = sheet.load_rubric(options.rubric)
    if (options.students is None) == (options.filled is None):
        raise SourceError(
            "give either --students or --filled",
            hint="First the list of students makes a sheet; filled, it makes the feedback.",
        )
    if options.filled is not None:
        graded = sheet.read_sheet(rubric, options.filled)
        table = sheet.write_feedback(rubric, graded, options.out)
        _say(f"{len(graded)} graded of {rubric.points} points: {table}")
        return 0
    students = read_students(options.students)
    place = options.out / "sheet.csv"
    if place.exists():
        raise SourceError("there is a sheet already, which may be filled in", file=place)
    options.out.mkdir(parents=True, exist_ok=True)
    place.write_text(sheet.empty_sheet(rubric, students) + "\n", encoding="utf-8")
    _say(f"a row for each of {len(students)} students, {rubric.points} points: {place}")
    return 0


def _grade(options: argparse.Namespace) -> int:
    from mlsim_grading.exams import other_version
    from mlsim_grading.executors import named
    from mlsim_grading.finish import Finish
    from mlsim_grading.grade import Folders, grade, make_matcher
    from mlsim_grading.key import read_key
    from mlsim_grading.left import NOT_GRADED, absent, not_graded, told, whose
    from mlsim_grading.people import as_known
    from mlsim_grading.report import publish_results
    from mlsim_grading.submissions import find_submissions
    from mlsim_grading.walls.choose import choose

    folders = Folders.of(
        options.folder, key=options.key, submissions=options.submissions, out=options.out
    )
    limits = Limits(
        cell_seconds=options.cell_seconds,
        seconds=options.seconds,
        memory=options.memory * 2**20,
        home=options.home * 2**20,
        processes=options.processes,
    )
    if options.walls == TRUST:
        _say(f"WARN: {_TRUSTED}")
    assignment = read_key(folders.key)
    roster = assignment.roster
    if options.students:
        roster = as_known(_class_list(options.students, options.id), assignment.students, roster)
    elif options.id:
        roster = roster.identified(options.id)
    assignment = replace(assignment, roster=roster)
    collected = find_submissions(folders.submissions)
    if other := other_version(assignment.made_with):
        _say(f"WARN: {other}")
    finish = Finish.of(options, folders.root, assignment)
    matcher = make_matcher(folders, assignment, finish.rules.groups)
    results = grade(
        folders, limits=limits, jobs=options.jobs, again=options.again, walls=options.walls,
        executor=named(options.executor) if options.executor else None,
        collected=collected, matcher=matcher, progress=_say,
    )  # fmt: skip
    keep = options.walls != TRUST
    names = list(dict.fromkeys([*assignment.students, *roster.names]))
    passed = whose(collected.passed, matcher)
    book = finish.book(results, assignment, absent(not_graded(results, passed)))
    extra, notes = finish.files(book, assignment, len(collected.passed))
    results = list(book.results)
    publish_results(
        results, names, assignment.title, folders.results, keep=keep, roster=roster,
        passed=passed, extra=extra,
    )  # fmt: skip
    left = not_graded(results, passed)
    results = [each for each in results if not each.of_group]
    _say(_counted(results))
    _say(f"{folders.results / 'gradebook.csv'} has a row for each student; overview.html tells it")
    _say(f"pages for students in {folders.results / 'feedback'}")
    for line in told(left, str(folders.results / NOT_GRADED)):
        _say(line)
    finish.tell(book, notes, _say)
    if not options.executor and (counted := choose(options.walls).counted):
        _say(f"walls: {counted}")
    failed = any(each.failed for each in results)
    if failed:
        _say("What could not be run is tried again by the next run.")
    return int(failed)


def _counted(results: Sequence[Result]) -> str:
    """Say how many submissions were graded, and how."""
    full = sum(result.points == result.of for result in results)
    odd = sum(bool(result.notes) for result in results)
    done = sum(not (each.failed or each.undecided or each.unread) for each in results)
    of = f" of {len(results)}" if done < len(results) else ""
    many = f"{done}{of} submission{'s' if len(results) != 1 else ''}"
    return f"{many} graded, {full} with all points, {odd} with notes"


def findings() -> list[Finding]:
    """Try the walls that `grade` would use; say who counts memory and which engines there are."""
    from mlsim_book.doctor import Finding
    from mlsim_grading.walls import container
    from mlsim_grading.walls.choose import NoWallsError, choose

    try:
        walls = choose()
        bounds = "counted from outside" if walls.counted else "by the kernel, in a control group"
        found = [
            Finding("walls", True, f"{walls.kind} {walls.version} ({walls.program}), tried"),
            Finding("memory", not walls.counted, bounds, walls.counted, needed=False),
        ]
    except NoWallsError as error:
        found = [Finding("walls", False, error.message, error.hint or "", needed=False)]
    advice = "Only needed for grading, where bubblewrap doesn't work."
    for name in container.engines():
        why = container.missing(name)
        said = why or f"has the image {container.IMAGE}"
        found.append(Finding(name, not why, said, advice, needed=False))
    return found
