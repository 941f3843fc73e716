"""What an assignment hands out: notebooks for students, solutions, a rubric, the key."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.render.install import has_address, install_cell
from mlsim_book.render.notebook_cells import markdown_cell, own_cell
from mlsim_book.render.notebook_text import plain_markdown
from mlsim_book.render.notebooks import notebook_text
from mlsim_book.render.wheel import book_wheel
from mlsim_book.site.lock import BusyError, hold
from mlsim_book.site.swap import carry, fresh_folder, swap
from mlsim_exercises.evaluation import Evaluation
from mlsim_exercises.markdown import answer_cell, answer_text, asking, plain_text
from mlsim_exercises.rubrics import rubric_list
from mlsim_grading.assignment import Assignment, Question
from mlsim_grading.finish_options import HAND, OVERRIDES
from mlsim_grading.key import key_text
from mlsim_grading.limits import LONGEST
from mlsim_grading.names import file_name

_DECIDED = ("matches.csv", OVERRIDES, HAND)  # the instructor's own
_OURS = {"students", "solutions", "rubric.md", "key.json", "submissions", *_DECIDED}
_HANDED_OUT, SOLUTIONS = "students", "solutions"
_PRIVATE = 0o700  # of folders: on a shared server, students have accounts, too
_INSTRUCTORS = "This file holds the answers: it is not for students."


def write_assignment(
    assignment: Assignment, project: Project, out: Path, *, replace: bool = False
) -> None:
    """Write an assignment into a folder: `students/`, `solutions/`, `rubric.md`, `key.json`.

    An empty `submissions/` waits for what comes back. The same assignment may be written
    again; another one takes its place only with `replace`, as its key may have been handed
    out. A folder with submissions or results in it, or of anything else, is left alone.

    Where the book has no address, students are given the wheel of its package, too.

    Raises
    ------
    SourceError
        The folder holds something that would be lost, or can't be written.
    """
    _check_folder(out, key_text(assignment), replace=replace)
    wheel = None if has_address(project) else book_wheel(project)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with hold(out, wait=60), fresh_folder(out) as new:
            for name, text in _files(assignment, project):
                put(new / name, text)
            if wheel:
                (new / _HANDED_OUT / wheel.name).write_bytes(wheel.data)
            (new / "submissions").mkdir(mode=_PRIVATE)
            for name in _DECIDED:
                if (out / name).exists():
                    carry(out / name, new)
            swap(out)
    except BusyError as error:
        raise SourceError(
            "another command is writing this assignment", file=out, hint="Wait for it, or stop it."
        ) from error
    except OSError as error:
        raise SourceError(
            f"the assignment can't be written: {error.strerror}", file=out,
            hint="Name another folder: --out DIR.",
        ) from error  # fmt: skip


def put(path: Path, text: str) -> None:
    """Write a file of an assignment, whole or not at all; all but what is handed out, privately."""
    public = path.parent.name == _HANDED_OUT
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755 if public else _PRIVATE)
    if path.parent.name == SOLUTIONS:  # of an older version, it was open
        path.parent.chmod(_PRIVATE)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as file:  # for its owner alone
        file.write(text)
    part = Path(file.name)
    if public:
        part.chmod(0o644)
    part.replace(path)


def _check_folder(out: Path, key: str, *, replace: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise SourceError("this is a file, not a folder", file=out, hint="Name another: --out DIR.")
    found = {each.name for each in out.iterdir()}
    if (out / "results").exists() or any((out / "submissions").glob("**/*")):
        raise SourceError(
            "there are submissions or results in this folder, which a new key would not fit",
            file=out,
            hint="Add students who came late with --add, mend a wrong answer with --correct; else"
            " name another folder (--out DIR), or move them away first.",
        )
    strange = found - _OURS
    if strange or (found and "key.json" not in found):
        what = ", ".join(sorted(strange or found)[:3])
        raise SourceError(
            f"this folder holds something else ({what})",
            file=out,
            hint="Name a new one: --out DIR.",
        )
    if found and not replace and (out / "key.json").read_text(encoding="utf-8") != key:
        raise SourceError(
            "there is another assignment in this folder: without its key, what its students"
            " hand in can't be graded",
            file=out,
            hint="Add students who came late with --add; else name another folder (--out DIR), or"
            " replace it with --replace.",
        )


def _files(assignment: Assignment, project: Project) -> Iterator[tuple[str, str]]:
    """Yield the files of an assignment with their texts."""
    everyone = assignment.students or {"": (0,) * len(assignment.questions)}
    yield from student_files(assignment, project, everyone)
    yield "rubric.md", rubric_text(assignment)
    yield "key.json", key_text(assignment)


def student_files(
    assignment: Assignment, project: Project, everyone: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, str]]:
    """Yield the notebooks of some students, and their solutions, with their texts."""
    texts = _texts(assignment, project)
    package, made_version, commit = assignment.made_with or ("", "", "")
    install = install_cell(project, version=made_version, commit=commit) if package else None
    install = install or install_cell(project)
    title = file_name(assignment.title)
    for student, numbers in everyone.items():
        name = file_name(student) if student else title
        for folder, solved in ((_HANDED_OUT, False), (SOLUTIONS, True)):
            cells = [install] if install else []
            cells += _cells(assignment, numbers, texts, student, solved=solved)
            yield f"{folder}/{name}.ipynb", _notebook(cells, assignment, student)


Texts = Mapping[tuple[str, int], tuple[str, str]]


def _texts(assignment: Assignment, project: Project) -> Texts:
    """Return prompt and solution of each version of each question, as notebooks show them."""
    places = [
        (question.exercise.id, number, each)
        for question in assignment.questions
        for number, each in enumerate(question.versions)
    ]
    sources = [text.strip() for _, _, each in places for text in (each.prompt, each.solution)]
    shown = plain_markdown(sources, project)
    return {
        (name, number): (shown[2 * index], shown[2 * index + 1])
        for index, (name, number, _) in enumerate(places)
    }


def _cells(
    assignment: Assignment, numbers: Sequence[int], texts: Texts, student: str, *, solved: bool
) -> Iterator[dict[str, Any]]:
    yield markdown_cell(_opening(assignment, student, solved=solved))
    for place, (question, number) in enumerate(
        zip(assignment.questions, numbers, strict=True), start=1
    ):
        prompt, solution = texts[question.exercise.id, number]
        yield markdown_cell(_asked(question, place, prompt))
        if solved:
            yield own_cell(_solved(question, question.versions[number]))
            yield markdown_cell(f"**Solution.** {solution}")
        else:
            yield own_cell(answer_cell(question.exercise, question.variable))


def _opening(assignment: Assignment, student: str, *, solved: bool) -> str:
    whose = f", for {student}" if student else ""
    if solved:
        return f"# {assignment.title}: solutions{whose}\n\n{_INSTRUCTORS}"
    return (
        f"# {assignment.title}{whose}\n\n"
        "Work in as many cells as you like. Give each answer to its name, as a number or as a"
        " quantity with a unit that fits. Only the names count; the last value that isn't blank"
        " is taken. When you hand this notebook in, it is run from the top: restart it and run"
        f" all cells before you do. {assignment.points} points in all."
    )


def _asked(question: Question, place: int, prompt: str) -> str:
    exercise = question.exercise
    points = f"{exercise.points} point{'s' if exercise.points != 1 else ''}"
    choices = "\n".join(f"- {each}" for each in exercise.choices)
    parts = [f"## {place}. {exercise.title} ({points})", prompt, choices]
    if exercise.kind == "number":
        parts.append(f"*{asking(exercise)}.*")
    if exercise.kind == "text":
        where = f"Write between the quotes, at most {LONGEST:,} characters."
        parts += [
            f"*{where} A person reads it and gives points for:*",
            rubric_list(exercise.rubric),
        ]
    return "\n\n".join(part for part in parts if part)


def _solved(question: Question, version: Evaluation) -> str:
    """Return code that computes the answer, as the question's file does."""
    if question.exercise.kind == "text":
        return f"{question.variable} = {plain_text(version.solution)!r}"
    given = "".join(f"{name} = {value!r}\n" for name, value in version.given.items())
    setup = question.exercise.setup.strip()
    answer = " ".join(question.exercise.answer.split())
    return f"{given}{setup}\n\n{question.variable} = {answer}".strip()


def _notebook(cells: Sequence[dict[str, Any]], assignment: Assignment, student: str) -> str:
    about = {"student": student, "title": assignment.title}
    return notebook_text(list(cells), assignment=about)


def rubric_text(assignment: Assignment) -> str:
    """Return the rubric: what each question is worth, and the message for each mistake."""
    about = (
        f"{_INSTRUCTORS} {assignment.points} points in all. Numbers are those of the first"
        " version of each question; the key has all."
    )
    parts = [f"# {assignment.title}: rubric", about]
    for place, question in enumerate(assignment.questions, start=1):
        exercise, version = question.exercise, question.versions[0]
        many = len(question.versions)
        what = f"{exercise.points} points, {exercise.level}"
        what += f", {many} versions" if many > 1 else ", one version for all"
        parts.append(f"## {place}. {exercise.title} (`{exercise.id}`)")
        if exercise.kind == "text":
            parts += [f"{what}. A person marks it:", rubric_list(exercise.rubric)]
            continue
        rows = [
            "| answer | points | message |",
            "|---|---|---|",
            f"| {answer_text(exercise, version.answer)} | {exercise.points} | Right. |",
        ]
        rows += [
            f"| {answer_text(exercise, wrong)} | {version.credit(path) * exercise.points:g}"
            f" | {' '.join(because.split())} |"
            for path, (wrong, because) in enumerate(
                zip(version.wrong, version.because, strict=True), start=1
            )
        ]
        if exercise.unit_credit:
            share = exercise.unit_credit * exercise.points
            rows.append(f"| the digits in another unit | {share:g} | It says by which factor. |")
        rows.append("| blank | 0 | Not attempted yet. |")
        within = f", within {exercise.tolerance * 100:g} %" if exercise.kind == "number" else ""
        parts += [f"{what}{within}.", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"
