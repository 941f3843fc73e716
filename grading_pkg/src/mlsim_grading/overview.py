"""The instructor's page: what a class got, and what needs a decision. One file, without scripts.

Submissions that are alike are a suspicion to look at, never a verdict, and never a point. Four
signs: the same code, remarks and blanks aside; the same text; the same wrong answers that hardly
anybody else gave; answers that are right for the numbers of somebody else.
"""

from __future__ import annotations

import html
import itertools
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import StatisticsError, correlation, fmean, median

from mlsim_exercises.evaluation import same_answer
from mlsim_exercises.markdown import plain_text
from mlsim_grading.assignment import Assignment
from mlsim_grading.grade import NOTHING, Result
from mlsim_grading.gradebook import Entry, Gradebook
from mlsim_grading.tables import csv_text, number, some

_FEW = 3  # below that, no correlation is told
_BY_HAND = {"by hand", "override", "unmarked"}  # verdicts that no program gave
_WRONG = {"wrong", "order of magnitude", "wrong unit"}


@dataclass(frozen=True)
class Tally:
    """How a question went, of those who handed in."""

    question: str
    title: str
    of: int
    there: int  # who handed in
    blank: int
    right: int  # with all points
    waiting: int  # texts that nobody has marked
    mean: float  # points, of those that are marked
    fits: float | None  # correlation of its points with those of all others, None if too few

    @property
    def share(self) -> float:
        """The share of the points that was earned."""
        return self.mean / self.of


@dataclass(frozen=True)
class Mistake:
    """How often a verdict was given to a question; `path` is the wrong path, or 0."""

    question: str
    verdict: str
    path: int
    times: int
    share: float  # of those who handed in
    points: float
    message: str


def tally(book: Gradebook) -> list[Tally]:
    """Return how each question went."""
    there = [each for each in book.entries if each.result is not None and not each.result.failed]
    found = []
    for index, question in enumerate(book.questions):
        exercise = question.exercise
        marks = [each.marks[index] for each in there]
        decided = [
            (each, mark) for each, mark in zip(there, marks, strict=True) if mark.kind != "unmarked"
        ]
        own = [mark.points for _, mark in decided]
        rest = [
            sum(mark.points for mark in each.marks) - points
            for (each, _), points in zip(decided, own, strict=True)
        ]
        found.append(
            Tally(
                exercise.id, exercise.title, exercise.points, len(there),
                sum(mark.kind == "not attempted" for mark in marks),
                sum(mark.points >= mark.of for mark in marks), len(marks) - len(own),
                fmean(own) if own else 0.0, _fits(own, rest),
            )
        )  # fmt: skip
    return found


def _fits(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, None where there are too few values or all are alike."""
    try:
        return correlation(one, other) if len(one) >= _FEW else None
    except StatisticsError:
        return None


def mistakes(book: Gradebook) -> list[Mistake]:
    """Return the verdicts of each question, the most frequent first.

    A wrong path is told in the words of the question's first version.
    """
    there = [each for each in book.entries if each.result is not None and not each.result.failed]
    found = []
    for index, question in enumerate(book.questions):
        marks = [each.marks[index] for each in there]
        counted = Counter((mark.kind, mark.path) for mark in marks)
        first = {(mark.kind, mark.path): mark for mark in reversed(marks)}
        for (kind, path), times in sorted(counted.items(), key=lambda each: (-each[1], each[0])):
            mark = first[kind, path]
            said = mark.message if kind in _WRONG else ""  # which holds nothing of the student's
            if path:
                said = question.versions[0].because[path - 1]
            share = times / len(there)
            points = math.nan if kind in _BY_HAND else mark.points
            found.append(Mistake(mark.question, kind, path, times, share, points, plain_text(said)))
    return found


def questions_csv(book: Gradebook) -> str:
    """Return how each question went, as a table."""
    head = [
        "question", "title", "of", "handed in", "blank", "all points", "to be marked",
        "mean points", "percent", "correlation with the rest",
    ]  # fmt: skip
    rows = [
        [
            each.question, each.title, str(each.of), str(each.there), str(each.blank),
            str(each.right), str(each.waiting), number(each.mean), f"{100 * each.share:.1f}",
            "" if each.fits is None else f"{each.fits:.2f}",
        ]
        for each in tally(book)
    ]  # fmt: skip
    return csv_text([head, *rows])


def mistakes_csv(book: Gradebook) -> str:
    """Return how often each verdict was given, as a table."""
    head = ["question", "verdict", "path", "times", "percent", "points", "message"]
    rows = [
        [
            each.question, each.verdict, str(each.path or ""), str(each.times),
            f"{100 * each.share:.1f}", "" if math.isnan(each.points) else number(each.points),
            " ".join(each.message.split()),
        ]
        for each in mistakes(book)
    ]  # fmt: skip
    return csv_text([head, *rows])


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


def alike_csv(found: Sequence[Alike]) -> str:
    """Return what is alike, as a table."""
    rows = [[each.sign, "; ".join(each.students), ", ".join(each.questions)] for each in found]
    return csv_text([["suspicion", "students", "questions"], *rows])


_BARS = 10  # of the histogram
_WIDE, _HIGH = 640, 220  # of a figure
_MOST_ROWS = 2000  # students whose rows are shown; the table has all
_MOST_MISTAKES = 6  # of a question


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
    tallies = tally(book)
    parts = [
        f"<h1>{_text(book.title)}: results</h1>",
        "<p>This page is for the instructor. It names students and shows what was asked.</p>",
        _summary(book),
        _needed(book, alike, exported, passed),
        "<h2>How the class did</h2>", _histogram(book),
        "<h2>Questions</h2>", _questions(tallies),
        "<h2>Mistakes</h2>", _mistakes(mistakes(book)),
        _alike(alike),
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


def _table(caption: str, head: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose first cells head their rows; columns of numbers have a # in `head`."""
    columns = head.split("; ")
    kinds = [' class="n"' if each.endswith("#") else "" for each in columns]
    first = "".join(
        f'<th scope="col"{kind}>{_text(name.removesuffix(" #"))}</th>'
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        f'<th scope="row">{_text(row[0])}</th>'
        + "".join(
            f"<td{kind}>{_text(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    said = _text(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{said}" tabindex="0"><table>'
        f"<caption><span>{said}</span></caption>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{body}\n</tbody>"
        "</table></div>"
    )


def _questions(tallies: Sequence[Tally]) -> str:
    head = "Question; Handed in #; Blank #; All points #; Mean #; Of #; With the rest #"
    rows = [
        [each.title, each.there, each.blank, each.right,
         "open" if 0 < each.there == each.waiting else number(each.mean), each.of,
         "" if each.fits is None else f"{each.fits:.2f}"]
        for each in tallies
    ]  # fmt: skip
    return _table(
        "How each question went. The last column is the correlation of its points with those of"
        " the other questions: near zero or below, look at the question.", head, rows,
    )  # fmt: skip


def _mistakes(found: Sequence[Mistake]) -> str:
    head = "Question; Verdict; Students #; Percent #; What they were told"
    shown: dict[str, int] = {}
    rows = []
    for each in found:
        if each.verdict in {"right", *_BY_HAND}:
            continue
        shown[each.question] = shown.get(each.question, 0) + 1
        if shown[each.question] <= _MOST_MISTAKES:
            credit = f" ({number(each.points)} points)" if each.points > 0 else ""
            rows.append([each.question, each.verdict + credit, each.times,
                         f"{100 * each.share:.0f}", each.message])  # fmt: skip
    return _table(
        "Mistakes by question, a row for each wrong path whatever the numbers were. The words are"
        " those of the first version.", head, rows,
    )  # fmt: skip


def _alike(alike: Sequence[Alike]) -> str:
    if not alike:
        return ""
    rows = [[each.sign, ", ".join(each.students), ", ".join(each.questions)] for each in alike]
    return (
        "<h2>Alike</h2>\n<p>A suspicion, no verdict: students learn together, and a common source"
        " makes work alike, too. No point depends on it. Look at the notebooks, and ask.</p>\n"
        + _table("Submissions that are alike", "Sign; Students; Questions", rows)
    )


def _students(book: Gradebook) -> str:
    head = (
        "Student; Points #; Percent #; Taken off #; Submissions #; Set by hand; To be marked; Notes"
    )
    rows = [
        [each.student, number(each.points), f"{each.percent:.0f}",
         number(each.taken_off) if each.taken_off else "", each.attempts,
         ", ".join(each.changed), ", ".join(each.open), "; ".join(each.notes)]
        for each in book.entries[:_MOST_ROWS]
    ]  # fmt: skip
    more = len(book.entries) - len(rows)
    caption = (
        f"Each student; gradebook.csv has {f'these and {more} more' if more > 0 else 'the same'}"
    )
    return _table(caption, head, rows)
