"""How much of its data sheet a device reaches, worked out of measured kernels.

Four numbers: the part of the peak that large matrix products reach while all
cores have work; that which attention reaches as one kernel; the part of the memory
bandwidth that streams reach; and the time of an operator that does nothing. None
of them is typed anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from mlsim.equations import calibration as physics
from mlsim.errors import NotMeasuredError
from mlsim.hardware.device import Device
from mlsim.hardware.measured_kernels import (
    AttentionRow,
    KernelRow,
    LaunchRow,
    ProductRow,
    StreamRow,
    attentions,
    launches,
    products,
    streams,
)
from mlsim.precision import precision as find_precision

# Rows and columns of the tile that a core works on: the common size of libraries.
TILE = 128

# A product counts as limited by arithmetic if moving its bytes, at the full
# bandwidth, would take less than this part of its time.
MEMORY_SHARE = 0.5

_SIXTEEN = ("bf16", "fp16")


@dataclass(frozen=True)
class Calibration:
    """What a device was measured to reach, for one precision.

    Attributes
    ----------
    device
        The device.
    precision
        The number format of the arithmetic, such as "bf16".
    compute_fraction
        Part of the peak that matrix products reach on full cores, at most 1.
    attention_fraction
        Part of the peak that attention reaches as one kernel; that of products where
        nobody measured it.
    memory_fraction
        Part of the memory bandwidth that streams reach, at most 1.
    kernel_overhead
        Time of an operator that does nothing, in s.
    tile, cores
        Rows and columns of a tile; cores that work on one each, None if nobody says.
    origins
        In words, for each number: of which rows, by which rule, with the keys
        of their sources.
    rows
        All measured rows that were used.
    """

    device: Device
    precision: str
    compute_fraction: float
    attention_fraction: float
    memory_fraction: float
    kernel_overhead: float
    tile: int
    cores: int | None
    origins: Mapping[str, str]
    rows: tuple[KernelRow, ...]

    def product_time(self, row: ProductRow) -> float:
        """Return in s what the calibrated estimate says of a measured product.

        >>> from mlsim import Hardware
        >>> found = calibration(Hardware.Cloud.A100, "fp16")
        >>> row = next(row for row in found.rows if row.id == "GEM-024")
        >>> round(found.product_time(row) / row.seconds, 2)
        1.0
        """
        peak = self.device.compute.figure(row.precision).si
        computing = physics.calibrated_compute_time(
            row.flops, peak, self.compute_fraction, _filled(row, self.cores)
        )
        moving = physics.calibrated_memory_time(
            row.bytes_moved, self.device.bandwidth_si, self.memory_fraction
        )
        return float(max(computing, moving) + self.kernel_overhead)


@lru_cache(maxsize=256)
def calibration(device: Device, precision: str) -> Calibration:
    """Work out what a device reaches, of the rows that were measured on it.

    Parameters
    ----------
    device
        A device of the zoo: rows are found by its key.
    precision
        Of the arithmetic. Rows in 16 bits, bf16 or fp16, stand for both; they
        also stand for a format of which there are no rows.

    Raises
    ------
    NotMeasuredError
        If there are no rows of products or of streams; says which, and for
        which devices there are.

    >>> from mlsim import Hardware
    >>> found = calibration(Hardware.Cloud.A100, "fp16")
    >>> round(found.compute_fraction, 3), round(found.memory_fraction, 3), found.cores
    (0.813, 0.834, 108)
    """
    name = find_precision(precision).computes_as
    multiplied, streamed = _products_of(device, name), _streams_of(device)
    if not multiplied or not streamed:
        raise NotMeasuredError(_missing(device, bool(multiplied), bool(streamed)))
    started = launches()
    overhead = median(row.seconds for row in started)
    compute = min(1.0, median(_reached(row, device, overhead) for row in multiplied))
    attended = _attentions_of(device, name)
    peaks = device.compute.figures
    shares = [row.rate / peaks[row.precision].si for row in attended]
    memory = min(1.0, median(row.rate for row in streamed) / device.bandwidth_si)
    return Calibration(
        device=device,
        precision=name,
        compute_fraction=compute,
        attention_fraction=min(1.0, median(shares)) if shares else compute,
        memory_fraction=memory,
        kernel_overhead=overhead,
        tile=TILE,
        cores=device.cores,
        origins={
            **_origins(device, name, multiplied, streamed, started),
            "attention_fraction": _attended(attended, name),
        },
        rows=(*multiplied, *attended, *streamed, *started),
    )


def calibrated_devices() -> tuple[str, ...]:
    """Return the keys of the devices of which products and streams were measured.

    >>> "Cloud.A100" in calibrated_devices()
    True
    """
    multiplied, streamed = _keys(products()), _keys(streams())
    return tuple(key for key in multiplied if key in streamed)


def _keys(rows: Iterable[KernelRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.device for row in rows))


def _products_of(device: Device, name: str) -> tuple[ProductRow, ...]:
    """Choose the rows whose arithmetic is the limit, of a precision or what stands for it."""
    own = [
        row
        for row in products()
        if row.device == device.key
        and row.precision in device.compute.figures
        and row.bytes_moved / device.bandwidth_si < MEMORY_SHARE * row.seconds
    ]
    same: tuple[str, ...] = _SIXTEEN if name in _SIXTEEN else (name,)
    for wanted in (same, _SIXTEEN):
        found = tuple(row for row in own if row.precision in wanted)
        if found:
            return found
    return ()


def _attentions_of(device: Device, name: str) -> tuple[AttentionRow, ...]:
    """Choose the rows of attention for 16 bits; other formats have none."""
    if name not in _SIXTEEN:
        return ()
    return tuple(
        row
        for row in attentions()
        if row.device == device.key and row.precision in device.compute.figures
    )


def _attended(rows: tuple[AttentionRow, ...], name: str) -> str:
    """Say where the part of the peak comes from that attention reaches."""
    if not rows:
        return f"no attention in {name} is on record, so that of products is assumed"
    kernels = ", ".join(dict.fromkeys(row.kernel for row in rows))
    return (
        f"measured: the median over {_counted(rows, 'kernel')} of attention, forward "
        f"({kernels}), of the peak; {_sources(rows)}"
    )


def _streams_of(device: Device) -> tuple[StreamRow, ...]:
    return tuple(row for row in streams() if row.device == device.key)


def _filled(row: ProductRow, cores: int | None) -> float:
    """Return the part of the cores' rounds that a product fills; 1 if nobody counts cores."""
    if cores is None:
        return 1.0
    rounds = physics.waves(float(row.m), float(row.n), TILE, cores)
    return float(physics.filled_share(float(row.m), float(row.n), rounds, cores, TILE))


def _reached(row: ProductRow, device: Device, overhead: float) -> float:
    """Return the part of the peak that a product reached on the cores that it filled."""
    peak = device.compute.figure(row.precision).si
    rate = row.flops / (row.seconds - overhead)
    return rate / (peak * _filled(row, device.cores))


def _sources(rows: Iterable[KernelRow]) -> str:
    return ", ".join(dict.fromkeys(row.source for row in rows))


def _origins(
    device: Device,
    name: str,
    multiplied: tuple[ProductRow, ...],
    streamed: tuple[StreamRow, ...],
    started: tuple[LaunchRow, ...],
) -> dict[str, str]:
    """Say in words where each number comes from."""
    used = "/".join(dict.fromkeys(row.precision for row in multiplied))
    own = name in used or (name in _SIXTEEN and used)
    assumed = "" if own else f"; no products in {name} are on record, so the same is assumed"
    best = sum("search" in row.note for row in multiplied)
    bound = f"; {best} of them the best shape of a search" if best else ""
    if device.cores is None:
        tiles = f"no number of cores of {device.name} is on record, so all count as full"
        cores = f"not known: {tiles}"
    else:
        tiles = f"tiles of {TILE} x {TILE} on {device.cores} cores"
        cores = f"{device.name}: {device.figures['cores'].origin()}"
    there = {row.device for row in started}
    elsewhere = "" if there == {device.key} else ", assumed here"
    where = ", ".join(sorted(there))
    return {
        "compute_fraction": f"measured: the median over {_counted(multiplied, 'product')} in "
        f"{used}{bound}, of the peak times the share of the cores that had work ({tiles})"
        f"{assumed}; {_sources(multiplied)}",
        "memory_fraction": f"measured: the median over {_counted(streamed, 'stream')}, of the "
        f"data sheet's bandwidth; {_sources(streamed)}",
        "kernel_overhead": f"measured on {where}{elsewhere}: {_counted(started, 'kernel')} with "
        f"one element; {_sources(started)}",
        "tile_size": "convention: the common tile of a library for matrix products",
        "cores": cores,
    }


def _counted(rows: tuple[KernelRow, ...], what: str) -> str:
    return f"{len(rows)} {what}{'s' if len(rows) > 1 else ''}"


def _missing(device: Device, multiplied: bool, streamed: bool) -> str:
    """Say what is missing, and what there is."""
    lacks = [
        words
        for words, there in (
            ("matrix products (its part of the peak)", multiplied),
            ("streams of bytes (its part of the memory bandwidth)", streamed),
        )
        if not there
    ]
    known = calibrated_devices()
    likest = _sibling(device.key, known)
    other = f" {likest} is another form of it, which was measured." if likest else ""
    return (
        f"estimate='calibrated' needs measurements of {device.name} that are not on record: "
        f"{' and '.join(lacks)}.{other} Measured are: {', '.join(known)}. Use one of these, or "
        "estimate='roofline' or 'bound'."
    )


def _sibling(key: str, known: tuple[str, ...]) -> str:
    """Return the measured device whose key begins as this one's does; "" if none."""
    stem = key.partition("_")[0]
    return next((each for each in known if each != key and each.partition("_")[0] == stem), "")
