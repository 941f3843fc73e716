"""Submissions that are alike: a suspicion to look at, never a verdict, and never a point.

Four signs: the same code, remarks and blanks aside; the same text; the same wrong answers that
hardly anybody else gave; answers that are right for the numbers of somebody else.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlsim_exercises.evaluation import same_answer
from mlsim_grading.assignment import Assignment
from mlsim_grading.cells import csv_text
from mlsim_grading.gradebook import Entry, Gradebook
from mlsim_grading.results import Result

_LONG = 60  # characters of a text: shorter ones may be alike by chance
_RARE = 4  # students who gave the same wrong answer to the same numbers
_TWICE = 2  # questions that must agree
_NAMED = 6  # students that are named
_WRONG = {"wrong", "order of magnitude", "wrong unit"}


@dataclass(frozen=True)
class Alike:
    """What is alike, in whose submissions."""

    sign: str
    students: tuple[str, ...]
    questions: tuple[str, ...] = ()


def find_alike(book: Gradebook, assignment: Assignment) -> list[Alike]:
    """Return what is alike, the strongest signs first."""
    return [
        *_same_code(book), *_same_text(book), *_same_mistakes(book, assignment),
        *_others_numbers(book, assignment),
    ]  # fmt: skip


def _own(book: Gradebook) -> Iterator[Result]:
    """Yield results, and of a file that several handed in together the first."""
    seen: set[str] = set()
    for each in book.results:
        if each.file not in seen:
            seen.add(each.file)
            yield each


def _entries(book: Gradebook) -> Iterator[Entry]:
    """Yield the rows of those who handed in themselves."""
    yield from (each for each in book.entries if each.result and not each.result.of_group)


def _same_code(book: Gradebook) -> Iterator[Alike]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for each in _own(book):
        if each.sources and each.student:
            found[each.sources][each.student] = None
    for students in found.values():
        if len(students) > 1:
            yield Alike("the same code", tuple(students))


def _same_text(book: Gradebook) -> Iterator[Alike]:
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    texts = {each.exercise.id for each in book.questions if each.exercise.kind == "text"}
    for result in _own(book) if texts else ():
        for mark in result.marks:
            if mark.question in texts and result.student:
                text = unicodedata.normalize("NFKC", mark.given).casefold()
                text = "".join(filter(str.isalnum, text))
                if len(text) >= _LONG:
                    found[mark.question, text][result.student] = None
    for (question, _), students in found.items():
        if len(students) > 1:
            yield Alike("the same text", tuple(students), (question,))


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
