"""Tell results: a table for the instructor, a page for each student.

A page says what was answered and which mistake it was, never what the answer is; of an error
it says the kind. Its text goes to the instructor, with the other notes.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlsim_book.caches import content_hash
from mlsim_book.site.swap import carry
from mlsim_exercises.markdown import plain_text
from mlsim_grading.assignment import Assignment
from mlsim_grading.class_lists import file_name
from mlsim_grading.grade import HEAD, NOT_GRADED, NOTHING, Mark, Result, absent, not_graded
from mlsim_grading.handouts import replacing
from mlsim_grading.overview import document
from mlsim_grading.submissions import Passed
from mlsim_grading.tables import csv_text, number

_MARKS = {"right": "✓", "not attempted": "–", "unmarked": "…"}
_OURS = {
    "feedback", "results.csv", NOT_GRADED, "gradebook.csv", "questions.csv", "mistakes.csv",
    "alike.csv", "overview.html", "canvas.csv", "moodle.csv", "moodle-worksheet.csv", "grades.csv",
}  # fmt: skip
_NAME = 120  # bytes


def publish_results(
    results: Sequence[Result],
    assignment: Assignment,
    out: Path,
    *,
    keep: bool = True,
    passed: Iterable[Passed] = (),
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write results into a new folder that is nobody else's, and put it in the place of the old.

    `passed` is what was no submission; `extra` are more files, by name. What else lay in the old
    folder comes along, what was kept for the next run only with `keep`.

    Raises
    ------
    SourceError
        Another grading is writing there, or the disk refuses.
    """
    left = not_graded(results, passed)
    tables = {
        "results.csv": results_csv(results, assignment, absent(left)),
        NOT_GRADED: csv_text([HEAD, *(each.row() for each in left)]),
        **(extra or {}),
    }
    with replacing(out, "results") as new:
        new.chmod(0o700)
        (new / "feedback").mkdir()
        for name, result in _pages(results):
            _write(new / "feedback" / f"{name}.html", page(result, assignment.title))
        for name, text in tables.items():
            _write(new / name, text)
        for each in out.iterdir() if out.is_dir() else ():
            if each.name not in _OURS and (keep or each.name != "kept"):
                carry(each, new)


def _pages(results: Sequence[Result]) -> Iterator[tuple[str, Result]]:
    """Yield results with the names of their pages, which differ."""
    used: set[str] = set()
    shared = Counter(each.file for each in results)
    for result in results:
        name = _page_name(result.file)
        if shared[result.file] > 1:  # one file of several students
            name = _page_name(f"{name} {result.student}.ipynb")
        while name.casefold() in used:
            name += "_"
        used.add(name.casefold())
        yield name, result


def _page_name(file: str) -> str:
    """Return the name of a submission's page: short enough for every system.

    >>> _page_name("Ada Lovelace.ipynb"), len(_page_name("x" * 250))
    ('Ada_Lovelace', 69)
    """
    name = file_name(os.path.splitext(file)[0])  # noqa: PTH122 - a text, with slashes in it
    if len(name.encode()) <= _NAME:
        return name
    short = name.encode()[:60].decode(errors="ignore")
    return f"{short}-{content_hash(name)[:8]}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")


def results_csv(
    results: Sequence[Result], assignment: Assignment, absent: Mapping[str, str]
) -> str:
    """Return the table: a row for each file, and for each student who handed no notebook in.

    What the class list says of a student stands behind; `absent` is what is there in place of a
    notebook, by student.
    """
    roster = assignment.roster
    names = [each.exercise.id for each in assignment.questions]
    verdicts = [f"{each}: verdict" for each in names]
    own = ["student", "file", "points", "of", *names, *verdicts, "notes"]
    rows = [[*own, *(f"class list: {each}" if each in own else each for each in roster.columns)]]
    rows += [
        [
            result.student, result.file, f"{result.points:g}", str(result.of),
            *(f"{mark.points:g}" for mark in result.marks),
            *(mark.kind for mark in result.marks),
            "; ".join(result.notes), *roster.row(result.student),
        ]
        for result in results
    ]  # fmt: skip
    blank = ["", "0", str(assignment.points), *[""] * (2 * len(names))]
    there = {result.student for result in results}
    for name in dict.fromkeys([*assignment.students, *roster.names]):
        if name not in there:
            rows.append([name, *blank, absent.get(name, NOTHING), *roster.row(name)])
    return csv_text(rows)


def page(result: Result, title: str) -> str:
    """Return a student's page."""
    whose = f"{title}: {result.student or result.file}"
    said = [f"{number(result.final)} of {result.of} points."]
    if result.late_words:
        said.append(f"{result.late_words} Without that: {number(result.points)}.")
    if any(mark.kind == "unmarked" for mark in result.marks):
        said.append("Not all of it is marked yet.")
    if not result.counts:
        said.append("Another of your submissions counts.")
    notes = "".join(f"<li>{html.escape(each)}</li>" for each in result.told)
    parts = [
        f"<h1>{html.escape(whose)}</h1>", f"<p>{html.escape(' '.join(said))}</p>",
        *map(_section, result.marks),
        f"<h2>While it ran</h2><ul>{notes}</ul>" if notes else "",
    ]  # fmt: skip
    return document(whose, "feedback.css", parts)


def _section(mark: Mark) -> str:
    earned = "✓" if mark.points >= mark.of else "½" if mark.points else "✗"
    sign = _MARKS.get(mark.kind, earned)
    tag = "pre" if "\n" in mark.given else "code"
    answer = f"<div>Your answer: <{tag}>{html.escape(mark.given)}</{tag}></div>"
    said = " ".join(plain_text(mark.message).split())
    return (
        f"<section><h2>{sign} {html.escape(mark.title)} ({number(mark.points)} of {mark.of})</h2>\n"
        f"{answer if mark.given else ''}<p>{html.escape(said)}</p></section>"
    )
