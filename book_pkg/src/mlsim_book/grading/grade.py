"""Grade what was handed in: run it behind walls, compare, keep each result.

Results are kept one by one, so that a run that was stopped goes on where it was. The
answers never leave this process: the notebook runs in another, which says what the
student's names hold.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.grading.assignment import Assignment, Question
from mlsim_book.grading.key import read_key
from mlsim_book.grading.process import Limits, Ran, font_cache, run_cells
from mlsim_book.grading.submissions import Submission, find_submissions, read_submission
from mlsim_book.progress import clear, step
from mlsim_exercises.verdicts import Verdict, judge

Progress = Callable[[str], None]
_FORMAT = "1"  # raise it when grading changes


@dataclass(frozen=True)
class Mark:
    """What one question got."""

    question: str
    title: str
    points: float
    of: int
    kind: str  # as of a verdict
    message: str
    given: str  # the student's answer, as it was read


@dataclass(frozen=True)
class Result:
    """What one submission got."""

    file: str
    student: str
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    digest: str = field(default="", compare=False)

    @property
    def points(self) -> float:
        """Points in all."""
        return sum(mark.points for mark in self.marks)

    @property
    def of(self) -> int:
        """Points that could be had."""
        return sum(mark.of for mark in self.marks)


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
    def hidden(self) -> list[str]:
        """What no submission may read."""
        own = [self.root / name for name in ("students", "solutions", "rubric.md")]
        return [str(each) for each in (self.key, self.submissions, self.results, *own)]


def grade(
    folders: Folders,
    *,
    limits: Limits | None = None,
    jobs: int = 2,
    again: bool = False,
    progress: Progress = print,
) -> list[Result]:
    """Grade every notebook of a folder; return a result for each, in order of the files.

    Parameters
    ----------
    again
        Grade also what has a result already.

    Raises
    ------
    SourceError
        There is no key, or no submission.
    ToolError
        The subprocess that runs notebooks doesn't start.
    """
    assignment = read_key(folders.key)
    paths = find_submissions(folders.submissions)
    kept = folders.results / "kept"
    _make(kept)
    base = content_hash(_FORMAT, folders.key.read_bytes(), repr(limits))
    found: dict[Path, Result] = {}
    guarded: list[Path] = []  # run without a network of their own
    with tempfile.TemporaryDirectory(prefix="grade-") as scratch:
        fonts = font_cache(Path(scratch))

        def one(path: Path) -> Result:
            submission = read_submission(path, assignment.students)
            digest = content_hash(base, path.read_bytes()) if path.is_file() else ""
            done = None if again else _load(kept / _kept_name(path, folders), digest)
            if done is not None:
                return done
            ran = _run(submission, assignment, folders, limits or Limits(), fonts)
            if not ran.network_closed:
                guarded.append(path)
            result = _result(submission, assignment, ran, folders, digest)
            _store(kept / _kept_name(path, folders), result)
            return result

        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(one, path): path for path in paths}
            try:
                for number, future in enumerate(as_completed(waiting), start=1):
                    found[waiting[future]] = future.result()
                    step(progress, number, len(paths), waiting[future].name)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            finally:
                clear(progress)
    if guarded:
        progress(
            "WARN: this system gives a submission no network of its own: Python alone refuses"
            " it the network. Run the command in a container without one to be sure."
        )
    return _note_repeats([found[path] for path in paths])


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(
            f"results can't be written: {error.strerror}",
            file=folder,
            hint="Name another folder: --out DIR.",
        ) from error


def _run(
    submission: Submission,
    assignment: Assignment,
    folders: Folders,
    limits: Limits,
    fonts: Sequence[Path],
) -> Ran:
    if submission.trouble:
        return Ran(trouble=(submission.trouble,))
    answers = {each.variable: each.exercise.unit for each in assignment.questions}
    with tempfile.TemporaryDirectory(prefix="grade-") as home:
        (Path(home) / ".matplotlib").mkdir()
        for each in fonts:
            shutil.copy(each, Path(home) / ".matplotlib")
        return run_cells(submission.cells, answers, Path(home), folders.hidden, limits)


def _result(
    submission: Submission, assignment: Assignment, ran: Ran, folders: Folders, digest: str
) -> Result:
    numbers = assignment.students.get(submission.student)
    notes = [*submission.notes, *ran.trouble]
    if assignment.students and numbers is None:
        # nothing says whose numbers it has: no answer of it can be judged
        blank = Verdict("not attempted", "Not graded: whose notebook this is isn't known.")
        marks = [_mark(each, blank, "") for each in assignment.questions]
    else:
        marks = [
            _mark(each, *_judged(each, numbers[index] if numbers else 0, ran))
            for index, each in enumerate(assignment.questions)
        ]
    name = submission.path.relative_to(folders.submissions).as_posix()
    return Result(name, submission.student, tuple(marks), tuple(notes), ran.seconds, digest)


def _judged(question: Question, version: int, ran: Ran) -> tuple[Verdict, str]:
    sent = ran.values.get(question.variable)
    value, shown = _answer(sent)
    return judge(question.versions[version], value), shown


class _Foreign:
    """A quantity whose unit didn't fit; it was left in the other process."""

    magnitude = float("nan")
    dimensionless = False

    def __init__(self, units: str) -> None:
        self.units = units

    def to(self, unit: str) -> _Foreign:
        raise TypeError(unit)


def _answer(sent: Any) -> tuple[Any, str]:
    """Return an answer that a subprocess sent, and how it reads; trust nothing in it."""
    if not isinstance(sent, dict) or not sent:
        return None, ""
    kind, value = next(iter(sent.items()))
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), f"{value:.6g}"
    if kind == "list" and isinstance(value, list):
        return [str(each) for each in value], ", ".join(str(each) for each in value)
    if kind == "unit":
        return _Foreign(str(value)), f"in {value}"
    if kind == "text":
        return str(value), str(value)
    return object(), str(value)


def _mark(question: Question, verdict: Verdict, given: str) -> Mark:
    exercise = question.exercise
    points = verdict.score * exercise.points
    return Mark(
        exercise.id, exercise.title, points, exercise.points, verdict.kind, verdict.message, given
    )


def _note_repeats(results: list[Result]) -> list[Result]:
    """Note on each file that another one is of the same student."""
    noted = []
    for each in results:
        others = [
            other.file for other in results
            if other.student and other.student == each.student and other is not each
        ]  # fmt: skip
        note = (f"also of this student: {', '.join(others)}",) if others else ()
        noted.append(replace(each, notes=each.notes + note))
    return noted


def _kept_name(path: Path, folders: Folders) -> str:
    return content_hash(path.relative_to(folders.submissions).as_posix()) + ".json"


def _load(path: Path, digest: str) -> Result | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["digest"] != digest:
            return None
        marks = tuple(Mark(**each) for each in data.pop("marks"))
        return Result(**{**data, "marks": marks, "notes": tuple(data["notes"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(path: Path, result: Result) -> None:
    """Keep a result, whole or not at all."""
    part = path.with_suffix(f".{time.monotonic_ns()}.part")
    part.write_text(json.dumps(asdict(result), ensure_ascii=False), encoding="utf-8")
    part.replace(path)
