"""The roof of a device and the launch of kernels, as a live figure: layers move with the batch.

The roofline and the calibrated estimate are compiled as one question. Of the estimate the page
shows each layer's rate and the time by its causes; the band only while the rates are the recorded
ones, for it was found by measurements of such devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.live.compiled import compiled
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice, Handle
from mlsim.measured.inference import Measurement, measurements
from mlsim.quantities import VOCABULARY
from mlsim.units import factor
from mlsim.zoo import spaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from mlsim.hardware import Device
    from mlsim.solvers.forward.profile import Profile
    from mlsim.workloads import Model

_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_RESULTS = ("latency", "causes", "flops", "bytes_moved", "compute_time", "memory_time",
            "operator_time")  # fmt: skip
# What moves, as readers see it: unit, and octaves below and above what the device has.
_RATES = {
    "peak_flops": ("Peak", "TFLOP/s", 2, 2),
    "memory_bandwidth": ("Memory bandwidth", "TB/s", 2, 2),
    "kernel_overhead": ("Kernel launch", "µs", 4, 2),
}
# Values of a rate in each octave.
_PARTS = 4


def roof(
    model: Model | str,
    hardware: Device | str,
    *,
    still: Drawing,
    batch_size: int = 1,
    precision: str = "fp16",
    measured: Sequence[Measurement] | None = None,
) -> Figure:
    """Return a figure of a network's layers under a device's roof, which a reader moves.

    Its handles are the batch, the peak, the memory's bandwidth and the time that the launch of a
    kernel takes. Below the roof stands the time of a batch by its causes.

    Parameters
    ----------
    model, hardware, precision
        The network, run as a compiler fuses it, on one device.
    still
        The figure that stands where no script runs.
    batch_size
        Where it starts: a power of two up to 256.
    measured
        Published rates of this network, which readers can switch on; those on this device in this
        precision, if not given.

    Raises
    ------
    InvalidValueError
        If the batch is none of those, or a measurement is of another network.
    MlsimError
        As `Engine.solve`.

    >>> from matplotlib import pyplot
    >>> roof("AlexNet", "T4", still=pyplot.figure())
    <live figure roof: batch_size, peak_flops, memory_bandwidth, kernel_overhead>
    """
    question = partial(
        Engine.solve, model, hardware, precision=precision, estimate="calibrated", software="engine"
    )
    if batch_size not in _BATCHES:
        raise InvalidValueError(f"a batch of the roof is one of {_BATCHES}, not {batch_size}.")
    recorded = {batch: question(batch_size=batch) for batch in _BATCHES}
    first = recorded[1]
    if measured is None:
        measured = measurements(model=model, hardware=hardware, precision=precision)
    if strangers := [each.id for each in measured if spaces.Models.get(each.model) != first.model]:
        raise InvalidValueError(
            f"measurement {strangers[0]} is not of {first.model.name}: give those of this network."
        )
    batch = Handle("batch_size", 1, 256, start=batch_size, values=_BATCHES, label="Batch")
    rates = [_rate(first, name) for name in _RATES]
    answer = compiled(question, results=_RESULTS, handles=[batch, *rates])
    shown = {"off": "Hidden", "on": "Shown"}
    return figure(
        "roof",
        still=still,
        handles=answer.handles,
        choices=[Choice("measured", shown, label="Measured rates")] if measured else [],
        answer=answer,
        data={
            "device": first.hardware.name,
            "layers": [each.name for each in first.question.table],
            "repeats": [each.repeats for each in first.question.table],
            "recorded": {size: _recorded(each) for size, each in recorded.items()},
            "measured": _series(measured, first),
        },
        label="Batch and rates",
    )


def _rate(profile: Profile, name: str) -> Handle:
    """Return a rate as a handle: what the device has, and parts of octaves around it."""
    label, unit, below, above = _RATES[name]
    known = np.ravel(profile.value(name))
    value = float(np.max(known)) / factor(unit, str(VOCABULARY[name].unit))
    value = float(f"{value:.6g}")
    octaves = [at / _PARTS for at in range(-below * _PARTS, above * _PARTS + 1)]
    values = [value if not each else float(f"{value * 2**each:.4g}") for each in octaves]
    low, high = values[0], values[-1]
    return Handle(name, low, high, start=value, unit=unit, values=values, digits=4, label=label)


def _recorded(profile: Profile) -> dict[str, float]:
    """Return the time of a batch at the device's own rates, and its band, in s."""
    found = {"time": float(profile.value("latency"))}
    if band := profile.band("latency"):
        found |= {"low": float(band.low), "high": float(band.high)}
    return found


def _series(rows: Sequence[Measurement], profile: Profile) -> list[dict[str, Any]]:
    """Return measured rates by series: of each batch its time, in s."""
    series: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda each: each.batch_size):
        words = row.software.partition(",")[0]
        if row.device != profile.hardware:
            words += f", {row.device.name.removeprefix('NVIDIA ')}"
        found = series.setdefault(f"{row.series} {row.software}", {"words": words, "points": []})
        found["points"].append([row.batch_size, row.batch_size / row.value])
    return list(series.values())
