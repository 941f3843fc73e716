"""An assignment: questions, and which numbers each student gets.

Answers are computed here, on the instructor's side, when the assignment is made, and go into the
key. Nothing that students get holds them.

The key is a JSON file that only the instructor has. It holds the answers as they were computed
when the assignment was made, so that a later change of the book changes no grade.

For an exam, numbers may be drawn from a seed that is kept private: the lists of `[exercise.given]`
are public, and so are the answers that follow from them. Drawn numbers lie between the least and
the greatest of a list, and go in its steps; names (of a model, of a device) are those of the list.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import json
import math
import random
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_exercises.bank import PATTERN
from mlsim_exercises.data import Criterion, Exercise, ExerciseError, load
from mlsim_exercises.evaluation import Evaluation, evaluate, variants
from mlsim_grading.class_lists import Roster, Student
from mlsim_grading.walls.bubblewrap import environment

_VERSIONS = 8  # of a question
_TRIES = 60


def private_versions(exercise: Exercise, seed: str) -> tuple[Evaluation, ...]:
    """Return versions of a question with numbers that follow from a private seed.

    Numbers for which two mistakes look alike, or that can't be computed, are drawn again. A
    question without numbers has one version, the public one.

    >>> task = Exercise("e", "T", "number", "{n}?", "n * 7", "", given={"n": (10, 500)})
    >>> [each.given["n"] % 10 for each in private_versions(task, "secret")]
    [0, 0, 0, 0, 0, 0, 0, 0]
    """
    draw = random.Random(f"{seed}\x00{exercise.id}")  # noqa: S311 - a seed makes it repeatable
    found: dict[tuple[Any, ...], Evaluation] = {}
    for _ in range(_TRIES):
        if len(found) == _VERSIONS:
            break
        given = {name: _drawn(draw, values) for name, values in exercise.given.items()}
        if tuple(given.values()) in found:
            continue
        try:
            found[tuple(given.values())] = evaluate(exercise, given)
        except ExerciseError:
            continue
    return tuple(found.values()) or (evaluate(exercise),)


def _drawn(draw: random.Random, values: Sequence[Any]) -> Any:
    """Return a value like those of a list.

    >>> _drawn(random.Random(1), (8, 64)) in {8, 16, 32, 64}
    True
    """
    numbers = [each for each in values if isinstance(each, int | float)]
    if (
        len(numbers) != len(values)
        or len(values) == 1
        or any(each is True or each is False for each in values)
    ):
        return draw.choice(list(values))
    whole = [each for each in numbers if isinstance(each, int)]
    if len(whole) == len(numbers) and all(each > 0 and each & (each - 1) == 0 for each in whole):
        low, high = (each.bit_length() - 1 for each in (min(whole), max(whole)))
        return 2 ** draw.randint(low, high)
    digits = max(-int(Decimal(str(each)).as_tuple().exponent) for each in numbers)
    scale = 10 ** max(0, digits)
    parts = [round(each * scale) for each in numbers]
    step = math.gcd(*parts)
    value = draw.randrange(min(parts), max(parts) + 1, step or 1)
    return value if len(whole) == len(numbers) else value / scale


SUFFIX = PATTERN.removeprefix("*")


@dataclass(frozen=True)
class Question:
    """A question of an assignment, computed for each of its variants."""

    exercise: Exercise
    versions: tuple[Evaluation, ...]

    @property
    def variable(self) -> str:
        """The name that a student's notebook gives the answer to."""
        return "answer_" + self.exercise.id.replace("-", "_")


@dataclass(frozen=True)
class Assignment:
    """Questions, and for each student the number of the version of each question.

    `students` is empty where all get the same. `made_with` is the package that computed the
    answers: its name, its version, and the commit it came from, where that is known. `private`
    are files with questions or seeds that nobody else may read. `roster` is the class list.
    """

    title: str
    questions: tuple[Question, ...]
    students: Mapping[str, tuple[int, ...]]
    made_with: tuple[str, str, str] | None = None
    private: tuple[str, ...] = ()
    roster: Roster = field(default_factory=Roster)

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(each.exercise.points for each in self.questions)


def choose(wanted: Sequence[str], files: Iterable[Path]) -> list[Exercise]:
    """Return the exercises that are named: by chapter, by id, or by a file of questions.

    Parameters
    ----------
    wanted
        Chapters (`hello_world`, `tutorials/hello_world.qmd`), ids of exercises, or paths
        of `.exercises.toml` files, which need not belong to the book.
    files
        The book's own exercise files.

    Raises
    ------
    SourceError
        A name is none of these (with the nearest), or a file has no exercise.
    """
    chapters = {path.name.removesuffix(SUFFIX): path for path in files}
    by_id = {each.id: each for path in chapters.values() for each in load(path)}
    chosen: dict[str, Exercise] = {}
    for name in wanted:
        path = Path(name)
        if name.endswith(SUFFIX):
            found = load(path)
        elif path.stem in chapters:
            found = load(chapters[path.stem])
        elif name in by_id:
            found = (by_id[name],)
        else:
            near = difflib.get_close_matches(path.stem, [*chapters, *by_id], n=1)
            hint = f"Did you mean '{near[0]}'?" if near else ""
            known = ", ".join(chapters) or "none"
            raise SourceError(
                f"'{name}' is no chapter with exercises, and no exercise",
                hint=f"{hint} Chapters with exercises: {known}.".strip(),
            )
        if not found:
            raise SourceError("there is no exercise in it", file=name)
        chosen.update((each.id, each) for each in found)
    return list(chosen.values())


def make_assignment(
    title: str,
    exercises: Sequence[Exercise],
    students: Sequence[str] = (),
    seed: str = "",
    *,
    private_seed: str = "",
) -> Assignment:
    """Compute the questions, and give each student numbers of their own.

    A student's numbers follow from `seed`, the question and the student's name alone:
    the same command makes the same assignment, and a student more changes nobody else's.
    With a private seed, numbers are drawn that stand in no public list.

    Raises
    ------
    ExerciseError
        A question can't be computed with the book's own numbers.

    >>> task = Exercise("sum", "Sum", "number", "{n} + 1?", "n + 1", "", given={"n": (1, 2, 3)})
    >>> made = make_assignment("Week 1", [task], ["ada", "alan"])
    >>> len(made.questions[0].versions), sorted(made.students)
    (3, ['ada', 'alan'])
    """

    def versions(exercise: Exercise) -> tuple[Evaluation, ...]:
        if private_seed:
            found = private_versions(exercise, private_seed)
            return found if students else found[:1]
        return _versions(exercise) if students else (evaluate(exercise),)

    questions = tuple(Question(each, versions(each)) for each in exercises)
    chosen = {
        student: tuple(_pick(seed + private_seed, question, student) for question in questions)
        for student in students
    }
    return Assignment(title, questions, chosen)


def _versions(exercise: Exercise) -> tuple[Evaluation, ...]:
    """Compute all variants in which the wrong paths can be told apart."""
    versions = [evaluate(exercise)]
    for given in list(variants(exercise))[1:]:
        try:
            versions.append(evaluate(exercise, given))
        except ExerciseError:
            continue  # these numbers make two mistakes look alike, or can't be solved
    return tuple(versions)


def _pick(seed: str, question: Question, student: str) -> int:
    text = f"{seed}\x00{question.exercise.id}\x00{student}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return number % len(question.versions)


_ELSEWHERE = "Put it into a folder of yours that is neither published nor installed."


def check_private(path: Path, project: Project, out: Path) -> str:
    """Return where a private file lies, if nobody else comes by it there.

    Raises
    ------
    SourceError
        There is no such file, or it lies in the book, in what submissions see, or in what is
        handed out or in.
    """
    real = path.resolve()
    if not real.is_file():
        raise SourceError("there is no such file", file=path)
    places: dict[str, Sequence[str | Path]] = {
        "the book's folder, which is published": [project.root],
        "the folder of the assignment, part of which is handed out": [out],
        "the environment of the interpreter, which submissions see": environment().shown,
    }
    for place, folders in places.items():
        for folder in folders:
            if real.is_relative_to(Path(folder).resolve()):
                raise SourceError(f"this file is private, but lies in {place}: {folder}",
                                  file=path, hint=_ELSEWHERE)  # fmt: skip
    return str(real)


def private_files(wanted: Iterable[str], project: Project, files: Iterable[Path]) -> Iterator[Path]:
    """Yield what is named like a chapter, and is a file of questions from outside the book.

    Parameters
    ----------
    files
        The files of questions that the book publishes, which may lie in its package.
    """
    public = {each.resolve() for each in files}
    for each in wanted:
        real = Path(each).resolve()
        if each.endswith(SUFFIX) and not (
            real in public or real.is_relative_to(project.root.resolve())
        ):
            yield Path(each)


def made_with(project: Project) -> tuple[str, str, str] | None:
    """Return the package that computes the answers: its name, version and commit.

    The commit is "" where the book is no checkout, or one with changes that no commit has.
    """
    settings = project.metadata.get("mlsim-book")
    package = settings.get("package") if isinstance(settings, Mapping) else None
    if not isinstance(package, str):
        return None
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    changed = _git(project.root, "status", "--porcelain", "--untracked-files=no")
    commit = "" if changed is None or changed else _git(project.root, "rev-parse", "HEAD") or ""
    return package, version, commit


def _git(folder: Path, *command: str) -> str | None:
    try:
        ran = subprocess.run(
            ["git", "-C", str(folder), *command], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None


def other_version(made: tuple[str, str, str] | None) -> str:
    """Return a warning if the package here is not the one that the answers were made with."""
    if made is None:
        return ""
    package, version, _ = made
    try:
        here = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        here = "not installed"
    if here == version:
        return ""
    return (
        f"the key was made with {package} {version}; here it is {here}. Submissions run with the"
        f" one that is here: install {package} {version} to run what students were given."
    )


VERSION = 1
_KEPT = ("id", "title", "kind", "unit", "tolerance", "choices", "points", "level", "unit_credit")


def key_text(assignment: Assignment) -> str:
    """Return the key as JSON."""
    data = {
        "version": VERSION,
        "title": assignment.title,
        "questions": [_question_data(each) for each in assignment.questions],
        "made_with": list(assignment.made_with) if assignment.made_with else None,
        "private": list(assignment.private),
        "students": {name: list(numbers) for name, numbers in assignment.students.items()},
        "roster": asdict(assignment.roster),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_key(path: Path) -> Assignment:
    """Return the assignment of a key.

    Raises
    ------
    SourceError
        There is no such file, or it is no key of this version.
    """
    if not path.is_file():
        raise SourceError(
            "there is no key here",
            file=path,
            hint="Name the folder that 'mlsim-book assign' wrote, or its key: --key FILE.",
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise SourceError(f"this key has version {data['version']}, not {VERSION}", file=path)
        questions = tuple(_question(each) for each in data["questions"])
        students = {name: tuple(numbers) for name, numbers in data["students"].items()}
        made_with = None
        if data.get("made_with"):
            package, made_version, commit = map(str, data["made_with"])
            made_with = (package, made_version, commit)
        private = tuple(map(str, data.get("private", ())))
        roster = _roster(data.get("roster") or {})
        return Assignment(data["title"], questions, students, made_with, private, roster)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"this is no key: {type(error).__name__}: {error}",
            file=path,
            hint="Write it again with the 'mlsim-book assign' that made the assignment.",
        ) from error


def _question_data(question: Question) -> dict[str, Any]:
    exercise = question.exercise
    return {
        **{name: getattr(exercise, name) for name in _KEPT},
        "rubric": [asdict(each) for each in exercise.rubric],
        "versions": [
            {
                "given": each.given,
                "answer": each.answer,
                "wrong": [
                    {"answer": wrong, "because": because, "credit": each.credit(path)}
                    for path, (wrong, because) in enumerate(
                        zip(each.wrong, each.because, strict=True), start=1
                    )
                ],
            }
            for each in question.versions
        ],
    }


def _question(data: dict[str, Any]) -> Question:
    exercise = Exercise(
        prompt="", answer="", solution="",
        # a key of an older version has no credit and no rubric
        rubric=tuple(Criterion(**each) for each in data.get("rubric", ())),
        **{name: _tuples(data[name]) for name in _KEPT if name in data or name != "unit_credit"},
    )  # fmt: skip
    versions = tuple(
        Evaluation(
            exercise,
            _tuples(each["answer"]),
            tuple(_tuples(path["answer"]) for path in each["wrong"]),
            tuple(path["because"] for path in each["wrong"]),
            "", (), "", each["given"],
            tuple(float(path.get("credit", 0)) for path in each["wrong"]),
        )
        for each in data["versions"]
    )  # fmt: skip
    if not versions:
        raise ValueError(f"the question '{exercise.id}' has no version")
    return Question(exercise, versions)


def _roster(data: dict[str, Any]) -> Roster:
    students = tuple(
        Student(**{name: _tuples(value) for name, value in each.items()})
        for each in data.get("students", ())
    )
    columns, notes = (tuple(map(str, data.get(name, ()))) for name in ("columns", "notes"))
    return Roster(students, columns, str(data.get("id_column", "")), notes)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
