"""What `perf stat` prints: as text, with -x, or with --json; from a file where it does not run.

Counters say what a clock can't: how many cycles the cores ran, how many instructions they
finished, how often the last cache had to ask main memory.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.equations import timing
from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.profiling.printed_numbers import decimal, whole_number
from mlsim.profiling.stopwatch import Run

# Bytes of a line of a cache, unless somebody says otherwise: those of x86 and most of Arm.
LINE = 64
_SCALES = {"msec": 1e-3, "ns": 1e-9, "Joules": 1.0, "": 1.0}
_BYTES = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "Bytes": 1.0, "B": 1.0}
# Events that are misses of the last cache, the best first.
_MISSES = ("LLC-load-misses", "LLC-misses", "cache-misses", "longest_lat_cache.miss")
_LIMIT = 64 * 2**20
_EVENT = r"(?P<event>\S+)"
_ROW = re.compile(
    rf"^\s*(?P<value><not (?:counted|supported)>|\d[\d.,'\u00a0\u202f ]*?)"
    rf"\s+(?:(?P<unit>msec|ns|Joules|KiB|MiB|GiB|Bytes)\s+)?{_EVENT}"
    r"(?P<rest>\s.*|)$"
)
_SHARE = re.compile(r"\(\s*(\d+[.,]\d+)\s*%\)\s*$")
_ENDS = {"time elapsed": "elapsed", "user": "user", "sys": "system"}
_END = re.compile(
    r"^\s*(?P<value>\d[\d.,]*)\s+(?:\+-\s*\S+\s+)?seconds (?P<what>time elapsed|user|sys)\b"
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
        return float(timing.cycles_per_instruction(self["cycles"], self._instructions()))

    @property
    def ipc(self) -> float:
        """Instructions in each cycle.

        Raises
        ------
        NotMeasuredError
            If either was not counted.
        """
        self._instructions()
        return float(timing.instructions_per_cycle(self._cycles(), self["instructions"]))

    def _instructions(self) -> float:
        found = self["instructions"]
        if not found:
            raise NotMeasuredError("no instruction was counted: the run was too short.")
        return found

    def _cycles(self) -> float:
        found = self["cycles"]
        if not found:
            raise NotMeasuredError("no cycle was counted: the run was too short.")
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
                return float(timing.miss_traffic(found.value, float(line)))
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
        return float(timing.used_bandwidth(self.traffic(line), self.elapsed))

    def bandwidth_use(self, memory_bandwidth: float, line: int = LINE) -> float:
        """Return the part of a memory's bandwidth (in B/s) that the run used.

        Raises
        ------
        NotMeasuredError
            As `bandwidth`.
        """
        return float(timing.bandwidth_use(self.bandwidth(line), memory_bandwidth))

    @property
    def scaled(self) -> tuple[str, ...]:
        """Events that counted only part of the time, and were scaled up."""
        return tuple(
            name
            for name, each in self.counters.items()
            if each.value is not None and each.share < 0.9995
        )


def read_perf_stat(printed: str | Path, *, separator: str = "") -> PerfStat:
    r"""Read what `perf stat` printed: text, -x or --json, whichever it is.

    Parameters
    ----------
    printed
        The text itself, or the path of a file (a `Path`).
    separator
        What stood after -x; found out where it is a comma or a semicolon.

    Raises
    ------
    DataFileError
        If it is none of the three, or is split by time (-I), core or socket (-A), which
        has no totals; names the line.

    >>> found = read_perf_stat(
    ...     " 2,000,000 cycles\n 3,000,000 instructions # 1.50 insn per cycle\n"
    ...     " 0.001000000 seconds time elapsed\n")
    >>> found.ipc, round(found.cpi, 3), found.elapsed
    (1.5, 0.667, 0.001)
    """
    content, where = _content(printed)
    lines = [line for line in content.splitlines() if line.strip()]
    kept = [line for line in lines if not line.lstrip().startswith("#")]
    if kept and kept[0].lstrip().startswith("{"):
        return _collected(_json_rows(kept, where), where)
    sign = separator or next((each for each in ";," if _is_csv(kept, each)), "")
    if sign:
        return _collected(_csv_rows(kept, sign, where), where)
    return _text(kept, where)


def _content(printed: str | Path) -> tuple[str, str]:
    if isinstance(printed, str):
        return printed, "perf stat"
    try:
        if printed.stat().st_size > _LIMIT:
            raise DataFileError(f"{printed}: {printed.stat().st_size} bytes are no perf stat.")
        return printed.read_text(encoding="utf-8", errors="replace"), str(printed)
    except OSError as error:
        raise DataFileError(f"{printed}: can't be read: {error.strerror}.") from error


Row = tuple[str, str, str, str]  # value, unit, event, share in percent


def _is_csv(lines: list[str], sign: str) -> bool:
    """Whether every line has cells, one of which begins with a letter: the event."""
    fields = [line.split(sign) for line in lines]
    return bool(fields) and all(
        len(each) >= 4 and any(cell.strip()[:1].isalpha() for cell in each[1:]) for each in fields
    )


def _csv_rows(lines: list[str], sign: str, where: str) -> Iterator[Row]:
    for number, fields in enumerate(csv.reader(io.StringIO("\n".join(lines)), delimiter=sign), 1):
        cells = [each.strip() for each in fields]
        if len(cells) < 3 or not any(cells[:3]):
            continue  # a further metric of the event above
        if cells[0].startswith(("S", "CPU", "N", "D")) or re.fullmatch(r"\d+\.\d{6,}", cells[0]):
            raise _split_up(where, number)
        yield cells[0], cells[1], cells[2], cells[4] if len(cells) > 4 else ""


def _json_rows(lines: list[str], where: str) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        try:
            said: Any = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):
            raise DataFileError(f"{where}:{number}: this is no JSON of perf stat.") from None
        if not isinstance(said, dict):
            raise DataFileError(f"{where}:{number}: this is no JSON of perf stat.")
        if {"interval", "cpu", "core", "socket", "die", "node"} & set(said):
            raise _split_up(where, number)
        if "event" in said:
            yield (
                str(said.get("counter-value", "")),
                str(said.get("unit", "")),
                str(said["event"]),
                str(said.get("pcnt-running", "")),
            )


def _split_up(where: str, number: int) -> DataFileError:
    return DataFileError(
        f"{where}:{number}: the counts are split by time, core or socket. Run perf stat without "
        "-I, -A and --per-socket, so that it prints totals."
    )


def _collected(rows: Iterator[Row], where: str) -> PerfStat:
    counters: dict[str, Counter] = {}
    for value, unit, event, share in rows:
        _add(counters, where, event, _counter(value, unit, share, where))
    if not counters:
        raise DataFileError(f"{where}: there is no counter in it.")

    def clock(name: str) -> float | None:
        found = counters.get(name)
        return found.value if found else None

    return PerfStat(counters, clock("duration_time"), clock("user_time"), clock("system_time"))


def _text(lines: list[str], where: str) -> PerfStat:
    counters: dict[str, Counter] = {}
    ends: dict[str, float] = {}
    for number, line in enumerate(lines, start=1):
        end = _END.match(line)
        if end:
            ends[_ENDS[end["what"]]] = decimal(end["value"], f"{where}:{number}")
            continue
        if re.match(r"^\s*(S\d+|CPU\d+|N\d+)\s", line) or re.match(
            r"^\s+\d+\.\d{9}\s+\S+\s+\D", line
        ):
            raise _split_up(where, number)
        row = _ROW.match(line)
        if row:
            share = _SHARE.search(row["rest"])
            found = _counter(row["value"], row["unit"] or "", share[1] if share else "", where)
            _add(counters, where, row["event"], found)
    if not counters:
        raise DataFileError(
            f"{where}: this is no output of perf stat: no line has a count and an event. perf "
            "prints it to the error stream: perf stat -o FILE -- COMMAND."
        )
    return PerfStat(counters, ends.get("elapsed"), ends.get("user"), ends.get("system"))


def _counter(value: str, unit: str, share: str, where: str) -> Counter:
    if value.startswith("<"):
        return Counter(None, 0.0, value)
    part = decimal(share, where) / 100 if share else 1.0
    scale = _BYTES.get(unit) or _SCALES.get(unit)
    if scale is None:
        raise DataFileError(f"{where}: {unit!r} is no unit of perf stat that is known.")
    count = whole_number(value)
    number = (
        float(count) if count is not None and scale == 1.0 and not unit else decimal(value, where)
    )
    return Counter(number * scale, part)


def _add(counters: dict[str, Counter], where: str, event: str, found: Counter) -> None:
    """Put a count under its event's plain name; kinds of cores are added up."""
    core = re.fullmatch(r"cpu(?:_core|_atom)?/([^/]+)/\w*", event)
    name = core[1] if core else re.sub(r":[ukhGHpPS]+$", "", event)
    name = {"cpu-cycles": "cycles"}.get(name, name)
    before = counters.get(name)
    if before is None or before.value is None:
        counters[name] = found
    elif core and found.value is not None:
        share = min(before.share, found.share)
        counters[name] = Counter(before.value + found.value, share)
    elif found.value is not None:
        raise DataFileError(f"{where}: {name} stands twice: give the counts of one run.")
