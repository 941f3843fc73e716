"""An assignment: questions, and which numbers each student gets.

Answers are computed here, on the instructor's side, when the assignment is made, and
go into the key. Nothing that students get holds them.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_exercises.bank import PATTERN
from mlsim_exercises.data import Exercise, load
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import Evaluation, evaluate, variants
from mlsim_grading.class_lists import read_roster
from mlsim_grading.numbers import private_versions
from mlsim_grading.roster import Roster

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


def read_students(path: Path) -> list[str]:
    """Return the names of a class list, as `read_roster` does."""
    return read_roster(path).names
