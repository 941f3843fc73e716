"""The instructor's page: what a class got, and what needs a decision. One file, without scripts.

Submissions that are alike are a suspicion to look at, never a verdict, and never a point. Four
signs: the same code, remarks and blanks aside; the same text; the same wrong answers that hardly
anybody else gave; answers that are right for the numbers of somebody else.
"""

from __future__ import annotations

import html
import itertools
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import StatisticsError, correlation, fmean, median

from mlsim_book.caches import content_hash
from mlsim_book.site.swap import carry
from mlsim_exercises.evaluation import same_answer
from mlsim_exercises.markdown import plain_text
from mlsim_grading.assignment import Assignment
from mlsim_grading.class_lists import file_name
from mlsim_grading.grade import HEAD, NOT_GRADED, NOTHING, Mark, Result, absent, not_graded
from mlsim_grading.gradebook import Entry, Gradebook
from mlsim_grading.handouts import replacing
from mlsim_grading.submissions import Passed
from mlsim_grading.tables import csv_text, number, some

_FEW = 3  # below that, no correlation is told
_BY_HAND = {"by hand", "override", "unmarked"}  # verdicts that no program gave
_WRONG = {"wrong", "order of magnitude", "wrong unit"}


Rows = list[list[str]]  # a head, and a row for each thing


def questions_table(book: Gradebook) -> Rows:
    """Return how each question went, of those who handed in."""
    there = [each for each in book.entries if each.result is not None and not each.result.failed]
    rows = [[
        "question", "title", "of", "handed in", "blank", "all points", "to be marked",
        "mean points", "percent", "correlation with the rest",
    ]]  # fmt: skip
    for index, question in enumerate(book.questions):
        exercise = question.exercise
        marks = [each.marks[index] for each in there]
        decided = [each for each in there if each.marks[index].kind != "unmarked"]
        own = [each.marks[index].points for each in decided]
        rest = [
            sum(mark.points for mark in each.marks) - points
            for each, points in zip(decided, own, strict=True)
        ]
        mean, fits = fmean(own) if own else 0.0, _fits(own, rest)
        rows.append([
            exercise.id, exercise.title, str(exercise.points), str(len(there)),
            str(sum(mark.kind == "not attempted" for mark in marks)),
            str(sum(mark.points >= mark.of for mark in marks)), str(len(marks) - len(own)),
            number(mean), f"{100 * mean / exercise.points:.1f}",
            "" if fits is None else f"{fits:.2f}",
        ])  # fmt: skip
    return rows


def _fits(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, None where there are too few values or all are alike."""
    try:
        return correlation(one, other) if len(one) >= _FEW else None
    except StatisticsError:
        return None


def mistakes_table(book: Gradebook) -> Rows:
    """Return the verdicts of each question, the most frequent first, a row for each wrong path.

    A wrong path is told in the words of the question's first version.
    """
    there = [each for each in book.entries if each.result is not None and not each.result.failed]
    rows = [["question", "verdict", "path", "times", "percent", "points", "message"]]
    for index, question in enumerate(book.questions):
        marks = [each.marks[index] for each in there]
        counted = Counter((mark.kind, mark.path) for mark in marks)
        first = {(mark.kind, mark.path): mark for mark in reversed(marks)}
        for (kind, path), times in sorted(counted.items(), key=lambda each: (-each[1], each[0])):
            mark = first[kind, path]
            said = mark.message if kind in _WRONG else ""  # which holds nothing of the student's
            if path:
                said = question.versions[0].because[path - 1]
            rows.append([
                mark.question, kind, str(path or ""), str(times), f"{100 * times / len(there):.1f}",
                "" if kind in _BY_HAND else number(mark.points),
                " ".join(plain_text(said).split()),
            ])  # fmt: skip
    return rows


_LONG = 60  # characters of a text: shorter ones may be alike by chance
_RARE = 4  # students who gave the same wrong answer to the same numbers
_TWICE = 2  # questions that must agree
_NAMED = 6  # students that are named


@dataclass(frozen=True)
class Alike:
    """What is alike, in whose submissions."""

    sign: str
    students: tuple[str, ...]
    questions: tuple[str, ...] = ()


def find_alike(book: Gradebook, assignment: Assignment) -> list[Alike]:
    """Return what is alike, the strongest signs first."""
    return [
        *_same_work(book), *_same_mistakes(book, assignment), *_others_numbers(book, assignment),
    ]  # fmt: skip


def _entries(book: Gradebook) -> Iterator[Entry]:
    """Yield the rows of those who handed in themselves."""
    yield from (each for each in book.entries if each.result and not each.result.of_group)


def _same_work(book: Gradebook) -> Iterator[Alike]:
    """Yield the same code, then the same texts."""
    found: dict[tuple[str, tuple[str, ...], str], dict[str, None]] = defaultdict(dict)
    texts = {each.exercise.id for each in book.questions if each.exercise.kind == "text"}
    files: dict[str, Result] = {}
    for result in book.results:
        # of a file that several handed in together the first
        if files.setdefault(result.file, result) is not result or not result.student:
            continue
        if result.sources:
            found["the same code", (), result.sources][result.student] = None
        for mark in result.marks:
            if mark.question in texts:
                text = unicodedata.normalize("NFKC", mark.given).casefold()
                text = "".join(filter(str.isalnum, text))
                if len(text) >= _LONG:
                    found["the same text", (mark.question,), text][result.student] = None
    for (sign, questions, _), students in sorted(found.items(), key=lambda each: each[0][0]):
        if len(students) > 1:
            yield Alike(sign, tuple(students), questions)


def _same_mistakes(book: Gradebook, assignment: Assignment) -> Iterator[Alike]:
    found: dict[tuple[int, int, str], list[str]] = defaultdict(list)
    for entry in _entries(book):
        numbers = assignment.students.get(entry.student)
        for index, mark in enumerate(entry.marks):
            if mark.kind in _WRONG and mark.given:
                version = numbers[index] if numbers else 0
                found[index, version, mark.given].append(entry.student)
    pairs: Counter[tuple[str, str]] = Counter()
    asked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (index, _, _), students in found.items():
        if 1 < len(students) <= _RARE:
            for pair in itertools.combinations(students, 2):
                pairs[pair] += 1
                asked[pair].append(book.questions[index].exercise.id)
    for pair, times in pairs.most_common():
        if times >= _TWICE:
            yield Alike("the same rare wrong answers", pair, tuple(asked[pair]))


def _others_numbers(book: Gradebook, assignment: Assignment) -> Iterator[Alike]:
    """Yield who gave answers that are wrong for their own numbers, and right for another's."""
    having: dict[tuple[int, int], set[str]] = defaultdict(set)
    for student, numbers in assignment.students.items():
        for index, version in enumerate(numbers):
            having[index, version].add(student)
    for entry in _entries(book):
        own = assignment.students.get(entry.student)
        fitting = dict(_fitting(entry, own, assignment)) if own else {}
        if len(fitting) < _TWICE:
            continue
        counts: Counter[str] = Counter()
        for index, versions in fitting.items():
            counts.update(set().union(*(having[index, each] for each in versions)))
        del counts[entry.student]
        most = max(counts.values(), default=0)
        if most < _TWICE:
            continue
        # all who fit best; with few versions these are many, and say little
        likely = sorted(name for name, times in counts.items() if times == most)
        shown = likely[:_NAMED]
        if len(likely) > _NAMED:
            shown.append(f"and {len(likely) - _NAMED} more")
        asked = tuple(book.questions[index].exercise.id for index in fitting)
        yield Alike("answers for the numbers of others", (entry.student, *shown), asked)


def _fitting(
    entry: Entry, own: Sequence[int], assignment: Assignment
) -> Iterator[tuple[int, list[int]]]:
    """Yield the questions whose wrong answer is right for other versions, and these."""
    for index, (mark, question) in enumerate(zip(entry.marks, assignment.questions, strict=True)):
        exercise = question.exercise
        if exercise.kind != "number" or mark.points >= mark.of or not mark.given:
            continue
        try:
            value = float(mark.given)
        except ValueError:
            continue
        versions = [
            number
            for number, each in enumerate(question.versions)
            if number != own[index] and same_answer(exercise, value, each.answer)
        ]
        if versions:
            yield index, versions


def alike_table(found: Sequence[Alike]) -> Rows:
    """Return what is alike, as a table."""
    rows = [[each.sign, "; ".join(each.students), ", ".join(each.questions)] for each in found]
    return [["suspicion", "students", "questions"], *rows]


_BARS = 10  # of the histogram
_WIDE, _HIGH = 640, 220  # of a figure
_MOST_ROWS = 2000  # students whose rows are shown; the table has all
_MOST_MISTAKES = 6  # of a question
_NUMBER = re.compile(r"-?\d*\.?\d*")


def overview(
    book: Gradebook, alike: Sequence[Alike], exported: Sequence[str] = (), passed: int = 0
) -> str:
    """Return the page.

    Parameters
    ----------
    exported
        What must be known of an export.
    passed
        How many files were no submissions; `not_graded.csv` lists them.
    """
    parts = [
        f"<h1>{_text(book.title)}: results</h1>",
        "<p>This page is for the instructor. It names students and shows what was asked.</p>",
        _summary(book),
        _needed(book, alike, exported, passed),
        "<h2>How the class did</h2>", _histogram(book),
        "<h2>Questions</h2>",
        _table("How each question went. The last column is the correlation of its points with those"
               " of the other questions: near zero or below, look at the question.",
               [row[1:] for row in questions_table(book)]),
        "<h2>Mistakes</h2>", _mistakes(book), _alike(alike),
        "<h2>Students</h2>", _students(book),
    ]  # fmt: skip
    return document(f"{book.title}: results", "overview.css", parts)


def document(title: str, style: str, parts: Iterable[str]) -> str:
    """Return a page of some parts: one file that loads nothing, in the style of a data file."""
    css = _style(style)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="robots" content="noindex">\n'
        f"<title>{_text(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, parts))
        + "\n</main>\n</body>\n</html>\n"
    )


@cache
def _style(name: str) -> str:
    return (Path(__file__).with_name("data") / name).read_text(encoding="utf-8").strip()


def _text(text: object) -> str:
    return html.escape("".join(c if c.isprintable() else " " for c in str(text)))


def _there(book: Gradebook) -> list[Entry]:
    return [each for each in book.entries if each.graded]


def _summary(book: Gradebook) -> str:
    there = _there(book)
    percents = [each.percent for each in there]
    said = [f"{len(there)} of {len(book.entries)} students have a grade, of {book.of} points."]
    if percents:
        said.append(f"The median is {median(percents):.0f} %, the mean {fmean(percents):.0f} %.")
    said.append(f"Of several submissions the {book.rules.take} one counts.")
    said.append(
        book.rules.late.words if book.rules.late else "Nothing is taken off for being late."
    )
    return f"<p>{_text(' '.join(said))}</p>"


def _needed(book: Gradebook, alike: Sequence[Alike], exported: Sequence[str], passed: int) -> str:
    """Return what asks for a decision."""
    unmarked = sum(len(each.open) for each in book.entries)
    nobodys = [each for each in book.results if not each.student]
    failed = [each for each in book.results if each.failed]
    items = [f"Texts to be marked, in hand/: {unmarked}."] if unmarked else []
    items += [f"{each.file}: {each.undecided or 'from nobody that is known'}" for each in nobodys]
    items += [f"{each.file} was not graded: {each.failed}" for each in failed]
    items += [
        f"{each.student}: {note}"
        for each in book.entries if not each.result
        for note in each.notes if note != NOTHING
    ]  # fmt: skip
    late = [each.student for each in book.entries if each.unpunished]
    if late:
        items.append(f"Late, says the course system, and nothing was taken off: {some(late)}.")
    items += [f"Signs that submissions are alike: {len(alike)}. See below."] if alike else []
    items += [f"Files that are no submissions: {passed}. See not_graded.csv."] if passed else []
    items += [f"Export: {each}." for each in exported]
    listed = "".join(f"<li>{_text(each)}</li>" for each in items)
    return f"<h2>What needs you</h2>\n<ul>{listed or '<li>Nothing.</li>'}</ul>"


def _histogram(book: Gradebook) -> str:
    counts = [0] * _BARS
    for each in _there(book):
        counts[min(_BARS - 1, int(each.percent / 100 * _BARS))] += 1
    most = max(counts, default=0) or 1
    low, left, width = _HIGH - 34, 10, (_WIDE - 20) / _BARS
    drawn = []
    for place, count in enumerate(counts):
        high = (low - 24) * count / most
        x = left + place * width
        drawn.append(
            f'<rect x="{x + 3:.1f}" y="{low - high:.1f}" width="{width - 6:.1f}"'
            f' height="{high:.1f}"/>'
        )
        if count:
            drawn.append(f'<text x="{x + width / 2:.1f}" y="{low - high - 6:.1f}"'
                         f' text-anchor="middle">{count}</text>')  # fmt: skip
    drawn.append(f'<line class="axis" x1="{left}" x2="{_WIDE - 10}" y1="{low}" y2="{low}"/>')
    for place, anchor in ((0, "start"), (_BARS // 2, "middle"), (_BARS, "end")):
        x = left + place * width
        said = f"{100 * place // _BARS} %"
        drawn.append(f'<text x="{x:.1f}" y="{low + 18}" text-anchor="{anchor}">{said}</text>')
    step = 100 // _BARS
    words = "; ".join(
        f"{place * step} to {(place + 1) * step} %: {count}" for place, count in enumerate(counts)
    )
    caption = "Students by percent of the points, after everything that was decided by hand"
    return (
        f'<figure><svg viewBox="0 0 {_WIDE} {_HIGH}" width="{_WIDE}" height="{_HIGH}" role="img"'
        f' aria-labelledby="points-words"><title id="points-words">Students by percent of the'
        f" points. {words}.</title>{''.join(drawn)}</svg>"
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _table(caption: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row heads it, and whose first cells head their rows."""
    columns = zip(*rows[1:], strict=True) if rows[1:] else [()] * len(rows[0])
    numbers = [all(map(_NUMBER.fullmatch, column)) for column in columns]
    kinds = [' class="n"' if each else "" for each in (False, *numbers[1:])]
    lines: list[str] = []
    for row in rows:
        tag, scope = ("td", "row") if lines else ('th scope="col"', "col")
        cells = [
            f"<{tag}{kind}>{_text(cell)}</{tag[:2]}>"
            for cell, kind in zip(row[1:], kinds[1:], strict=True)
        ]
        lines.append(f'<tr><th scope="{scope}">{_text(row[0])}</th>{"".join(cells)}</tr>')
    said, body = _text(caption), "\n".join(lines[1:])
    return (
        f'<div class="scroll" role="region" aria-label="{said}" tabindex="0"><table>'
        f"<caption><span>{said}</span></caption>\n<thead>{lines[0]}</thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _mistakes(book: Gradebook) -> str:
    head, *found = mistakes_table(book)
    shown: Counter[str] = Counter()
    rows = [head]
    for row in found:
        shown[row[0]] += row[1] not in {"right", *_BY_HAND}
        if row[1] not in {"right", *_BY_HAND} and shown[row[0]] <= _MOST_MISTAKES:
            rows.append(row)
    return _table(
        "Mistakes by question, a row for each wrong path whatever the numbers were. The words are"
        " those of the first version.", rows,
    )  # fmt: skip


def _alike(alike: Sequence[Alike]) -> str:
    if not alike:
        return ""
    return (
        "<h2>Alike</h2>\n<p>A suspicion, no verdict: students learn together, and a common source"
        " makes work alike, too. No point depends on it. Look at the notebooks, and ask.</p>\n"
        + _table("Submissions that are alike", alike_table(alike))
    )


def _students(book: Gradebook) -> str:
    head = ["student", "points", "percent", "taken off", "submissions", "set by hand",
            "to be marked", "notes"]  # fmt: skip
    rows = [
        [each.student, number(each.points), f"{each.percent:.0f}",
         number(each.taken_off) if each.taken_off else "", str(each.attempts),
         ", ".join(each.changed), ", ".join(each.open), "; ".join(each.notes)]
        for each in book.entries[:_MOST_ROWS]
    ]  # fmt: skip
    more = len(book.entries) - len(rows)
    same = f"these and {more} more" if more > 0 else "the same"
    return _table(f"Each student; gradebook.csv has {same}", [head, *rows])


_MARKS = {"right": "✓", "not attempted": "–", "unmarked": "…"}
_OURS = {
    "feedback", "results.csv", NOT_GRADED, "gradebook.csv", "questions.csv", "mistakes.csv",
    "alike.csv", "overview.html", "canvas.csv", "moodle.csv", "moodle-worksheet.csv",
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
