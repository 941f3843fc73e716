"""What `nvidia-smi` and `time` print.

Of nvidia-smi its table, `--query-gpu ... --format=csv`, and `dmon`.

How much of the memory is in use, how busy the GPU is, and what it draws. "Busy" means that a
kernel ran at all in the time before; it does not say how much of the GPU the kernel used. Of time
what bash, zsh, GNU, POSIX and macOS make of it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mlsim.errors import DataFileError
from mlsim.profiling.read.tables import known, open_source
from mlsim.profiling.stopwatch import Run
from mlsim.units import text

_MIB = 2.0**20
# Columns of a query and of dmon: the field they fill, and the scale to base units.
_QUERY: Mapping[str, tuple[str, float]] = known("smi")["query"]
_DMON: Mapping[str, tuple[str, float]] = known("smi")["dmon"]
# What is shown of readings: its title, the field, its unit, and the field of its limit.
_SHOWN = (
    ("busy", "busy", "%", ""),
    ("memory", "memory_used", "B", "memory_total"),
    ("power", "power", "W", "power_limit"),
    ("clock", "clock", "Hz", ""),
)
_UNITS = ("%", "MiB", "W", "MHz", "C", "")
_ABSENT = re.compile(r"\[?(?:N/?A|Not Supported|Unknown Error|Insufficient Permissions)\]?|-|")
_TABLE = re.compile(
    r"\|\s*(?:\d+%|N/A)\s+(?P<temperature>\d+|N/A)C?\s+P\d+\s+(?P<power>\d+|N/A)W?\s*/\s*"
    r"(?P<limit>\d+|N/A)W?\s*\|\s*(?P<used>\d+)MiB\s*/\s*(?P<total>\d+)MiB\s*\|\s*"
    r"(?P<busy>\d+%|N/A)"
)
_NAME = re.compile(r"\|\s+(?P<index>\d+)\s+(?P<name>\S.*?)\s+(?:On|Off|N/A)\s*\|")


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What `nvidia-smi` said of one GPU at one moment; None where it did not.

    Attributes
    ----------
    index, name
        Its number, and its name.
    busy
        Part of the last moment in which any kernel ran, from 0 to 1.
    memory_busy
        Part of it in which memory was read or written.
    memory_used, memory_total, memory_free
        In B; nvidia-smi prints MiB.
    power, power_limit
        In W.
    temperature
        In degrees Celsius.
    clock, memory_clock
        In Hz.
    """

    index: int | None = None
    name: str = ""
    busy: float | None = None
    memory_busy: float | None = None
    memory_used: float | None = None
    memory_total: float | None = None
    memory_free: float | None = None
    power: float | None = None
    power_limit: float | None = None
    temperature: float | None = None
    clock: float | None = None
    memory_clock: float | None = None


def read_nvidia_smi(printed: str) -> tuple[GpuReading, ...]:
    r"""Return a reading for each GPU of each moment, in order, whichever form the text has.

    Raises
    ------
    DataFileError
        If it is in no form that is known, or a cell is no number; names the line.

    >>> text = "name, utilization.gpu [%], memory.used [MiB]\nTesla T4, 37 %, 512 MiB"
    >>> [(each.name, each.busy, each.memory_used) for each in read_nvidia_smi(text)]
    [('Tesla T4', 0.37, 536870912.0)]
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    if any(line.lstrip().startswith("# gpu") for line in lines):
        found = _dmon(lines)
    elif any(_TABLE.search(line) for line in lines):
        found = _table(lines)
    else:
        found = _query(lines)
    return tuple(found)


def read_log(path: str | Path) -> tuple[GpuReading, ...] | None:
    """Return the readings of a file, as `read_nvidia_smi`; None where it is another's.

    Raises
    ------
    DataFileError
        If there is no such file, or a cell is no number; names file and line.
    """
    source = open_source(path)
    first = next((line for line in source.start.splitlines() if line.strip()), "")
    asked = any(name in _QUERY for name, _ in map(_head, _cells(first)))
    if not (asked or first.lstrip().startswith("# gpu") or "NVIDIA-SMI" in source.start):
        return None
    try:
        return read_nvidia_smi("\n".join(line for _, line, _ in source.lines()))
    except DataFileError as error:
        raise DataFileError(f"{source.path}: {error}") from error


def as_words(readings: Sequence[GpuReading]) -> str:
    """Write what readings say of each GPU: the median over time, and the most.

    >>> early, late = GpuReading(0, "T4", busy=0.25, power=40.0), GpuReading(0, "T4", busy=0.75)
    >>> print(as_words([early, late]))
    nvidia-smi, GPU 0 (T4): 2 readings
      busy       50% in the median, at most 75%
      power      40 W in the median, at most 40 W
    "Busy" means that a kernel ran at all; how much of the GPU it used, a profile tells.
    """
    lines = []
    for index, name in dict.fromkeys((each.index, each.name) for each in readings):
        own = [each for each in readings if (each.index, each.name) == (index, name)]
        which = " ".join(filter(None, ("" if index is None else str(index), name and f"({name})")))
        lines.append(f"nvidia-smi, GPU {which}: {len(own)} readings")
        for title, what, unit, limit in _SHOWN:
            found = [value for each in own if (value := getattr(each, what)) is not None]
            if not found:
                continue
            words = f"{_figure(median(found), unit)} in the median"
            words += f", at most {_figure(max(found), unit)}"
            most = next((getattr(each, limit) for each in own if limit), None)
            words += f" of {_figure(most, unit)}" if most is not None else ""
            lines.append(f"  {title:<10} {words}")
    lines.append(
        '"Busy" means that a kernel ran at all; how much of the GPU it used, a profile tells.'
    )
    return "\n".join(lines)


def _figure(value: float, unit: str) -> str:
    if unit == "B":  # a driver's MiB
        return f"{value / 2**30:.3g} GiB"
    return f"{value:.0%}" if unit == "%" else text(value, unit, 3)


def _query(lines: Sequence[str]) -> list[GpuReading]:
    head = [_head(cell) for cell in _cells(lines[0])] if lines else []
    if not any(name in _QUERY for name, _ in head):
        begin = lines[0].strip()[:60] if lines else ""
        raise DataFileError(
            f"{begin!r} is no output of nvidia-smi that can be read: its table, dmon, or "
            "--query-gpu=name,utilization.gpu,memory.used,power.draw --format=csv. The first line "
            "names the columns, so leave noheader out."
        )
    return [
        _reading(head, _cells(line), _QUERY, f"nvidia-smi, line {number}")
        for number, line in enumerate(lines[1:], start=2)
    ]


def _reading(
    head: Sequence[tuple[str, str]],
    cells: Sequence[str],
    columns: Mapping[str, tuple[str, float]],
    where: str,
) -> GpuReading:
    """Return what cells say below names of columns and their units."""
    if len(cells) != len(head):
        raise DataFileError(f"{where}: {len(cells)} cells below {len(head)} columns.")
    said: dict[str, Any] = {}
    for (name, unit), cell in zip(head, cells, strict=True):
        if name == "name":
            said["name"] = cell
        if name not in columns or _ABSENT.fullmatch(cell):
            continue
        value, _, own = cell.partition(" ")
        try:
            amount = float(value)
        except ValueError:
            raise DataFileError(f"{where}: {cell!r} is no number.") from None
        if (own.strip() or unit) not in _UNITS:
            raise DataFileError(f"{where}: {own.strip() or unit!r} is no unit that is known.")
        field, scale = columns[name]
        said[field] = int(amount) if field == "index" else amount * scale
    return GpuReading(**said)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]


def _head(cell: str) -> tuple[str, str]:
    name, _, unit = cell.partition("[")
    return name.strip(), unit.strip("] ")


def _dmon(lines: Sequence[str]) -> list[GpuReading]:
    found: list[GpuReading] = []
    head: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if words[0].startswith("#"):
            names = line.lstrip("# ").split()
            if names and names[0] == "gpu":
                head = [(name, "") for name in names]
            continue
        found.append(_reading(head, words, _DMON, f"nvidia-smi dmon, line {number}"))
    return found


def _table(lines: Sequence[str]) -> list[GpuReading]:
    found, index, name = [], None, ""
    for line in lines:
        named = _NAME.match(line)
        if named:
            index, name = int(named["index"]), named["name"]
        row = _TABLE.search(line)
        if row:
            found.append(
                GpuReading(
                    index=index,
                    name=name,
                    busy=_number(row["busy"].rstrip("%"), 0.01),
                    memory_used=float(row["used"]) * _MIB,
                    memory_total=float(row["total"]) * _MIB,
                    power=_number(row["power"]),
                    power_limit=_number(row["limit"]),
                    temperature=_number(row["temperature"]),
                )
            )
            index, name = None, ""
    return found


def _number(said: str, scale: float = 1.0) -> float | None:
    return float(said) * scale if said.isdigit() else None


# Each as a pattern with wall, user and system; the first that fits a text is its form.
_FORMS = {
    form: re.compile(pattern.replace("N", r"\d+(?:[.,]\d+)?"))
    for form, pattern in known("time").items()
}


@dataclass(frozen=True, slots=True)
class CommandTime:
    """What `time` said of a command.

    Attributes
    ----------
    run
        Wall, user, system and waiting time in s.
    form
        Which program printed it: "bash", "zsh", "GNU time -v", ...
    most_memory
        The most main memory that it held at a time in B, where the program says so.
    """

    run: Run
    form: str
    most_memory: int | None = None


def read_time(printed: str) -> CommandTime:
    r"""Return what the text of `time` says.

    Raises
    ------
    DataFileError
        If it is in no form that is known, or has the times of several commands.

    >>> found = read_time("real\t0m2.450s\nuser\t0m0.430s\nsys\t0m0.020s\n")
    >>> found.form, found.run.wall, round(found.run.waiting, 3)
    ('bash', 2.45, 2.0)
    >>> read_time("./a.out  0,43s user 0,02s system 18% cpu 2,450 total").run.user
    0.43
    """
    for form, pattern in _FORMS.items():
        found = list(pattern.finditer(printed))
        if len(found) > 1:
            raise DataFileError(
                f"the text has the times of {len(found)} commands ({form}): give those of one."
            )
        if found:
            parts = found[0].groupdict()
            run = Run(*(_seconds(parts[each]) for each in ("wall", "user", "system")))
            kib = parts.get("kib")
            return CommandTime(run, form, int(kib) * 2**10 if kib else None)
    known = ", ".join(_FORMS)
    begin = " ".join(printed.split())[:60]
    raise DataFileError(f"{begin!r} has no times in a form that is known: {known}.")


def _seconds(said: str) -> float:
    """Return seconds from "2.45", "0m2.450", "1:02.5" or "1:00:02".

    >>> _seconds("1m2.5"), _seconds("1:02.5"), _seconds("1:00:02"), _seconds("2,45")
    (62.5, 62.5, 3602.0, 2.45)
    """
    total = 0.0
    for part in re.split("[m:]", said):
        try:
            total = 60 * total + float(part.replace(",", "."))
        except ValueError:
            raise DataFileError(f"a time: {said!r} is no number.") from None
    return total
