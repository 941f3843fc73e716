"""Nsight Systems: summaries of kernels, copies and calls (`nsys stats` as CSV), and exports.

An export to SQLite is opened read-only and within a limit of steps.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mlsim.errors import DataFileError
from mlsim.profiling.joining import Timeline, is_exchange
from mlsim.profiling.measured_profile import Launches, MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.tables import (
    Lines,
    Row,
    Source,
    Table,
    known,
    locale_of,
    rows_of,
    unit_scale,
)

if TYPE_CHECKING:
    import sqlite3

_COUNTS = ("Instances", "Num Calls", "Count")
_WITH_UNIT = re.compile(r"(?P<name>[^()]+?)\s*\((?P<unit>[^()%]+)\)")
MISSING = {
    "flops": "Nsight Systems counts no operations. Join it with a file of Nsight Compute",
    "dram": "Nsight Systems counts no bytes. Join it with a file of Nsight Compute",
}


def direction(name: str) -> str:
    """Return what a copy is called here.

    >>> direction("[CUDA memcpy Host-to-Device]"), direction("[CUDA memset]")
    ('host to device', 'fill')
    """
    for pattern, words in known("nsys")["directions"]:
        if re.search(pattern, name, re.IGNORECASE):
            return str(words)
    return "other copy"


def _units(columns: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return columns and their units by the name without it."""
    found = {name: _WITH_UNIT.fullmatch(name.strip()) for name in columns}
    return {
        each["name"].strip() if each else name.strip(): (name, each["unit"] if each else "")
        for name, each in found.items()
    }


def kind_of(columns: set[str]) -> str:
    """Return which report has these columns; "" if none.

    >>> kind_of({"Time (%)", "Total Time (ns)", "Instances", "Name"})
    'kernels'
    """
    plain = _units(columns).keys()
    if "Total Time" in plain and "Operation" in plain:
        return "copies"
    if "Total" in plain and "Operation" in plain:
        return "sizes"
    if "Total Time" in plain and "Name" in plain:
        return "calls" if "Num Calls" in plain else ("kernels" if "Instances" in plain else "")
    return ""


def is_report(columns: set[str]) -> bool:
    """Whether a header is that of a report."""
    return bool(kind_of(columns))


def read(table: Table, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read all reports of a file.

    Raises
    ------
    DataFileError
        If a row is broken, a column has no unit, or there is no kernel and no copy.
    """
    source, run = table.source, Timeline(table.source.path)
    starts = list[Launches]()
    report: _Report | None = None
    for row in rows_of(table, lines, is_report):
        if report is None or row.table is not report.table:
            report = _Report(row.table, decimal)
        report.take(row, run, starts)
    if not run.sums and not run.copies:
        raise DataFileError(
            f"{source.path}: there is a report of Nsight Systems, and no kernel and no copy in it. "
            "Print the report cuda_gpu_kern_sum: nsys stats --report cuda_gpu_kern_sum --format csv"
        )
    launches = None
    longest = [each.longest for each in starts if each.longest is not None]
    if starts:
        # The median is that of the function called most.
        most = max(starts, key=lambda each: each.calls)
        launches = Launches(
            sum(each.calls for each in starts),
            sum(each.seconds for each in starts),
            usual=most.usual,
            longest=max(longest, default=None),
        )
    return run.profile("Nsight Systems", run.kernels(), launches=launches)


class _Report:
    """One report: which it is, and the units of its columns."""

    def __init__(self, table: Table, decimal: str | None) -> None:
        self.table, self.kind = table, kind_of(set(table.header))
        self.columns = _units(table.header)
        texts = {"Name", "Operation"}
        numbers = [name for plain, (name, _) in self.columns.items() if plain not in texts]
        locale_of(table, decimal, numbers, plain=True)

    def scaled(self, row: Row, name: str, kind: str = "s") -> float | None:
        """Return a cell in base units; None where there is no such column, or the cell is empty."""
        column, unit = self.columns.get(name, ("", ""))
        value = row.number(column) if column else None
        # Reports of old versions have no unit in the header, and are in ns.
        found = unit_scale(unit or "ns")
        if value is None:
            return None
        if found is None or found[0] != kind:
            raise DataFileError(f"{row.where}: the unit {unit!r} of {name!r} is unknown.")
        return value * found[1]

    def take(self, row: Row, run: Timeline, starts: list[Launches]) -> None:
        """Take a row: all runs of a kernel, a copy or a call."""
        name = row.get("Operation", "Name").strip()
        column = next((self.columns[each][0] for each in _COUNTS if each in self.columns), "")
        value = row.number(column) if column else None
        # A count has no fraction, not even ".0": a mean has.
        if value is None or self.table.locale.decimal in row[column]:
            raise DataFileError(f"{row.where}: the row does not say how often it ran.")
        count = int(value)
        if self.kind == "sizes":
            kept = run.copies.setdefault(direction(name), [float(count), nan, 0.0])
            kept[2] += self.scaled(row, "Total", "B") or 0.0
            return
        seconds, mean = self.scaled(row, "Total Time"), self.scaled(row, "Avg")
        if mean and seconds and abs(mean * count - seconds) > 0.01 * seconds + 1e-9 * count:
            # A damaged digit shows here.
            raise DataFileError(
                f"{row.where}: total, count and mean of the row don't agree. The file is damaged, "
                "or its columns were mixed up."
            )
        if self.kind == "calls":
            if "Launch" in name and seconds is not None:
                usual, longest = self.scaled(row, "Med"), self.scaled(row, "Max")
                starts.append(Launches(count, seconds, None, usual, longest))
        elif self.kind == "copies" and "KERNEL" not in row.get("Category").upper():
            run.copy(direction(name), seconds or 0.0, calls=count)
        else:
            sources = {"seconds": f"Total Time of {self.table.source.path.name}"}
            run.add(MeasuredKernel(name, count, seconds, sources=sources, missing=MISSING))


_KERNELS, _COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
_FILLS, _RUNTIME = "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_RUNTIME"
_GRAPHS, _STRINGS, _GPU = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "StringIds", "TARGET_INFO_GPU"
# CUpti_ActivityMemcpyKind.
_COPY_KINDS = {1: "host to device", 2: "device to host", 8: "device to device"}
_COPY_KINDS |= {10: "device to device"}
# Steps of SQLite's machine after which a file is no profile but a trap.
_MOST_STEPS = 2_000
_STEP = 1_000_000
_MOST_ROWS = 5_000_000


def read_export(source: Source) -> MeasuredProfile:
    """Read an export of `nsys export --type sqlite`.

    Raises
    ------
    DataFileError
        If the file is damaged, has no GPU activity, or asks for too much work.
    """
    import sqlite3  # which a Python in a browser lacks

    try:
        # "immutable" keeps SQLite from making a journal beside the file, or a lock on it.
        with _file(source) as path:
            address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(address, uri=True)) as database:
                _limit(database)
                return _Export(database, source).profile()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(
            f"{source.path}: the SQLite file can't be read ({error}). Export it again: nsys export "
            "--type sqlite FILE.nsys-rep"
        ) from error


@contextmanager
def _file(source: Source) -> Iterator[Path]:
    """Yield the file, unpacked if it was packed."""
    if not source.packed:
        yield source.path
        return
    with tempfile.TemporaryDirectory(prefix="mlsim-") as folder:
        path = Path(folder, "export.sqlite")
        with path.open("wb") as file:
            for chunk in source.chunks():
                file.write(chunk)
        yield path


def _limit(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA query_only = ON")
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    left = [_MOST_STEPS]

    def step() -> int:
        left[0] -= 1
        return left[0] < 0

    database.set_progress_handler(step, _STEP)


class _Export:
    """The tables of an export."""

    def __init__(self, database: sqlite3.Connection, source: Source) -> None:
        self.database, self.source = database, source
        rows = database.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        # A view or a virtual table is a program; an export has neither.
        self.tables = {
            str(name)
            for name, kind, sql in rows
            if kind == "table" and "VIRTUAL" not in str(sql).upper()[:40]
        }
        if not self.tables & {_KERNELS, _COPIES, _GRAPHS}:
            there = ", ".join(sorted(self.tables)[:5]) or "no table"
            raise DataFileError(
                f"{source.path}: this SQLite file has no GPU activity of Nsight Systems "
                f"({_KERNELS} is not among: {there}). Profile with nsys profile --trace=cuda"
            )

    def rows(self, table: str, wanted: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield columns of a table; None where it has no such column."""
        if table not in self.tables:
            return
        described = self.database.execute(f'PRAGMA table_info("{table}")')
        there = {str(row[1]) for row in described}
        chosen = ", ".join(f'"{name}"' if name in there else "NULL" for name in wanted)
        query = f'SELECT {chosen} FROM "{table}" LIMIT {_MOST_ROWS + 1}'  # noqa: S608 - own names
        for count, row in enumerate(self.database.execute(query)):
            if count == _MOST_ROWS:
                raise DataFileError(
                    f"{self.source.path}: {table} has more than {_MOST_ROWS:,} rows. Profile fewer "
                    "steps."
                )
            yield row

    def interval(self, table: str, start: Any, end: Any) -> tuple[float, float]:
        """Return an interval in s.

        Raises
        ------
        DataFileError
            If it is no interval.
        """
        if not isinstance(start, int) or not isinstance(end, int) or end < start:
            raise DataFileError(
                f"{self.source.path}: a row of {table} goes from {start!r} to {end!r}. The file is "
                "damaged; export it again."
            )
        return start * 1e-9, end * 1e-9

    def profile(self) -> MeasuredProfile:
        """Return all of it."""
        names = {number: str(text) for number, text in self.rows(_STRINGS, ("id", "value"))}
        run = Timeline(self.source.path)
        self._kernels(names, run)
        for table, kind in ((_COPIES, "copyKind"), (_FILLS, "")):
            for row in self.rows(table, ("start", "end", "deviceId", "bytes", kind)):
                start, end = self.interval(table, row[0], row[1])
                run.busy(start, end, int(row[2] or 0), kernel=False)
                name = _COPY_KINDS.get(row[4], "other copy") if kind else "fill"
                run.copy(name, end - start, float(row[3] or 0))
        for row in self.rows(_RUNTIME, ("start", "end", "nameId", "correlationId")):
            if "Launch" in names.get(row[2], ""):
                start, end = self.interval(_RUNTIME, row[0], row[1])
                run.called(row[3], start, end - start)
        if not run.sums and not run.copies:
            raise DataFileError(f"{self.source.path}: no kernel and no copy is in the file.")
        device = next((str(row[0]) for row in self.rows(_GPU, ("name",)) if row[0]), "")
        return run.profile("Nsight Systems", run.kernels(), device_name=device)

    def _kernels(self, names: dict[Any, str], run: Timeline) -> None:
        wanted = (
            *("start", "end", "deviceId", "demangledName", "shortName", "correlationId"),
            *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
        )
        for row in self.rows(_KERNELS, wanted):
            start, end = self.interval(_KERNELS, row[0], row[1])
            name = names.get(row[3]) or names.get(row[4]) or "(no name)"
            run.busy(start, end, int(row[2] or 0), kernel=not is_exchange(name))
            run.began(row[5], start)
            facts = {
                key: f"({', '.join(str(each) for each in part)})"
                for key, part in (("grid", row[6:9]), ("block", row[9:12]))
                if None not in part
            }
            sources = {"seconds": f"start and end of {_KERNELS}"}
            run.add(
                MeasuredKernel(name, 1, end - start, sources=sources, missing=MISSING, facts=facts)
            )
        for row in self.rows(_GRAPHS, ("start", "end", "deviceId")):
            start, end = self.interval(_GRAPHS, row[0], row[1])
            run.busy(start, end, int(row[2] or 0), kernel=True)
            run.add(MeasuredKernel("graph", 1, end - start, missing=MISSING, kind="graph"))
