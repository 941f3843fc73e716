"""Grade what was handed in: run it behind walls, compare out here, keep each result.

The answers never leave this process. A worker is given a notebook and the names to look at; what
those held comes back, and is judged here. Nothing that one submission is or does ends the others.

What came out of each notebook is kept one by one, so that a run that was stopped goes on. It is
judged anew at each grading: a longer class list, a mended key or another rule runs nothing again.
The files lie in a folder that only its owner can open. A submission behind walls can't reach it;
one that is trusted could, so nothing is kept of those or read back for them.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import SourceError
from mlsim_book.progress import clear, step
from mlsim_exercises.verdicts import Verdict, judge
from mlsim_grading.assignment import Assignment, Question, read_key
from mlsim_grading.matching import MATCHES, Matcher, read_matches
from mlsim_grading.process import Ran, Task, available_processors, clean, processes, run_all
from mlsim_grading.submissions import (
    Claim,
    Collected,
    Handed,
    Passed,
    find_submissions,
    read_submission,
)
from mlsim_grading.tables import some
from mlsim_grading.walls.choose import TRUST, choose
from mlsim_grading.walls.supervise import LONGEST, Limits


@dataclass(frozen=True)
class Mark:
    """What one question got. `path` is the wrong path that was taken, from 1, or 0."""

    question: str
    title: str
    points: float
    of: int
    kind: str  # as of a verdict
    message: str
    given: str  # the student's answer, as it was read
    path: int = 0


@dataclass(frozen=True)
class Result:
    """What one submission got.

    `notes` are for whoever grades; `told` are those that the student reads, without the texts of
    errors. `failed` says why it was not run, where that is not its own fault. `sources` is the
    same for notebooks with the same code, "" where there is too little of it.

    `unread` says why the file could not even be read. `by` is by what its student is known. Where
    nobody can say who that is, `student` is "", `undecided` says why, and `candidates` who it may
    be from. A platform may have said which `attempt` it is, when it was `handed_at`, that it is
    `late`, and by an `order` which of two came later; `packed_at` is its time in a zip, which may
    be that of the download.

    `of_group` is who handed it in, where that was another member of the student's group.

    `taken_off` are points lost by handing in late, `late_words` tells them; `counts` says whether
    this is the submission of its student that is taken.
    """

    file: str
    student: str
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    failed: str = ""
    sources: str = ""
    by: str = ""
    undecided: str = ""
    unread: str = ""
    candidates: tuple[str, ...] = ()
    attempt: int = 0
    order: int = 0
    handed_at: str = ""
    packed_at: str = ""
    late: bool = False
    of_group: str = ""
    taken_off: float = 0.0
    late_words: str = ""
    counts: bool = True

    @property
    def points(self) -> float:
        """Points in all."""
        return sum(mark.points for mark in self.marks)

    @property
    def final(self) -> float:
        """Points in all, less those that were taken off."""
        return max(0.0, self.points - self.taken_off)

    @property
    def of(self) -> int:
        """Points that could be had."""
        return sum(mark.of for mark in self.marks)


HEAD = ("file", "reason", "may be from", "student")
NOT_GRADED = "not_graded.csv"
NOTHING = "nothing was handed in"
_SHOWN = 10  # lines on the terminal
_FEW = 3  # files that are named in a row


@dataclass(frozen=True)
class Left:
    """A file that was not graded: why, of whom it is, or else of whom it may be.

    `work` is whether somebody may miss it: a notebook, or all that a student handed in, not the
    system's own files.
    """

    file: str
    reason: str
    candidates: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    work: bool = True

    def row(self) -> list[str]:
        """Return its cells in the table."""
        return [self.file, self.reason, "; ".join(self.candidates), "; ".join(self.students)]


def whose(passed: Iterable[Passed], matcher: Matcher) -> list[Passed]:
    """Return what was no submission with its students, as far as there is a class list."""
    known = []
    for each in passed:
        found = [matcher.whose(file) for file in each.handed] if matcher.names else []
        students = dict.fromkeys(one.student for one in found if one.student)
        candidates = dict.fromkeys(name for one in found for name in one.candidates)
        known.append(replace(each, students=tuple(students), candidates=tuple(candidates)))
    return known


def not_graded(results: Sequence[Result], passed: Iterable[Passed]) -> list[Left]:
    """Return every file that was not run, or whose run counts for nobody; notebooks first."""
    notebooks = (
        Left(each.file, reason, each.candidates, (each.student,) if each.student else ())
        for each in results
        if (reason := each.unread or each.undecided or each.failed) and not each.of_group
    )
    there = {each.student for each in results}
    others = (
        Left(each.name, each.reason, each.candidates, each.students,
             work=not there.issuperset(each.students))
        for each in passed
    )  # fmt: skip
    return [*notebooks, *others]


def absent(left: Iterable[Left]) -> Mapping[str, str]:
    """Return what to say of students in place of `NOTHING`, if no notebook is known to be theirs.

    >>> absent([Left("hw.pdf", "no notebook", (), ("Ada",)), Left("Lee.ipynb", "", ("Bo",))])
    {'Bo': 'Lee.ipynb may be theirs: see not_graded.csv', 'Ada': 'no notebook was handed in, but hw.pdf (no notebook)'}
    """  # noqa: E501 - sentences as they are told
    theirs: dict[str, list[str]] = {}
    perhaps: dict[str, list[str]] = {}
    for each in left:
        for name in each.students:
            theirs.setdefault(name, []).append(f"{each.file} ({each.reason})")
        for name in each.candidates:
            perhaps.setdefault(name, []).append(each.file)
    return {
        **{name: f"{some(files, _FEW)} may be theirs: see {NOT_GRADED}"
           for name, files in perhaps.items()},
        **{name: f"no notebook was handed in, but {some(files, _FEW)}"
           for name, files in theirs.items()},
    }  # fmt: skip


def told(left: Sequence[Left], place: str) -> Iterator[str]:
    """Yield the lines for the terminal: notebooks one by one, other files by their number."""
    work = [each for each in left if each.work]
    for each in work[:_SHOWN]:
        who = f" (may be from {', '.join(each.candidates)})" if each.candidates else ""
        yield f"WARN: {each.file} was not graded: {each.reason}{who}"
    if len(work) > _SHOWN:
        yield f"WARN: and {len(work) - _SHOWN:,} more notebooks"
    if any(not each.students for each in work):
        yield f"Say whose they are in {MATCHES} beside the key, with columns file and student."
    others = len(left) - len(work)
    if others:
        files = "files are no notebooks" if others > 1 else "file is no notebook"
        yield f"{others:,} other {files}"
    if left:
        yield f"all that was not graded, with the reason: {place}"


_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _prepare(folder: Path) -> None:
    """Make a folder for its owner alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise SourceError(
            f"results can't be written: {error.strerror}", file=folder,
            hint="Name another folder: --out DIR.",
        ) from error  # fmt: skip


def _load(path: Path, digest: str) -> Ran | None:
    """Return what came out of a submission, if it is of these very bytes."""
    try:
        number = os.open(path, os.O_RDONLY | _CAREFUL)
        with os.fdopen(number, encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return None
            data = json.load(file)
        if data.pop("digest") != digest:
            return None
        lists = {name: tuple(map(str, data[name])) for name in ("trouble", "told")}
        return Ran(**{**data, **lists})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


_FORMAT = "5"  # raise it when grading changes
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
    decided = read_matches(folders.root / MATCHES, names)
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
    progress: Callable[[str], None] = print,
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
    kept = folders.results / "kept"
    _prepare(kept)
    answers = {each.variable: each.exercise.unit for each in assignment.questions}
    base = content_hash(_FORMAT, repr(answers), repr(limits))
    hidden = (*folders.hidden, *assignment.private)
    results: dict[bytes, Result] = {}
    digests: dict[bytes, str] = {}

    def place(each: Handed) -> Path:
        return kept / f"{content_hash(each.key)}.json"

    def tasks() -> Iterator[Task[Handed]]:
        for each in found:
            if matcher.hopeless(each):
                results[each.key] = _result(each, assignment, Ran(), matcher)
                continue
            data, trouble = read_submission(each)
            digest = digests[each.key] = content_hash(base, each.key, data, trouble)
            known = None if again or trusted else _load(place(each), digest)
            if known is not None:
                results[each.key] = _result(each, assignment, known, matcher)
            elif trouble:
                ran = Ran(trouble=(trouble,), told=(trouble,))
                results[each.key] = _result(each, assignment, ran, matcher, trouble)
            else:
                yield each, (data, answers, limits, around, hidden)

    jobs = jobs or (_FAR if executor else available_processors())
    try:
        for handed, ran in run_all(tasks(), executor or (lambda: processes(jobs)), jobs):
            results[handed.key] = _result(handed, assignment, ran, matcher)
            if not (ran.failed or trusted):  # a full disk costs time at the next run, no more
                text = json.dumps({**asdict(ran), "digest": digests[handed.key]})
                TextCache(kept).store(place(handed).name, text)
            step(progress, len(results), len(found), handed.name)
    finally:
        clear(progress)
    return _note_repeats(_settled([results[each.key] for each in found], assignment))


def _result(
    handed: Handed, assignment: Assignment, ran: Ran, matcher: Matcher, unread: str = ""
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
        handed.name, whose.student, marks, tuple(notes), tuple(told), ran.failed,
        ran.sources, by=whose.by, undecided=whose.undecided, unread=unread,
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
        own = each
        if each.by == "notebook" and many[each.student] > 1:
            why = f"only the notebook says {each.student}, who handed in another file"
            own = replace(
                each, student="", by="", undecided=why, candidates=(each.student,),
                marks=_blank(assignment, "whose notebook this is isn't known"),
                notes=(*each.notes, f"not graded: {why}"),
            )  # fmt: skip
        settled.append(own)
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
