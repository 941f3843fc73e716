"""What a class got: by question, and by mistake, a row for each path and not for each variant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from mlsim_exercises.markdown import plain_text
from mlsim_grading.cells import csv_text, number
from mlsim_grading.gradebook import Gradebook
from mlsim_grading.results import Mark

_FEW = 3  # below that, no correlation is told


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
                fmean(own) if own else 0.0, correlation(own, rest),
            )
        )  # fmt: skip
    return found


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, None where there are too few values or all are alike.

    >>> correlation([0, 1, 2], [3, 5, 7]), correlation([1, 1, 1], [1, 2, 3])
    (1.0, None)
    """
    if len(one) < _FEW:
        return None
    mean, mean_other = fmean(one), fmean(other)
    both = sum((x - mean) * (y - mean_other) for x, y in zip(one, other, strict=True))
    spread = sum((x - mean) ** 2 for x in one) * sum((y - mean_other) ** 2 for y in other)
    return both / math.sqrt(spread) if spread > 1e-12 else None


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
            if path:
                said = question.versions[0].because[path - 1]
            else:
                said = mark.message if kind in _TOLD else ""
            share = times / len(there)
            found.append(
                Mistake(
                    mark.question, kind, path, times, share, _points(mark, kind), plain_text(said)
                )
            )
    return found


_TOLD = {
    "wrong unit",
    "order of magnitude",
    "wrong",
}  # whose message holds nothing of the student's


def _points(mark: Mark, kind: str) -> float:
    return math.nan if kind in {"by hand", "override", "unmarked"} else mark.points


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
