"""Whether what a page shows tells a choice or an order.

A choice is told where the right option is named and no other one, with many of the question's rare
words; and where a number stands beside each option, and the right one has the largest or the
smallest. An order is told by numbers beside its items that have it, by a sentence that names all in
it, and by one on its first or last as on a choice.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence

from mlsim_book.check.answers import BESIDE, SENTENCE, Found, Words, numerals, stems
from mlsim_book.check.told import Question, Told

# What part of a question's rare words, and how many of them, stand with what tells its answer:
_CHOICE, _RANK = (0.35, 2), (0.1, 2)


def find_chosen(question: Question, told: Sequence[Told], words: Words) -> Iterator[Found]:
    """Yield what tells a choice or an order in the stretches of a page before its question."""
    if not question.options:
        return
    about = words.about(question)
    for stem in {stem for each in question.options for stem in stems(each)}:
        about.pop(stem, None)
    named = [_named(each) for each in question.options]
    for block, group in itertools.groupby(told, key=lambda each: each.block):
        # a figure's data outside of a table are no sentences, and what asks tells nothing
        stretches = [
            each
            for each in group
            if block
            or not (each.kind == "the data of a figure" or each.text.rstrip().endswith("?"))
        ]
        whole = "\n".join(each.text for each in stretches)
        counts = [len(one.findall(whole)) for one in named]
        if not any(counts):
            continue
        enough = functools.partial(words.share, about)
        heads = stretches[-1].around
        for each in stretches:
            for at, text in _split(each.text):
                places = [one.search(text) for one in named]
                found = [place for place in places if place]
                near = f"{text} {each.around}"
                if len(found) == len(named):
                    if enough(near, _RANK) and _ranked(text, found, question):
                        yield each, at + found[0].start(), found[0][0], "its order"
                elif (
                    found
                    and _alone(question, places, text, counts if block else [])
                    and enough(near, _CHOICE)
                ):
                    yield each, at + found[0].start(), found[0][0], "its words"
        if block and all(counts) and enough(f"{whole} {heads}", _RANK):
            found = [place for one in named if (place := one.search(whole))]
            row = _row(question, named, stretches) if stretches[0].row else None
            if row or (not stretches[0].row and _ranked(whole, found, question)):
                yield row or stretches[0], 0, found[0][0], "its order"


def _alone(
    question: Question, places: Sequence[re.Match[str] | None], text: str, counts: Sequence[int]
) -> bool:
    """Return whether a sentence names only the right option, or the first or last of an order.

    `counts` are how often a table or a print names each: where it names others, a row is no answer.
    """
    found = [number for number, one in enumerate(places) if one]
    first = places[found[0]]
    if len(found) > 1 or found[0] not in {0, question.ordered * (len(places) - 1)}:
        return False
    # what a number follows is named as its label
    label = first and counts and re.match(r"\W*\d", text[first.end() :])
    return not label and sum(map(bool, counts)) < 2


def _ranked(text: str, places: Sequence[re.Match[str]], question: Question) -> bool:
    """Return whether a text names all options in order, or beside numbers that tell the answer."""
    ordered = question.ordered and _ranks([one.start() for one in places], question)
    return ordered or _ranks(_beside(text, places), question)


def _beside(text: str, places: Sequence[re.Match[str]]) -> list[float]:
    """Return the number that follows each place in a text; none where one has none."""
    found = [
        next((one.value for one in numerals(text) if 0 <= one.start - each.end() < BESIDE), None)
        for each in places
    ]  # fmt: skip
    values = [each for each in found if each is not None]
    return values if len(values) == len(found) else []


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text, each with its place."""
    at = 0
    for end in (*(each.end() for each in SENTENCE.finditer(text)), len(text)):
        yield at, text[at:end]
        at = end


def _named(option: str) -> re.Pattern[str]:
    """Return the pattern of what names an option: its words, but for an article."""
    found = re.findall(r"\w+", re.sub(r"[’']s\b", "", option))
    found = found[1:] if len(found) > 1 and found[0].lower() in {"the", "a", "an"} else found
    letter = len("".join(found)) < 2  # it may stand for anything
    pattern = r"(?!)" if letter else r"(?:[’']s)?\W+".join(map(re.escape, found))
    return re.compile(rf"(?<!\w){pattern}s?(?!\w)", re.IGNORECASE)


def _row(question: Question, named: Sequence[re.Pattern[str]], told: Sequence[Told]) -> Told | None:
    """Return the first row of a table of which a column tells how the options are ranked."""
    rows = {row: list(cells) for row, cells in itertools.groupby(told, key=lambda each: each.row)}
    heads = [next((row for row in rows if one.search(row)), "") for one in named]
    if not all(heads) or len(set(heads)) < len(heads):
        return None
    table = [[next(iter(numerals(each.text)), None) for each in rows[head][1:]] for head in heads]
    columns = [
        [one.value for one in column if one] for column in zip(*table, strict=False) if all(column)
    ]
    # something else is soon the largest or the smallest of a few
    tells = any(_ranks(each, question) for each in columns[: None if question.ordered else 1])
    return rows[heads[0]][0] if tells else None


def _ranks(values: Sequence[float], question: Question) -> bool:
    """Return whether numbers of the options, in the answer's order, tell it."""
    if not values:
        return False
    if question.ordered:
        return all(a < b for a, b in itertools.pairwise(values)) or all(
            a > b for a, b in itertools.pairwise(values)
        )
    return values[0] > max(values[1:]) or values[0] < min(values[1:])
