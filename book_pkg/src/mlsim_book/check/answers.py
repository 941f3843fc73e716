"""Whether a number that a page shows tells an answer: by its origin, or by what stands with it.

By its origin: it opens to the same derivation, or has the same name and is within the tolerance,
or what it opens to names the answer. Else it is as large as the answer, to the digits shown, and
something says what it is: of a guess, its unit or the answer's name; of an exercise, its unit and
rare words of the question, since these hardly have names.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlsim_book.check.told import Page, Question, Told
from mlsim_exercises.verdicts import unit_factor

_NUMERAL = re.compile(r"(?<![\w.,])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?!\d)")
_WORD = re.compile(r"[^\W_]+(?:[-.,_]\d\w*)*")  # "GPT-3" is one
SENTENCE = re.compile(r"[.?!:;]\s+(?=\W*[A-Z\d])")  # of a sentence
_CAPTION = re.compile(r"[A-Z][a-z]+ [\d.]*\Z")  # "Table 3", which counts nothing
_SHORT = 3  # letters: shorter words name nothing
_COUNTED = 3  # words that a unit may have: "tokens per second"
_RARE = 0.025  # of the sentences of a book have a word that tells what a sentence is about
_LEAST = 3  # so many sentences may have a rare word in any case
# What part of a question's rare words, and how many of them, stand with what tells its answer:
_NUMBER, _BARE, _CELL = (0.125, 2), (0.125, 3), (0.05, 1)
BESIDE = 30  # characters from what is named to its number

Found = tuple[Told, int, str, str]  # where, at which character, what is shown, and how it tells


class Words:
    """How rare the words of a book are: those of few sentences tell what one is about."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._count = 0
        self._found = Counter[str]()
        for told in (told for page in pages for told in page.told if told.kind == "the text"):
            for sentence in SENTENCE.split(told.text):
                self._count += 1
                self._found.update(stems(sentence))

    def about(self, question: Question) -> dict[str, float]:
        """Return the rare words of a question, each with a weight."""
        most = max(_LEAST, _RARE * self._count)
        return {
            word: math.log(1 + self._count / (self._found[word] + 1))
            for word in stems(f"{' '.join(question.names)} {question.text}")
            if self._found[word] <= most
        }  # fmt: skip

    def share(self, wanted: dict[str, float], text: str, least: tuple[float, int]) -> bool:
        """Return whether a text has enough of some words, by their weight and by their number."""
        both = wanted.keys() & stems(text)
        part, number = least
        return len(both) >= number and (
            sum(wanted[each] for each in both) >= part * sum(wanted.values())
        )


@functools.lru_cache(maxsize=100_000)
def stems(text: str) -> frozenset[str]:
    """Return the words and numbers that name something, without a plural's s.

    >>> sorted(stems("The scores of GPT-3 take 12 GB"))
    ['12', 'gpt-3', 'score', 'take', 'the']
    """
    return frozenset(
        each.rstrip("s") for each in _WORD.findall(text.lower())
        if len(each) >= _SHORT or (len(each) > 1 and not each.isalpha())
    )  # fmt: skip


@dataclass(frozen=True)
class Numeral:
    """A number as it stands in a text."""

    start: int
    end: int
    value: float
    slack: float  # half of one in its last digit
    digits: int  # that say something
    after: tuple[str, ...]  # what may be its unit, the longest first


@functools.lru_cache(maxsize=200_000)
def numerals(text: str) -> tuple[Numeral, ...]:
    """Return the numbers of a text."""
    found = []
    for match in _NUMERAL.finditer(text):
        after = re.split(r"[\s\u00a0]+", text[match.end() : match.end() + 60].strip())
        tries = (" ".join(after[:count]).rstrip(".,;:)") for count in range(_COUNTED, 0, -1))
        found.append(Numeral(
            match.start(), match.end(), float(match[0].replace(",", "")), _last_digit(match[0]) / 2,
            len(re.sub(r"[eE].*|\D", "", match[0]).strip("0")), tuple(dict.fromkeys(tries)),
        ))  # fmt: skip
    return tuple(found)


def find_told(
    question: Question, told: Told, page: Page, words: Words, *, own: bool
) -> Iterator[Found]:
    """Yield the numbers of a stretch that tell an answer; `own` says that its page asks it."""
    known, near = [], question.tolerance  # known is what has been judged by its origin
    for start, end, origin in told.opens:
        shown, pairs = told.text[start:end].strip(), page.cards.get(origin, [])
        how = ""
        if origin in question.origins or _same(question, pairs):
            how = "the same result"
        elif any(
            name in question.names
            and _noted(question, value)
            and any(_agree(question, one, near) is not None for one in numerals(value))
            for name, value in pairs
        ):
            how = "derived from the same"
        if how:
            yield told, start, shown, how
        if how or question.what == "guess":
            known.append(range(start, end))
    for one in numerals(told.text):
        if not own and one.end - one.start < _SHORT:
            continue  # two digits are soon alike
        fits = _agree(question, one)
        if fits is None or any(one.start in each for each in known):
            continue
        if question.what == "guess":
            how = _of_guess(question, told, one, fits=fits, own=own)
        else:
            how = _of_exercise(question, told, one, words, fits=fits, own=own)
        if how:
            yield told, one.start, told.text[one.start : one.end], how


def _same(question: Question, pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether a number opens to an exercise's answer, to four digits."""
    return question.what == "exercise" and any(
        one.digits > _SHORT and _agree(question, one) for _, value in pairs[:1]
        for one in numerals(value)
    )  # fmt: skip


def _of_guess(question: Question, told: Told, one: Numeral, *, fits: bool, own: bool) -> str:
    """Return how a number tells a guess; an empty text if it doesn't."""
    counted = question.unit.isalpha() and len(question.unit) > _SHORT  # may have other names
    other = not counted and _has_unit(told, one)
    if one.digits < 2 or (other and not fits):
        return ""
    if not own and len(re.sub(r"\D", "", told.text[one.start : one.end])) < _SHORT:
        return ""
    names = {stem for each in question.names for stem in _letters(each)}
    context = f"{told.text[max(0, one.start - 200) : one.end + 100]} {told.around}"
    if len(names & _letters(context)) * 2 > len(names) > 0:
        return "its name"
    same = own and question.unit and (fits or _headed(question, told, one))
    # a figure's data are many numbers of one unit
    return "its unit" if same and told.kind != "the data of a figure" else ""


def _of_exercise(
    question: Question, told: Told, one: Numeral, words: Words, *, fits: bool, own: bool
) -> str:
    """Return how a number tells an exercise; an empty text if it doesn't."""
    cell = told.kind in {"a table", "printed output", "the data of a figure"}
    if not fits:  # the unit of a cell stands in its heads, and a factor has none there
        bare = question.unit in {"", "times"} and bool(told.around)  # a script heads nothing
        headed = bare or _headed(question, told, one)
        label = bool(told.row) and told.text.strip() == told.row  # which names its row
        if not cell or label or _has_unit(told, one) or not headed:
            return ""
    if one.digits < (1 if own and fits else 2) + (not own):
        return ""  # one digit is soon alike, and on another page two
    if told.kind == "the text" and _CAPTION.search(told.text, 0, one.start):
        return ""
    about = words.about(question)
    for each in (told.text[one.start : one.end], question.unit, "per"):
        for stem in stems(each):
            about.pop(stem, None)
    least = _NUMBER if fits else _BARE
    least = _CELL if cell and one.digits > 1 and _headed(question, told, one) else least
    near = f"{_sentences(told.text, one.start, one.end)} {told.around}"
    return "its words and unit" if words.share(about, near, least) else ""


def _sentences(text: str, start: int, end: int) -> str:
    """Return the sentence that has a stretch of a text, and the one before."""
    ends = [each.end() for each in SENTENCE.finditer(text, 0, start)]
    after = SENTENCE.search(text, end)
    return text[ends[-2] if len(ends) > 1 else 0 : after.start() if after else None]


def _has_unit(told: Told, one: Numeral) -> bool:
    """Return whether a word or a sign stands right behind a number."""
    return re.match(r"[ \u00a0-]?(?:[^\W\d]|[%$])", told.text[one.end : one.end + 2]) is not None


def _headed(question: Question, told: Told, one: Numeral) -> bool:
    """Return whether the answer's unit heads a number; in a figure's data it stands before it."""
    heads = told.around
    if told.kind == "the data of a figure" and not heads:
        heads = told.text[max(0, one.start - BESIDE) : one.start]
    unit = rf"(?<![\w'’]){re.escape(question.unit)}(?!\w)"
    return bool(question.unit and re.search(unit, heads, re.IGNORECASE))


def _noted(question: Question, note: str) -> bool:
    """Return whether a note and the answer's share two numbers, within the tolerance.

    One is enough where the answer's has no other; a ratio alone may be of anything.
    """
    own, other = (
        {one.value for one in numerals(each)} for each in (" ".join(question.notes), note)
    )
    close = [a for a in own if any(abs(a - b) <= question.tolerance * a for b in other)]
    return len(close) >= min(2, len(own))


def _letters(text: str) -> set[str]:
    """Return the words that name something, without numbers, as their stems."""
    found = re.findall(r"[^\W\d_]+", text.lower())
    return {each.rstrip("s") for each in found if len(each) >= _SHORT}


def _agree(question: Question, one: Numeral, near: float = 1e-9) -> bool | None:
    """Return whether a number has the answer's unit; None if it is another number."""
    wanted = question.answer
    if math.isnan(wanted):
        return None
    exercise = question.what == "exercise"
    # what a guess knows is as its page shows it
    known = 0.0 if exercise else _last_digit(f"{wanted:.12g}") / 2
    # of a factor that is near one, what counts is how far it is from one
    most = abs(one.value - 1) if exercise and question.unit == "times" else one.value
    times = _unit_of(one.after, question.unit)
    for factor, fits in ((times, True), (1.0, False)):
        if factor and abs(one.value * factor - wanted) <= max(
            near * abs(wanted), min(one.slack, 0.05 * most) * factor, known
        ):
            return fits
    # a factor may be told as the share that is left
    share = exercise and question.unit == "times" and one.after[-1:] == ("%",)
    return True if share and abs(one.value - 100 / wanted) <= one.slack else None


def _last_digit(number: str) -> float:
    """Return what one more in the last digit of a number makes.

    >>> _last_digit("4.50"), _last_digit("1,200"), _last_digit("")
    (0.01, 1.0, 0.0)
    """
    whole, _, places = number.partition(".")
    return 10.0 ** -len(places) if (whole or places) and "e" not in number.lower() else 0.0


@functools.cache
def _unit_of(after: tuple[str, ...], unit: str) -> float | None:
    """Return the factor from what stands after a number to a unit, None if nothing fits."""
    for each in after if unit else ():
        if (each[:1].isalpha() or each[:1] in {"%", "$"}) and (times := unit_factor(each, unit)):
            return times
    return None
