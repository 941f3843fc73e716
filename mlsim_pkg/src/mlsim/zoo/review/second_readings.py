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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlsim.errors import DataFileError, nearest
from mlsim.records import DATA, Figure, tables
from mlsim.zoo.review.figure_rules import QUOTED_WORDS, Finding, Recorded

FOLDER = DATA / "readings"
COLUMNS = (
    "record",
    "figure",
    "value",
    "unit",
    "qualifier",
    "source",
    "found",
    "place",
    "quote",
    "date",
    "note",
)
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
    row = reading_of(key, figure, folder)
    if row:
        return row.found
    of_figure = _by_figure(folder).get((key, _name(key, figure)), ())
    return LAPSED if any(row.found == "same" for row in of_figure) else UNREAD


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
