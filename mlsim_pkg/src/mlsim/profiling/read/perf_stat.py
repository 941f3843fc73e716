"""What `perf stat` prints of a program, as text, with -x or with --json, and what follows from it.

Counters say what a clock can't: how many cycles the cores ran, how many instructions they finished,
how often the last cache had to ask main memory. As a profile it is one program: its work, bytes and
time.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.equations import counters
from mlsim.errors import DataFileError, InvalidValueError, NotMeasuredError
from mlsim.profiling.measured_profile import Counted, MeasuredProfile
from mlsim.profiling.read.tables import Locale, Source, find_locale, known, open_source
from mlsim.profiling.stopwatch import Run
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

    @property
    def run(self) -> Run:
        """Wall, user, system and waiting time.

        Raises
        ------
        NotMeasuredError
            If the text does not say all of them, as with -x and --json.
        """
        if self.elapsed is None or self.user is None or self.system is None:
            raise NotMeasuredError(
                "perf prints elapsed, user and sys only as text: leave -x and --json out, or add "
                "-e duration_time,user_time,system_time."
            )
        return Run(self.elapsed, self.user, self.system)

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
PROGRAM = re.compile(
    r"Performance counter stats for '?(?P<name>.*?)'?(?:\s*\((?P<runs>\d+) runs\))?:"
)
_SPLIT = re.compile(r"^\s*(S\d+|CPU\d+|N\d+)\s|^\s+\d+\.\d{9}\s+\S+\s+\D")
_PERF = known("perf")
# Operations of one event: the data path, and how many.
INTEL_EVENTS: Mapping[str, tuple[str, int]] = _PERF["work"]
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
    r"""Read what `perf stat` printed: text, -x or --json, whichever it is.

    Parameters
    ----------
    printed
        The text itself, or the path of a file (a `Path`).
    decimal
        What parts the fraction of a number, "." or ","; found out from the text if left out.

    Raises
    ------
    DataFileError
        If it is none of the three, is damaged, or is split by time (-I), core or socket (-A),
        which has no totals; names the line.

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
    """Return the counters of lines with their numbers: text, -x or --json.

    Raises
    ------
    DataFileError
        As `read_perf_stat`.
    """
    rest = ((n, line) for n, line in lines if line.strip() and not line.strip().startswith("#"))
    first = next(rest, None)
    if first is None:
        raise DataFileError(f"{where}: there is no counter in it.")
    every = itertools.chain([first], rest)
    sign = next((each for each in ",;" if is_csv(first[1], each)), "")
    times: dict[str, tuple[int, str]] = {}
    if first[1].lstrip().startswith("{"):
        rows = list(_json_rows(every, where))
    elif sign:
        rows = list(_csv_rows(every, sign, where))
    else:
        rows = list(_text_rows(every, where, times))
        printed = [row.value for row in rows] + [value for _, value in times.values()]
        return _collected(rows, times, find_locale(printed, where, decimal=decimal), where)
    # These two print no thousands: a comma begins a fraction.
    comma = decimal == "," or any("," in row.value for row in rows)
    return _collected(rows, times, Locale("", "," if comma else "."), where)


def is_csv(line: str, sign: str = ",") -> bool:
    """Whether a line is one of `perf stat -x,`, also one that is split by time or core."""
    cells = [each.strip() for each in line.split(sign)]
    return (
        len(cells) >= 4
        and bool(
            re.fullmatch(r"\d+([.,]\d+)?|<not (supported|counted)>|(S|CPU|N|D)\d+\S*", cells[0])
        )
        and bool(re.fullmatch(r"[A-Za-z]*|\d+|<not (supported|counted)>", cells[1]))
        and any(re.fullmatch(r"[a-zA-Z][\w.:/=\-]*", cell) for cell in cells[2:6])
    )


def _csv_rows(lines: Lines, sign: str, where: str) -> Iterator[_Row]:
    for number, line in lines:
        cells = [each.strip() for each in line.split(sign)]
        if len(cells) > 3 and not any(cells[:3]):
            continue  # a further metric of the event above
        if cells[0].startswith(("S", "CPU", "N", "D")) or re.fullmatch(r"\d+\.\d{6,}", cells[0]):
            raise _split_up(where, number)
        share = cells[4] if len(cells) > 4 else ""
        if len(cells) < 3 or not re.fullmatch(r"(\d+([.,]\d+)?)?", share):
            raise DataFileError(f"{where}:{number}: this is no line of perf stat -x{sign}.")
        yield _Row(f"{where}:{number}", cells[2], cells[0], cells[1], share)


def _json_rows(lines: Lines, where: str) -> Iterator[_Row]:
    for number, line in lines:
        try:
            said: Any = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise DataFileError(f"{where}:{number}: this is no JSON of perf stat.")
        if {"interval", "cpu", "core", "socket", "die", "node"} & set(said):
            raise _split_up(where, number)
        if "event" in said:
            keys = ("event", "counter-value", "unit", "pcnt-running")
            yield _Row(f"{where}:{number}", *(str(said.get(key, "")) for key in keys))


def _text_rows(lines: Lines, where: str, times: dict[str, tuple[int, str]]) -> Iterator[_Row]:
    """Yield the events; the times at the end are put into `times`."""
    for number, line in lines:
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
            raise _split_up(where, number)
        elif event := _EVENT.match(line):
            part = _PART.search(event["rest"])
            unit, share = event["unit"] or "", part["share"] if part else ""
            yield _Row(f"{where}:{number}", event["event"], event["value"], unit, share)
        elif not times and not line.strip().startswith(_BESIDE):
            raise DataFileError(
                f"{where}:{number}: {line.strip()[:40]!r} is no line of perf stat. The file is "
                "damaged, or holds other output: write it by perf stat -o FILE."
            )


def _split_up(where: str, number: int) -> DataFileError:
    return DataFileError(
        f"{where}:{number}: the counts are split by time, core or socket. Run perf stat without "
        "-I, -A and --per-socket, so that it prints totals."
    )


def _collected(
    rows: list[_Row], times: Mapping[str, tuple[int, str]], locale: Locale, where: str
) -> PerfStat:
    counters: dict[str, Counter] = {}
    for row in rows:
        _check_event(row)
        _add(counters, row, _counter(row, locale))
    if not counters:
        raise DataFileError(f"{where}: there is no counter in it. perf prints to the error stream: "
                            "perf stat -o FILE -- COMMAND.")  # fmt: skip
    said = {what: _number(text, locale, f"{where}:{n}") for what, (n, text) in times.items()}
    ends = (("time elapsed", "duration_time"), ("user", "user_time"), ("sys", "system_time"))
    none = Counter(None)
    clocks = (said.get(what, counters.get(event, none).value) for what, event in ends)
    return PerfStat(counters, *clocks)


def _check_event(row: _Row) -> None:
    """Refuse an event whose name is damaged, or may be one of operations that is not known."""
    event = row.event.lower()
    arithmetic = _ARITHMETIC.search(event) and not KNOWN_WORK.match(event)
    known = _plain(event)[0] in INTEL_EVENTS
    if not _NAME.fullmatch(event) or (arithmetic and not known):
        raise DataFileError(
            f"{row.where}: the event {row.event!r} is damaged, or counts operations in a "
            "way that is not known here. Known are fp_arith_inst_retired.* and "
            "fp_ret_sse_avx_ops.all."
        )


def _plain(event: str) -> tuple[str, bool]:
    """Return an event's name without its modifiers, and whether it is of one kind of cores.

    >>> _plain("cycles:u"), _plain("cpu_core/cycles/"), _plain("uncore_imc/data_reads/")
    (('cycles', False), ('cycles', True), ('uncore_imc/data_reads/', False))
    """
    core = re.fullmatch(r"cpu(?:_core|_atom)?/([^/]+)/\w*", event)
    name = core[1] if core else re.sub(r":[ukhGHpPS]+$", "", event)
    return {"cpu-cycles": "cycles", "cpu_cycles": "cycles"}.get(name, name), bool(core)


def _counter(row: _Row, locale: Locale) -> Counter:
    value = _number(row.value, locale, row.where)
    if value is None:
        return Counter(None, 0.0, row.value)
    unit = row.unit or _PERF["clocks"].get(row.event.partition(":")[0], "")
    if unit not in _PERF["scales"]:
        raise DataFileError(f"{row.where}: {unit!r} is no unit of perf stat that is known.")
    share = float(row.share.replace(",", ".")) / 100 if row.share else 1.0
    return Counter(value * _PERF["scales"][unit], share)


def _number(text: str, locale: Locale, where: str) -> float | None:
    try:
        return locale.number(text)
    except InvalidValueError as error:
        raise DataFileError(f"{where}: {error}. The file may be damaged.") from error


def _add(counters: dict[str, Counter], row: _Row, found: Counter) -> None:
    """Put a count under its event's plain name; kinds of cores are added up."""
    name, core = _plain(row.event)
    before = counters.get(name)
    if before is None or before.value is None:
        counters[name] = found
    elif found.value is not None and not core:
        raise DataFileError(f"{row.where}: {name} stands twice: give the counts of one run.")
    elif found.value is not None:
        counters[name] = Counter(before.value + found.value, min(before.share, found.share))


_MISSING = (
    "no event of operations is in the file. On Intel add -e {}, on AMD -e fp_ret_sse_avx_ops.all"
).format(",".join(INTEL_EVENTS))


def read(source: Source, header: str, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read what `perf stat` printed as a profile of one program.

    Parameters
    ----------
    header
        The line with the program's name, which text begins with; "" for -x and --json.

    Raises
    ------
    DataFileError
        If a number can't be read, or the text is cut off before the time.
    """
    found = parse(lines, str(source.path), decimal=decimal)
    if header and found.elapsed is None:
        raise DataFileError(
            f"{source.path}: there is no line 'seconds time elapsed', so the text is cut off. "
            "Write it again: perf stat -o FILE COMMAND"
        )
    named = PROGRAM.search(header)
    return _profile(source, named["name"] if named else "program", found)


def _profile(source: Source, name: str, found: PerfStat) -> MeasuredProfile:
    """Return the counters as a profile with one kernel, which is the program."""
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
    if found.elapsed is None:
        whole.lack("seconds", "the time elapsed is not in the file; add -e duration_time")
    else:
        whole.sources["seconds"] = "seconds time elapsed"
    facts: dict[str, float] = {}
    if counters.get("cycles") and counters.get("instructions"):
        facts = {"ipc": found.ipc, "cpi": found.cpi}
    program = whole.kernel(name, found.elapsed, facts, "program")
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
