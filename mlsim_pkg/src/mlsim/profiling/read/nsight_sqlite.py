"""Nsight Systems' SQLite export, opened read-only and within a limit of steps."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mlsim.errors import DataFileError
from mlsim.profiling.activity import Launches, Transfer
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.intervals import Spans, activities, is_exchange
from mlsim.profiling.read.launches import kernels_of
from mlsim.profiling.read.nsight_systems import MISSING
from mlsim.profiling.read.sources import Source

_KERNELS, _COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
_FILLS, _RUNTIME = "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_RUNTIME"
_GRAPHS, _STRINGS, _GPU = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "StringIds", "TARGET_INFO_GPU"
# CUpti_ActivityMemcpyKind.
_DIRECTIONS = {1: "host to device", 2: "device to host", 8: "device to device"}
_DIRECTIONS |= {10: "device to device"}
# Steps of SQLite's machine after which a file is no profile but a trap.
_MOST_STEPS = 2_000
_STEP = 1_000_000
_MOST_ROWS = 5_000_000
# Rows of which the longest wait in the queue is looked at.
_MOST_PAIRS = 200_000


def read(source: Source) -> MeasuredProfile:
    """Read an export of `nsys export --type sqlite`.

    Raises
    ------
    DataFileError
        If the file is damaged, has no GPU activity, or asks for too much work.
    """
    try:
        with _file(source) as path, closing(_opened(path)) as database:
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


def _opened(path: Path) -> sqlite3.Connection:
    # "immutable" keeps SQLite from making a journal beside the file, or a lock on it.
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    database = sqlite3.connect(address, uri=True)
    database.execute("PRAGMA query_only = ON")
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    left = [_MOST_STEPS]

    def step() -> int:
        left[0] -= 1
        return left[0] < 0

    database.set_progress_handler(step, _STEP)
    return database


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

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table."""
        return {str(row[1]) for row in self.database.execute(f'PRAGMA table_info("{table}")')}

    def rows(self, table: str, wanted: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield columns of a table; None where it has no such column."""
        if table not in self.tables:
            return
        there = self.columns(table)
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
        spans: dict[int, Spans] = {}
        starts: dict[Any, float] = {}
        found = kernels_of(self._kernels(names, spans, starts), self.source.path)
        copies = self._copied(spans)
        launches = self._launches(names, starts)
        if not found and not copies:
            raise DataFileError(f"{self.source.path}: no kernel and no copy is in the file.")
        return MeasuredProfile(
            found,
            "Nsight Systems",
            (str(self.source.path),),
            next((str(row[0]) for row in self.rows(_GPU, ("name",)) if row[0]), ""),
            copies=copies,
            exchanges=tuple(
                Transfer(each.short, each.calls, each.seconds)
                for each in found
                if is_exchange(each.name)
            ),
            launches=launches,
            activity=activities(spans),
        )

    def _kernels(
        self, names: dict[Any, str], spans: dict[int, Spans], starts: dict[Any, float]
    ) -> Iterator[MeasuredKernel]:
        wanted = (
            *("start", "end", "deviceId", "demangledName", "shortName", "correlationId"),
            *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
        )
        for row in self.rows(_KERNELS, wanted):
            start, end = self.interval(_KERNELS, row[0], row[1])
            name = names.get(row[3]) or names.get(row[4]) or "(no name)"
            device = spans.setdefault(int(row[2] or 0), Spans())
            device.add(start, end, kernel=not is_exchange(name))
            if len(starts) < _MOST_PAIRS and row[5] is not None:
                starts[row[5]] = start
            facts = {
                key: f"({', '.join(str(each) for each in part)})"
                for key, part in (("grid", row[6:9]), ("block", row[9:12]))
                if None not in part
            }
            yield MeasuredKernel(
                name,
                1,
                end - start,
                sources={"seconds": f"start and end of {_KERNELS}"},
                missing=MISSING,
                facts=facts,
            )
        for row in self.rows(_GRAPHS, ("start", "end", "deviceId")):
            start, end = self.interval(_GRAPHS, row[0], row[1])
            spans.setdefault(int(row[2] or 0), Spans()).add(start, end, kernel=True)
            yield MeasuredKernel("graph", 1, end - start, missing=MISSING, kind="graph")

    def _copied(self, spans: dict[int, Spans]) -> tuple[Transfer, ...]:
        found: dict[str, list[float]] = {}
        for table, kind in ((_COPIES, "copyKind"), (_FILLS, "")):
            for row in self.rows(table, ("start", "end", "deviceId", "bytes", kind)):
                start, end = self.interval(table, row[0], row[1])
                spans.setdefault(int(row[2] or 0), Spans()).add(start, end, kernel=False)
                name = _DIRECTIONS.get(row[4], "other copy") if kind else "fill"
                kept = found.setdefault(name, [0.0, 0.0, 0.0])
                kept[0] += 1
                kept[1] += end - start
                kept[2] += float(row[3] or 0)
        return tuple(Transfer(name, int(each[0]), *each[1:]) for name, each in found.items())

    def _launches(self, names: dict[Any, str], starts: dict[Any, float]) -> Launches | None:
        if _RUNTIME not in self.tables:
            return None
        times, waits = list[float](), list[float]()
        for row in self.rows(_RUNTIME, ("start", "end", "nameId", "correlationId")):
            if "Launch" not in names.get(row[2], ""):
                continue
            start, end = self.interval(_RUNTIME, row[0], row[1])
            times.append(end - start)
            if row[3] in starts:
                waits.append(starts[row[3]] - start)
        return Launches.of(times, waits)
