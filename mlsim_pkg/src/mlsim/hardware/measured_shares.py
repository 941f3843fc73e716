"""What part of its data sheet a device was measured to reach, by its own rows.

Published rows come first, as printed; where there are none, or only the best shape of a
search, the atlas's constants. Each answer carries the words that say so, and the rows that
were used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from mlsim.equations import calibration as physics
from mlsim.errors import NotMeasuredError
from mlsim.hardware.device import Device
from mlsim.hardware.kernel_constants import (
    KernelSeries,
    all_series,
    kernel_series,
    measured_devices,
)
from mlsim.hardware.measured_kernels import (
    AttentionRow,
    KernelRow,
    ProductRow,
    attentions,
    launches,
    products,
    streams,
)
from mlsim.hardware.relatives import LIBRARY, Relatives, relatives

# Rows and columns of the tile that a core works on: the common size of libraries.
TILE = 128

# A core gets no thinner part of a product's depth.
LEAST_DEPTH = 512.0

# A product counts as limited by arithmetic if moving its bytes, at the full
# bandwidth, would take less than this part of its time.
MEMORY_SHARE = 0.5

# Depth of a product, and width of a head, for which the atlas's constants are told as one share.
DEPTH, HEAD = 4096.0, 128

SIXTEEN = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a peak or a bandwidth, at most 1: where it is from, and of which rows."""

    share: float
    words: str
    rows: tuple[KernelRow, ...] = ()
    kernels: KernelSeries | None = None


def product_share(device: Device, precision: str) -> Share | None:
    """Return the part of the peak that large products reach on full cores; None if unknown.

    Rows in 16 bits, bf16 or fp16, stand for both; they also stand for a format of which
    there are none.
    """
    for wanted in (_alike(precision), SIXTEEN, ("fp32",)):
        rows = _products_of(device, wanted)
        found = _kernels(device, "product", wanted)
        # The best of a search is an upper bound of what other shapes reach.
        if rows and not (found and all("search" in row.note for row in rows)):
            return _of_products(device, precision, rows)
        if found:
            return _of_kernels(found, precision, wanted)
    return None


def attention_share(device: Device, precision: str) -> Share | None:
    """Return the part of the peak that attention reaches as one kernel; None if unknown.

    Of other formats than those of 16 bits there are no published rows.
    """
    rows = _attentions_of(device, precision)
    if rows:
        peaks = device.compute.figures
        reached = median(row.rate / peaks[row.precision].si for row in rows)
        kernels = ", ".join(dict.fromkeys(row.kernel for row in rows))
        words = (
            f"measured: the median over {counted(rows, 'kernel')} of attention, forward "
            f"({kernels}), of the peak; {sources(rows)}"
        )
        return Share(min(1.0, reached), words, rows)
    found = _kernels(device, "prefill", _alike(precision))
    if not found:
        return None
    c = found.values
    peak = device.compute.figure(found.path).si
    slowed = 1 / c["compute_fraction"] + c["exponential_time"] * peak / (4 * HEAD)
    words = f"fitted, for long prompts and heads of {HEAD}: {found.words}"
    return Share(min(1.0, 1 / slowed), words, (), found)


def stream_share(device: Device) -> Share | None:
    """Return the part of the memory bandwidth that streams reach; None if unknown.

    Of published streams and of products that read many weights, the larger: a stream that
    does not fill the memory is no measure of it.
    """
    rows = tuple(row for row in streams() if row.device == device.key)
    found = _kernels(device, "product", ("bf16",))
    printed = min(1.0, median(row.rate for row in rows) / device.bandwidth_si) if rows else 0.0
    fitted = found.values["memory_fraction"] if found else 0.0
    if found and fitted > printed:
        beside = f"; {counted(rows, 'stream')} on record reached {printed:.2f} only" if rows else ""
        return Share(
            fitted, f"fitted to products that read weights: {found.words}{beside}", (), found
        )
    if not rows:
        return None
    words = (
        f"measured: the median over {counted(rows, 'stream')}, of the data sheet's bandwidth; "
        f"{sources(rows)}"
    )
    return Share(printed, words, rows)


def weights_share(device: Device) -> float:
    """Return the part of the bandwidth at which a device's products read weights; 0 if unknown.

    >>> from mlsim import Hardware
    >>> 0.7 < weights_share(Hardware.Cloud.H200) < 0.9
    True
    """
    found = _kernels(device, "product", ("bf16",))
    return found.values["memory_fraction"] if found else 0.0


@lru_cache(maxsize=1)
def with_products() -> tuple[str, ...]:
    """Return the keys of the devices whose products were measured."""
    return _keys(products(), "product")


@lru_cache(maxsize=1)
def with_streams() -> tuple[str, ...]:
    """Return the keys of the devices whose streams were measured."""
    return _keys(streams(), "product")


def _keys(rows: tuple[KernelRow, ...], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(row.device for row in rows), *measured_devices(kind)]))


def _alike(precision: str) -> tuple[str, ...]:
    return SIXTEEN if precision in SIXTEEN else (precision,)


def _kernels(device: Device, kind: str, wanted: tuple[str, ...]) -> KernelSeries | None:
    """Return the atlas's series of a device in the first of some formats that it has."""
    for path in wanted:
        try:
            return kernel_series(device.key, kind, path)
        except NotMeasuredError:
            continue
    return None


def _of_kernels(found: KernelSeries, precision: str, wanted: tuple[str, ...]) -> Share:
    c = found.values
    reached = c["compute_fraction"] * DEPTH / (DEPTH + c["depth_start"])
    assumed = "" if precision in wanted else _assumed(precision)
    return Share(reached, f"fitted, at a depth of {DEPTH:.0f}: {found.words}{assumed}", (), found)


def _assumed(precision: str) -> str:
    return f"; no products in {precision} are on record, so the same is assumed"


def _products_of(device: Device, wanted: tuple[str, ...]) -> tuple[ProductRow, ...]:
    """Choose the published rows in some formats whose arithmetic is the limit."""
    return tuple(
        row
        for row in products()
        if row.device == device.key
        and row.precision in wanted
        and row.precision in device.compute.figures
        and row.bytes_moved / device.bandwidth_si < MEMORY_SHARE * row.seconds
    )


def _attentions_of(device: Device, precision: str) -> tuple[AttentionRow, ...]:
    """Choose the published rows of attention for 16 bits; other formats have none."""
    if precision not in SIXTEEN:
        return ()
    return tuple(
        row
        for row in attentions()
        if row.device == device.key and row.precision in device.compute.figures
    )


def _of_products(device: Device, precision: str, rows: tuple[ProductRow, ...]) -> Share:
    """Return the median over published rows, and say which they are."""
    overhead = median(row.seconds for row in launches())
    reached = median(_reached(row, device, overhead) for row in rows)
    used = "/".join(dict.fromkeys(row.precision for row in rows))
    own = precision in used or (precision in SIXTEEN and used)
    best = sum("search" in row.note for row in rows)
    bound = f"; {best} of them the best shape of a search" if best else ""
    if device.cores is None:
        tiles = f"no number of cores of {device.name} is on record, so all count as full"
    else:
        tiles = f"tiles of {TILE} x {TILE} on {device.cores} cores"
    words = (
        f"measured: the median over {counted(rows, 'product')} in {used}{bound}, of the peak "
        f"times the share of the cores that had work ({tiles}){'' if own else _assumed(precision)}"
        f"; {sources(rows)}"
    )
    return Share(min(1.0, reached), words, rows)


@lru_cache(maxsize=256)
def tiling(key: str) -> tuple[float, float]:
    """Return the part of an idle last round that is lost, and a small tile's part of the rate.

    Those of the atlas's products in 16 bits on a device, or the median of its relatives.

    >>> lost, small = tiling("Cloud.H100")
    >>> lost < 0.1, 0.7 < small < 1
    (True, True)
    """
    kin = tiling_of(key)
    keys = kin.keys if kin else measured_devices("product")
    several = [each for each in keys if (each, "product", "bf16") in _in_sixteen()]
    found = [kernel_series(each, "product", "bf16").values for each in several or _all_sixteen()]
    return (
        median(each["last_round_share"] for each in found),
        median(each["small_tile_fraction"] for each in found),
    )


def tiling_of(key: str) -> Relatives | None:
    """Return whose tiles a device's are: they are a library's, whatever the memory."""
    return relatives(key, measured_devices("product"), LIBRARY)


def _all_sixteen() -> list[str]:
    return [key for key, _, _ in _in_sixteen()]


@lru_cache(maxsize=1)
def _in_sixteen() -> tuple[tuple[str, str, str], ...]:
    return tuple(key[:3] for key in all_series() if key[1:3] == ("product", "bf16"))


def filled(row: ProductRow, device: Device) -> float:
    """Return the part of the cores' rounds that a product fills; 1 if nobody counts cores."""
    if device.cores is None:
        return 1.0
    rows, columns, cores = float(row.m), float(row.n), float(device.cores)
    lost, small = tiling(device.key)
    rounds = physics.shared_waves(rows, columns, TILE, cores, lost)
    return float(
        physics.shared_filled_share(
            rows, columns, float(row.k), rounds, cores, TILE, LEAST_DEPTH, small
        )
    )


def _reached(row: ProductRow, device: Device, overhead: float) -> float:
    """Return the part of the peak that a product reached on the cores that it filled."""
    peak = device.compute.figure(row.precision).si
    rate = row.flops / (row.seconds - overhead)
    return rate / (peak * filled(row, device))


def sources(rows: tuple[KernelRow, ...]) -> str:
    """Return the keys of the rows' sources."""
    return ", ".join(dict.fromkeys(row.source for row in rows))


def counted(rows: tuple[KernelRow, ...], what: str) -> str:
    """Return how many rows there are of something, in words."""
    return f"{len(rows)} {what}{'s' if len(rows) > 1 else ''}"
