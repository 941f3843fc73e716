"""What a core is made of, and where two kinds of chip keep their numbers."""

from __future__ import annotations

import math
import re

from mlsim.draw.canvas import ACCENT, DEEP, HEAD, INK, MID, QUIET, TINT, WIDTH, Canvas, Drawing
from mlsim.errors import NotMeasuredError
from mlsim.hardware import Device, memory_levels
from mlsim.measured.inside_machines import ExecutionUnits, execution_units, memory_spaces
from mlsim.records.references import label
from mlsim.units import MEMORY, text
from mlsim.zoo import resolve

_SIDE = 4.0  # of what does one multiply-add in a cycle, in points
# Kinds of memory of a core by what is on record, as programmers call them.
_NEAR = {"registers": "registers", "shared memory": "shared memory", "L1 cache": "L1 cache"}


def sm(device: Device | str) -> Drawing:
    """Draw one core of a chip, such as an SM: its units, and its own memories.

    The area of a unit is its multiply-adds in a cycle.

    Raises
    ------
    UnknownNameError
        If there is no such device; suggests the nearest.
    NotMeasuredError
        If no document on record says what a core of it is made of.

    >>> print(sm("A100").alt.partition(". ")[0])
    The A100 has 108 SMs; this is one of them
    """
    found = resolve.device(device)
    rows = [row for row in execution_units() if row.device and _same_chip(row.device, found)]
    rows = [row for row in rows if row.precision in ("fp32", "fp16")]
    if not rows:
        known = sorted({row.product for row in execution_units() if row.device})
        raise NotMeasuredError(
            f"what a core of {found.name} is made of is not on record. It is of: "
            f"{', '.join(known)}."
        )
    product, count = rows[0].product.removeprefix("Tesla "), f"{rows[0].cores:,}"
    sheet = Canvas(f"One SM of the NVIDIA {product}")
    sheet.fact("chip", "SMs", count, _said(rows[0]))
    sheet.text(0, 8, f"One SM of the {product}", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, f"one of {count}", "end", color=QUIET)
    told = [f"The {product} has {count} SMs; this is one of them."]
    tall = 0.0
    left = 12.0
    for row in rows:
        across = math.ceil(math.sqrt(row.units_per_core))
        side = _SIDE * math.sqrt(row.unit_multiply_adds)
        step = side + (2 if side < 10 else 4)
        units = sheet.fact(row.units, "in an SM", f"{row.units_per_core:,}", _said(row))
        each = sheet.fact(row.units, "multiply-adds of one in a cycle",
                          f"{row.unit_multiply_adds:,}", _said(row))  # fmt: skip
        told.append(
            f"It has {units} {row.units}, each of {each} multiply-add{'s' * (each != '1')} in a "
            f"cycle ({row.precision.upper()})."
        )
        tall = max(tall, step * across)
    sheet.rect(0, 22, WIDTH, tall + 62, fill=TINT, radius=5)
    for row in rows:
        across = math.ceil(math.sqrt(row.units_per_core))
        side = _SIDE * math.sqrt(row.unit_multiply_adds)
        step = side + (2 if side < 10 else 4)
        sheet.text(left, 38, f"{row.units_per_core:,} {row.units}", bold=True, ground=TINT)
        each = "1" if row.unit_multiply_adds == 1 else f"{row.unit_multiply_adds:,}"
        sheet.text(left, 54, f"{each} a cycle, {row.precision.upper()}", ground=TINT)
        for at in range(row.units_per_core):
            down, right = divmod(at, across)
            sheet.rect(left + right * step, 68 + down * step, side, side, fill=ACCENT, radius=1)
        left += 180
    bottom = tall + 84
    told.append("The area of a unit is the number of its multiply-adds.")
    bottom = _memories(sheet, found, rows[0], bottom, told)
    return sheet.finish(" ".join(told), height=bottom + 1)


def _same_chip(key: str, device: Device) -> bool:
    other = resolve.device(key)
    return (other.architecture, other.cores) == (device.architecture, device.cores)


def _said(row: ExecutionUnits) -> str:
    return f"{label(row.source)}, {row.where}"


def _memories(
    sheet: Canvas, device: Device, row: ExecutionUnits, top: float, told: list[str]
) -> float:
    """Draw the memories of a core that are on record, as long as they are large."""
    held: dict[str, tuple[float, str]] = {}
    if "A100" in row.product:  # what a program for it sees
        for space in memory_spaces():
            if space.per == "multiprocessor" and space.lies == "on the chip":
                held[space.name] = (space.bytes, f"{label(space.source)}, {space.where}")
    if not held:
        return top
    most = max(size for size, _ in held.values())
    for name, (size, source) in held.items():
        written = sheet.fact(name, "capacity", text(size, MEMORY), source)
        sheet.box(0, top + 8, WIDTH * size / most, 28, f"{name}: {written}", fill=DEEP)
        told.append(f"Its {name} holds up to {written}.")
        top += 36
    return top


_SCALE = 14.5  # side of a mebibyte, in points


def cpu_and_gpu(cpu: str = "AMD Ryzen 9 5950X", gpu: str = "NVIDIA GeForce RTX 3090") -> Drawing:
    """Draw what two chips hold, level by level: areas are capacities, on one scale.

    Parameters
    ----------
    cpu, gpu
        Machines whose levels of memory are on record (`memory_levels.levels`).

    Raises
    ------
    UnknownNameError
        If no level is of that machine; suggests the nearest.

    >>> print(cpu_and_gpu().alt.partition(". ")[0])
    Two chips side by side, with boxes as large as what their memories hold
    """
    sheet = Canvas(f"What {cpu} and {gpu} hold on the chip")
    told = ["Two chips side by side, with boxes as large as what their memories hold."]
    tallest, half = 0.0, WIDTH / 2
    for left, name in ((0.0, cpu), (half + 5, gpu)):
        top = 26.0
        sheet.text(left, 8, re.sub(r"^(AMD|NVIDIA|GeForce|\s)+", "", name), bold=True, size=HEAD)
        said = []
        for level in memory_levels.levels(machine=name):
            if "capacity" not in level:
                continue
            figure = level["capacity"]
            side = _SCALE * math.sqrt(figure.si / 2**20)
            written = sheet.fact(f"{name}", level.name, text(figure.si, MEMORY, 3), figure)
            near = level.name == "registers"
            row = max(side, 32.0)
            sheet.rect(left, top + (row - side) / 2, side, side, fill=ACCENT if near else MID,
                       radius=1)  # fmt: skip
            sheet.text(left + max(side, 20) + 8, top + row / 2 - 7.5, level.name, color=INK)
            sheet.text(left + max(side, 20) + 8, top + row / 2 + 7.5, written, bold=near)
            said.append(f"{written} of {level.name}")
            top += row + 8
        told.append(f"{name}: {', '.join(said)}.")
        tallest = max(tallest, top)
    return sheet.finish(" ".join(told), height=tallest - 6)
