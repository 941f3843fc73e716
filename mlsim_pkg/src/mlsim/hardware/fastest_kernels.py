"""Which measured kernel a product is: of several engines and two tiles, the fastest.

The atlas has constants of one series for each engine. A shape takes that of the engine and
the tile for which the equations of `kernel_times` give the shortest time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mlsim.equations.functions import Value, exceeds
from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.hardware.device import Device
from mlsim.hardware.kernel_constants import (
    ENGINES,
    KernelSeries,
    all_series,
    kernel_series,
    least_sides,
    measured_devices,
)
from mlsim.hardware.kernel_times import PATHS, TILES, Rates, slower, tile_time

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

    >>> from mlsim.hardware.device_files import device_with
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

    >>> from mlsim.hardware.device_files import device_with
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
    return Chosen(_picked([each for _, each in candidates], times), _all_words(candidates))


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


def _all_words(candidates: list[tuple[KernelSeries, dict[str, float]]]) -> str:
    words = dict.fromkeys(series.words for series, _ in candidates)
    return "for each shape the fastest of: " + "; ".join(words)
