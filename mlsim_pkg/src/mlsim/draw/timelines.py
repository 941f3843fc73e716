"""What happens in time: who works, and who waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlsim.draw.canvas import ACCENT, BLUE, DEEP, HEAD, QUIET, WIDTH, Canvas, Drawing, width_of
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError, NotMeasuredError, check_whole
from mlsim.hardware import memory_levels
from mlsim.units import text
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.workloads import Model

_LANE = 46.0  # where lanes begin
_TALL = 18.0  # how tall a lane is


def launches(
    model: Model | str, hardware: Device | str, *, batch_size: int = 1, precision: str = "fp16"
) -> Drawing:
    """Draw who works and who waits while a network runs once: kernel by kernel, and as a graph.

    Both run for the time that the graph takes. Lengths are the calibrated estimates, of a kernel
    the mean of all. Run kernel by kernel, the GPU waits for the host after each; in a graph, the
    host launches once, and each kernel only begins with a start of its own.

    Parameters
    ----------
    model, hardware, batch_size, precision
        The network and its inputs, on one device.

    Raises
    ------
    MlsimError
        As `Engine.solve`.

    >>> print(launches("ResNet50", "A100").alt.split(". ")[0])
    ResNet-50 v1.5 runs on NVIDIA A100 SXM 80 GB twice
    """
    eager, graph = (
        Engine.solve(
            model, hardware, batch_size=batch_size, precision=precision,
            estimate="calibrated", software=software,
        )
        for software in ("eager", "engine")
    )  # fmt: skip
    steps = {each["quantity"]: each["value"] for each in eager.explain().to_dict()["steps"]}
    count, every = round(steps["launch_count"]), float(eager.value("host_launch_time"))
    kernels = sum(each["repeats"] for each in graph.explain().to_dict()["operators"])
    window, whole = float(graph.value("latency")), float(eager.value("latency"))
    sheet = Canvas(f"{graph.model.name} on {graph.hardware.name}: kernel by kernel, and as a graph")
    time = _Time(sheet, window)
    busy = steps["operators_time"] / whole
    long = steps["operators_time"] / count
    launch = long * eager.causes["launches"] / (1 - eager.causes["host"])

    part = "kernel by kernel"
    took = sheet.fact(part, "time of the network", eager.latency)
    made = sheet.fact(part, "launches", f"{count:,}", "one for each kernel")
    of_host = sheet.fact(part, "time of a launch", eager.by_name("host_launch_time"))
    share = sheet.fact(part, "part in which the GPU works", f"{100 * busy:.0f} %",
                       "time of all kernels over that of the network")  # fmt: skip
    _heads(sheet, 8, "Kernel by kernel", took)
    after = width_of("Kernel by kernel ", size=HEAD, bold=True)
    sheet.text(after, 8, f"the first {graph.latency.text}", color=QUIET)
    _lanes(sheet, 26)
    free = 0.0
    for at in range(math.ceil(window / every)):
        time.span(26, at * every, (at + 1) * every, DEEP, gap=1)
        free = max((at + 1) * every, free)
        time.span(50, free, free + launch, BLUE)
        time.span(50, free + launch, free + long, ACCENT)
        free += long
    sheet.text(_LANE, 82, f"{made} launches of {of_host}; the GPU is busy {share}", color=QUIET)

    part = "as a graph"
    need = sheet.fact(part, "time of the network", graph.latency)
    run = sheet.fact(part, "kernels", f"{kernels:,}", "operators of the network, as fused")
    launches = sheet.fact(part, "part that launches take",
                          f"{100 * graph.causes['launches']:.0f} %", "causes")  # fmt: skip
    _heads(sheet, 112, "As a graph", need)
    _lanes(sheet, 130)
    sheet.rect(_LANE, 130, 4, _TALL, fill=DEEP, radius=1)
    sheet.text(_LANE + 10, 130 + _TALL / 2, "one order", color=QUIET)
    one = window / kernels
    for at in range(kernels):
        middle = (at + graph.causes["launches"]) * one
        time.span(154, at * one, middle, BLUE)
        time.span(154, middle, (at + 1) * one, ACCENT)
    sheet.text(_LANE, 186, f"{run} fused kernels; their launches take {launches}", color=QUIET)
    return sheet.finish(
        f"{graph.model.name} runs on {graph.hardware.name} twice. Kernel by kernel, the host makes "
        f"{made} launches of {of_host} one after the other; the GPU is busy {share} of {took}. As "
        f"a graph, one order runs {run} fused kernels without waiting for the host, in {need}, of "
        f"which their launches take {launches}. In that time the host alone makes "
        f"{window / every:.0f} launches.",
        height=194,
    )


def latency_hiding(device: Device | str = "H100", *, warps: int = 6) -> Drawing:
    """Draw how reads in flight hide the latency of memory: one warp alone, and several.

    Parameters
    ----------
    device
        A device whose latency of main memory is on record.
    warps
        How many there are in the second part: each works for the part of its wait that keeps the
        units busy.

    Raises
    ------
    UnknownNameError
        If there is no such device; suggests the nearest.
    NotMeasuredError
        If nobody measured the latency of its memory.

    >>> [each.value for each in latency_hiding("H100").facts]
    ['422 ns', '3,350 GB/s', '1.41 MB']
    """
    found = resolve.device(device)
    levels = [each for each in memory_levels.levels() if each.device and "latency" in each]
    mine = {each.key: each for each in levels if resolve.device(each.device) == found}
    level = next((each for key, each in mine.items() if key.endswith("_hbm")), None)
    if level is None:
        raise NotMeasuredError(
            f"the latency of the memory of {found.name} is not on record. It is of: NVIDIA H100."
        )
    if not 2 <= check_whole("warps", warps) <= 8:
        raise InvalidValueError(f"warps are from 2 to 8, not {warps}.")
    sheet = Canvas(f"Reads in flight hide the latency of {found.name}")
    latency = level["latency"]
    wait = sheet.fact(level.name, "latency", text(latency.si, "s", 3), latency)
    rate = sheet.fact(
        level.name, "bandwidth", found.memory.bandwidth, found.memory.figures["bandwidth"]
    )
    flying = sheet.fact("in flight", "bytes", text(latency.si * found.bandwidth_si, "B", 3),
                        "latency times bandwidth")  # fmt: skip
    time = _Time(sheet, 2.5)
    work, tall = 1 / (warps - 1), 12.0
    sheet.text(0, 8, "One warp", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, f"waits {wait} for each read", "end", color=QUIET)
    top = 22.0
    for name, count in (("", 1), (f"{warps} warps", warps)):
        if name:
            sheet.text(0, top + 8, name, bold=True, size=HEAD)
            sheet.text(WIDTH, top + 8, "one of them always works", "end", color=QUIET)
            top += 22
        for lane in range(count):
            begin = lane * work - 1 - work
            while begin < 2.5:
                time.span(top, max(begin, 0.0), begin + 1, DEEP, gap=1, tall=tall)
                time.span(top, max(begin + 1, 0.0), begin + 1 + work, ACCENT, gap=1, tall=tall)
                begin += 1 + work
            top += tall + 3
        top += 14
    sheet.text(0, top, f"{rate} x {wait}: {flying} must be in flight")
    return sheet.finish(
        f"One warp waits {wait} for each read, works a little, and waits again. Of "
        f"{warps} warps, one works while the others wait. To keep {rate} busy for {wait}, {flying} "
        f"must be in flight on {found.name}.",
        height=top + 8,
    )


class _Time:
    """A lane's time, from the left to the right edge of the sheet."""

    def __init__(self, sheet: Canvas, window: float) -> None:
        self.sheet, self.window = sheet, window

    def span(
        self,
        y: float,
        begin: float,
        end: float,
        fill: str,
        *,
        gap: float = 0.0,
        tall: float = _TALL,
    ) -> None:
        """Draw what takes a time, as far as it lies within the window."""
        scale, end = (WIDTH - _LANE) / self.window, min(end, self.window)
        if begin < end:
            wide = max(scale * (end - begin) - gap, 0.5)
            self.sheet.rect(_LANE + scale * begin, y, wide, tall, fill=fill, radius=0)


def _heads(sheet: Canvas, y: float, name: str, time: str) -> None:
    sheet.text(0, y, name, bold=True, size=HEAD)
    sheet.text(WIDTH, y, time, "end", bold=True, size=HEAD, color=ACCENT)


def _lanes(sheet: Canvas, y: float) -> None:
    """Name the two lanes of which the upper begins at a height, and rule the lower."""
    sheet.text(0, y + _TALL / 2, "Host")
    sheet.text(0, y + 24 + _TALL / 2, "GPU")
    sheet.line((_LANE, y + 24 + _TALL), (WIDTH, y + 24 + _TALL))
