"""Nsight Systems: what `nsys stats` prints, as CSV or in columns, one report or several.

Summaries of kernels, copies and calls, and the trace of all GPU activity. What nvprof printed as
CSV is read too: it has the same columns, and a row of units. An export to SQLite is opened
read-only and within a limit of steps.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
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
    rows_in,
    rows_of,
    spans_of,
    unit_scale,
)

if TYPE_CHECKING:
    import sqlite3

_COUNTS = ("Instances", "Num Calls", "Count", "Calls", "Operations")
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


def _plain(name: str) -> str:
    """Return a column's name without its unit."""
    found = _WITH_UNIT.fullmatch(name.strip())
    return found["name"].strip() if found else name.strip()


def kind_of(columns: set[str]) -> str:
    """Return which report has these columns; "" if none.

    >>> kind_of({"Time (%)", "Total Time (ns)", "Instances", "Name"})
    'kernels'
    """
    plain = {_plain(each) for each in columns}
    if {"Type", "Time(%)", "Time", "Calls", "Name"} <= plain:
        return "nvprof"
    if {"Start", "Duration", "Name"} <= plain and plain & {"Strm", "Stream"}:
        return "trace"
    if "Total Time" in plain and "Operation" in plain:
        return "all" if "Category" in plain else "copies"
    if "Total" in plain and "Operation" in plain:
        return "sizes"
    if "Total Time" in plain and "Name" in plain:
        return "calls" if "Num Calls" in plain else ("kernels" if "Instances" in plain else "")
    return ""


def is_report(columns: set[str]) -> bool:
    """Whether a header is that of a report."""
    return bool(kind_of(columns))


class _Found(Timeline):
    """What reports say; the starts of kernels by function."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.starts = list[Launches]()
        self.device = ""

    def launched(self) -> Launches | None:
        """Return the starts of kernels, their median that of the function called most."""
        if not self.starts:
            return None
        most = max(self.starts, key=lambda each: each.calls)
        longest = [each.longest for each in self.starts if each.longest is not None]
        return Launches(
            sum(each.calls for each in self.starts),
            sum(each.seconds for each in self.starts),
            usual=most.usual,
            longest=max(longest, default=None),
        )


def read(table: Table, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read all reports of a file.

    Raises
    ------
    DataFileError
        If a row is broken, a column has no unit, or there is no kernel and no copy.
    """
    found = _Found(table.source)
    reader: _Report | None = None
    for row in rows_of(table, lines, is_report):
        if reader is None or row.table is not reader.table:
            reader = _Report(row.table, decimal)
        reader.take(row, found)
    return _profile(table.source, found)


def read_columns(
    source: Source, number: int, header: str, dashes: str, lines: Lines
) -> MeasuredProfile:
    """Read reports that are printed in columns.

    Raises
    ------
    DataFileError
        If a row is broken.
    """
    found = _Found(source)
    line = number
    while True:
        spans = spans_of(dashes)
        names = [header[start:end].strip() for start, end in spans]
        names[-1] = header[spans[-1][0] :].strip()
        table = Table(source, line, names, "\t", quoted=False)
        if is_report(set(names)):
            reader = _Report(table, ".")
            for line, cells, text in rows_in(lines, spans, open_end=True):
                if text.lstrip().startswith(("**", "Processing", "SKIPPED")):
                    break
                if cells is None:
                    raise DataFileError(f"{source.path}:{line}: the row does not fit its columns.")
                reader.take(Row(table, line, cells), found)
        # The next report: a line of names above a line of dashes.
        header = dashes = ""
        for place, text, _ in lines:
            if spans_of(text) and header.strip():
                line, dashes = place, text
                break
            header = text
        if not dashes:
            return _profile(source, found)


class _Report:
    """One report: which it is, and the units of its columns."""

    def __init__(self, table: Table, decimal: str | None) -> None:
        self.table = table
        self.kind = kind_of(set(table.header))
        self.columns = {_plain(name): name for name in table.header}
        self.units = {}
        for name in table.header:
            matched = _WITH_UNIT.fullmatch(name.strip())
            if matched:
                self.units[_plain(name)] = matched["unit"]
        texts = {"Name", "Operation", "Category", "Type", "Device", "Ctx", "SrcMemKd", "DstMemKd"}
        numbers = [real for plain, real in self.columns.items() if plain not in texts]
        self.locale = locale_of(table, decimal, numbers, plain=True)
        # Reports of old versions have no unit in the header, and are in ns.
        self.wants_units = self.kind == "nvprof"

    def scaled(self, row: Row, name: str, kind: str) -> float | None:
        """Return a cell in base units."""
        if name not in self.columns:
            return None
        value = row.number(self.columns[name], self.locale)
        if value is None:
            return None
        if name not in self.units:
            if kind == "s" and self.kind in ("kernels", "calls", "copies", "all"):
                return value * 1e-9
            raise DataFileError(f"{row.where}: the column {name!r} has no unit.")
        found = unit_scale(self.units[name])
        if found is None or found[0] != kind:
            raise DataFileError(
                f"{row.where}: the unit {self.units[name]!r} of {name!r} is unknown."
            )
        return value * found[1]

    def take(self, row: Row, found: _Found) -> None:
        """Take a row."""
        if self.wants_units:
            self.wants_units = False
            cells = zip(self.columns, row.cells, strict=True)
            self.units |= {name: unit.strip() for name, unit in cells if unit.strip()}
            return
        if self.kind == "trace":
            self._trace(row, found)
        elif self.kind == "sizes":
            self._sizes(row, found)
        else:
            self._summed(row, found)

    def _count(self, row: Row) -> int:
        name = next((each for each in _COUNTS if each in self.columns), None)
        value = row.number(self.columns[name], self.locale) if name else None
        # A count has no fraction, not even ".0": a mean has.
        whole = self.locale.decimal not in row[self.columns[name]] if name else False
        if value is None or not whole:
            raise DataFileError(f"{row.where}: the row does not say how often it ran.")
        return int(value)

    def _summed(self, row: Row, found: _Found) -> None:
        """Take all runs of a kernel, a copy or a call."""
        name = row[self.columns.get("Operation") or self.columns["Name"]].strip()
        time = "Time" if self.kind == "nvprof" else "Total Time"
        seconds, count = self.scaled(row, time, "s"), self._count(row)
        self._check_mean(row, seconds, count)
        what = row.get(self.columns.get("Type" if self.kind == "nvprof" else "Category", ""))
        if self.kind == "calls" or (self.kind == "nvprof" and "GPU" not in what):
            if "Launch" in name and seconds is not None:
                usual, longest = (
                    next(filter(None, (self.scaled(row, each, "s") for each in names)), None)
                    for names in (("Med", "Median"), ("Max", "Maximum"))
                )
                found.starts.append(Launches(count, seconds, None, usual, longest))
        elif (
            self.kind == "copies"
            or (self.kind == "all" and "KERNEL" not in what.upper())
            or (self.kind == "nvprof" and name.startswith("[CUDA mem"))
        ):
            found.copy(direction(name), seconds or 0.0, calls=count)
        else:
            facts = {
                key: f"({', '.join(re.findall('[0-9]+', row[self.columns[column]]))})"
                for key, column in (("grid", "GridXYZ"), ("block", "BlockXYZ"))
                if column in self.columns
            }
            found.add(self._kernel(name, count, seconds, time, facts))

    def _kernel(
        self, name: str, count: int, seconds: float | None, time: str, facts: Mapping[str, str]
    ) -> MeasuredKernel:
        sources = {"seconds": f"{time} of {self.table.source.name}"}
        return MeasuredKernel(name, count, seconds, sources=sources, missing=MISSING, facts=facts)

    def _check_mean(self, row: Row, seconds: float | None, count: int) -> None:
        """Refuse a row whose mean is not its total over its count: a damaged digit shows there."""
        for name in ("Avg", "Average"):
            mean = self.scaled(row, name, "s") if name in self.columns else None
            if mean and seconds and abs(mean * count - seconds) > 0.01 * seconds + 1e-9 * count:
                raise DataFileError(
                    f"{row.where}: total, count and mean of the row don't agree. The "
                    "file is damaged, or its columns were mixed up."
                )

    def _sizes(self, row: Row, found: _Found) -> None:
        name = direction(row[self.columns["Operation"]])
        size = self.scaled(row, "Total", "B")
        kept = found.copies.setdefault(name, [float(self._count(row)), nan, 0.0])
        kept[2] += size or 0.0

    def _trace(self, row: Row, found: _Found) -> None:
        name = row[self.columns["Name"]].strip()
        start, seconds = self.scaled(row, "Start", "s"), self.scaled(row, "Duration", "s")
        if start is None or seconds is None:
            raise DataFileError(f"{row.where}: the row has no start or no duration.")
        text = row.get(self.columns.get("Device", ""))
        place = re.search(r"\((\d+)\)\s*$", text)
        found.device = found.device or re.sub(r"\s*\(\d+\)\s*$", "", text).strip()
        device = int(place[1]) if place else 0
        grid = [row.get(self.columns.get(f"Grd{axis}", "")).strip() for axis in "XYZ"]
        if not any(grid):
            found.busy(start, start + seconds, device, kernel=False)
            found.copy(direction(name), seconds, self.scaled(row, "Bytes", "B") or 0.0)
            return
        found.busy(start, start + seconds, device, kernel=not is_exchange(name))
        block = [row.get(self.columns.get(f"Blk{axis}", "")).strip() for axis in "XYZ"]
        facts = {"grid": f"({', '.join(grid)})", "block": f"({', '.join(block)})"}
        found.add(self._kernel(name, 1, seconds, "Duration", facts))


def _profile(source: Source, found: _Found) -> MeasuredProfile:
    if not found.sums and not found.copies:
        raise DataFileError(
            f"{source.path}: there is a report of Nsight Systems, and no kernel and no copy in it. "
            "Print the report cuda_gpu_kern_sum: nsys stats --report cuda_gpu_kern_sum --format csv"
        )
    launches, device = found.launched(), found.device
    return found.profile("Nsight Systems", found.kernels(), device_name=device, launches=launches)


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
        self._copied(run)
        self._launches(names, run)
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

    def _copied(self, run: Timeline) -> None:
        for table, kind in ((_COPIES, "copyKind"), (_FILLS, "")):
            for row in self.rows(table, ("start", "end", "deviceId", "bytes", kind)):
                start, end = self.interval(table, row[0], row[1])
                run.busy(start, end, int(row[2] or 0), kernel=False)
                name = _COPY_KINDS.get(row[4], "other copy") if kind else "fill"
                run.copy(name, end - start, float(row[3] or 0))

    def _launches(self, names: dict[Any, str], run: Timeline) -> None:
        for row in self.rows(_RUNTIME, ("start", "end", "nameId", "correlationId")):
            if "Launch" in names.get(row[2], ""):
                start, end = self.interval(_RUNTIME, row[0], row[1])
                run.called(row[3], start, end - start)
