"""Tell results: a table for the instructor, a page for each student.

A page says what was answered and which mistake it was, never what the answer is; of an error
it says the kind. Its text goes to the instructor, with the other notes.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.site.lock import BusyError, hold
from mlsim_book.site.swap import carry, fresh_folder, swap
from mlsim_exercises.markdown import plain_text
from mlsim_grading.cells import csv_text, number
from mlsim_grading.left import HEAD, NOT_GRADED, NOTHING, absent, not_graded
from mlsim_grading.names import file_name
from mlsim_grading.results import Mark, Result
from mlsim_grading.roster import Roster
from mlsim_grading.submissions import Passed

_MARKS = {"right": "✓", "not attempted": "–", "unmarked": "…"}
_OURS = {
    "feedback", "results.csv", NOT_GRADED, "gradebook.csv", "questions.csv", "mistakes.csv",
    "alike.csv", "overview.html", "canvas.csv", "moodle.csv", "moodle-worksheet.csv", "grades.csv",
}  # fmt: skip
_NAME = 120  # bytes
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem; } p { margin: .25rem 0; }
pre { white-space: pre-wrap; } div { margin: .25rem 0; }
pre, code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid #8888; }
@media print { section { break-inside: avoid; } }
""".strip()


def publish_results(
    results: Sequence[Result],
    students: Iterable[str],
    title: str,
    out: Path,
    *,
    keep: bool = True,
    roster: Roster | None = None,
    passed: Iterable[Passed] = (),
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write results into a new folder that is nobody else's, and put it in the place of the old.

    `extra` are more files, by name. What else lay in the old folder comes along, what was kept for
    the next run only with `keep`.

    Raises
    ------
    SourceError
        Another grading is writing there, or the disk refuses.
    """
    try:
        with hold(out, wait=60), fresh_folder(out) as new:
            new.chmod(0o700)
            write_results(
                results, students, title, new, roster=roster, passed=passed, extra=extra or {}
            )
            for each in out.iterdir() if out.is_dir() else ():
                if each.name not in _OURS and (keep or each.name != "kept"):
                    carry(each, new)
            swap(out)
    except BusyError as error:
        raise SourceError(
            "another command is writing these results", file=out, hint="Wait for it, or stop it."
        ) from error
    except OSError as error:
        raise SourceError(
            f"results can't be written: {error.strerror}", file=out,
            hint="Name another folder: --out DIR.",
        ) from error  # fmt: skip


def write_results(
    results: Sequence[Result],
    students: Iterable[str],
    title: str,
    out: Path,
    *,
    roster: Roster | None = None,
    passed: Iterable[Passed] = (),
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write the tables of results, and a page for each submission, into a folder.

    `roster` is the class list, whose columns come along; `passed` is what was no submission;
    `extra` are more files, by name.
    """
    pages = out / "feedback"
    pages.mkdir()
    used: set[str] = set()
    shared = Counter(each.file for each in results)
    for result in results:
        name = _page_name(result.file)
        if shared[result.file] > 1:  # one file of several students
            name = _page_name(f"{name} {result.student}.ipynb")
        while name.casefold() in used:
            name += "_"
        used.add(name.casefold())
        _write(pages / f"{name}.html", page(result, title))
    left = not_graded(results, passed)
    _write(out / "results.csv", results_csv(results, students, roster, absent(left)))
    _write(out / NOT_GRADED, csv_text([HEAD, *(each.row() for each in left)]))
    for name, text in (extra or {}).items():
        _write(out / name, text)


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
    results: Sequence[Result],
    students: Iterable[str],
    roster: Roster | None = None,
    absent: Mapping[str, str] | None = None,
) -> str:
    """Return the table: a row for each file, and for each student who handed no notebook in.

    What the class list says of a student stands behind; `absent` is what is there in place of a
    notebook, by student.
    """
    roster = roster or Roster()
    names = [mark.question for mark in results[0].marks] if results else []
    verdicts = [f"{name}: verdict" for name in names]
    rows = [["student", "file", "points", "of", *names, *verdicts, "notes"]]
    taken = set(rows[0])
    rows[0] += [f"class list: {each}" if each in taken else each for each in roster.columns]
    rows += [
        [
            result.student, result.file, f"{result.points:g}", str(result.of),
            *(f"{mark.points:g}" for mark in result.marks),
            *(mark.kind for mark in result.marks),
            "; ".join(result.notes), *roster.row(result.student),
        ]
        for result in results
    ]  # fmt: skip
    there = {result.student for result in results}
    of = str(results[0].of) if results else ""
    blank = [""] * (2 * len(names))
    rows += [
        [student, "", "0", of, *blank, (absent or {}).get(student, NOTHING), *roster.row(student)]
        for student in students
        if student not in there
    ]
    return csv_text(rows)


def page(result: Result, title: str) -> str:
    """Return a student's page."""
    whose = html.escape(result.student or result.file)
    notes = "".join(f"<li>{html.escape(each)}</li>" for each in result.told)
    troubles = f"<h2>While it ran</h2><ul>{notes}</ul>" if notes else ""
    marks = "\n".join(_section(mark) for mark in result.marks)
    total = html.escape(_total(result))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}: {whose}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{html.escape(title)}: {whose}</h1>\n"
        f"<p>{total}</p>\n{marks}\n{troubles}\n</main>\n</body>\n"
        f"</html>\n"
    )


def _total(result: Result) -> str:
    """Say what a submission got in all."""
    said = [f"{number(result.final)} of {result.of} points."]
    if result.late_words:
        said.append(f"{result.late_words} Without that: {number(result.points)}.")
    if any(mark.kind == "unmarked" for mark in result.marks):
        said.append("Not all of it is marked yet.")
    if not result.counts:
        said.append("Another of your submissions counts.")
    return " ".join(said)


def _section(mark: Mark) -> str:
    sign = _MARKS.get(mark.kind, "")
    if not sign:
        sign = "✓" if mark.points >= mark.of else "½" if mark.points else "✗"
    tag = "pre" if "\n" in mark.given else "code"
    given = f"Your answer: <{tag}>{html.escape(mark.given)}</{tag}>" if mark.given else ""
    given = f"<div>{given}</div>" if given else ""
    return (
        f"<section><h2>{sign} {html.escape(mark.title)} ({number(mark.points)} of {mark.of})</h2>\n"
        f"{given}<p>{html.escape(_plain(mark.message))}</p></section>"
    )


def _plain(markdown: str) -> str:
    """Return Markdown of a sentence as text on one line."""
    return " ".join(plain_text(markdown).split())
