"""What `perf stat` prints of a program, and what follows from it.

Counters say what a clock can't: how many cycles the cores ran, how many instructions they finished,
how often the last cache had to ask main memory. As a profile it is one program: its work, bytes and
time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlsim.equations import counters
from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.profiling.measured_profile import Counted, MeasuredProfile
from mlsim.profiling.read.tables import Source, checked_number, find_locale, known, open_source
from mlsim.units import text

# Bytes of a line of a cache, unless somebody says otherwise: those of x86 and most of Arm.
LINE = 64
# Events that are misses of the last cache, the best first.
_MISSES = ("LLC-load-misses", "LLC-misses", "cache-misses", "longest_lat_cache.miss")

# Events that are a part of others.
_RATES = (
    ("cache-misses", "cache-references"),
    ("LLC-load-misses", "LLC-loads"),
    ("branch-misses", "branches"),
)


@dataclass(frozen=True, slots=True)
class Counter:
    """What one counter says.

    Attributes
    ----------
    value
        Its count; seconds for clocks, B for bytes. None where it was not counted.
    share
        Part of the run in which it counted: with more events than counters, they take turns,
        and perf scales what it saw.
    why
        "<not counted>" or "<not supported>", where there is no value.
    """

    value: float | None
    share: float = 1.0
    why: str = ""


@dataclass(frozen=True)
class PerfStat:
    """The counters of one run, by event.

    Attributes
    ----------
    counters
        By the event's name, without what stands for user or kernel mode.
    elapsed
        Wall time in s; None where the text does not say.
    user, system
        Times of the cores in s, likewise.
    """

    counters: Mapping[str, Counter]
    elapsed: float | None = None
    user: float | None = None
    system: float | None = None

    def __getitem__(self, event: str) -> float:
        """Return a count.

        Raises
        ------
        NotMeasuredError
            If it was not counted; says why, and what was.
        """
        found = self.counters.get(event)
        if found is None or found.value is None:
            said = f" ({found.why}: a virtual machine often hides counters)" if found else ""
            counted = ", ".join(
                name for name, each in self.counters.items() if each.value is not None
            )
            raise NotMeasuredError(
                f"{event} was not counted{said}. Counted: {counted or 'nothing'}. Ask for it: perf "
                f"stat -e {event} -- COMMAND."
            )
        return found.value

    @property
    def cpi(self) -> float:
        """Cycles for each instruction.

        Raises
        ------
        NotMeasuredError
            If either was not counted.
        """
        return float(counters.cycles_per_instruction(self["cycles"], self._ran("instruction")))

    @property
    def ipc(self) -> float:
        """Instructions in each cycle.

        Raises
        ------
        NotMeasuredError
            If either was not counted.
        """
        instructions = self._ran("instruction")
        return float(counters.instructions_per_cycle(self._ran("cycle"), instructions))

    def _ran(self, what: str) -> float:
        found = self[f"{what}s"]
        if not found:
            raise NotMeasuredError(f"no {what} was counted: the run was too short.")
        return found

    def traffic(self, line: int = LINE) -> float:
        """Return the bytes that came from main memory, from the misses of the last cache.

        A lower limit: lines that are written back, or fetched ahead of time, are no misses.

        Raises
        ------
        NotMeasuredError
            If no event that counts them is there.
        """
        for event in _MISSES:
            found = self.counters.get(event)
            if found is not None and found.value is not None:
                return float(counters.miss_traffic(found.value, float(line)))
        raise NotMeasuredError(
            f"no misses of the last cache were counted ({', '.join(_MISSES)}). Ask for them: perf "
            "stat -e LLC-load-misses -- COMMAND."
        )

    def bandwidth(self, line: int = LINE) -> float:
        """Return the bytes from main memory for each second of the run.

        Raises
        ------
        NotMeasuredError
            If misses or the elapsed time are not there.
        """
        if not self.elapsed:
            raise NotMeasuredError("perf did not say how long the run took: add -e duration_time.")
        return float(counters.used_bandwidth(self.traffic(line), self.elapsed))

    def bandwidth_use(self, memory_bandwidth: float, line: int = LINE) -> float:
        """Return the part of a memory's bandwidth (in B/s) that the run used.

        Raises
        ------
        NotMeasuredError
            As `bandwidth`.
        """
        return float(counters.bandwidth_use(self.bandwidth(line), memory_bandwidth))

    def words(self) -> list[str]:
        """Say what follows from the counters that are there, a line for each.

        >>> two = {"cycles": Counter(2e9), "instructions": Counter(3e9)}
        >>> PerfStat({**two, "task-clock": Counter(1.0)}, elapsed=0.5).words()
        ['1.5 instructions in each cycle (IPC)', '2 cores busy on average']
        """
        found = []
        with suppress(NotMeasuredError):
            found.append(f"{self.ipc:.3g} instructions in each cycle (IPC)")
        with suppress(NotMeasuredError):
            if self.elapsed:
                found.append(f"{self['task-clock'] / self.elapsed:.3g} cores busy on average")
        for part, of in _RATES:
            with suppress(NotMeasuredError):
                if self[of]:
                    found.append(f"{self[part] / self[of]:.2%} of {of} are {part}")
        with suppress(NotMeasuredError):
            moved = f"{text(self.traffic(), 'B', 3)} from main memory at least"
            rate = f" ({text(self.bandwidth(), 'B/s', 3)})" if self.elapsed else ""
            found.append(f"{moved}{rate}, by the misses of the last cache")
        return found

    @property
    def scaled(self) -> tuple[str, ...]:
        """Events that counted only part of the time, and were scaled up."""
        return tuple(
            name
            for name, each in self.counters.items()
            if each.value is not None and each.share < 0.9995
        )


_COUNT = r"\d[\d.,\u00a0\u202f\u2009 '’]*\d|\d|<not (?:supported|counted)>"
_EVENT = re.compile(
    rf"^\s*(?P<value>{_COUNT})\s+(?:(?P<unit>msec|ns|Joules|KiB|MiB|GiB|Bytes)\s+)?"
    r"(?P<event>\S+)(?P<rest>.*)$"
)
_TIME = re.compile(
    rf"^\s*(?P<value>{_COUNT})\s*(?:\+-\s*[\d.,]+\s*)?seconds (?P<what>time elapsed|user|sys)"
)
_PART = re.compile(r"\(\s*(?P<share>\d+[.,]\d+)\s*%\)\s*$")
PROGRAM = re.compile(r"Performance counter stats for '?(?P<name>.*?)'?(?:\s*\(\d+ runs\))?:")
_SPLIT = re.compile(r"^\s*(S\d+|CPU\d+|N\d+)\s|^\s+\d+\.\d{9}\s+\S+\s+\D")
_PERF = known("perf")
# Operations of one event: the data path, and how many.
INTEL_EVENTS: Mapping[str, tuple[str, int]] = _PERF["work"]
# A line of a table: a count, perhaps split by time, core or socket; its unit; its event.
_TABLE = re.compile(rf"(?:[^,;]*[,;]){{0,2}}(?:{_COUNT})[,;][A-Za-z]*[,;][a-z][\w.:/=-]*[,;]")
_NAME = re.compile(r"[A-Za-z_][\w.:/=,\-]*")
_ARITHMETIC = re.compile(r"packed|scalar|arith|^fp_|(?<!mem)(?<!br)_inst_retired\.")
KNOWN_WORK = re.compile(r"fp_ret_sse_avx_ops\.all|fp_ops_retired_by_type\.vector_all|fp_assist")
# Neither events nor what perf says of them have any of these; a line break may be lost in them.
_STRANGE = re.compile(r"[\x00-\x08\x0a-\x1f\\~^@`\ufffd]")
# What perf prints between the events.
_BESIDE = ("#", "Topdown", "Some events", "echo ", "perf stat", "(", "<not", "sudo ")
Lines = Iterable[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class _Row:
    """One event as it is printed: the share is in percent."""

    where: str
    event: str
    value: str
    unit: str = ""
    share: str = ""


def read_perf_stat(printed: str | Path, *, decimal: str | None = None) -> PerfStat:
    r"""Read the text that `perf stat` printed.

    Parameters
    ----------
    printed
        The text itself, or the path of a file (a `Path`).
    decimal
        What parts the fraction of a number, "." or ","; found out from the text if left out.

    Raises
    ------
    DataFileError
        If it is no such text, is damaged, is a table (-x, --json), or is split by time (-I), core
        or socket (-A), which has no totals; names the line.

    >>> found = read_perf_stat(
    ...     " 2,000,000 cycles\n 3,000,000 instructions # 1.50 insn per cycle\n"
    ...     " 0.001000000 seconds time elapsed\n")
    >>> found.ipc, round(found.cpi, 3), found.elapsed
    (1.5, 0.667, 0.001)
    """
    where, start = "perf stat", str(printed)
    lines: Iterator[tuple[int, str]] = enumerate(start.split("\n"), start=1)
    if isinstance(printed, Path):
        source = open_source(printed)
        where, start = str(printed), source.start
        lines = ((number, line) for number, line, _ in source.lines())
    if PROGRAM.search(start):
        # Before it a program may have printed to the same place.
        lines = itertools.dropwhile(lambda each: not PROGRAM.search(each[1]), lines)
        next(lines)
    return parse(lines, where, decimal=decimal)


def parse(lines: Lines, where: str, *, decimal: str | None = None) -> PerfStat:
    """Return the counters of lines with their numbers.

    Raises
    ------
    DataFileError
        As `read_perf_stat`.
    """
    times: dict[str, tuple[int, str]] = {}
    rows = list(_rows(lines, where, times))
    printed = [row.value for row in rows] + [value for _, value in times.values()]
    locale = find_locale(printed, where, decimal=decimal)
    counters: dict[str, Counter] = {}
    for row in rows:
        event = row.event.lower()
        arithmetic = _ARITHMETIC.search(event) and not KNOWN_WORK.match(event)
        if not _NAME.fullmatch(event) or (arithmetic and _plain(event)[0] not in INTEL_EVENTS):
            raise DataFileError(
                f"{row.where}: the event {row.event!r} is damaged, or counts operations in a "
                "way that is not known here. Known are fp_arith_inst_retired.* and "
                "fp_ret_sse_avx_ops.all."
            )
        value = checked_number(row.value, locale, row.where, row.event)
        found = Counter(None, 0.0, row.value)
        if value is not None:
            unit = row.unit or _PERF["clocks"].get(row.event.partition(":")[0], "")
            share = float(row.share.replace(",", ".")) / 100 if row.share else 1.0
            found = Counter(value * _PERF["scales"][unit], share)
        name, core = _plain(row.event)
        before = counters.get(name)
        if before is None or before.value is None:
            counters[name] = found
        elif found.value is not None and not core:
            raise DataFileError(f"{row.where}: {name} stands twice: give the counts of one run.")
        elif found.value is not None:
            # Kinds of cores are added up.
            counters[name] = Counter(before.value + found.value, min(before.share, found.share))
    if not counters:
        raise DataFileError(f"{where}: there is no counter in it. perf prints to the error stream: "
                            "perf stat -o FILE -- COMMAND.")  # fmt: skip
    said = {
        what: checked_number(text, locale, f"{where}:{n}", what)
        for what, (n, text) in times.items()
    }
    ends = (("time elapsed", "duration_time"), ("user", "user_time"), ("sys", "system_time"))
    none = Counter(None)
    clocks = (said.get(what, counters.get(event, none).value) for what, event in ends)
    return PerfStat(counters, *clocks)


def is_table(line: str) -> bool:
    """Whether a line is one of `perf stat -x,` or `--json`, which is not read.

    >>> is_table("1000,,cycles,500,100.00,,"), is_table("Name,Calls")
    (True, False)
    """
    return '"counter-value"' in line or bool(_TABLE.match(line))


def _rows(lines: Lines, where: str, times: dict[str, tuple[int, str]]) -> Iterator[_Row]:
    """Yield the events; the times at the end are put into `times`."""
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if is_table(line):
            raise DataFileError(
                f"{where}:{number}: this is a table of perf stat. Write its text, without -x and "
                "--json: perf stat -o FILE -- COMMAND"
            )
        if PROGRAM.search(line):
            raise DataFileError(
                f"{where}:{number}: a second program begins. Keep each in a file of its own."
            )
        if strange := _STRANGE.search(line):
            raise DataFileError(
                f"{where}:{number}: the line holds {strange[0]!r}, which perf does not print: the "
                "file is damaged."
            )
        if time := _TIME.match(line):
            times[time["what"]] = (number, time["value"])
        elif _SPLIT.match(line):
            raise DataFileError(
                f"{where}:{number}: the counts are split by time, core or socket. Run perf stat "
                "without -I, -A and --per-socket, so that it prints totals."
            )
        elif event := _EVENT.match(line):
            part = _PART.search(event["rest"])
            unit, share = event["unit"] or "", part["share"] if part else ""
            yield _Row(f"{where}:{number}", event["event"], event["value"], unit, share)
        elif not times and not line.strip().startswith(_BESIDE):
            raise DataFileError(
                f"{where}:{number}: {line.strip()[:40]!r} is no line of perf stat. The file is "
                "damaged, or holds other output: write it by perf stat -o FILE."
            )


def _plain(event: str) -> tuple[str, bool]:
    """Return an event's name without its modifiers, and whether it is of one kind of cores.

    >>> _plain("cycles:u"), _plain("cpu_core/cycles/"), _plain("uncore_imc/data_reads/")
    (('cycles', False), ('cycles', True), ('uncore_imc/data_reads/', False))
    """
    core = re.fullmatch(r"cpu(?:_core|_atom)?/([^/]+)/\w*", event)
    name = core[1] if core else re.sub(r":[ukhGHpPS]+$", "", event)
    return {"cpu-cycles": "cycles", "cpu_cycles": "cycles"}.get(name, name), bool(core)


_MISSING = (
    "no event of operations is in the file. On Intel add -e {}, on AMD -e fp_ret_sse_avx_ops.all"
).format(",".join(INTEL_EVENTS))


def read(source: Source, header: str, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read what `perf stat` printed as a profile of one program, which the header names.

    Raises
    ------
    DataFileError
        If a number can't be read, or the text is cut off before the time.
    """
    found = parse(lines, str(source.path), decimal=decimal)
    if found.elapsed is None:
        raise DataFileError(
            f"{source.path}: there is no line 'seconds time elapsed', so the text is cut off. "
            "Write it again: perf stat -o FILE COMMAND"
        )
    counters = {
        event: each.value for event, each in found.counters.items() if each.value is not None
    }
    if not counters:
        raise DataFileError(f"{source.path}: perf stat counted no event. Allow it: see man perf.")
    times = {"time elapsed": found.elapsed, "user": found.user, "sys": found.system}
    counters |= {what: value for what, value in times.items() if value is not None}
    whole = Counted()
    for event, value in counters.items():
        if event.lower() in INTEL_EVENTS:
            path, width = INTEL_EVENTS[event.lower()]
            whole.work(path, value * width, "fp_arith_inst_retired.* times its width")
        elif KNOWN_WORK.match(event) and "assist" not in event:
            whole.work("any", value, event)
    if not whole.operations:
        whole.lack("flops", _MISSING)
    _count_traffic(counters, whole)
    whole.sources["seconds"] = "seconds time elapsed"
    facts: dict[str, float] = {}
    if counters.get("cycles") and counters.get("instructions"):
        facts = {"ipc": found.ipc, "cpi": found.cpi}
    named = PROGRAM.search(header)
    program = whole.kernel(named["name"] if named else "program", found.elapsed, facts, "program")
    notes: tuple[str, ...] = ()
    if found.scaled:
        share = 100 * min(found.counters[event].share for event in found.scaled)
        notes = (
            f"Some events were counted {share:g} % of the time and scaled up by perf: estimates.",
        )
    notes += tuple(f"{each}." for each in found.words())
    files = (str(source.path),)
    return MeasuredProfile((program,), "perf stat", files, counters=counters, notes=notes)


def _count_traffic(counters: Mapping[str, float], whole: Counted) -> None:
    reads = {e: v for e, v in counters.items() if re.search(r"data_reads?|cas_count[._]re?a?d", e)}
    writes = {e: v for e, v in counters.items() if re.search(r"data_writes?|cas_count[._]wr", e)}
    if not reads or not writes:
        whole.missing["dram"] = (
            "no event of main memory is in the file. On Intel add -e uncore_imc/data_reads/,"
            "uncore_imc/data_writes/ (or unc_m_cas_count.rd, .wr) with -a"
        )
        return
    # perf scales the events of the package to bytes; plain counts are lines of a cache.
    every = (reads | writes).items()
    scaled = (v * (LINE if e.lower().startswith("unc_") else 1) for e, v in every)
    whole.traffic["dram"], whole.sources["dram"] = sum(scaled), " + ".join(reads | writes)
