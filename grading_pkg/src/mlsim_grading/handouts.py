"""What an assignment hands out: notebooks for students, solutions, a rubric, the key.

What may change once it was handed out: students who come late, a wrong answer. Nothing moves for
anybody else: no numbers, and no notebook that a student has.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import Project
from mlsim_book.progress import Teller
from mlsim_book.read.project import load_project
from mlsim_book.render.notebooks import (
    has_address,
    install_cell,
    markdown_cell,
    notebook_text,
    own_cell,
    plain_markdown,
)
from mlsim_book.render.wheel import book_wheel
from mlsim_book.site.swap import BusyError, carry, fresh_folder, hold, swap
from mlsim_exercises.data import Exercise, ExerciseError, rubric_list
from mlsim_exercises.evaluation import Evaluation, evaluate
from mlsim_exercises.markdown import answer_cell, answer_text, asking, plain_text
from mlsim_grading.assignment import (
    Assignment,
    Question,
    check_private,
    choose,
    key_text,
    made_with,
    make_assignment,
    private_files,
    read_key,
)
from mlsim_grading.class_lists import Roster, file_name, told_roster
from mlsim_grading.decisions import HAND, OVERRIDES
from mlsim_grading.matching import MATCHES, as_known
from mlsim_grading.walls.supervise import LONGEST

_DECIDED = (MATCHES, OVERRIDES, HAND)  # the instructor's own
_OURS = {"students", "solutions", "rubric.md", "key.json", "submissions", *_DECIDED}
_HANDED_OUT, SOLUTIONS = "students", "solutions"
_PRIVATE = 0o700  # of folders: on a shared server, students have accounts, too
_INSTRUCTORS = "This file holds the answers: it is not for students."


def assign(options: argparse.Namespace) -> int:
    """Run `mlsim-book assign`."""
    say = Teller()
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
    roster = Roster()
    if options.variant_by:
        roster = told_roster(options.variant_by, options.id, say)
    if options.add and roster.students:
        before = read_key(options.out / "key.json")
        roster = as_known(roster, before.students, before.roster)
    students = roster.names
    secret = [*options.exam, *private_files(options.wanted, project, files)]
    secret += [options.private_seed] if options.private_seed else []
    private = tuple(check_private(each, project, options.out) for each in secret)
    chosen = choose([*options.wanted, *map(str, options.exam)], files)
    seed = options.private_seed.read_text(encoding="utf-8").strip() if options.private_seed else ""
    if options.private_seed and not seed:
        raise SourceError("this seed is empty: write any text into it", file=options.private_seed)
    assignment = make_assignment(options.title, chosen, students, options.seed, private_seed=seed)
    assignment = replace(assignment, made_with=made_with(project), private=private, roster=roster)
    if options.add:
        new = add_students(assignment, project, options.out)
        say(f"{len(new)} students more in {options.out / 'students'}: {', '.join(new) or 'nobody'}")
        return 0
    if options.correct:
        changed = correct_answers(assignment, project, options.out)
        say(f"corrected: {', '.join(changed) or 'nothing, as no answer differs'}")
        say(f"now: mlsim-book grade {options.out}, which runs no notebook again")
        return 0
    write_assignment(assignment, project, options.out, again=options.replace)
    fixed = [each.exercise.id for each in assignment.questions if len(each.versions) == 1]
    if students and fixed:
        say(f"the same for all, as they have no [exercise.given]: {', '.join(fixed)}")
    audience = f" for {len(students)} students" if students else ""
    count = len(assignment.questions)
    asked = f"{count} question{'s' if count != 1 else ''}, {assignment.points} points{audience}"
    say(f"{asked}: {options.out}")
    say(f"hand out {options.out / 'students'}; keep the rest to yourself")
    return 0


def write_assignment(
    assignment: Assignment, project: Project, out: Path, *, again: bool = False
) -> None:
    """Write an assignment into a folder: `students/`, `solutions/`, `rubric.md`, `key.json`.

    An empty `submissions/` waits for what comes back. The same assignment may be written
    again; another one takes its place only with `again`, as its key may have been handed
    out. A folder with submissions or results in it, or of anything else, is left alone.

    Where the book has no address, students are given the wheel of its package, too.

    Raises
    ------
    SourceError
        The folder holds something that would be lost, or can't be written.
    """
    _check_folder(out, key_text(assignment), again=again)
    wheel = None if has_address(project) else book_wheel(project)
    with replacing(out, "the assignment") as new:
        for name, text in student_files(assignment, project):
            put(new / name, text)
        put(new / "rubric.md", rubric_text(assignment))
        put(new / "key.json", key_text(assignment))
        if wheel:
            (new / _HANDED_OUT / wheel.name).write_bytes(wheel.data)
        (new / "submissions").mkdir(mode=_PRIVATE)
        for name in _DECIDED:
            if (out / name).exists():
                carry(out / name, new)


@contextmanager
def replacing(out: Path, what: str) -> Iterator[Path]:
    """Yield a new folder, which takes the place of another when all is in it.

    Raises
    ------
    SourceError
        Another command is writing there, or the disk refuses.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with hold(out, wait=60), fresh_folder(out) as new:
            yield new
            swap(out)
    except BusyError as error:
        raise SourceError(
            f"another command is writing {what}", file=out, hint="Wait for it, or stop it."
        ) from error
    except OSError as error:
        raise SourceError(
            f"{what} can't be written: {error.strerror}", file=out,
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


def _check_folder(out: Path, key: str, *, again: bool) -> None:
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
    if found and not again and (out / "key.json").read_text(encoding="utf-8") != key:
        raise SourceError(
            "there is another assignment in this folder: without its key, what its students"
            " hand in can't be graded",
            file=out,
            hint="Add students who came late with --add; else name another folder (--out DIR), or"
            " replace it with --replace.",
        )


def student_files(
    assignment: Assignment, project: Project, some: Mapping[str, tuple[int, ...]] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the notebooks of all or some students, and their solutions, with their texts."""
    everyone = some or assignment.students or {"": (0,) * len(assignment.questions)}
    about = {"title": assignment.title}
    texts = _texts(assignment, project)
    package, made_version, commit = assignment.made_with or ("", "", "")
    install = install_cell(project, version=made_version, commit=commit) if package else None
    install = install or install_cell(project)
    for student, numbers in everyone.items():
        name = file_name(student or assignment.title)
        for folder, solved in ((_HANDED_OUT, False), (SOLUTIONS, True)):
            cells = [install] if install else []
            cells += _cells(assignment, numbers, texts, student, solved=solved)
            text = notebook_text(cells, assignment={"student": student, **about})
            yield f"{folder}/{name}.ipynb", text


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


def add_students(assignment: Assignment, project: Project, out: Path) -> list[str]:
    """Add the students that an assignment has and its folder has not; return their names.

    Submissions and results may be there. Students who left the list stay in the key.

    Raises
    ------
    SourceError
        There is no assignment, or its questions, numbers or answers are not those of this one.
    """
    old = read_key(out / "key.json")
    _check_same(old, assignment, out)
    new = {name: own for name, own in assignment.students.items() if name not in old.students}
    there = {each.name for each in assignment.roster.students}
    left = [each for each in old.roster.students if each.name not in there]
    roster = assignment.roster
    roster = replace(roster, students=(*roster.students, *left)) if roster.students else old.roster
    merged = replace(old, students={**old.students, **new}, roster=roster)
    try:
        for name, text in student_files(merged, project, new) if new else ():
            put(out / name, text)
        put(out / "key.json", key_text(merged))  # last: what was cut short is done again
    except OSError as error:
        raise SourceError(f"the notebooks can't be written: {error.strerror}", file=out) from error
    return list(new)


def correct_answers(assignment: Assignment, project: Project, out: Path) -> list[str]:
    """Replace the answers of an assignment by those that its questions have now.

    Numbers and notebooks stay, submissions and results may be there: the next grading compares
    what was handed in with the new answers. Return the questions that differ.

    Raises
    ------
    SourceError
        There is no assignment, its questions are others, or one can't be computed with the
        numbers that somebody was given.
    """
    old = read_key(out / "key.json")
    asked = [(each.exercise.id, each.exercise.kind) for each in old.questions]
    if asked != [(each.exercise.id, each.exercise.kind) for each in assignment.questions]:
        raise SourceError(
            "its questions are not those of this assignment", file=out / "key.json",
            hint=f"Name the same, in the same order: {', '.join(name for name, _ in asked)}.",
        )  # fmt: skip
    questions = tuple(
        Question(new.exercise, tuple(_anew(new.exercise, each.given, out) for each in was.versions))
        for was, new in zip(old.questions, assignment.questions, strict=True)
    )
    merged = replace(old, questions=questions)
    try:
        for name, text in student_files(merged, project):
            if name.startswith(SOLUTIONS):
                put(out / name, text)
        put(out / "rubric.md", rubric_text(merged))
        put(out / "key.json", key_text(merged))  # last: what was cut short is done again
    except OSError as error:
        raise SourceError(f"the answers can't be written: {error.strerror}", file=out) from error
    pairs = zip(_as_asked(old)[1], _as_asked(merged)[1], strict=True)
    return [new["id"] for was, new in pairs if was != new]


def _anew(exercise: Exercise, given: Mapping[str, Any], out: Path) -> Evaluation:
    try:
        return evaluate(exercise, given) if given else evaluate(exercise)
    except ExerciseError as error:
        numbers = ", ".join(f"{name} = {value!r}" for name, value in given.items())
        raise SourceError(
            f"'{exercise.id}' can't be corrected for {numbers or 'its numbers'}: {error}", file=out,
            hint="Students have these numbers: mend the question so that it works with them.",
        ) from error  # fmt: skip


def _check_same(old: Assignment, new: Assignment, out: Path) -> None:
    if not (old.students and new.students):
        raise SourceError(
            "this assignment is the same for all, so a student more needs nothing", file=out,
            hint="Hand out the same notebook." if not old.students else "Add --variant-by CSV.",
        )  # fmt: skip
    same = "Use the same command, with the package that made it, and the longer list."
    if _as_asked(old) != _as_asked(new):
        made = f" (made with {' '.join(old.made_with).strip()})" if old.made_with else ""
        raise SourceError(
            f"its questions or their answers are not those of this assignment{made}",
            file=out / "key.json", hint=same,
        )  # fmt: skip
    moved = [name for name, own in new.students.items() if old.students.get(name, own) != own]
    if moved:
        raise SourceError(
            f"this would give other numbers to {len(moved)} students: {', '.join(moved[:3])}",
            file=out / "key.json", hint=f"Another --seed? {same}",
        )  # fmt: skip


def _as_asked(assignment: Assignment) -> Any:
    data = json.loads(key_text(assignment))
    return data["title"], data["questions"]
