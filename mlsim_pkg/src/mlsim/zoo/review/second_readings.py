"""Second readings: what a second reader found in the document of a figure.

The rows lie in `data/readings/*.csv`. A reading is bound to the figure as it stood:
its value, unit, qualifier (dense or sparse, one way or both ways, per device) and
source. Edit any of them, and the reading lapses: the figure has no second reader until
somebody opens the document again.

A row that found the figure to differ, or did not find it, stays when the figure is
corrected or removed: it documents the correction.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from mlsim.errors import DataFileError, nearest
from mlsim.records import DATA, Figure, tables
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
        if not _where_it_stands(figure):
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


def _where_it_stands(figure: Figure) -> bool:
    """Tell whether a figure's number is in its quote or its note, in this unit or another.

    >>> from mlsim import Hardware
    >>> _where_it_stands(Hardware.Cloud.T4.figures["compute.fp16"])
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


FOLDER = DATA / "readings"
# What a reader can find, and the two states of a figure that nobody found as it stands.
FOUND = ("same", "differs", "not found")
LAPSED, UNREAD = "lapsed", "unread"
STATES = (*FOUND, LAPSED, UNREAD)


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure, read again in its document.

    Attributes
    ----------
    record, figure
        The key of a record of the zoo, and the figure's name in it.
    value, unit, qualifier, source
        The figure as it stood. See `qualifier` for the third.
    found
        "same"; "differs"; or "not found", when the document could not be opened
        again, or does not say it.
    place, quote
        Where in the document the second reader looked, and the words that stand there.
    date
        The day of the reading.
    note
        What differs and how it was settled; anything else worth knowing.
    """

    record: str
    figure: str
    value: float
    unit: str
    qualifier: str
    source: str
    found: str
    place: str
    quote: str
    date: datetime.date
    note: str

    @property
    def id(self) -> str:
        """What the reading is bound to, in one line."""
        bound = (f"{self.value:.15g}", self.unit, self.qualifier, self.source)
        return " ".join((self.record, self.figure, *bound))

    def fits(self, figure: Figure) -> bool:
        """Whether a figure still is what was read."""
        now = (figure.value, figure.unit, qualifier(figure), figure.source)
        return now == (self.value, self.unit, self.qualifier, self.source)


COLUMNS = tuple(Reading.__dataclass_fields__)


def qualifier(figure: Figure) -> str:
    """Say what a figure's number counts: what else than value and unit must not change.

    >>> from mlsim import Hardware
    >>> qualifier(Hardware.Cloud.A100.figures["compute.fp16"])
    'dense, tensor cores'
    >>> qualifier(Hardware.Cloud.A100.figures["links.nvlink"])
    'both ways'
    """
    per = f"per {figure.per}" if figure.per else ""
    parts = (figure.sparsity, figure.unit_used, figure.direction, per)
    return ", ".join(part for part in parts if part)


@cache
def readings(folder: Path = FOLDER) -> tuple[Reading, ...]:
    """Return the readings of all tables in a folder, in the order of their files.

    Raises
    ------
    DataFileError
        If a row is not whole, quotes too much, quotes nothing though it found the
        figure, or is bound to the same as another; names file and line.
    """
    found: dict[str, Path] = {}
    rows: list[Reading] = []
    for path in sorted(folder.glob("*.csv")):
        for row in tables.read(path, COLUMNS, _reading):
            if row.id in found:
                raise DataFileError(f"{path}:1: {row.id} was read in {found[row.id]} too.")
            found[row.id] = path
            rows.append(row)
    return tuple(rows)


def _reading(record: dict[str, str]) -> Reading:
    found = record["found"]
    if found not in FOUND:
        allowed = ", ".join(FOUND)
        raise DataFileError(
            f"found must be one of {allowed}, not {found!r}.{nearest(found, FOUND)}"
        )
    for needed in ("record", "figure", "unit", "place"):
        if not record[needed]:
            raise DataFileError(f"{needed} is empty: every reading needs one.")
    value = tables.positive(record, "value")
    if len(record["quote"].split()) > QUOTED_WORDS:
        raise DataFileError(f"the quote has more than {QUOTED_WORDS} words.")
    if found == "same":
        _check_quote(record, value)
    elif not record["note"]:
        raise DataFileError(
            f"what was found is {found!r}: add a note: what differs, and how it was settled."
        )
    # The one cell that is no text or number.
    made = {**record, "value": value, "date": _date(record["date"])}
    return Reading(**made)  # type: ignore[arg-type]


def _check_quote(record: Mapping[str, str], value: float) -> None:
    printed = record["quote"].replace(",", "").replace("_", "")
    if not printed:
        raise DataFileError("the quote is empty: say which words stand in the document.")
    if f"{value:.15g}" not in printed and not record["note"]:
        raise DataFileError(
            f"{value:.15g} is not in the quote {record['quote']!r}: "
            "quote the figure, or explain in a note how it follows from the quote."
        )


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise DataFileError(f"date must be a date such as 2026-11-21, not {text!r}.") from None


@cache
def _by_figure(folder: Path) -> dict[tuple[str, str], tuple[Reading, ...]]:
    rows: dict[tuple[str, str], tuple[Reading, ...]] = {}
    for row in readings(folder):
        place = (row.record, row.figure)
        rows[place] = (*rows.get(place, ()), row)
    return rows


def _name(key: str, figure: Figure) -> str:
    # What a model's figure is called in its record: in the file, a table's name precedes it.
    return figure.name.removeprefix("figures.").removeprefix(f"{key}.")


def reading_of(key: str, figure: Figure, folder: Path = FOLDER) -> Reading | None:
    """Return the second reading of a figure of a record, if it has one that fits it.

    >>> reading_of("Cloud.Nothing", Figure("power.tdp", 1, "W", 1, "W")) is None
    True
    """
    of_figure = _by_figure(folder).get((key, _name(key, figure)), ())
    return next((row for row in of_figure if row.fits(figure)), None)


def state(key: str, figure: Figure, folder: Path = FOLDER) -> str:
    """Return the state of the second reading of a figure: one of `STATES`.

    "lapsed" means that the figure was found once, but has changed since.

    >>> state("Cloud.Nothing", Figure("power.tdp", 1, "W", 1, "W"))
    'unread'
    """
    of_figure = _by_figure(folder).get((key, _name(key, figure)), ())
    fitting = next((row.found for row in of_figure if row.fits(figure)), UNREAD)
    lapsed = fitting == UNREAD and any(row.found == "same" for row in of_figure)
    return LAPSED if lapsed else fitting


def reread(record: Recorded, folder: Path = FOLDER) -> Iterator[Finding]:
    """A second reader has found each figure in its document."""
    unread = []
    for name, figure in record.figures.items():
        found = "same" if figure.kind == "given" else state(record.key, figure, folder)
        if found == "unread":
            unread.append(name)
        elif found == "lapsed":
            message = f"{figure.text} is not what a second reader found: the reading has lapsed."
            yield Finding(name, message, error=False)
        elif found != "same":
            row = reading_of(record.key, figure, folder)
            said = row.note if row else ""
            yield Finding(name, f"second reader: {found}. {said}", error=found == "differs")
    if unread:
        yield Finding(
            unread[0],
            f"{len(unread)} of {len(record.figures)} figures not read a second time yet: "
            f"{', '.join(unread)}. Ask somebody to open the documents and to add rows to "
            "data/readings/.",
            error=False,
        )


def counted(records: Iterable[Recorded], folder: Path = FOLDER) -> dict[str, int]:
    """Count the figures of records by the state of their second reading.

    >>> from mlsim import Hardware
    >>> counts = counted(Hardware)
    >>> sum(counts.values()) == sum(len(device.figures) for device in Hardware)
    True
    """
    counts = dict.fromkeys(STATES, 0)
    for record in records:
        for figure in record.figures.values():
            counts[state(record.key, figure, folder)] += 1
    return counts


def settled(records: Iterable[Recorded], folder: Path = FOLDER) -> tuple[Reading, ...]:
    """Return the readings that corrected a figure: it differed, and has changed since.

    A reading of a record that is not given is left out.
    """
    known = {record.key: record.figures for record in records}
    rows = (row for row in readings(folder) if row.found != "same" and row.record in known)
    return tuple(row for row in rows if not _stands(row, known[row.record]))


def _stands(row: Reading, figures: Mapping[str, Figure]) -> bool:
    figure = figures.get(row.figure)
    return figure is not None and row.fits(figure)


def idle(records: Iterable[Recorded], folder: Path = FOLDER) -> tuple[Reading, ...]:
    """Return the rows whose figure has changed since, or is not in these records.

    Read the figure again, or take the row out.
    """
    known = {record.key: record.figures for record in records}
    return tuple(
        row
        for row in readings(folder)
        if row.record not in known or (row.found == "same" and not _stands(row, known[row.record]))
    )
