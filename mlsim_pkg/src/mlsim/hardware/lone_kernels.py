"""Times of single kernels as the atlas has them: a matrix product, or attention over prompts.

The constants are those of a device's own kernels, else the middle of its relatives', with the
device's own rates. None of them was fitted to published rows, so that these can test them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median, median_low

from mlsim.equations import kernels as physics
from mlsim.equations.calibration import calibrated_compute_time
from mlsim.equations.functions import ceil
from mlsim.hardware.attention_times import QUERIES
from mlsim.hardware.device import Device
from mlsim.hardware.kernel_constants import ENGINES, all_series, kernel_series, least_sides
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.hardware.measured_kernels import attentions
from mlsim.hardware.measured_shares import SIXTEEN
from mlsim.hardware.relatives import Relatives, relatives

# What brings operands to fewer bits stands in the tables; of a lone product they have them.
_BEFORE = "quantized_bytes"
# Constants that are steps of a tile: between two of them is none.
STEPS = ("least_context", "width_step")


@dataclass(frozen=True, slots=True)
class LoneTime:
    """Seconds of a kernel, and whose constants they were made of."""

    seconds: float
    words: str


def product_seconds(
    device: Device, precision: str, rows: float, outputs: float, depth: float
) -> LoneTime | None:
    """Return the time of a product whose operands are in a format: the fastest engine's.

    None where neither the device nor its sibling or family was measured in that format.

    >>> from mlsim import Hardware
    >>> found = product_seconds(Hardware.Cloud.A100, "fp16", 8192.0, 8192.0, 8192.0)
    >>> 4e-3 < found.seconds < 5e-3
    True
    """
    path = _path(precision)
    if path not in PATHS or PATHS[path].peak not in device.compute.figures:
        return None
    sides = (rows, outputs, depth)
    found = list(_engines(device, "product", path))
    ran = [each for each in found if _ran(each[0], each[1], path, sides)] or found
    times = []
    for engine, kin, constants, cores in ran:
        peak = device.compute.figure(PATHS[path].peak).si
        rates = Rates(peak, device.bandwidth_si, cores)
        c = {name: value for name, value in constants.items() if name != _BEFORE}
        seconds = float(product_time(*sides, path=PATHS[path], rates=rates, c=c))
        times.append(LoneTime(seconds, f"the atlas's products of {engine}{kin.words}"))
    return min(times, key=lambda each: each.seconds, default=None)


def attention_seconds(
    device: Device, precision: str, tokens: float, width: float, *, causal: bool
) -> LoneTime | None:
    """Return the time that attention over a prompt takes for one head, on a full device.

    It reads queries, keys and values once, and writes its result once. None where neither the
    device nor its sibling or family was measured, or in other formats than those of 16 bits.

    >>> from mlsim import Hardware
    >>> asked = {"tokens": 8192.0, "width": 128.0}
    >>> whole = attention_seconds(Hardware.Cloud.H100, "bf16", **asked, causal=False).seconds
    >>> half = attention_seconds(Hardware.Cloud.H100, "bf16", **asked, causal=True).seconds
    >>> 1.8 < whole / half < 2
    True
    """
    path = _path(precision)
    if path not in SIXTEEN:
        return None
    for engine, kin, c, cores in _engines(device, "prefill", path):
        peak = device.compute.figure(path).si
        computed = physics.computed_width(width, c.get("width_step", 1.0))
        pair = physics.pair_time(
            2 * (computed + computed), peak, c["compute_fraction"], c["exponential_time"]
        )
        seconds = physics.prefill_attention_time(
            tokens * (tokens + 1) / 2 if causal else tokens * tokens,
            pair,
            ceil(tokens / QUERIES),
            c["task_time"],
            cores,
            0.0,
            0.0,
            4 * PATHS[path].left * tokens * width,
            0.0,
            device.bandwidth_si,
            1.0,
            1.0,
            0.0,
        )
        return LoneTime(float(seconds), f"the atlas's prompts of {engine}{kin.words}")
    return None


def named_attention_seconds(
    device: Device, precision: str, kernel: str, flops: float
) -> LoneTime | None:
    """Return the time of attention by a named kernel, as published rows say of it.

    They are those of the device, or of its sibling or family; None if there are none.

    >>> from mlsim import Hardware
    >>> found = named_attention_seconds(Hardware.Cloud.H100, "fp16", "FlashAttention-2", 1e12)
    >>> 2e-3 < found.seconds < 4e-3
    True
    """
    rows = [row for row in attentions() if row.kernel == kernel and precision in SIXTEEN]
    kin = relatives(device.key, [row.device for row in rows])
    if kin is None or kin.level == "class":
        return None
    from mlsim.hardware.device_files import device_with

    shares = [
        row.rate / device_with(row.device).compute.figure(row.precision).si
        for row in rows
        if row.device in kin.keys
    ]
    peak = device.compute.figure(precision).si
    seconds = calibrated_compute_time(flops, peak, median(shares), 1.0)
    return LoneTime(float(seconds), f"published rows of {kernel}{kin.words}")


def _path(precision: str) -> str:
    return "bf16" if precision in SIXTEEN else precision


def _engines(
    device: Device, kind: str, path: str
) -> Iterator[tuple[str, Relatives, Mapping[str, float], float]]:
    """Yield each engine with kernels near a device: whose they are, constants, and cores."""
    for engine in ENGINES[kind]:
        there = [key[0] for key in all_series() if key[1:] == (kind, path, engine)]
        kin = relatives(device.key, there)
        if kin is None or kin.level == "class":
            continue
        series = [kernel_series(key, kind, path, engine) for key in kin.keys]
        shared = set.intersection(*(set(each.values) for each in series))
        middle = {name: _middle(name)(each.values[name] for each in series) for name in shared}
        yield engine, kin, middle, float(device.cores or median(each.cores for each in series))


def _middle(name: str) -> Callable[[Iterable[float]], float]:
    """Return how several devices' values become one: of steps, one of their values."""
    return median_low if name in STEPS else median


def _ran(engine: str, kin: Relatives, path: str, sides: tuple[float, ...]) -> bool:
    """Tell whether an engine's products were timed with sides so short."""
    least = least_sides()[kin.keys[0], "product", path, engine]
    return all(side >= shortest for side, shortest in zip(sides, least, strict=True))
