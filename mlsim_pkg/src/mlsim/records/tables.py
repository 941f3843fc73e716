"""Tables of published rows: CSV, read strictly, each row with its source.

A column that is missing or unknown, a cell too many, an id that stands twice or a
source that is not in the bibliography is an error that names the file and the line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from mlsim.errors import DataFileError, InvalidValueError, MlsimError
from mlsim.records.references import references
from mlsim.units import factor
from mlsim.values import Origin, counts, literal, of_base, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


class Published:
    """What rows of published values have in common: `published` is the value.

    A row says its `value` in `unit`, the `source` and its `quote`, and a `note`.
    """

    __slots__ = ()

    value: float
    unit: str
    source: str
    quote: str
    note: str

    def said(self) -> tuple[str, str]:
        """Return what the value is, in words: as a name, and in one line of Markdown."""
        raise NotImplementedError

    @property
    def published(self) -> Quantity:
        """What was measured, with its unit and its origin, printed as the source prints it."""
        # Six digits would turn a million hours into a power of ten.
        form = ",g" if abs(self.value) < 1e6 else ",.0f"
        base = quantity(1.0, self.unit).base
        si = self.value * factor(self.unit, base)
        origin = partial(_origin, self, f"{self.value:{form}} {self.unit}")
        if counts(self.unit):
            return of_base(si, base, origin)
        return of_base(si, base, origin, unit=self.unit, form=form)

    def by_name(self, _: str = "") -> Quantity:
        """Return what was measured, as `show` asks for it."""
        return self.published


def _origin(row: Published, printed: str, _: Quantity) -> Origin:
    name, words = row.said()
    brief = f"{words}: {printed} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    return Origin(name, brief, how.strip())


Made = TypeVar("Made")


def rows(
    path: Path, columns: tuple[str, ...], make: Callable[[dict[str, str]], Made]
) -> Iterator[Made]:
    """Yield what is made of each row of a table: it has these columns, and each row is whole.

    Raises
    ------
    DataFileError
        If the table is otherwise, or `make` refuses a row; names file and line.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise DataFileError(f"{path}:1: the columns must be {', '.join(columns)}.")
        for record in reader:
            try:
                # What csv calls cells too many, and cells that are not there.
                if None in record or None in record.values():
                    raise DataFileError("this row has not as many cells as there are columns.")
                made = make(record)
            except (MlsimError, ValueError) as error:
                raise DataFileError(f"{path}:{reader.line_num}: {error}") from error
            yield made


class Named(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """A name that no other row has."""


Row = TypeVar("Row", bound=Named)


def read(
    path: Path, columns: tuple[str, ...], make: Callable[[dict[str, str]], Row]
) -> tuple[Row, ...]:
    """Read a table of published rows strictly: no id twice, and each source in the bibliography.

    Raises
    ------
    DataFileError
        As `rows`.
    """
    found: dict[str, Row] = {}

    def one(record: dict[str, str]) -> Row:
        if record["source"] not in references():
            raise DataFileError(f"source {record['source']!r} is not in references.bib.")
        row = make(record)
        if found.setdefault(row.id, row) is not row:
            raise DataFileError(f"two rows have the same id, {row.id!r}.")
        return row

    return tuple(rows(path, columns, one))


def count(record: Mapping[str, str], name: str) -> int:
    """Return a whole number from 1 up.

    Raises
    ------
    DataFileError
        If the cell contains something else.

    >>> count({"devices": "8"}, "devices")
    8
    """
    text = record[name]
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise DataFileError(f"{name} must be a whole number from 1 up, not {text!r}.")
    return int(text)


def positive(record: Mapping[str, str], name: str) -> float:
    """Return a number above 0.

    Raises
    ------
    DataFileError
        If the cell contains something else.

    >>> positive({"value": "1.42"}, "value")
    1.42
    """
    text = record[name]
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise DataFileError(f"{name} must be a positive number, not {text!r}.")
    return found


def given_text(path: str | Path) -> str:
    """Return the text of a table that somebody brings.

    Raises
    ------
    InvalidValueError
        If there is no such file, or it is no text in UTF-8; names the line.
    """
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidValueError(
            f"{path}:{line}: this can't be read, as it is no text in UTF-8. Save the table as CSV "
            "in UTF-8."
        ) from None
    except OSError as error:
        raise InvalidValueError(
            f"{path} can't be read: {error.strerror}. Give the path of a CSV file."
        ) from None
