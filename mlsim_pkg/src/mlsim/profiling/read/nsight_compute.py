"""Nsight Compute: what `ncu --csv` prints, long (a row a metric) or wide (a row a launch).

The page "details" names some metrics in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mlsim.errors import DataFileError
from mlsim.profiling.joining import Timeline
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.ncu_counts import DETAILS, FACTS, Launch, kernel_of
from mlsim.profiling.read.tables import (
    Lines,
    Row,
    Table,
    checked_number,
    locale_of,
    rows_of,
    unit_scale,
)

NAMES = ("Demangled Name", "Kernel Name", "Function Name", "Kernel Demangled Name")
_KEPT = re.compile(
    "gpu__time|cycles_elapsed|ops_path_tensor|sass_thread_inst_executed_op|dram__bytes|dram__sectors"
    "|fbpa__dram|lts__t_|l1tex__t_|mem_shared"
)
_WORK = re.compile("sass_thread_inst_executed_op|ops_path_tensor|inst_executed_pipe_tensor")
_METRIC = re.compile(r"[a-z0-9_]+__[A-Za-z0-9_]+(\.[a-z0-9_]+)*")
_BRACKET = re.compile(r"(?P<name>\S+) \[(?P<unit>[^\]]*)\]")
# Beginnings of sections, and units of counts that only some metrics have.
_SECTIONS = ("Command line profiler", "GPU Speed Of Light", "Launch Statistics")
_COUNTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ops_path", ("op", "ops")),
    ("sectors", ("sector", "sectors")),
    ("_inst_executed", ("inst",)),
)


def is_long(columns: set[str]) -> bool:
    """Whether a header is that of a row for each metric."""
    return {"Metric Name", "Metric Value"} <= columns and bool(columns & set(NAMES))


def is_table(columns: set[str]) -> bool:
    """Whether a header is that of a row for each metric, or of a row for each launch."""
    metrics = (_BRACKET.sub(r"\g<name>", each) for each in columns)
    wide = bool(columns & set(NAMES)) and any(_METRIC.fullmatch(each) for each in metrics)
    return is_long(columns) or wide


def read(table: Table, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read launches and add them up by kernel, grid and block.

    Raises
    ------
    DataFileError
        If a row is broken, a metric has a unit of another kind, or there is no launch.
    """
    launches = _long if is_long(set(table.header)) else _wide
    path = table.source.path
    found = Timeline(path)
    device = capability = ""
    moves = 0
    # Counts of operations that all launches have together, and that each launch of a kernel has.
    asked, counted = set[str](), dict[tuple[str, str, str], set[str]]()
    for launch in launches(table, lines, decimal):
        kernel = kernel_of(launch)
        found.add(kernel)
        counts = {each for each in launch.metrics if _WORK.search(each)}
        asked |= counts
        key = (launch.name, launch.grid, launch.block)
        counted[key] = counted.get(key, counts) & counts
        moves += "load constants" in kernel.missing.get("fp16", "")
        device = device or launch.texts.get("device", "")
        capability = capability or launch.capability
    if not found.sums:
        raise DataFileError(
            f"{path}: there is a header of Nsight Compute, and no kernel below it. Profile "
            "a run that launches kernels."
        )
    kernels = list[MeasuredKernel]()
    for each in found.kernels():
        key = (each.name, each.facts.get("grid", ""), each.facts.get("block", ""))
        lacking = sorted(asked - counted.get(key, asked))
        missing = {**each.missing}
        if lacking:
            # A count that some launches lack makes their work unsure.
            why = f"it lacks {lacking[0]}, which other launches in the file have"
            missing.setdefault("flops", why)
        kernels.append(replace(each, missing=missing))
    notes = {
        "A row 'graph' is a whole CUDA graph of many kernels.": any(
            each.name == "graph" for each in kernels
        ),
        f"{moves:,} launches executed half-precision multiply-adds alone, and no name shows half "
        "precision. Compilers load constants with them, so they are not counted as work.": moves,
    }
    return found.profile(
        "Nsight Compute",
        tuple(kernels),
        device_name=device,
        device_facts={"compute capability": capability} if capability else {},
        notes=tuple(note for note, there in notes.items() if there),
        exchanges=(),
    )


def _long(table: Table, lines: Lines, decimal: str | None) -> Iterator[Launch]:
    """Yield launches of rows for each metric, in their order."""
    locale_of(table, decimal, ["Metric Value"])
    launch: Launch | None = None
    key: tuple[str, ...] = ()
    before: list[str] = []
    order: list[str] = []
    known = False
    for row in rows_of(table, lines):
        metric = row["Metric Name"].strip()
        known = known or bool(_METRIC.fullmatch(metric)) or metric in DETAILS
        here = (
            *(row.get("ID"), row.get("Process ID"), row.get(*NAMES)),
            *(row.get("Grid Size"), row.get("Block Size"), row.get("Context"), row.get("Stream")),
        )
        if launch is None or here != key:
            if launch is not None:
                yield launch
            launch, key, before, order = _start(row), here, order, []
        order.append(metric)
        unasked = row.cut and not _kept(metric) and metric not in DETAILS
        take(launch, metric, row.get("Metric Unit"), "" if unasked else row["Metric Value"], row)
    if launch is not None and not known:
        raise DataFileError(
            f"{table.at(table.line)}: no metric of Nsight Compute stands below 'Metric Name'. "
            "Columns and header don't belong together."
        )
    if launch is not None:
        if len(order) < len(before) and before[: len(order)] == order:
            # It begins as the one before it and lacks the rest.
            raise DataFileError(
                f"{launch.where}: the file ends within a launch, which has {len(order)} of "
                f"{len(before)} metrics. Export it again."
            )
        yield launch


def _wide(table: Table, lines: Lines, decimal: str | None) -> Iterator[Launch]:
    """Yield launches of a table with a column for each metric."""
    columns: dict[str, str] = {}
    # Units may stand in brackets behind a metric's name, or in a row of their own.
    units: dict[str, str | None] = {}
    for name in table.header:
        found = _BRACKET.fullmatch(name)
        metric = found["name"] if found else name
        if _METRIC.fullmatch(metric):
            columns[name], units[metric] = metric, found["unit"] if found else None
    numbers = [name for name, metric in columns.items() if _kept(metric)]
    locale_of(table, decimal, numbers)
    identity = next((each for each in ("ID", "Process ID") if each in table.columns), "")
    first = True
    for row in rows_of(table, lines):
        if first and _is_units(row, columns, identity):
            units |= {metric: row[name].strip() for name, metric in columns.items()}
            first = False
            continue
        first = False
        launch = _start(row)
        for name in numbers:
            take(launch, columns[name], units[columns[name]], row[name], row)
        device = row.get("device__attribute_display_name").strip()
        if device:
            launch.texts["device"] = device
        yield launch


def _is_units(row: Row, columns: Mapping[str, str], identity: str) -> bool:
    """Whether a row has units: no number of a launch, and words where numbers would stand."""
    if identity and row[identity].strip():
        return False
    cells = [row[name].strip() for name in columns]
    return all(not each or not each[0].isdigit() or each == "1" for each in cells)


def _mixed(row: Row, what: str) -> DataFileError:
    return DataFileError(f"{row.where}: {what}. Columns and header don't belong together.")


def _start(row: Row) -> Launch:
    name = row.get(*NAMES).strip()
    if name.startswith(_SECTIONS):
        raise _mixed(row, f"{name!r} is a section, and stands where a kernel's name should")
    capability = row.get("CC").strip()
    if capability and not re.fullmatch(r"\d{1,2}\.\d", capability):
        raise _mixed(row, f"the compute capability is {capability!r}, and must be such as 8.0")
    identity = row.get("ID").strip()
    if identity and not re.fullmatch(r"\d{1,3}([,.' ]\d{3})*|\d+", identity):
        raise _mixed(row, f"the ID is {identity!r}, and must be a whole number")
    for column in ("Grid Size", "Block Size"):
        size = row.get(column).strip()
        if size and not re.fullmatch(r"\(?\s*\d+\s*([,x]\s*\d+\s*){0,2}\)?", size):
            raise _mixed(row, f"{column!r} is {size!r}, and must be such as (128, 1, 1)")
    grid, block = (row.get(each).strip() for each in ("Grid Size", "Block Size"))
    return Launch(name, capability, grid, block, row.where)


def _kept(metric: str) -> bool:
    """Whether a metric says anything that a profile holds."""
    base, _, roll = metric.partition(".")
    if metric in FACTS:
        return True
    # The least of units is below zero where counts of two passes are set off against each other.
    if roll.startswith(("min", "max")):
        return False
    if "pipe_tensor" in base:
        return True
    if "pct" in roll or "peak_sustained" in metric:
        return False
    return bool(_KEPT.search(base))


def take(launch: Launch, metric: str, unit: str | None, text: str, row: Row) -> None:
    """Keep a metric of a launch as a number in base units.

    Raises
    ------
    DataFileError
        If its value is no number or its unit unknown.
    """
    want = ""
    if metric in DETAILS:
        metric, want = DETAILS[metric]
    if not _kept(metric):
        if metric == "device__attribute_display_name":
            launch.texts["device"] = text.strip()
        return
    where = row.where
    value = checked_number(text, row.table.locale, where, metric)
    if value is None:
        return
    scale = unit_scale(unit) if unit is not None else None
    if unit and scale is None:
        if metric in FACTS:
            scale = ("", 1.0)
        else:
            raise DataFileError(f"{where}: the unit {unit!r} of {metric} is unknown.")
    kind, factor = scale or ("?", 1.0)
    plain = (unit or "").strip().lstrip("KMGT")
    allowed = next((units for part, units in _COUNTED if part in metric), ())
    if allowed and plain not in allowed and any(plain in units for _, units in _COUNTED):
        raise DataFileError(
            f"{where}: {metric} is counted in {unit!r}. Columns and header don't belong together."
        )
    if want and kind != want:
        return  # "Memory Throughput" is also a percentage
    if metric in launch.metrics and launch.metrics[metric] != (value * factor, kind):
        if metric.startswith(("gpu__time", "dram__bytes", "sm__cycles")):
            return  # sections repeat a figure, rounded in other units
        raise DataFileError(f"{where}: {metric} stands twice for one launch, with two values.")
    launch.metrics[metric] = (value * factor, kind)
