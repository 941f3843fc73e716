"""Nsight Compute's own page: a heading for each launch, and metrics in columns below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredProfile
from mlsim.profiling.read.fixed import cells_of, spans_of
from mlsim.profiling.read.ncu_launch import Launch
from mlsim.profiling.read.nsight_compute import profile_of, take
from mlsim.profiling.read.numbers import Locale, find_locale
from mlsim.profiling.read.sources import Source

Lines = Iterator[tuple[int, str, bool]]

# "  saxpy(float *) (8, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.0"; older versions
# have the date in front of the context, and no grid.
_HEADING = re.compile(
    r"^ {1,4}(?P<name>\S.*?)(?: (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)))?,"
    r"(?: \d{4}-\w{3}-\d{2} [\d:]+,)? Context \d+, Stream \d+"
    r"(?:, Device \d+, CC (?P<cc>\d+\.\d+))?\s*$"
)
_MOST_CELLS = 20_000


def is_heading(line: str) -> bool:
    """Whether a line begins a launch.

    >>> is_heading("  add(int) (8, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.0")
    True
    """
    return "Context " in line and bool(_HEADING.match(line))


def read(
    source: Source, number: int, line: str, lines: Lines, decimal: str | None
) -> MeasuredProfile:
    """Read the page from its first heading on.

    Raises
    ------
    DataFileError
        If a row does not fit its columns, or the page is cut off within a table.
    """
    values = (
        cells[2] for _, _, cells in islice(_rows(source, source.lines()), _MOST_CELLS) if cells
    )
    locale = find_locale(values, str(source.path), decimal=decimal)
    return profile_of(source, _launches(source, chain([(number, line, True)], lines), locale))


def _rows(source: Source, lines: Lines) -> Iterator[tuple[int, str, list[str] | None]]:
    """Yield headings, without cells, and rows of metrics: name, unit and value."""
    spans: list[tuple[int, int]] = []
    number = 0
    for number, line, _ in lines:
        found = spans_of(line)
        if found and len(found) == 3:
            # Dashes stand above the names of the columns, below them, and at the end.
            spans = found
        elif is_heading(line):
            spans = []
            yield number, line, None
        elif spans and not line.strip():
            spans = []
        elif spans:
            cells = cells_of(line, spans, open_end=False)
            if cells is None or not cells[0]:
                raise DataFileError(
                    f"{source.path}:{number}: the row does not fit its columns: "
                    f"{line.strip()[:60]!r}. The file is damaged."
                )
            if cells[0] != "Metric Name" and cells[2]:
                yield number, line, cells
        if found and len(found) != 3:
            spans = []


def _launches(source: Source, lines: Lines, locale: Locale) -> Iterator[Launch]:
    launch: Launch | None = None
    order: list[str] = []
    before: tuple[str, ...] = ()
    for number, line, cells in _rows(source, lines):
        where = f"{source.path}:{number}"
        if cells is None:
            if launch is not None:
                before = tuple(order)
                yield launch
            found = _HEADING.match(line)
            parts = found.groupdict(default="") if found else {}
            launch = Launch(parts["name"], parts["cc"], parts["grid"], parts["block"], where)
            order = []
        elif launch is not None:
            name, unit, value = cells
            order.append(name)
            take(launch, name, unit, value, where=where, locale=locale)
    if launch is None:
        return
    if len(order) < len(before) and before[: len(order)] == tuple(order):
        raise DataFileError(
            f"{launch.where}: the file ends within a launch, which has {len(order)} of "
            f"{len(before)} metrics. Write it again."
        )
    yield launch
