"""Rules for every figure: its quote, its scale, its source.

Each check is a function that yields findings; the first line of its docstring is the
rule. `mlsim.zoo.review.rules` applies them, beside the physics of each kind of record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mlsim.records import Figure
from mlsim.records.references import references

QUOTED_WORDS = 15
# Digits of a number that is found though spaces split it.
_SPLIT = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check says about a figure.

    `figure` names it by its table, such as "memory.bandwidth". An error breaks
    a rule; a finding that is no error is worth knowing.
    """

    figure: str
    message: str
    error: bool = True


class Recorded(Protocol):
    """Anything with a key and figures: a device, a system, a model."""

    @property
    def key(self) -> str:
        """The name in the zoo."""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Figures by name."""


def quotes(record: Recorded) -> Iterator[Finding]:
    """A quotation has 1 to 15 words, and the figure stands in it or in the note."""
    for name, figure in record.figures.items():
        if figure.kind == "given":
            continue
        if not 1 <= len(figure.quote.split()) <= QUOTED_WORDS:
            words = len(figure.quote.split())
            yield Finding(name, f"the quote has {words} words; {QUOTED_WORDS} at most.")
        if not _stands(figure):
            yield Finding(
                name,
                f'{figure.text} is neither in the quote "{figure.quote}" nor in the note: quote '
                "the figure, or say in the note how it follows and what it comes to.",
            )


def provenance(record: Recorded) -> Iterator[Finding]:
    """A derived, measured, estimated or secondary figure has a note that says how."""
    known = references()
    for name, figure in record.figures.items():
        if figure.kind not in ("datasheet", "given") and not figure.note:
            yield Finding(name, f'kind = "{figure.kind}" needs a note: how, or whose word it is.')
        if figure.source and figure.source not in known:
            yield _unknown(name, figure.source)
    source = getattr(record, "source", "")
    if source and source not in known:
        yield _unknown("source", source)


def _unknown(name: str, source: str) -> Finding:
    message = f"source {source!r} is not in references.bib: add it before you send this in."
    return Finding(name, message, error=False)


# Powers of ten.

_POWERS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_WORDS = {
    "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18,
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e\d+)?")
# The scale that stands before a unit: in a word, or as a letter before a symbol (GB, TFLOPS).
_WORD = re.compile("|".join(_WORDS), re.IGNORECASE)
_LETTER = re.compile(r"[kKMGTPE](?=i?[BbFOoWtp])")
# People count tokens and parameters in 300B, 40M and 2T.
_COUNT = re.compile(r"[KMBT](?![A-Za-z])")
_BARE = re.compile(r"(?:W|[Ww]atts?)\b")
# How figures are made of others is in their notes; their digits are not those of the quote.
_COMPUTED = ("given", "derived", "estimate")


def scales(record: Recorded) -> Iterator[Finding]:
    """A figure is not 10, 1,000 or another power of ten times what its quote says."""
    for name, figure in record.figures.items():
        wrong = None if figure.kind in _COMPUTED else _wrong_power(figure)
        if wrong is not None:
            times = f"{wrong:,.0f} times" if wrong > 1 else f"1/{1 / wrong:,.0f} of"
            yield Finding(
                name,
                f'{figure.text} is {times} what the quote "{figure.quote}" says. Give value and '
                "unit as printed. If the quote needs explaining, write the number that it means "
                "into the note, with its unit.",
            )


def _stands(figure: Figure) -> bool:
    """Tell whether a figure's number is in its quote or its note, in this unit or another.

    >>> from mlsim import Hardware
    >>> _stands(Hardware.Cloud.T4.figures["compute.fp16"])
    True
    """
    value = f"{figure.value:.15g}"
    for text in (figure.quote, figure.note):
        printed = re.sub(r"[,_]", "", text)
        # A copy may split a number with spaces.
        if value in printed or (len(value) >= _SPLIT and value in printed.replace(" ", "")):
            return True
    beside, bare, note = _ratios(figure)
    return any(math.isclose(ratio, 1.0) for ratio in (*beside, *bare, *note))


def _wrong_power(figure: Figure) -> float | None:
    """Return by which power of ten a figure misses its quote, or None if it does not.

    A number whose digits are not in the quote at all is another rule's matter.
    """
    beside, bare, note = _ratios(figure)
    if any(math.isclose(ratio, 1.0) for ratio in (*beside, *bare, *note)):
        return None
    # Beside a number with a unit, one without is a count: "4 links of 10 GB/s".
    return next((ratio for ratio in beside or bare if _is_power(ratio)), None)


def _ratios(figure: Figure) -> tuple[list[float], list[float], list[float]]:
    """Return a figure over each number of its quote with a unit, and without, and of its note."""
    own = _scale(figure.unit, figure.base) or 1.0
    value = figure.value * own
    # A number may have its unit in the head of the column: elsewhere in the quote, or the note.
    elsewhere = _mentioned(figure.quote, figure.base) or _mentioned(figure.note, figure.base)
    numbers = list(_numbers(figure.quote, figure.base))
    beside = [value / (number * scale) for number, scale in numbers if scale]
    bare = [
        value / (number * each)
        for number, scale in numbers
        if not scale
        for each in (own, 1.0, *elsewhere)
    ]
    note = [value / (n * scale) for n, scale in _numbers(figure.note, figure.base) if scale]
    return beside, bare, note


def _is_power(ratio: float) -> bool:
    power = math.log10(ratio)
    return math.isclose(power, round(power), abs_tol=1e-9)


def _numbers(words: str, base: str) -> Iterator[tuple[float, float | None]]:
    """Yield the positive numbers of a text, each with the power of ten of the unit beside it."""
    for match in _NUMBER.finditer(words):
        number = _read(match[0])
        if number > 0:
            # 3.12e13 is in the base unit.
            plain = 1.0 if "e" in match[0] else None
            yield number, plain or _scale(words[match.end() :].lstrip(" -"), base)


def _read(printed: str) -> float:
    """Read a printed number; a comma before other than three digits is a decimal comma."""
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", printed)
    plain = printed.rstrip(",_").replace("_", "").replace(",", "" if grouped else ".")
    return float(plain) if plain.count(".") < 2 else 0.0  # "1,2,3" is a list


def _scale(words: str, base: str) -> float | None:
    """Return the power of ten that a text begins with; None if it begins with no unit."""
    if word := _WORD.match(words):
        # "million MWh" is a million times a mega.
        rest = _scale(words[word.end() :].lstrip(), base)
        return _WORDS[word[0].lower()] * (rest or 1.0)
    if letter := _LETTER.match(words):
        return _POWERS[letter[0].lower()]
    if base in ("token", "parameter") and (count := _COUNT.match(words)):
        return 1e9 if count[0] == "B" else _POWERS[count[0].lower()]
    return 1.0 if _BARE.match(words) else None


def _mentioned(words: str, base: str) -> list[float]:
    """Return the powers of ten of all units that a text mentions."""
    found = (_scale(each, base) for each in re.findall(r"[A-Za-z][\w/]*", words))
    return [each for each in found if each]
