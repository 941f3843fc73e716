"""rocprof and rocprofv3: CSV of statistics, traces and counters of AMD's GPUs.

What a kernel's counters mean is in `rocprof_counts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mlsim.errors import DataFileError
from mlsim.profiling.activity import Transfer
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.intervals import Spans, activities, is_exchange
from mlsim.profiling.read.launches import kernels_of
from mlsim.profiling.read.nsight_systems import direction
from mlsim.profiling.read.numbers import Locale
from mlsim.profiling.read.rocprof_counts import MISSING_BYTES, MISSING_WORK, is_counter, kernel_of
from mlsim.profiling.read.sources import Source
from mlsim.profiling.read.tables import Row, Table, locale_of, rows_of

_NAMES = ("KernelName", "Kernel_Name", "Name", "Kernel Name")
_STARTS = ("BeginNs", "Start_Timestamp", "Start_Timestamp_ns", "Start_Ns")
_ENDS = ("EndNs", "End_Timestamp", "End_Timestamp_ns", "End_Ns")
_TEXTS = frozenset(
    {*_NAMES, "Kind", "Agent_Id", "Counter_Name", "sig", "obj", "Operation", "Direction"}
    | {"Domain", "Function", "Agent_Type", "Source_Agent_Id", "Destination_Agent_Id"}
)


def is_table(columns: set[str]) -> bool:
    """Whether a header is one of rocprof."""
    if {"Name", "Calls", "TotalDurationNs"} <= columns:
        return True
    if {"Counter_Name", "Counter_Value"} <= columns:
        return bool(columns & set(_NAMES))
    if {"Direction"} <= columns and columns & set(_STARTS) and columns & set(_ENDS):
        return True
    return bool(columns & {"KernelName", "Kernel_Name"}) and (
        bool(columns & set(_STARTS) and columns & set(_ENDS)) or "Index" in columns
    )


def read(
    source: Source, table: Table, lines: Iterator[tuple[int, str, bool]], decimal: str | None
) -> MeasuredProfile:
    """Read a file of statistics, of a trace, or of counters.

    Raises
    ------
    DataFileError
        If a row is broken, a kernel ends before it begins, or nothing is below the header.
    """
    numbers = [name for name in table.header if name not in _TEXTS and name]
    locale = locale_of(source, table, decimal, numbers, plain=True)
    columns = set(table.header)
    if "TotalDurationNs" in columns:
        return _statistics(source, table, lines, locale)
    if "Direction" in columns:
        return _copies(source, table, lines, locale)
    spans: dict[int, Spans] = {}
    if "Counter_Name" in columns:
        kernels = kernels_of(_long(table, lines, locale, spans), source.path)
    else:
        launches = (_wide(row, locale, spans) for row in rows_of(table, lines))
        kernels = kernels_of(launches, source.path)
    if not kernels:
        raise DataFileError(f"{source.path}: there is a header of rocprof, and no kernel below it.")
    return MeasuredProfile(
        kernels,
        "rocprof",
        (str(source.path),),
        exchanges=_exchanges(kernels),
        activity=activities(spans),
    )


def _exchanges(kernels: tuple[MeasuredKernel, ...]) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(each.short, each.calls, each.seconds) for each in kernels if is_exchange(each.name)
    )


def _clean(name: str) -> str:
    return re.sub(r"\s*\[clone \.kd\]$|\s*\(\.kd\)$|\.kd$", "", name.strip())


def _statistics(
    source: Source, table: Table, lines: Iterator[tuple[int, str, bool]], locale: Locale
) -> MeasuredProfile:
    kernels = []
    for row in rows_of(table, lines):
        calls, total = row.number("Calls", locale), row.number("TotalDurationNs", locale)
        if calls is None or total is None or calls != int(calls):
            raise DataFileError(f"{table.at(row.line)}: the row has no calls or no duration.")
        mean = row.number("AverageNs", locale) if "AverageNs" in table.columns else None
        if mean is not None and abs(mean * calls - total) > 0.01 * total + calls:
            raise DataFileError(
                f"{table.at(row.line)}: total, calls and average of the row don't agree. The file "
                "is damaged, or its columns were mixed up."
            )
        kernels.append(
            MeasuredKernel(
                _clean(row["Name"]),
                int(calls),
                total * 1e-9,
                sources={"seconds": "TotalDurationNs"},
                missing={"flops": MISSING_WORK, "dram": MISSING_BYTES},
            )
        )
    if not kernels:
        raise DataFileError(f"{source.path}: there is a header of rocprof, and no kernel below it.")
    hosted = [each for each in kernels if re.match(r"(hip|hsa_|__hip)[A-Z_]", each.name)]
    if hosted:
        raise DataFileError(
            f"{source.path}: these are calls of the host ({hosted[0].name}), not kernels. Read the "
            "file of kernel statistics: results.stats.csv or *_kernel_stats.csv."
        )
    found = kernels_of(kernels)
    return MeasuredProfile(found, "rocprof", (str(source.path),), exchanges=_exchanges(found))


def _copies(
    source: Source, table: Table, lines: Iterator[tuple[int, str, bool]], locale: Locale
) -> MeasuredProfile:
    """Read a trace of copies (rocprofv3 --memory-copy-trace)."""
    kept: dict[str, list[float]] = {}
    spans = Spans()
    for row in rows_of(table, lines):
        start, end = _interval(row, locale)
        spans.add(start, end, kernel=False)
        one = kept.setdefault(direction(row["Direction"]), [0, 0.0])
        one[0] += 1
        one[1] += end - start
    copies = tuple(Transfer(name, int(count), time) for name, (count, time) in kept.items())
    return MeasuredProfile(
        (), "rocprof", (str(source.path),), copies=copies, activity=(spans.activity(0),)
    )


def _interval(row: Row, locale: Locale) -> tuple[float, float]:
    columns = row.table.columns
    begin = next((each for each in _STARTS if each in columns), "")
    last = next((each for each in _ENDS if each in columns), "")
    start = row.number(begin, locale) if begin else None
    end = row.later(last, begin, locale) if begin and last else None
    if start is None or end is None:
        raise DataFileError(f"{row.table.at(row.line)}: the row has no begin or no end.")
    if end < start:
        raise DataFileError(f"{row.table.at(row.line)}: the kernel ends before it begins.")
    return start * 1e-9, end * 1e-9


def _facts(row: Row) -> dict[str, Any]:
    columns = row.table.columns
    if "Grid_Size_X" in columns:
        grid = ", ".join(row[f"Grid_Size_{axis}"].strip() for axis in "XYZ")
        block = ", ".join(row[f"Workgroup_Size_{axis}"].strip() for axis in "XYZ")
        return {"grid": f"({grid})", "block": f"({block})"}
    grid, block = row.get("grd", "Grid_Size").strip(), row.get("wgr", "Workgroup_Size").strip()
    return {key: text for key, text in (("grid", grid), ("block", block)) if text}


def _timed(row: Row, locale: Locale, name: str, spans: dict[int, Spans]) -> float | None:
    if not set(row.table.columns) & set(_ENDS):
        return None
    start, end = _interval(row, locale)
    device = re.search(r"\d+", row.get("gpu-id", "Agent_Id", "GPU_ID"))
    found = spans.setdefault(int(device[0]) if device else 0, Spans())
    found.add(start, end, kernel=not is_exchange(name))
    return end - start


def _wide(row: Row, locale: Locale, spans: dict[int, Spans]) -> MeasuredKernel:
    name = _clean(row.get("KernelName", "Kernel_Name"))
    counted = {
        column: value
        for column in row.table.header
        if is_counter(column) and (value := row.number(column, locale)) is not None
    }
    return kernel_of(name, _timed(row, locale, name, spans), counted, _facts(row))


def _long(
    table: Table, lines: Iterator[tuple[int, str, bool]], locale: Locale, spans: dict[int, Spans]
) -> list[MeasuredKernel]:
    """Read a row for each counter (rocprofv3)."""
    found: dict[tuple[str, ...], tuple[str, float | None, dict[str, float], dict[str, Any]]] = {}
    for row in rows_of(table, lines):
        name = _clean(row.get(*_NAMES))
        key = (row.get("Dispatch_Id", "Correlation_Id"), row.get("Process_Id"), row.get("Agent_Id"))
        if key not in found:
            found[key] = (name, _timed(row, locale, name, spans), {}, _facts(row))
        value, counter = row.number("Counter_Value", locale), row["Counter_Name"].strip()
        if found[key][0] != name:
            raise DataFileError(f"{table.at(row.line)}: two kernels have one dispatch.")
        if value is not None:
            counted = found[key][2]
            # One row for each part of the device, where a counter is not a sum already.
            counted[counter] = counted.get(counter, 0.0) + value
    sets = [frozenset(counted) for _, _, counted, _ in found.values()]
    if len(sets) > 1 and sets[-1] < sets[-2]:
        raise DataFileError(
            f"{table.source.path}: the last kernel has {len(sets[-1])} of {len(sets[-2])} "
            "counters. The file is cut off; collect again."
        )
    return [kernel_of(*each) for each in found.values()]
