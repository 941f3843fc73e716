"""Nsight Compute: what `ncu --csv` prints, long (a row a metric) or wide (a row a launch).

The page "details" names some metrics in words; a summary has the mean of several launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read import ncu_metrics
from mlsim.profiling.read.launches import Launches
from mlsim.profiling.read.ncu_counts import kernel_of
from mlsim.profiling.read.ncu_launch import Launch
from mlsim.profiling.read.numbers import Locale, unit_scale
from mlsim.profiling.read.sources import Source
from mlsim.profiling.read.tables import Row, Table, checked_number, locale_of, rows_of

NAMES = ("Demangled Name", "Kernel Name", "Function Name", "Kernel Demangled Name")
_METRIC = re.compile(r"[a-z0-9_]+__[A-Za-z0-9_]+(\.[a-z0-9_]+)*")
_VALUES = ("Metric Value", "Average")
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
    return "Metric Name" in columns and bool(columns & set(_VALUES)) and bool(columns & set(NAMES))


def is_wide(columns: set[str]) -> bool:
    """Whether a header is that of a row for each launch."""
    metrics = (_BRACKET.sub(r"\g<name>", each) for each in columns)
    return bool(columns & set(NAMES)) and any(_METRIC.fullmatch(each) for each in metrics)


def read(
    source: Source, table: Table, lines: Iterator[tuple[int, str, bool]], decimal: str | None
) -> MeasuredProfile:
    """Read launches and add them up by kernel, grid and block.

    Raises
    ------
    DataFileError
        If a row is broken, a metric has a unit of another kind, or there is no launch.
    """
    long = is_long(set(table.header))
    launches = _long(source, table, lines, decimal) if long else _wide(table, lines, decimal)
    return profile_of(source, launches)


def profile_of(source: Source, launches: Iterator[Launch]) -> MeasuredProfile:
    """Add launches up by kernel, grid and block.

    Raises
    ------
    DataFileError
        If there is no launch.
    """
    found = Launches(source.path)
    device = capability = ""
    notes = _Notes()
    asked = _Asked()
    for launch in launches:
        kernel = kernel_of(launch)
        found.add(kernel)
        asked.see(launch)
        notes.see(launch, kernel)
        device = device or launch.texts.get("device", "")
        capability = capability or launch.capability
    if not found.sums:
        raise DataFileError(
            f"{source.path}: there is a header of Nsight Compute, and no kernel below it. Profile "
            "a run that launches kernels."
        )
    return MeasuredProfile(
        tuple(asked.checked(each) for each in found.kernels()),
        "Nsight Compute",
        (str(source.path),),
        device,
        {"compute capability": capability} if capability else {},
        notes=notes.notes(),
    )


def _long(
    source: Source, table: Table, lines: Iterator[tuple[int, str, bool]], decimal: str | None
) -> Iterator[Launch]:
    """Yield launches of rows for each metric, in their order."""
    value = next(each for each in _VALUES if each in table.columns)
    locale = locale_of(source, table, decimal, [value])
    launch: Launch | None = None
    key: tuple[str, ...] = ()
    finished: list[tuple[str, ...]] = []
    order: list[str] = []
    known = False
    for row in rows_of(table, lines):
        metric = row["Metric Name"].strip()
        known = known or bool(_METRIC.fullmatch(metric)) or metric in ncu_metrics.DETAILS
        here = (
            *(row.get("ID"), row.get("Process ID"), row.get(*NAMES)),
            *(row.get("Grid Size"), row.get("Block Size"), row.get("Context"), row.get("Stream")),
        )
        if launch is None or here != key:
            if launch is not None:
                finished = [*finished[-1:], tuple(order)]
                yield launch
            launch, key, order = _start(row, locale), here, []
        order.append(metric)
        take(
            launch,
            metric,
            row.get("Metric Unit"),
            ""
            if row.cut and not _kept(metric) and metric not in ncu_metrics.DETAILS
            else row[value],
            where=row.table.at(row.line),
            locale=locale,
        )
    if launch is not None and not known:
        raise DataFileError(
            f"{table.at(table.line)}: no metric of Nsight Compute stands below 'Metric Name'. "
            "Columns and header don't belong together."
        )
    if launch is not None:
        _check_whole(launch, tuple(order), finished)
        yield launch


def _check_whole(launch: Launch, order: tuple[str, ...], finished: list[tuple[str, ...]]) -> None:
    """Refuse a last launch that begins as the one before it and lacks the rest."""
    before = finished[-1] if finished else ()
    if len(order) < len(before) and before[: len(order)] == order:
        raise DataFileError(
            f"{launch.where}: the file ends within a launch, which has {len(order)} of "
            f"{len(before)} metrics. Export it again."
        )


def _wide(
    table: Table, lines: Iterator[tuple[int, str, bool]], decimal: str | None
) -> Iterator[Launch]:
    """Yield launches of a table with a column for each metric."""
    columns, units = _metric_columns(table)
    numbers = [name for name, metric in columns.items() if _kept(metric)]
    locale = locale_of(table.source, table, decimal, numbers)
    identity = next((each for each in ("ID", "Process ID") if each in table.columns), "")
    first = True
    for row in rows_of(table, lines):
        if first and _is_units(row, columns, identity):
            units |= {metric: row[name].strip() for name, metric in columns.items()}
            first = False
            continue
        first = False
        launch = _start(row, locale)
        for name in numbers:
            metric = columns[name]
            take(
                launch,
                metric,
                units.get(metric),
                row[name],
                where=row.table.at(row.line),
                locale=locale,
            )
        device = row.get("device__attribute_display_name").strip()
        if device:
            launch.texts["device"] = device
        yield launch


def _metric_columns(table: Table) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the metric of each column, and units that stand in brackets behind its name."""
    columns: dict[str, str] = {}
    units: dict[str, str | None] = {}
    for name in table.header:
        found = _BRACKET.fullmatch(name)
        metric = found["name"] if found else name
        if _METRIC.fullmatch(metric):
            columns[name] = metric
            units[metric] = found["unit"] if found else None
    return columns, units


def _is_units(row: Row, columns: Mapping[str, str], identity: str) -> bool:
    """Whether a row has units: no number of a launch, and words where numbers would stand."""
    if identity and row[identity].strip():
        return False
    cells = [row[name].strip() for name in columns]
    return all(not each or not each[0].isdigit() or each == "1" for each in cells)


def _mixed(row: Row, what: str) -> DataFileError:
    return DataFileError(
        f"{row.table.at(row.line)}: {what}. Columns and header don't belong together."
    )


def _start(row: Row, locale: Locale) -> Launch:
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
    calls = row.get("Invocations", "Invocation")
    count = checked_number(calls, locale, row.table.at(row.line), "Invocations") if calls else 1.0
    return Launch(
        name,
        capability,
        row.get("Grid Size").strip(),
        row.get("Block Size").strip(),
        row.table.at(row.line),
        int(count or 1),
    )


def _kept(metric: str) -> bool:
    """Whether a metric says anything that a profile holds."""
    base, _, roll = metric.partition(".")
    if metric in ncu_metrics.FACTS or "pipe_tensor" in base:
        return True
    if roll.startswith(("min", "max")) or "pct" in roll or "peak_sustained" in metric:
        return False
    return any(
        part in base
        for part in (
            *("gpu__time", "cycles_elapsed", "ops_path_tensor", "sass_thread_inst_executed_op"),
            *("dram__bytes", "dram__sectors", "fbpa__dram", "lts__t_", "l1tex__t_", "mem_shared"),
        )
    )


def take(
    launch: Launch, metric: str, unit: str | None, text: str, *, where: str, locale: Locale
) -> None:
    """Keep a metric of a launch as a number in base units.

    Raises
    ------
    DataFileError
        If its value is no number or its unit unknown.
    """
    want = ""
    if metric in ncu_metrics.DETAILS:
        metric, want = ncu_metrics.DETAILS[metric]
    if not _kept(metric):
        if metric == "device__attribute_display_name":
            launch.texts["device"] = text.strip()
        return
    value = checked_number(text, locale, where, metric)
    if value is None:
        return
    scale = unit_scale(unit) if unit is not None else None
    if unit and scale is None:
        if metric in ncu_metrics.FACTS:
            scale = ("", 1.0)
        else:
            raise DataFileError(f"{where}: the unit {unit!r} of {metric} is unknown.")
    kind, factor = scale or ("?", 1.0)
    _check_count(metric, unit or "", where)
    if want and kind != want:
        return  # "Memory Throughput" is also a percentage
    if metric in launch.metrics and launch.metrics[metric] != (value * factor, kind):
        if metric.startswith(("gpu__time", "dram__bytes", "sm__cycles")):
            return  # sections repeat a figure, rounded in other units
        raise DataFileError(f"{where}: {metric} stands twice for one launch, with two values.")
    launch.metrics[metric] = (value * factor, kind)


def _check_count(metric: str, unit: str, where: str) -> None:
    """Refuse a count in a unit of another kind of count."""
    plain = unit.strip().lstrip("KMGT")
    allowed = next((units for part, units in _COUNTED if part in metric), ())
    others = {each for _, units in _COUNTED for each in units} - set(allowed)
    if allowed and plain in others:
        raise DataFileError(
            f"{where}: {metric} is counted in {unit!r}. Columns and header don't belong together."
        )


class _Asked:
    """Which counts of operations the launches have: one that some lack makes theirs unsure."""

    def __init__(self) -> None:
        self.all: set[str] = set()
        self.by_kernel: dict[tuple[str, str, str], set[str]] = {}

    def see(self, launch: Launch) -> None:
        """Look at a launch."""
        counts = {each for each in launch.metrics if _is_work(each)}
        self.all |= counts
        key = (launch.name, launch.grid, launch.block)
        if key in self.by_kernel:
            self.by_kernel[key] &= counts
        else:
            self.by_kernel[key] = counts

    def checked(self, kernel: MeasuredKernel) -> MeasuredKernel:
        """Return a kernel, its work refused if a launch of it lacks a count that others have."""
        key = (kernel.name, kernel.facts.get("grid", ""), kernel.facts.get("block", ""))
        lacking = sorted(self.all - self.by_kernel.get(key, self.all))
        if not lacking or "flops" in kernel.missing:
            return kernel
        why = f"it lacks {lacking[0]}, which other launches in the file have"
        return replace(kernel, missing={**kernel.missing, "flops": why})


def _is_work(metric: str) -> bool:
    return any(
        part in metric
        for part in ("sass_thread_inst_executed_op", "ops_path_tensor", "inst_executed_pipe_tensor")
    )


@dataclass
class _Notes:
    """What a reader must know of the launches."""

    summary: bool = False
    graph: bool = False
    moves: int = 0

    def see(self, launch: Launch, kernel: MeasuredKernel) -> None:
        """Look at a launch."""
        self.summary = self.summary or launch.calls > 1
        self.graph = self.graph or launch.name == "graph"
        self.moves += "load constants" in kernel.missing.get("fp16", "")

    def notes(self) -> tuple[str, ...]:
        """Return the notes."""
        found = []
        if self.summary:
            found.append("The file is a summary: figures are means times the number of launches.")
        if self.graph:
            found.append("A row 'graph' is a whole CUDA graph of many kernels.")
        if self.moves:
            found.append(
                f"{self.moves:,} launches executed half-precision multiply-adds alone, and no name "
                "shows half precision. Compilers load constants with them, so they are not counted "
                "as work."
            )
        return tuple(found)
