"""Times of single kernels as the atlas has them: a matrix product, or attention over prompts.

The constants are those of a device's own kernels, else the middle of its relatives', with the
device's own rates. None of them was fitted to published rows, so that these can test them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import median
from types import MappingProxyType
from typing import Any

from mlsim.equations import kernels as physics
from mlsim.equations.calibration import calibrated_compute_time
from mlsim.equations.functions import Value, ceil, exceeds
from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.hardware.device import Device, device_with
from mlsim.hardware.device_calibration import SIXTEEN, weights_share
from mlsim.hardware.kernel_constants import (
    ENGINES,
    KernelSeries,
    Relatives,
    all_series,
    kernel_series,
    least_sides,
    measured_devices,
    middle,
    near_kernels,
    relatives,
)
from mlsim.hardware.kernel_times import (
    PATHS,
    QUERIES,
    TILES,
    Rates,
    product_time,
    slower,
    tile_time,
)
from mlsim.hardware.measured_kernels import StreamRow, attentions, streams

FASTEST = "fastest"

# By so much slower counts a backend on sides that it was never timed with.
_NOT_TIMED = 1e6

# What a series may lack, and what then holds: nothing is lost, saved or added.
_NEUTRAL: Mapping[str, float] = MappingProxyType(
    {
        "last_round_share": 1.0,
        "depth_start": 0.0,
        "split_start": 0.0,
        "resident_bytes": 1.0,
        "cache_speedup": 1.0,
        "kernel_overhead": 0.0,
    }
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The constants that hold for a shape, or for each of many.

    Attributes
    ----------
    columns
        By the names of the equations, floats or arrays of the shape of the sides.
    words
        Of one shape, the series; of many, those that were chosen from.
    """

    columns: Mapping[str, Value]
    words: str


def series_of(device: Device, path: str, backend: str = FASTEST) -> list[KernelSeries]:
    """Return the measured series of products of a device in a path: of all engines, or of one.

    Raises
    ------
    UnknownNameError
        If there is no such engine.
    NotMeasuredError
        If there are none; says what there is.

    >>> from mlsim.hardware.device import device_with
    >>> [each.engine for each in series_of(device_with("Cloud.H100"), "fp8")]
    ['trtllm', 'vllm', 'sglang']
    """
    if backend not in (FASTEST, *ENGINES["product"]):
        raise unknown_name("backend", backend, (FASTEST, *ENGINES["product"]))
    if not path:
        raise NotMeasuredError(
            "no kernels of this format are on record, so there is no calibrated estimate of it. "
            'Ask for estimate="roofline", or for a format that was measured: '
            f"{', '.join(_paths(device)) or 'none on ' + device.name}."
        )
    if backend != FASTEST:
        return [kernel_series(device.key, "product", path, backend)]
    found = all_series()
    there = [(device.key, "product", path, engine) for engine in ENGINES["product"]]
    several = [found[key] for key in there if key in found]
    return several or [kernel_series(device.key, "product", path)]


def _paths(device: Device) -> list[str]:
    if device.key not in measured_devices("product"):
        return []
    return sorted({key[2] for key in all_series() if key[:2] == (device.key, "product")})


def fastest(
    device: Device,
    path: str,
    rows: Value,
    outputs: Value,
    depth: Value,
    *,
    products: Value,
    backend: str = FASTEST,
) -> Chosen:
    """Return the constants of the fastest kernel for a shape, or for each of an array.

    Raises
    ------
    UnknownNameError, NotMeasuredError
        As `series_of`.
    UnsupportedPrecisionError
        If the device has no such peak.

    >>> from mlsim.hardware.device import device_with
    >>> chosen = fastest(device_with("Cloud.H100"), "bf16", *[8192.0] * 3, products=1.0)
    >>> chosen.columns["tile_size"]
    128.0
    """
    found = series_of(device, path, backend)
    peak = device.compute.figure(PATHS[path].peak).si
    candidates, times = [], []
    for series in found:
        slow = _unlikely(series, rows, outputs, depth) if len(found) > 1 else 1.0
        rates = Rates(peak, device.bandwidth_si, series.cores)
        c = series.values
        for tile in TILES:
            candidates.append((series, _columns(series, tile)))
            time = tile_time(
                *(rows, outputs, depth, tile),
                path=PATHS[path],
                rates=rates,
                c=c,
                products=products,
            )
            times.append(time * slow)
    if not any(getattr(time, "ndim", 0) for time in times):
        best, columns = candidates[times.index(min(times))]
        return Chosen(columns, best.words)
    words = "; ".join(dict.fromkeys(series.words for series, _ in candidates))
    columns = _picked([each for _, each in candidates], times)
    return Chosen(columns, f"for each shape the fastest of: {words}")


def _unlikely(series: KernelSeries, *sides: Value) -> Value:
    """Return 1, or a large factor where a side is shorter than any that the backend ran.

    So another backend is taken there, unless there is none.
    """
    least = least_sides()[series.device, series.kind, series.path, series.engine]
    found: Value = 1.0
    for side, shortest in zip(sides, least, strict=True):
        found = found + _NOT_TIMED * exceeds(shortest, side)
    return found


def _columns(series: KernelSeries, tile: float) -> dict[str, float]:
    c = series.values
    return {
        **{name: c.get(name, usual) for name, usual in _NEUTRAL.items()},
        "compute_fraction": c["compute_fraction"] * slower(tile, c),
        "memory_fraction": c["memory_fraction"],
        "quantized_element_bytes": c.get("quantized_bytes", 0.0),
        "tile_size": tile,
        "device_cores": series.cores,
    }


def _picked(columns: list[dict[str, float]], times: list[Any]) -> dict[str, Any]:
    """Return each constant where its kernel is the fastest."""
    import numpy as np

    best = np.argmin(np.stack(np.broadcast_arrays(*times)), axis=0)
    return {name: np.array([each[name] for each in columns])[best] for name in columns[0]}


# What brings operands to fewer bits stands in the tables; of a lone product they have them.
_BEFORE = "quantized_bytes"


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
        if kin := near_kernels(device.key, kind, path, engine):
            series = [kernel_series(key, kind, path, engine) for key in kin.keys]
            cores = float(device.cores or median(each.cores for each in series))
            yield engine, kin, middle(kin, kind, path, engine), cores


def _ran(engine: str, kin: Relatives, path: str, sides: tuple[float, ...]) -> bool:
    """Tell whether an engine's products were timed with sides so short."""
    least = least_sides()[kin.keys[0], "product", path, engine]
    return all(side >= shortest for side, shortest in zip(sides, least, strict=True))


# Of the bytes of a stream, the part that it writes.
WRITTEN = {
    **dict.fromkeys(("copy", "memcpy", "scale", "mul", "transform"), 1 / 2),
    **dict.fromkeys(("triad", "add", "stream"), 1 / 3),
    **dict.fromkeys(("read", "dot"), 0.0),
    **dict.fromkeys(("write", "init"), 1.0),
}

# PCI Express, from its third generation: 128 bits of data in 130; packets of the least size that
# every device takes; 5 to 7 double words of 4 bytes around them, of which the middle.
_CODED, _PAYLOAD, _PACKET = 128 / 130, 128.0, 24.0


@dataclass(frozen=True, slots=True)
class LoneRate:
    """B/s of a transfer, and whose measurements they were made of."""

    rate: float
    words: str


def stream_rate(device: Device, kernel: str) -> LoneRate:
    """Return the rate at which a kernel streams through a device's memory.

    By published streams of the device, unless its products read weights faster: a stream that
    does not fill the memory is no measure of it. Else by the middle of all devices'.

    >>> from mlsim import Hardware
    >>> copied = stream_rate(Hardware.Cloud.A100, "copy").rate
    >>> copied < stream_rate(Hardware.Cloud.A100, "read").rate < Hardware.Cloud.A100.bandwidth_si
    True
    """
    own = _reading(device)
    if own is None:
        keys = dict.fromkeys(row.device for row in streams())
        shares = [share for key in keys if (share := _reading(device_with(key)))]
        own, words = median(shares), f"the middle of published streams of {len(shares)} devices"
    else:
        words = "published streams of the device"
    seconds = physics.turned_memory_time(
        1.0, device.bandwidth_si, min(own, 1.0), turnaround(), WRITTEN[kernel]
    )
    return LoneRate(float(1 / seconds), words)


def host_link_rate(rate: float) -> LoneRate:
    """Return the rate of data over PCI Express, of what its bits could carry.

    >>> round(host_link_rate(32e9).rate / 1e9, 1)
    26.5
    """
    found = physics.packed_bandwidth(rate, _CODED, _PAYLOAD, _PACKET)
    words = f"packets of {_PAYLOAD:.0f} bytes with {_PACKET:.0f} around them"
    return LoneRate(float(found), words)


@lru_cache(maxsize=1)
def turnaround() -> float:
    """Return the part by which a stream is slower if it writes half of its bytes.

    Of each two streams of one publication on one device it is what makes them equal, and of
    these the median, weighted by how much the two differ in what they write.

    >>> 0.05 < turnaround() < 0.15
    True
    """
    found = sorted(_turnarounds())
    half, passed = sum(weight for _, weight in found) / 2, 0.0
    for value, weight in found:
        passed += weight
        if passed >= half:
            return max(value, 0.0)
    return 0.0


def _turnarounds() -> Iterator[tuple[float, float]]:
    for one, other in combinations(streams(), 2):
        if (one.series, one.device) != (other.series, other.device):
            continue
        # Two rates that are the same rate of reading: r1 (1 + w m1) = r2 (1 + w m2).
        slope = one.rate * _mixed(one) - other.rate * _mixed(other)
        if _mixed(one) != _mixed(other) and slope:
            yield (other.rate - one.rate) / slope, abs(_mixed(one) - _mixed(other))


def _mixed(row: StreamRow) -> float:
    """Return 1 for a stream that writes as much as it reads, 0 for one that does only one."""
    return 2 * min(WRITTEN[row.kernel], 1 - WRITTEN[row.kernel])


def _reading(device: Device) -> float | None:
    """Return the part of the bandwidth that a device reaches in reading, by its own streams."""
    rows = [row for row in streams() if row.device == device.key]
    if not rows:
        return None
    found = median(
        row.rate / device.bandwidth_si * (1 + turnaround() * _mixed(row)) for row in rows
    )
    return found if found >= weights_share(device) else None
