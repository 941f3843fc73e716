"""Whether a number that a page shows tells an answer: by its origin, or by its label.

By its origin: it opens to the same derivation, or has the same name and is within the tolerance,
or what it opens to names the answer. By its label: it is as large as the answer, to the digits
shown, has two digits or more, and its unit or the answer's name stands with it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator

from mlsim_book.check.told import Page, Question, Told
from mlsim_exercises.verdicts import Verdict, read_number

_NUMERAL = re.compile(r"(?<![\w.,])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?!\d)")
_SHORT = 3  # letters: shorter words name nothing
_ALIKE = 4  # words that two texts on the same thing share
_WORDS = 3  # that a unit may have: "tokens per second"

Found = tuple[Told, int, str, str]  # where, at which character, what is shown, and how it tells


def find_told(question: Question, told: Told, page: Page, *, own: bool) -> Iterator[Found]:
    """Yield the numbers of a stretch that tell an answer; `own` says that its page asks it."""
    stems = {stem for each in question.names for stem in _stems(each)}
    for start, end, origin in told.opens:
        shown, pairs = told.text[start:end].strip(), page.cards.get(origin, [])
        if origin in question.origins:
            yield told, start, shown, "the same result"
        elif any(
            name in question.names
            and _noted(question, value)
            and _agree(question, value, one.start(), question.tolerance) is not None
            for name, value in pairs for one in _NUMERAL.finditer(value)
        ):  # fmt: skip
            yield told, start, shown, "derived from the same"
        elif question.what == "exercise":
            yield from _plain(question, told, start, end, stems, own=own)
    at = 0
    for start, end, _ in (*told.opens, (len(told.text), 0, "")):
        yield from _plain(question, told, at, start, stems, own=own)
        at = end


def _plain(
    question: Question, told: Told, start: int, end: int, stems: set[str], *, own: bool
) -> Iterator[Found]:
    """Yield the numbers of a part of a stretch that tell an answer by what stands with them."""
    for match in _NUMERAL.finditer(told.text, start, end):
        digits = re.sub(r"[eE].*|\D", "", match[0]).strip("0")
        fits = _agree(question, told.text, match.start()) if len(digits) > 1 else None
        other = re.match(r"[ \u00a0-]?[^\W\d]", told.text[match.end() :]) and not _counted(question)
        if fits is None or (other and not fits):
            continue
        if not own and len(re.sub(r"\D", "", match[0])) < _SHORT:
            continue  # two digits are soon alike
        context = f"{told.text[max(0, match.start() - 200) : match.end() + 100]} {told.around}"
        named = len(stems & _stems(context)) * 2 > len(stems) > 0
        unit = rf"(?<![\w'’]){re.escape(question.unit)}(?!\w)"
        same = own and bool(question.unit and (fits or re.search(unit, told.around, re.IGNORECASE)))
        if question.what == "exercise":  # its text says what is meant, its title hardly
            wanted = 1 if told.kind == "a table" else _ALIKE  # a cell of a table has few words
            named = same and len(_stems(question.text) & _stems(context)) >= wanted
            same = same and len(digits) >= _SHORT
        # a figure's data are many numbers of one unit
        if named or (same and told.kind != "the data of a figure"):
            how = "its words and unit" if question.what == "exercise" else "its name"
            yield told, match.start(), match[0], how if named else "its unit"


def _noted(question: Question, note: str) -> bool:
    """Return whether a note and the answer's share two numbers, within the tolerance.

    One is enough where the answer's has no other; a ratio alone may be of anything.
    """
    own, other = (
        {float(one[0].replace(",", "")) for one in _NUMERAL.finditer(each)}
        for each in (" ".join(question.notes), note)
    )
    close = [a for a in own if any(abs(a - b) <= question.tolerance * a for b in other)]
    return len(close) >= min(2, len(own))


def _counted(question: Question) -> bool:
    """Return whether the answer is a number of things, which may have other names."""
    return question.unit.isalpha() and len(question.unit) > _SHORT


def _stems(text: str) -> set[str]:
    """Return the words that name something, as their stems."""
    found = re.findall(r"[^\W\d_]+", text.lower())
    return {each.rstrip("s") for each in found if len(each) >= _SHORT}


def _agree(question: Question, text: str, at: int, near: float = 1e-9) -> bool | None:
    """Return whether the number there has the answer's unit; None if it is another number."""
    match = _NUMERAL.match(text, at)
    if match is None or math.isnan(question.answer):
        return None
    value = float(match[0].replace(",", ""))
    given = "" if question.what == "exercise" else f"{question.answer:.12g}"
    # what a guess knows is as its page shows it
    slack, known = (_last_digit(each) / 2 for each in (match[0], given))
    after = re.split(r"[\s\u00a0]+", text[match.end() :][:60].strip())
    tries = (" ".join(after[:count]).rstrip(".,;:)") for count in range(_WORDS, 0, -1))
    times = next((one for each in tries if (one := _factor(each, question.unit))), None)
    for factor, fits in ((times, True), (1.0, False)):
        if factor and abs(value * factor - question.answer) <= max(
            near * abs(question.answer), min(slack, 0.05 * value) * factor, known
        ):
            return fits
    return None


def _last_digit(number: str) -> float:
    """Return what one more in the last digit of a number makes.

    >>> _last_digit("4.50"), _last_digit("1,200"), _last_digit("")
    (0.01, 1.0, 0.0)
    """
    whole, _, places = number.partition(".")
    return 10.0 ** -len(places) if (whole or places) and "e" not in number.lower() else 0.0


@functools.cache
def _factor(words: str, unit: str) -> float | None:
    """Return the factor from what stands after a number to a unit, None if they do not fit."""
    if not unit or not (words[:1].isalpha() or words[:1] in {"%", "$"}):
        return None
    read = read_number(f"1 {words}", unit)
    return None if isinstance(read, Verdict) else read[0]
