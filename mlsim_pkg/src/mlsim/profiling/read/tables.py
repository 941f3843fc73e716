"""Tables in text: a header somewhere after other output, then rows, each whole or refused."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.profiling.read.numbers import Locale, find_locale
from mlsim.profiling.read.sources import Source

_SIGNS = ",;\t|"


@dataclass
class Table:
    """Rows below one header.

    Attributes
    ----------
    source, line
        Where the header stands.
    header
        Names of the columns, as printed.
    sign
        What parts the cells.
    quoted
        Whether the cells stand in quotation marks, so that other lines can be told apart.
    """

    source: Source
    line: int
    header: list[str]
    sign: str
    quoted: bool
    columns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, name in enumerate(self.header):
            if name in self.columns and name:
                raise DataFileError(
                    f"{self.source.path}:{self.line}: two columns are called {name!r}."
                )
            self.columns[name] = place

    def filled(self, cells: list[str] | None) -> list[str] | None:
        """Return cells with those added that ncu leaves out of a row without a rule.

        Its header names the columns of rules behind the metrics; a metric's row ends with one
        empty cell for all of them.
        """
        first = self.columns.get("Rule Name")
        if cells is None or first is None or len(cells) != first + 1 or cells[first]:
            return cells
        return cells + [""] * (len(self.header) - len(cells))

    def at(self, line: int) -> str:
        """Say where a line is, for a message."""
        return f"{self.source.path}:{line}"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one line.

    Attributes
    ----------
    cut
        Whether its last cell may be cut off: the file ends behind a digit, without a line's end.
    """

    table: Table
    line: int
    cells: list[str]
    cut: bool = False

    def __getitem__(self, column: str) -> str:
        return self._cell(self.table.columns[column])

    def _cell(self, place: int) -> str:
        # A share or a deviation at the end does no harm, since nobody asks for it.
        if self.cut and place == len(self.cells) - 1:
            raise DataFileError(
                f"{self.table.at(self.line)}: the file ends within the line, so its last number "
                "may be cut off. If it is whole, end the line."
            )
        return self.cells[place]

    def get(self, *columns: str) -> str:
        """Return the cell of the first of these columns that is there, else ""."""
        for column in columns:
            if column in self.table.columns:
                return self._cell(self.table.columns[column])
        return ""

    def later(self, column: str, earlier: str, locale: Locale) -> float | None:
        """Return a point in time as `number`, behind another one that has no more digits.

        Then no digit of it is cut off.
        """
        end, begin = (self.cells[self.table.columns[each]].strip() for each in (column, earlier))
        if not (begin.isdigit() and end.isdigit() and len(end) >= len(begin)):
            return self.number(column, locale)
        return checked_number(end, locale, self.table.at(self.line), column)

    def number(self, column: str, locale: Locale) -> float | None:
        """Return a cell as a number that is not negative; None if it is empty.

        Raises
        ------
        DataFileError
            If it is no number, or negative; names file and line.
        """
        return checked_number(self[column], locale, self.table.at(self.line), column)


def checked_number(text: str, locale: Locale, where: str, column: str) -> float | None:
    """Return a text as a number that is not negative; None if it stands for none.

    Raises
    ------
    DataFileError
        If it is no number, or negative.
    """
    try:
        value = locale.number(text)
    except InvalidValueError as error:
        raise DataFileError(f"{where}: in {column!r}, {error}. The file may be damaged.") from error
    if value is not None and value < 0:
        raise DataFileError(f"{where}: {column!r} is {text.strip()!r}, and can't be negative.")
    return value


def split(line: str, sign: str) -> list[str] | None:
    """Split a line into cells; None if its quotation marks don't match."""
    if '"' not in line:
        return line.split(sign)
    try:
        rows = list(csv.reader([line], delimiter=sign, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def header_in(
    source: Source, number: int, line: str, known: Callable[[set[str]], bool]
) -> Table | None:
    """Return the table that a line heads, if it has the columns that are asked for."""
    for sign in _SIGNS:
        if sign not in line:
            continue
        cells = split(line, sign)
        names = [each.strip() for each in cells or []]
        if known(set(names)):
            return Table(source, number, names, sign, quoted=line.lstrip().startswith('"'))
    return None


def rows_of(
    table: Table,
    lines: Iterator[tuple[int, str, bool]],
    known: Callable[[set[str]], bool] | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table, to the end of the lines; where another one begins, its rows.

    Lines of other output between quoted rows are passed over; a broken row is refused.

    Raises
    ------
    DataFileError
        If a row has not as many cells as the header. For a cell that may be cut off see `Row`.
    """
    wide = len(table.header)
    for number, line, ended in lines:
        text = line.strip()
        if not text or text.startswith(("==", "--")):
            continue
        cells = table.filled(split(text if table.sign != "\t" else line, table.sign))
        if cells is not None and len(cells) == wide and [c.strip() for c in cells] == table.header:
            continue
        if known is not None and not text[:1].isdigit():
            other = header_in(table.source, number, line, known)
            if other is not None:
                table, wide = other, len(other.header)
                continue
            if text.startswith(("Processing", "Generating", "SKIPPED", "NOTICE", "**", "WARNING")):
                continue
        if table.quoted and not text.startswith('"'):
            # The application's own output, unless it stands in one line with a row.
            if text.count(f'"{table.sign}"') > 1:
                raise DataFileError(
                    f"{table.at(number)}: other output stands in one line with a row. Write the "
                    "profile to a file of its own (--log-file)."
                )
            if cells is None or len(cells) != wide:
                continue
        elif not table.quoted and table.sign not in text:
            continue
        if cells is None or len(cells) != wide:
            got = "its quotation marks don't match" if cells is None else f"it has {len(cells)}"
            cut = " The file is cut off here." if not ended else ""
            raise DataFileError(
                f"{table.at(number)}: the row must have {wide} cells, and {got}.{cut} Export it "
                "again."
            )
        unsure = not ended and not line.rstrip().endswith('"') and _numeric(cells[-1])
        yield Row(table, number, cells, unsure)


def _numeric(cell: str) -> bool:
    return bool(cell.strip()) and cell.strip()[-1].isdigit()


def locale_of(
    source: Source,
    table: Table,
    decimal: str | None,
    columns: Collection[str],
    *,
    plain: bool = False,
    most: int = 20_000,
) -> Locale:
    """Find out from some columns of the first rows below a header how numbers are written.

    With `plain` the tool prints English without thousands separators, so where commas part the
    cells a single point begins a fraction.

    Raises
    ------
    DataFileError
        If the numbers contradict one another.
    """
    if decimal is not None:
        return find_locale((), str(source.path), decimal=decimal)

    places = [table.columns[name] for name in columns]

    def cells() -> Iterator[str]:
        seen = 0
        for number, line, _ in source.lines():
            if number <= table.line:
                continue
            seen += 1
            if seen > most:
                return
            row = table.filled(split(line.strip(), table.sign)) or []
            if len(row) == len(table.header):
                yield from (row[place] for place in places)

    english = plain and table.sign == ","
    return find_locale(cells(), str(source.path), english=english)
