"""What `nvidia-smi --query-gpu=... --format=csv` writes: a reading for each GPU and moment.

How much of the memory is in use, how busy the GPU is, and what it draws. "Busy" means that a
kernel ran at all in the time before; it does not say how much of the GPU the kernel used.
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
from mlsim.units import text

# Columns of a query: the field they fill, and the scale to base units.
_COLUMNS: Mapping[str, tuple[str, float]] = known("smi")
# What is shown of readings: its title, the field, its unit, and the field of its limit.
_SHOWN = (
    ("busy", "busy", "%", ""),
    ("memory", "memory_used", "B", "memory_total"),
    ("power", "power", "W", "power_limit"),
    ("clock", "clock", "Hz", ""),
)
_UNITS = ("%", "MiB", "W", "MHz", "C", "")
_ABSENT = re.compile(r"\[?(?:N/?A|Not Supported|Unknown Error|Insufficient Permissions)\]?|-|")


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
    r"""Return a reading for each GPU of each moment, in order.

    Raises
    ------
    DataFileError
        If it is no such log, or a cell is no number; names the line.

    >>> text = "name, utilization.gpu [%], memory.used [MiB]\nTesla T4, 37 %, 512 MiB"
    >>> [(each.name, each.busy, each.memory_used) for each in read_nvidia_smi(text)]
    [('Tesla T4', 0.37, 536870912.0)]
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    head = _head(lines[0]) if lines else []
    if not any(name in _COLUMNS for name, _ in head):
        begin = lines[0].strip()[:60] if lines else ""
        raise DataFileError(
            f"{begin!r} is no log of nvidia-smi that can be read. Write one: nvidia-smi "
            "--query-gpu=timestamp,index,name,utilization.gpu,memory.used,power.draw --format=csv "
            "-l 1. The first line names the columns, so leave noheader out."
        )
    return tuple(
        _reading(head, _cells(line), f"nvidia-smi, line {number}")
        for number, line in enumerate(lines[1:], start=2)
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]


def _head(line: str) -> list[tuple[str, str]]:
    """Return the names of columns with their units."""
    parts = (cell.partition("[") for cell in _cells(line))
    return [(name.strip(), unit.strip("] ")) for name, _, unit in parts]


def _reading(head: Sequence[tuple[str, str]], cells: Sequence[str], where: str) -> GpuReading:
    if len(cells) != len(head):
        raise DataFileError(f"{where}: {len(cells)} cells below {len(head)} columns.")
    said: dict[str, Any] = {}
    for (name, unit), cell in zip(head, cells, strict=True):
        if name == "name":
            said["name"] = cell
        if name not in _COLUMNS or _ABSENT.fullmatch(cell):
            continue
        value, _, own = cell.partition(" ")
        try:
            amount = float(value)
        except ValueError:
            raise DataFileError(f"{where}: {cell!r} is no number.") from None
        if (own.strip() or unit) not in _UNITS:
            raise DataFileError(f"{where}: {own.strip() or unit!r} is no unit that is known.")
        field, scale = _COLUMNS[name]
        said[field] = int(amount) if field == "index" else amount * scale
    return GpuReading(**said)


def read_log(path: str | Path) -> tuple[GpuReading, ...] | None:
    """Return the readings of a file, as `read_nvidia_smi`; None where it is another's.

    Raises
    ------
    DataFileError
        If there is no such file, or a cell is no number; names file and line.
    """
    source = open_source(path)
    first = next((line for line in source.start.splitlines() if line.strip()), "")
    if not any(name in _COLUMNS for name, _ in _head(first)):
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
