"""Nsight Compute: what `ncu --csv` prints, long (a row a metric) or wide (a row a launch).

The page "details" names some metrics in words; a summary has the mean of several launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read import ncu_metrics
from mlsim.profiling.read.launches import kernels_of
from mlsim.profiling.read.numbers import Locale, unit_scale
from mlsim.profiling.read.sources import Source
from mlsim.profiling.read.tables import Row, Table, checked_number, locale_of, rows_of

NAMES = ("Demangled Name", "Kernel Name", "Function Name", "Kernel Demangled Name")
_METRIC = re.compile(r"[a-z0-9_]+__[A-Za-z0-9_]+(\.[a-z0-9_]+)*")
_VALUES = ("Metric Value", "Average")
_BRACKET = re.compile(r"(?P<name>\S+) \[(?P<unit>[^\]]*)\]")
_NAMED = ("Context", "Stream", "Device", "CC", "Block Size", "Grid Size", "ID", "Process ID")


@dataclass
class Launch:
    """One launch (or, of a summary, several alike): metrics as numbers with their kind of unit."""

    name: str
    capability: str
    grid: str
    block: str
    where: str
    calls: int = 1
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


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
    launches = list(_long(source, table, lines, decimal) if long else _wide(table, lines, decimal))
    if not launches:
        raise DataFileError(
            f"{source.path}: there is a header of Nsight Compute, and no kernel below it. Profile "
            "a run that launches kernels."
        )
    found = [kernel_of(each) for each in launches]
    device = next((each.texts["device"] for each in launches if "device" in each.texts), "")
    capability = next((each.capability for each in launches if each.capability), "")
    return MeasuredProfile(
        kernels_of(found),
        "Nsight Compute",
        (str(source.path),),
        device,
        {"compute capability": capability} if capability else {},
        notes=_notes(launches, found),
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
    for row in rows_of(table, lines):
        here = (
            *(row.get("ID"), row.get("Process ID"), row.get(*NAMES)),
            *(row.get("Grid Size"), row.get("Block Size"), row.get("Context"), row.get("Stream")),
        )
        if launch is None or here != key:
            if launch is not None:
                finished = [*finished[-1:], tuple(order)]
                yield launch
            launch, key, order = _start(row, locale), here, []
        order.append(row["Metric Name"].strip())
        _take(
            launch,
            row["Metric Name"].strip(),
            row.get("Metric Unit"),
            row[value],
            row=row,
            locale=locale,
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
            _take(launch, metric, units.get(metric), row[name], row=row, locale=locale)
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


def _start(row: Row, locale: Locale) -> Launch:
    name = row.get(*NAMES).strip()
    capability = row.get("CC").strip()
    if capability and not re.fullmatch(r"\d{1,2}\.\d", capability):
        raise DataFileError(
            f"{row.table.at(row.line)}: the compute capability is {capability!r}, and must be "
            "such as 8.0. Columns and header don't belong together."
        )
    for column in ("Grid Size", "Block Size"):
        size = row.get(column).strip()
        if size and not re.fullmatch(r"\(?\s*\d+\s*([,x]\s*\d+\s*){0,2}\)?", size):
            raise DataFileError(
                f"{row.table.at(row.line)}: {column!r} is {size!r}, and must be such as "
                "(128, 1, 1). Columns and header don't belong together."
            )
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


def _take(
    launch: Launch, metric: str, unit: str | None, text: str, *, row: Row, locale: Locale
) -> None:
    """Keep a metric of a launch as a number in base units."""
    want = ""
    if metric in ncu_metrics.DETAILS:
        metric, want = ncu_metrics.DETAILS[metric]
    if not _kept(metric):
        if metric == "device__attribute_display_name":
            launch.texts["device"] = text.strip()
        return
    where = row.table.at(row.line)
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
    if want and kind != want:
        return  # "Memory Throughput" is also a percentage
    if metric in launch.metrics and launch.metrics[metric] != (value * factor, kind):
        if metric.startswith(("gpu__time", "dram__bytes", "sm__cycles")):
            return  # sections repeat a figure, rounded in other units
        raise DataFileError(f"{where}: {metric} stands twice for one launch, with two values.")
    launch.metrics[metric] = (value * factor, kind)


class Counters:
    """Metrics of one launch, asked for without unit in front and roll-up behind."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.seconds, self.time_source = self._time()
        self.by_base: dict[str, list[str]] = {}
        for metric in launch.metrics:
            base = metric.partition(".")[0]
            plain = re.sub(r"^(smsp|sm)__", "", base)
            self.by_base.setdefault(base, []).append(metric)
            if plain != base:
                self.by_base.setdefault(plain, []).append(metric)

    def value(self, metric: str, kind: str) -> float | None:
        """Return a metric whose unit is of a kind.

        Raises
        ------
        DataFileError
            If its unit measures something else, as when columns were mixed up.
        """
        if metric not in self.launch.metrics:
            return None
        value, found = self.launch.metrics[metric]
        if found == "?" and kind == "1":
            return value
        if found == "?":
            return None
        if found != kind:
            unit = {"s": "of time", "B": "of bytes", "1": "of a count"}.get(found, found)
            raise DataFileError(
                f"{self.launch.where}: {metric} has a unit {unit}. Columns and header don't belong "
                "together."
            )
        return value

    def _time(self) -> tuple[float | None, str]:
        for base in ncu_metrics.TIMES:
            for roll in (".sum", "", ".avg", ".max"):
                value = self.value(base + roll, "s")
                if value:
                    return value, base + roll
        for unit in ("sm", "smsp", "gpc"):
            for roll in ("avg", "max"):
                cycles = self.value(f"{unit}__cycles_elapsed.{roll}", "1")
                rate = self.value(f"{unit}__cycles_elapsed.{roll}.per_second", "1/s")
                rate = rate or self.value(f"{unit}__cycles_elapsed.avg.per_second", "1/s")
                if cycles and rate:
                    return cycles / rate, f"{unit}__cycles_elapsed.{roll} over its rate"
        return None, ""

    def count(self, base: str, kind: str = "1") -> tuple[float, str] | None:
        """Return how much a counter counted, and of which metric; None if it is not there.

        From a rate per second it is the rate times the time; from a rate per cycle, times the
        cycles.
        """
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            found = self.value(metric, kind) if roll in ("sum", "") else None
            if found is not None:
                return found, metric
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            if roll == "sum.per_second" and self.seconds:
                rate = self.value(metric, f"{kind}/s")
                if rate is not None:
                    return rate * self.seconds, f"{metric} x {self.time_source}"
            if roll == "sum.per_cycle_elapsed":
                cycles = self._cycles(stem.partition("__")[0])
                rate = self.value(metric, "1/cycle")
                if rate is not None and cycles is not None:
                    return rate * cycles, f"{metric} x cycles"
        return None

    def derived(self, base: str) -> tuple[float, str] | None:
        """Return a count from what a roofline section derives: per cycle, times 2 or 4."""
        for times in (2, 4):
            metric = f"derived__smsp__{base}_x{times}"
            value = self.launch.metrics.get(metric)
            cycles = self._cycles("smsp")
            if value is not None and cycles is not None:
                return value[0] / times * cycles, f"{metric} / {times} x cycles"
        return None

    def _cycles(self, unit: str) -> float | None:
        for name in (unit, "smsp", "sm"):
            for roll in ("avg", "max"):
                cycles = self.value(f"{name}__cycles_elapsed.{roll}", "1")
                if cycles is not None:
                    return cycles
            rate = self.value(f"{name}__cycles_elapsed.avg.per_second", "1/s")
            if rate is not None and self.seconds:
                return rate * self.seconds
        return None


def kernel_of(launch: Launch) -> MeasuredKernel:
    """Return what is known of a launch: time, work, bytes, and what is missing."""
    from mlsim.profiling.read.ncu_counts import operations_of, traffic_of

    counters = Counters(launch)
    sources: dict[str, str] = {}
    missing: dict[str, str] = {}
    times = launch.calls
    if counters.seconds is None:
        missing["seconds"] = "gpu__time_duration.sum is not in the file"
    else:
        sources["seconds"] = counters.time_source
    operations = operations_of(counters, sources, missing)
    traffic = traffic_of(counters, sources, missing)
    facts: dict[str, Any] = {
        name: launch.metrics[metric][0]
        for metric, name in ncu_metrics.FACTS.items()
        if metric in launch.metrics
    }
    for way, op in (("load", "ld"), ("store", "st")):
        lines = f"pipe_lsu_mem_global_op_{op}.sum"
        sectors = launch.metrics.get(f"l1tex__t_sectors_{lines}", (0.0, ""))[0]
        requests = launch.metrics.get(f"l1tex__t_requests_{lines}", (0.0, ""))[0]
        if requests:
            facts[f"sectors_per_{way}"] = sectors / requests
    facts |= {
        key: text
        for key, text in (
            ("grid", launch.grid),
            ("block", launch.block),
            ("cc", launch.capability),
        )
        if text
    }
    return MeasuredKernel(
        launch.name,
        times,
        None if counters.seconds is None else counters.seconds * times,
        {path: count * times for path, count in operations.items()},
        {level: count * times for level, count in traffic.items()},
        sources,
        missing,
        facts,
        "graph" if launch.name == "graph" else "kernel",
    )


def _notes(launches: list[Launch], kernels: list[MeasuredKernel]) -> tuple[str, ...]:
    notes = []
    if any(each.calls > 1 for each in launches):
        notes.append("The file is a summary: figures are means times the number of launches.")
    if any(each.name == "graph" for each in launches):
        notes.append("A row 'graph' is a whole CUDA graph of many kernels.")
    held = sum("load constants" in each.missing.get("fp16", "") for each in kernels)
    if held:
        notes.append(
            f"{held:,} launches executed half-precision multiply-adds alone, and no name shows "
            "half precision. Compilers load constants with them, so they are not counted as work."
        )
    return tuple(notes)
