"""Grade what was handed in: run it behind walls, compare out here, keep each result.

The answers never leave this process. A worker is given a notebook and the names to look at; what
those held comes back, and is judged here. Nothing that one submission is or does ends the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.progress import clear, step
from mlsim_exercises.verdicts import Verdict, judge
from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.cells import some
from mlsim_grading.executors import Task, processes, run_all
from mlsim_grading.kept import Kept
from mlsim_grading.key import read_key
from mlsim_grading.limits import LONGEST, Limits
from mlsim_grading.lms import Claim
from mlsim_grading.matching import MATCHES, Matcher, read_matches
from mlsim_grading.process import Ran, available_processors, clean
from mlsim_grading.results import Mark, Result
from mlsim_grading.submissions import Collected, Handed, find_submissions, read_submission
from mlsim_grading.walls.choose import TRUST, choose

__all__ = ["Folders", "Mark", "Result", "grade"]

Progress = Callable[[str], None]
_FORMAT = "4"  # raise it when grading changes
_FAR = 64  # submissions at a time on a cluster, whose size isn't known
_GIVEN = 300  # characters of an answer that are shown


@dataclass(frozen=True)
class Folders:
    """Where an assignment is, as `assign` writes it."""

    root: Path
    key: Path
    submissions: Path
    results: Path

    @classmethod
    def of(
        cls, root: Path, *, key: Path | None, submissions: Path | None, out: Path | None
    ) -> Folders:
        """Return the folders of an assignment, those given instead of the usual ones."""
        root = root.resolve()
        return cls(
            root,
            (key or root / "key.json").resolve(),
            (submissions or root / "submissions").resolve(),
            (out or root / "results").resolve(),
        )

    @property
    def kept(self) -> Path:
        """Where results are kept one by one."""
        return self.results / "kept"

    @property
    def matches(self) -> Path:
        """Where the instructor says whose a file is."""
        return self.root / MATCHES

    @property
    def hidden(self) -> tuple[str, ...]:
        """What no submission may see."""
        return tuple(map(str, (self.root, self.key, self.submissions, self.results)))


def make_matcher(
    folders: Folders, assignment: Assignment, groups: Mapping[str, Sequence[str]] | None = None
) -> Matcher:
    """Return what says whose a file is.

    Raises
    ------
    SourceError
        A line of `matches.csv` names nobody.
    """
    names = [*assignment.students, *assignment.roster.names]
    decided = read_matches(folders.matches, names)
    return Matcher(assignment.students, assignment.roster, assignment.title, decided, groups)


def grade(
    folders: Folders,
    *,
    limits: Limits | None = None,
    jobs: int | None = None,
    again: bool = False,
    walls: str = "auto",
    executor: Callable[[], Executor] | None = None,
    collected: Collected | None = None,
    matcher: Matcher | None = None,
    progress: Progress = print,
) -> list[Result]:
    """Grade every notebook of a folder or zip; return a result for each, in order of the files.

    Parameters
    ----------
    jobs
        How many run at a time. If None, one for each processor, or 64 with an executor.
    again
        Grade also what has a result already.
    walls
        Their kind: "auto", "bubblewrap", "docker", "podman"; "none" trusts every submission.
    executor
        Makes what runs them, in place of processes on this machine. Walls are then those of
        the machines that do.
    collected
        What was handed in, if it was looked for already.
    matcher
        Says whose a file is, if it knows more than the assignment does.

    Raises
    ------
    SourceError
        There is no key, or no submission.
    NoWallsError
        There are no walls that work.
    """
    limits = limits or Limits()
    assignment = read_key(folders.key)
    found = (collected or find_submissions(folders.submissions)).handed
    matcher = matcher or make_matcher(folders, assignment)
    around = walls if executor is not None else choose(walls)
    trusted = walls == TRUST
    kept = Kept(folders.kept)
    kept.prepare()
    answers = {each.variable: each.exercise.unit for each in assignment.questions}
    base = content_hash(_FORMAT, repr(answers), repr(limits))
    hidden = (*folders.hidden, *assignment.private)
    results: dict[bytes, Result] = {}
    digests: dict[bytes, str] = {}

    def tasks() -> Iterator[Task[Handed]]:
        for each in found:
            if matcher.hopeless(each):
                results[each.key] = _result(each, assignment, Ran(), matcher)
                continue
            data, trouble = read_submission(each)
            digest = digests[each.key] = content_hash(base, each.key, data, trouble)
            known = None if again or trusted else kept.load(each.key, digest)
            if known is not None:
                results[each.key] = _result(each, assignment, known, matcher, digest=digest)
            elif trouble:
                ran = Ran(trouble=(trouble,), told=(trouble,))
                results[each.key] = _result(
                    each, assignment, ran, matcher, digest=digest, unread=trouble
                )
            else:
                yield Task(each, (data, answers, limits, around, hidden))

    jobs = jobs or (_FAR if executor else available_processors())
    try:
        for handed, ran in run_all(tasks(), executor or (lambda: processes(jobs)), jobs):
            digest = digests[handed.key]
            results[handed.key] = _result(handed, assignment, ran, matcher, digest=digest)
            if not (ran.failed or trusted):
                kept.store(handed.key, digest, ran)
            step(progress, len(results), len(found), handed.name)
    finally:
        clear(progress)
    return _note_repeats(_settled([results[each.key] for each in found], assignment))


def _result(
    handed: Handed,
    assignment: Assignment,
    ran: Ran,
    matcher: Matcher,
    *,
    digest: str = "",
    unread: str = "",
) -> Result:
    whose = matcher.whose(handed, ran.student)
    numbers = assignment.students.get(whose.student)
    notes, told = [*whose.notes, *ran.trouble], list(ran.told)
    why = whose.undecided and "whose notebook this is isn't known"
    if ran.failed:
        why = "it could not be run"
        notes.append(f"not graded: {ran.failed}")
        told.append("It could not be run; nothing of it was judged.")
    elif whose.undecided:
        notes.append(f"not graded: {whose.undecided}")
    elif assignment.students and numbers is None:
        why = "there are no numbers for this student in the key"
        notes.append(f"not graded: {why}; 'mlsim-book assign ... --add' gives some")
    if why:
        marks = _blank(assignment, why)
    else:
        marks = tuple(
            _mark(each, *_judged(each, numbers[index] if numbers else 0, ran))
            for index, each in enumerate(assignment.questions)
        )
    claim = handed.claim or Claim("")
    return Result(
        handed.name, whose.student, marks, tuple(notes), tuple(told), ran.seconds, digest,
        ran.failed, ran.sources, by=whose.by, undecided=whose.undecided, unread=unread,
        candidates=whose.candidates, attempt=claim.attempt, order=claim.order,
        handed_at=claim.handed_at, packed_at=handed.packed_at, late=claim.late,
    )  # fmt: skip


def _blank(assignment: Assignment, why: str) -> tuple[Mark, ...]:
    verdict = Verdict("not attempted", f"Not graded: {why}.")
    return tuple(_mark(each, verdict, "") for each in assignment.questions)


def _judged(question: Question, version: int, ran: Ran) -> tuple[Verdict, str]:
    value, shown = _answer(ran.values.get(question.variable))
    try:
        return judge(question.versions[version], value), shown
    except Exception:  # noqa: BLE001 - whatever an answer is, the others are judged
        return Verdict("no answer", "This answer can't be read."), shown


class _Foreign:
    """A quantity whose unit didn't fit; it was left in the other process."""

    magnitude = float("nan")
    dimensionless = False

    def __init__(self, units: str) -> None:
        self.units = units

    def to(self, unit: str) -> _Foreign:
        raise TypeError(unit)


def _answer(sent: dict[str, Any] | None) -> tuple[Any, str]:
    """Return an answer as it is judged, and how it reads."""
    if not sent:
        return None, ""
    kind, value = next(iter(sent.items()))
    if kind == "number":
        return value, f"{value:.6g}"
    if kind == "list":
        return value, clean(", ".join(value), _GIVEN)
    if kind == "unit":
        return _Foreign(value), f"in {value}"
    if kind == "text":
        return value, value[:LONGEST]
    return object(), value


def _mark(question: Question, verdict: Verdict, given: str) -> Mark:
    exercise = question.exercise
    message = verdict.message
    if exercise.kind != "text":
        given = clean(given, _GIVEN)  # on one line
    elif verdict.kind == "unmarked":
        message = "Not marked yet: a person reads this answer."
        if len(given) >= LONGEST:
            message += f" Only its first {LONGEST:,} characters count."
    return Mark(
        exercise.id, exercise.title, verdict.score * exercise.points, exercise.points,
        verdict.kind, message, given, verdict.path or 0,
    )  # fmt: skip


def _settled(results: list[Result], assignment: Assignment) -> list[Result]:
    """Take a file back that its own word alone gave to a student who has others."""
    many = Counter(each.student for each in results if each.student)
    settled = []
    for each in results:
        if each.by != "notebook" or many[each.student] == 1:
            settled.append(each)
            continue
        why = f"only the notebook says {each.student}, who handed in another file"
        blank = _blank(assignment, "whose notebook this is isn't known")
        notes = (*each.notes, f"not graded: {why}")
        settled.append(
            replace(each, student="", marks=blank, notes=notes, by="", undecided=why,
                    candidates=(each.student,))
        )  # fmt: skip
    return settled


def _note_repeats(results: list[Result]) -> list[Result]:
    """Note on each file that another one is of the same student."""
    files: dict[str, list[str]] = {}
    for each in results:
        files.setdefault(each.student, []).append(each.file)
    noted = []
    for each in results:
        others = [file for file in files[each.student] if file != each.file and each.student]
        note = (f"also of this student: {some(others)}",) if others else ()
        noted.append(replace(each, notes=each.notes + note))
    return noted
