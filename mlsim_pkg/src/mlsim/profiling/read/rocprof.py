"""rocprof and rocprofv3: CSV of statistics, traces and counters of AMD's GPUs.

Counters of operations are those of CDNA (MI200 and later): instructions of a wavefront of 64, and
blocks of 512 operations of the matrix cores. Bytes are rocprof's own sum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mlsim.equations import counters as equations
from mlsim.errors import DataFileError
from mlsim.profiling.joining import Timeline, is_exchange
from mlsim.profiling.measured_profile import Counted, MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.tables import Lines, Row, Table, known, locale_of, rows_of

_WAVE = 64
_MATRIX = 512
_ROCPROF = known("rocprof")
_KILO = 1024
MISSING_WORK = (
    "no counter of operations is in the file. Collect SQ_INSTS_VALU_ADD_F32, "
    "SQ_INSTS_VALU_MUL_F32, SQ_INSTS_VALU_FMA_F32, SQ_INSTS_VALU_TRANS_F32, the same of F16 and "
    "F64, and SQ_INSTS_VALU_MFMA_MOPS_F16, _BF16, _F32, _F64"
)
MISSING_BYTES = "FETCH_SIZE and WRITE_SIZE are not in the file"


def is_counter(name: str) -> bool:
    """Whether a column or a name is that of a counter.

    >>> is_counter("SQ_WAVES"), is_counter("Grid_Size")
    (True, False)
    """
    sizes = name.upper().replace("_", "") in ("FETCHSIZE", "WRITESIZE")
    return sizes or name.startswith("SQ_")


def kernel_of(
    name: str, seconds: float | None, counted: Mapping[str, float], facts: dict[str, Any]
) -> MeasuredKernel:
    """Return what is known of a launch: time, work, bytes, and what is missing."""
    found = Counted()
    _work(counted, found)
    sizes = {key.upper().replace("_", ""): value for key, value in counted.items()}
    if {"FETCHSIZE", "WRITESIZE"} <= set(sizes):
        found.traffic["dram"] = (sizes["FETCHSIZE"] + sizes["WRITESIZE"]) * _KILO
        found.sources["dram"] = "(FETCH_SIZE + WRITE_SIZE) x 1024 bytes"
    else:
        found.lack("dram", MISSING_BYTES)
    if seconds is None:
        found.lack("seconds", "BeginNs and EndNs are not in the file. Add --timestamp on")
    else:
        found.sources["seconds"] = "end less begin"
    return found.kernel(name, seconds, facts, "kernel")


def _work(counted: Mapping[str, float], found: Counted) -> None:
    for suffix, path in _ROCPROF["paths"].items():
        names = [f"SQ_INSTS_VALU_{op}_{suffix}" for op in ("ADD", "MUL", "FMA")]
        there = [name for name in names if name in counted]
        if not there:
            continue
        if len(there) < len(names):
            lacking = next(name for name in names if name not in counted)
            found.missing["flops"] = f"{lacking} is not in the file"
            continue
        add, mul, fma = (counted[name] for name in names)
        add += counted.get(f"SQ_INSTS_VALU_TRANS_{suffix}", 0.0)
        work = float(equations.counted_flops(add, mul, fma)) * _WAVE
        found.work(path, work, f"(ADD + MUL + TRANS + 2 FMA)_{suffix} x {_WAVE} lanes")
    for suffix, path in _ROCPROF["matrix"].items():
        name = f"SQ_INSTS_VALU_MFMA_MOPS_{suffix}"
        if name in counted:
            found.work(path, counted[name] * _MATRIX, f"{name} x {_MATRIX}")
    found.check_idle("Read the files of all passes together")
    if not found.operations:
        found.lack("flops", MISSING_WORK)
    elif not any(path.startswith("tensor") for path in found.operations):
        if counted.get("SQ_INSTS_MFMA") or counted.get("SQ_INSTS_VALU_MFMA"):
            found.missing["flops"] = (
                "it used the matrix cores, and their operations are not counted. Collect "
                "SQ_INSTS_VALU_MFMA_MOPS_F16, _BF16, _F32 and _F64"
            )
        else:
            found.missing["tensor"] = "matrix cores were not counted: SQ_INSTS_VALU_MFMA_MOPS_*"


_NAMES, *_TIMES = (_ROCPROF[each] for each in ("names", "starts", "ends"))


def is_table(columns: set[str]) -> bool:
    """Whether a header is one of rocprof."""
    if {"Name", "Calls", "TotalDurationNs"} <= columns:
        return True
    if not columns & set(_NAMES):
        return False
    timed = all(columns & set(each) for each in _TIMES)
    return timed or {"Counter_Name", "Counter_Value"} <= columns or "Index" in columns


def read(table: Table, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read a file of statistics, of a trace, or of counters.

    Raises
    ------
    DataFileError
        If a row is broken, a kernel ends before it begins, or nothing is below the header.
    """
    numbers = [name for name in table.header if name not in _ROCPROF["texts"] and name]
    locale_of(table, decimal, numbers, plain=True)
    run, path = Timeline(table.source.path), table.source.path
    if "TotalDurationNs" in table.columns:
        _statistics(table, lines, run)
    elif "Counter_Name" in table.columns:
        _long(table, lines, run)
    else:
        for row in rows_of(table, lines):
            run.add(_wide(row, run))
    if not run.sums:
        raise DataFileError(f"{path}: there is a header of rocprof, and no kernel below it.")
    for name, *_ in run.sums:
        if re.match(r"(hip|hsa_|__hip)[A-Z_]", name):
            raise DataFileError(
                f"{path}: these are calls of the host ({name}), not kernels. Read the file of "
                "kernel statistics: results.stats.csv or *_kernel_stats.csv."
            )
    return run.profile("rocprof", run.kernels())


def _clean(name: str) -> str:
    return re.sub(r"\s*\[clone \.kd\]$|\s*\(\.kd\)$|\.kd$", "", name.strip())


def _statistics(table: Table, lines: Lines, run: Timeline) -> None:
    for row in rows_of(table, lines):
        calls, total = row.number("Calls"), row.number("TotalDurationNs")
        if calls is None or total is None or calls != int(calls):
            raise DataFileError(f"{row.where}: the row has no calls or no duration.")
        mean = row.number("AverageNs") if "AverageNs" in table.columns else None
        if mean is not None and abs(mean * calls - total) > 0.01 * total + calls:
            raise DataFileError(
                f"{row.where}: total, calls and average of the row don't agree. The file "
                "is damaged, or its columns were mixed up."
            )
        sources, missing = {"seconds": "TotalDurationNs"}, {"flops": MISSING_WORK}
        missing["dram"] = MISSING_BYTES
        name, seconds = _clean(row["Name"]), total * 1e-9
        run.add(MeasuredKernel(name, int(calls), seconds, sources=sources, missing=missing))


def _facts(row: Row) -> dict[str, Any]:
    columns = row.table.columns
    if "Grid_Size_X" in columns:
        grid = ", ".join(row[f"Grid_Size_{axis}"].strip() for axis in "XYZ")
        block = ", ".join(row[f"Workgroup_Size_{axis}"].strip() for axis in "XYZ")
        return {"grid": f"({grid})", "block": f"({block})"}
    grid, block = row.get("grd", "Grid_Size").strip(), row.get("wgr", "Workgroup_Size").strip()
    return {key: text for key, text in (("grid", grid), ("block", block)) if text}


def _timed(row: Row, name: str, run: Timeline) -> float | None:
    """Return the seconds of a launch; None where the file has no times."""
    columns = row.table.columns
    begin, last = (next((each for each in names if each in columns), "") for names in _TIMES)
    if not last:
        return None
    start, end = row.number(begin) if begin else None, row.number(last)
    if start is None or end is None:
        raise DataFileError(f"{row.where}: the row has no begin or no end.")
    if end < start:
        raise DataFileError(f"{row.where}: the kernel ends before it begins.")
    device = re.search(r"\d+", row.get("gpu-id", "Agent_Id", "GPU_ID"))
    place = int(device[0]) if device else 0
    begun, ended = start * 1e-9, end * 1e-9
    run.busy(begun, ended, place, kernel=not is_exchange(name))
    return ended - begun


def _wide(row: Row, run: Timeline) -> MeasuredKernel:
    name = _clean(row.get(*_NAMES))
    counted = {
        column: value
        for column in row.table.header
        if is_counter(column) and (value := row.number(column)) is not None
    }
    return kernel_of(name, _timed(row, name, run), counted, _facts(row))


def _long(table: Table, lines: Lines, run: Timeline) -> None:
    """Read a row for each counter (rocprofv3)."""
    found: dict[tuple[str, ...], tuple[str, float | None, dict[str, float], dict[str, Any]]] = {}
    for row in rows_of(table, lines):
        name = _clean(row.get(*_NAMES))
        key = (row.get("Dispatch_Id", "Correlation_Id"), row.get("Process_Id"), row.get("Agent_Id"))
        if key not in found:
            found[key] = (name, _timed(row, name, run), {}, _facts(row))
        value, counter = row.number("Counter_Value"), row["Counter_Name"].strip()
        if found[key][0] != name:
            raise DataFileError(f"{row.where}: two kernels have one dispatch.")
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
    for each in found.values():
        run.add(kernel_of(*each))
