"""Read what settles a page's guesses off the page itself, and tell its script.

A guess gets `data-answer`, in its unit or as the places of its choices, and `data-measured`, in
words, where its page has that. How guesses are written is in `mlsim_book.exercises.guesses`.
"""

from __future__ import annotations

import html as htmllib
import re

from mlsim_book.exercises.guesses import KINDS, WRITE
from mlsim_book.model import ExecutedPage
from mlsim_book.read.lines import Reporter
from mlsim_book.read.yamlfile import did_you_mean
from mlsim_book.render.postprocess import Element, Text, edited, parse
from mlsim_exercises.verdicts import Verdict, read_number

_NUMERAL = re.compile(r"(?<![\w.,])[-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
_WORDS = 3  # that a unit may have: "tokens per second"


class _UnsettledError(Exception):
    """What is wrong, and what to do."""


def settle_guesses(html: str, page: ExecutedPage, reporter: Reporter) -> str:
    """Return a page whose guesses know their answers; note those that can't be read."""
    if 'data-guess="' not in html and 'data-opened-by="' not in html:
        return html
    root = parse(html)
    asked = {each.attribute("id"): each for each in root.all("guess")}
    for each in root.all("live-figure"):
        waits = each.attribute("data-opened-by") or ""
        if waits and waits not in asked:
            reporter.note(
                page,
                f"a figure waits for the guess '{waits}', which this page does not ask",
                rf"guess=[\"']{re.escape(waits)}\b",
                hint=did_you_mean(waits, filter(None, asked)) or f"Ask it above. {WRITE}",
            )
    edits = []
    for each in root.all("settles"):
        name = each.attribute("data-guess")
        guess = asked.get(name)
        if guess is None or guess.attribute("data-kind") not in KINDS:
            continue  # the source was told of that
        try:
            told = _told(html, guess, each)
        except _UnsettledError as error:
            message, hint = error.args
            reporter.note(page, f"the guess '{name}': {message}",
                          rf"settles[^}}]*guess=[\"']?{name}\b", hint=hint)  # fmt: skip
            continue
        data = "".join(f' data-{key}="{htmllib.escape(text)}"' for key, text in told.items())
        edits.append((guess.inner - 1, guess.inner - 1, data))
    return edited(html, edits)


def _told(html: str, guess: Element, place: Element) -> dict[str, str]:
    kind, unit = guess.attribute("data-kind"), guess.attribute("data-unit") or ""
    measured = next((each for each in place.all("measured") if each.tag == "span"), None)
    spot = next(place.all("answer"), place)
    if kind == "number":
        answer = _number(html, spot, measured, unit)
        if unit == "%" and not 0 <= answer <= 100:
            raise _UnsettledError(
                f"its answer, {answer:.4g} %, is no part of a whole",
                'Ask for a factor: unit="times".',
            )
        told = {"answer": f"{answer:.12g}"}
    else:
        items = _items(html, guess)
        told = {"answer": _choices(_words(html, spot, measured), items, ordered=kind == "order")}
    if measured is not None:
        words = _words(html, measured)
        if kind == "number":
            _number(html, measured, None, unit)
            words = _with_unit(words, unit)
        told["measured"] = words
    return told


def _number(html: str, place: Element, without: Element | None, unit: str) -> float:
    """Return the number that stands in a place, in a unit."""
    opened = [each for each in place.all("opens") if not _within(each, without)]
    if opened:
        shown = [_words(html, each) for each in opened]
        after = [_words(html, place, without, start=each.inner_end) for each in opened]
    else:
        text = _words(html, place, without)
        found = list(_NUMERAL.finditer(text))
        shown, after = [each[0] for each in found], [text[each.end() :] for each in found]
    if len(shown) != 1:
        raise _UnsettledError(
            f"{len(shown) or 'no'} numbers stand in what settles it"
            + (f" ({', '.join(shown)})" if shown else ""),
            "Mark the one that is the answer: [`{python} n`]{.answer}, or leave the others out."
            if shown else "Put a computed number in: [`{python} n` users]{.settles ...}.",
        )  # fmt: skip
    words = after[0].split()
    tries = [" ".join([shown[0], *words[:count]]) for count in range(_WORDS, 0, -1)]
    bare = _NUMERAL.fullmatch(shown[0]) is not None
    for text in [*(each.rstrip(".,;:)") for each in tries if bare), shown[0]]:
        read = read_number(text, unit)
        if not isinstance(read, Verdict):
            return read[0]
    raise _UnsettledError(
        f"its answer '{shown[0]}' is no number in its unit, '{unit}'",
        f'Show it in that unit, or ask in another: unit="{unit or "ms"}".',
    )


def _with_unit(words: str, unit: str) -> str:
    """Return words whose number has its unit, if it goes without one.

    >>> _with_unit("94 on an A100", "tokens/s"), _with_unit("94 tokens per second", "tokens/s")
    ('94 tokens/s on an A100', '94 tokens per second')
    """
    found = _NUMERAL.search(words)
    if found is None or not unit:
        return words
    after = words[found.end() :].split()
    tries = (" ".join([found[0], *after[:count]]) for count in range(1, _WORDS + 1))
    if any(not isinstance(read_number(each, unit), Verdict) for each in tries if after):
        return words
    return f"{words[: found.end()]} {unit}{words[found.end() :]}"


def _choices(text: str, items: list[str], *, ordered: bool) -> str:
    """Return the places of the choices that a text names: one, or all in their order."""
    found = [
        (*match.span(), place)
        for place, item in enumerate(items, start=1)
        for match in re.finditer(rf"(?<!\w){re.escape(item)}(?!\w)", text, re.IGNORECASE)
    ]
    # the "memory" in "memory bandwidth" is no choice of its own
    found = [
        (start, end, place)
        for start, end, place in found
        if not any(a <= start and end <= b and b - a > end - start for a, b, _ in found)
    ]
    named = list(dict.fromkeys(place for *_, place in sorted(found)))
    if ordered:
        if missing := [item for place, item in enumerate(items, 1) if place not in named]:
            raise _UnsettledError(
                f"what settles it does not name '{missing[0]}'",
                "Name all items there, in their order.",
            )
        return " ".join(map(str, named))
    if len(named) != 1:
        said = ", ".join(f"'{items[place - 1]}'" for place in sorted(named)) or "none"
        raise _UnsettledError(
            f"of its {len(items)} choices, what settles it names {said}",
            "Name the right one there as in the list: [...]{.answer} in it narrows where.",
        )
    return str(named[0])


def _items(html: str, guess: Element) -> list[str]:
    lists = [each for each in _elements(guess) if each.tag == "ul"]
    items = [each for each in (lists[-1].children if lists else []) if isinstance(each, Element)]
    if len(items) < 2:
        raise _UnsettledError(
            "a choice and an order need a list of what there is to choose",
            "End its box with a list, each item in a line that begins with -.",
        )
    return [_words(html, each) for each in items]


def _elements(place: Element) -> list[Element]:
    own = [each for each in place.children if isinstance(each, Element)]
    return [found for each in own for found in (each, *_elements(each))]


def _within(element: Element, other: Element | None) -> bool:
    return other is not None and other.start <= element.start < other.inner_end


def _words(html: str, place: Element, without: Element | None = None, start: int = 0) -> str:
    """Return the text of an element, but for another one in it, and for what stands before."""
    pieces: list[str] = []

    def take(element: Element) -> None:
        for each in element.children:
            if isinstance(each, Text):
                if each.start >= start:
                    pieces.append(htmllib.unescape(html[each.start : each.end]))
            elif each is not without and each.attribute("popover") is None:
                take(each)

    take(place)
    return " ".join("".join(pieces).split())
