"""A chip with its memory and its host, drawn from what is on record of a device."""

from __future__ import annotations

import math
import re

from mlsim.draw.canvas import (
    ACCENT,
    BLUE,
    DEEP,
    EDGE,
    HEAD,
    QUIET,
    TINT,
    WIDTH,
    Canvas,
    Drawing,
    width_of,
)
from mlsim.hardware import Device, memory_levels
from mlsim.units import MEMORY, number_text, text
from mlsim.zoo import resolve

_KIND = re.compile(r"HBM\d?[eE]?|(?:LP|G)?DDR\d?[xX]?")
_CORES = {"NVIDIA": "SMs", "AMD": "CUs"}  # what vendors call the cores of a chip
_LEFT, _TOP = 152.0, 22.0  # the corner of the chip
_WIDE, _PIPE = WIDTH - _LEFT, 200.0  # its width, and that of the widest pipe
_ROW, _PAD = 10.0, 10.0


def cores_of(device: Device) -> str:
    """Return what the cores of a device are called: "SMs" on an NVIDIA GPU."""
    return _CORES.get(device.vendor, "cores")


def memory_of(device: Device) -> str:
    """Return the kind of main memory, where what was quoted of it names one.

    >>> from mlsim import Hardware
    >>> memory_of(Hardware.Cloud.A100), memory_of(Hardware.Cloud.TPUv4)
    ('HBM2e', 'main memory')
    """
    quotes = (each.quote for name, each in device.figures.items() if name.startswith("memory."))
    kinds = {kind for quote in quotes for kind in _KIND.findall(quote)}
    return kinds.pop() if len(kinds) == 1 else "main memory"


def chip(device: Device | str, *, precision: str = "", energies: bool = False) -> Drawing:
    """Draw a chip with its memory and its host: sizes, rates, and what an access costs.

    Pipes are as wide as their rates. What is not on record of a device is left out.

    Parameters
    ----------
    device
        A device, or its name in the zoo.
    precision
        The format of the peak; the device's usual one if not given.
    energies
        Whether energies stand in the levels: of a multiply-add and of a read of 64 bits, in a
        process of 45 nm.

    Raises
    ------
    UnknownNameError
        If there is no such device; suggests the nearest.
    UnsupportedPrecisionError
        If it has no peak in that format.

    >>> chip("A100").alt.partition(". ")[2].partition(". ")[0]
    'It has 108 SMs, which reach 312 TFLOP/s in FP16'
    """
    found = resolve.device(device)
    precision = precision or found.compute.usual_precision
    sheet = Canvas(f"{found.name} with its memory and its host")
    name = re.split(r" \(|, ", found.name)[0]
    sheet.text(min(_LEFT, WIDTH - width_of(name, size=HEAD, bold=True)), 8, name, bold=True,
               size=HEAD)  # fmt: skip
    told = [f"A host puts kernels into a queue of launches, from which {found.name} takes them."]
    bottom = _units(sheet, found, precision, told, energies)
    if (cache := found.last_level_figure) is not None:
        bottom += 32
        name = "L2 cache" if found.memory.l2 is not None else "last cache"
        held = sheet.fact(name, "capacity", text(cache.si, MEMORY), cache)
        sheet.rect(_LEFT + _PAD, bottom - 34, _WIDE - 2 * _PAD, 26, fill=DEEP)
        sheet.text(
            _LEFT + 2 * _PAD, bottom - 21, f"{name[0].upper()}{name[1:]} {held}", ground=DEEP
        )
        told.append(f"Its {name} holds {held}.")
        if energies:
            _energy(sheet, "read_1mb", _LEFT + _WIDE - 2 * _PAD, bottom - 21, told)
    kind = memory_of(found)
    held = sheet.fact(kind, "capacity", found.memory.capacity.show(".3g"),
                      found.memory.figures["capacity"])  # fmt: skip
    rate = sheet.fact(kind, "bandwidth", found.memory.bandwidth,
                      found.memory.figures["bandwidth"])  # fmt: skip
    middle = _LEFT + _WIDE / 2
    sheet.rect(middle - _PIPE / 2, bottom, _PIPE, 30, fill=BLUE, radius=0)
    sheet.text(middle, bottom + 15, rate, "middle", bold=True, ground=BLUE)
    sheet.rect(_LEFT, bottom + 30, _WIDE, 38, fill=DEEP, radius=5)
    sheet.text(_LEFT + _PAD, bottom + 49, f"{kind[0].upper()}{kind[1:]} {held}", ground=DEEP)
    told.append(f"Its {kind} holds {held} and moves {rate}.")
    if energies:
        _energy(sheet, "read_dram_least", _LEFT + _WIDE - _PAD, bottom + 49, told)
    _host(sheet, found, bottom, told)
    if not energies:
        return sheet.finish(" ".join(told), height=bottom + 69)
    said = "Energies: a process of 45 nm, 64 bits, a cache of 1 MB"
    sheet.text(WIDTH, bottom + 82, said, "end", color=QUIET)
    told.append(f"{said}.")
    return sheet.finish(" ".join(told), height=bottom + 90)


def _units(sheet: Canvas, device: Device, precision: str, told: list[str], energies: bool) -> float:
    """Draw the chip with its cores, and return where its last level may begin."""
    count = device.cores or 0
    columns = next((n for n in (12, 11, 10) if count and count % n == 0), 12)
    rows = math.ceil(count / columns) or 9
    tall = 28 + rows * _ROW + (24 if energies else 0)
    l2 = 32 if device.last_level_figure is not None else 0
    sheet.rect(_LEFT, _TOP, _WIDE, tall + l2 + 6, fill=TINT, radius=5)
    right = _LEFT + _WIDE - _PAD
    peak = sheet.fact("chip", f"peak in {precision.upper()}",
                      device.compute.peak(precision), device.compute.figure(precision))  # fmt: skip
    sheet.text(right, _TOP + 15, f"{peak} {precision.upper()}", "end", ground=TINT, bold=True)
    if count:
        called = cores_of(device)
        number = sheet.fact("chip", called, f"{count:,}", device.figures["cores"])
        sheet.text(_LEFT + _PAD, _TOP + 15, f"{number} {called}", ground=TINT)
        told.append(f"It has {number} {called}, which reach {peak} in {precision.upper()}.")
        across = (_WIDE - 2 * _PAD + 2) / columns
        for at in range(count):
            row, column = divmod(at, columns)
            x, y = _LEFT + _PAD + column * across, _TOP + 28 + row * _ROW
            sheet.rect(x, y, across - 2, _ROW - 2, fill=ACCENT, radius=1)
    else:
        sheet.rect(_LEFT + _PAD, _TOP + 28, _WIDE - 2 * _PAD, rows * _ROW, fill=BLUE)
        told.append(f"It reaches {peak} in {precision.upper()}.")
    if energies:
        _energy(sheet, "", right, _TOP + 40 + rows * _ROW, told)
    return _TOP + tall + 6


def _energy(sheet: Canvas, key: str, right: float, y: float, told: list[str]) -> None:
    """Write what a read takes, or with no key a multiply-add in FP16."""
    names = [key] if key else ["multiply_fp16", "add_fp16"]
    figures = [memory_levels.energy(each) for each in names]
    written = f"{number_text(sum(each.si for each in figures) * 1e12)} pJ"
    what = "read" if key else "multiply-add"
    least = "from " if key.endswith("least") else ""
    sheet.fact("energy", key.replace("_", " ") or what, written, figures[0])
    sheet.text(right, y, f"{what}: {least}{written}", "end", color=QUIET,
               ground=DEEP if key else TINT)  # fmt: skip
    told.append(f"A {what} takes {least}{written}.")


def _host(sheet: Canvas, device: Device, bottom: float, told: list[str]) -> None:
    """Draw the host, the queue of launches and the link."""
    wide = 82.0
    sheet.text(0, 8, "Host", bold=True, size=HEAD)
    sheet.rect(0, _TOP, wide, bottom - _TOP, fill=TINT, radius=5)
    sheet.text(_PAD, _TOP + 15, "CPU", ground=TINT)
    y = _TOP + 62
    sheet.text(wide + 35, y - 34, "queue of", "middle")
    sheet.text(wide + 35, y - 19, "launches", "middle")
    for at in range(4):
        sheet.rect(wide + 8 + 12 * at, y - 5, 9, 10, fill=BLUE, edge=ACCENT, radius=1)
    sheet.arrow((wide + 56, y), (_LEFT - 2, y), color=ACCENT)
    link = device.figures.get("links.pcie")
    if link is None:
        return
    rate = sheet.fact("PCIe", "bandwidth each way", text(link.one_way, "B/s"), link)
    thick = _PIPE * link.one_way / device.bandwidth_si
    y = bottom - 21
    sheet.box(8, y - 13, wide - 16, 26, "memory", fill=DEEP)
    sheet.rect(wide, y - thick / 2, _LEFT - wide, thick, fill=EDGE, radius=0)
    sheet.text(wide + 35, y - 12 - thick / 2, "PCIe", "middle")
    sheet.text(wide + 35, y + 12 + thick / 2, rate, "middle")
    told.append(f"Over PCIe, the host moves {rate} each way. Pipes are as wide as their rates.")
