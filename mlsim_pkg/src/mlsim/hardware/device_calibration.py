"""How much of its data sheet a device reaches, worked out of measured kernels.

Four numbers: the part of the peak that large matrix products reach while all
cores have work; that which attention reaches as one kernel; the part of the memory
bandwidth that streams reach; and the time of an operator that does nothing. None
of them is typed anywhere. They come from published rows (`measured_kernels`), from the
fitted constants of the atlas (`kernel_constants`), or from a device's relatives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from mlsim.equations import calibration as physics
from mlsim.errors import NotMeasuredError
from mlsim.hardware.device import Device
from mlsim.hardware.device_files import device_with
from mlsim.hardware.kernel_constants import all_series
from mlsim.hardware.measured_kernels import KernelRow, LaunchRow, ProductRow, launches
from mlsim.hardware.measured_shares import (
    SIXTEEN,
    TILE,
    Share,
    attention_share,
    counted,
    filled,
    product_share,
    sources,
    stream_share,
    tiling_of,
    with_products,
    with_streams,
)
from mlsim.hardware.relatives import (
    LIBRARY,
    MEMORY,
    UNITS,
    Loan,
    Relatives,
    has_own,
    loans,
    relatives,
)
from mlsim.precision import precision as find_precision

__all__ = ["TILE", "Calibration", "band", "calibrated_devices", "calibration", "unit_width"]


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
    kin
        For each number, whose measurements were taken, and how near they are: "own",
        "sibling" (the same chip), "family" or "class".
    band
        Measured over predicted times of kernels: between these two lie 80 %, by the errors
        of the atlas at the level of the products. None where no level has errors.
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
    kin: Mapping[str, Relatives]
    band: tuple[float, float] | None
    origins: Mapping[str, str]
    rows: tuple[KernelRow, ...]

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which of the numbers were measured on other devices.

        >>> from mlsim import Hardware
        >>> [each.constant for each in calibration(Hardware.Cloud.MI300X, "bf16").loans]
        ['memory_fraction']
        """
        return loans(self.kin)

    def product_time(self, row: ProductRow) -> float:
        """Return in s what the calibrated estimate says of a measured product.

        >>> from mlsim import Hardware
        >>> found = calibration(Hardware.Cloud.A100, "fp16")
        >>> row = next(row for row in found.rows if row.id == "GEM-024")
        >>> round(found.product_time(row) / row.seconds, 2)
        1.07
        """
        peak = self.device.compute.figure(row.precision).si
        computing = physics.calibrated_compute_time(
            row.flops, peak, self.compute_fraction, filled(row, self.device)
        )
        moving = physics.calibrated_memory_time(
            row.bytes_moved, self.device.bandwidth_si, self.memory_fraction
        )
        return float(max(computing, moving) + self.kernel_overhead)


@lru_cache(maxsize=256)
def calibration(device: Device, precision: str) -> Calibration:
    """Work out what a device reaches, of what was measured on it or on its relatives.

    Parameters
    ----------
    device
        A device of the zoo: measurements are found by its key, or those of its relatives:
        the same chip, its family, its class.
    precision
        Of the arithmetic. Rows in 16 bits, bf16 or fp16, stand for both; they
        also stand for a format of which there are no rows.

    Raises
    ------
    NotMeasuredError
        If nothing was measured of it, and it has no relatives; says for which devices there is.

    >>> from mlsim import Hardware
    >>> found = calibration(Hardware.Cloud.A100, "fp16")
    >>> round(found.compute_fraction, 3), round(found.memory_fraction, 3), found.cores
    (0.759, 0.834, 108)
    """
    name = find_precision(precision).computes_as
    computing = _nearest(
        device,
        lambda each: product_share(each, name),
        with_products(),
        (name, "bf16"),
    )
    moving = _nearest(device, stream_share, with_streams(), kind=MEMORY)
    if computing is None or moving is None:
        raise NotMeasuredError(_missing(device))
    attending = _attending(device, name, computing)
    started = launches()
    found = {
        "compute_fraction": computing,
        "attention_fraction": attending,
        "memory_fraction": moving,
    }
    return Calibration(
        device=device,
        precision=name,
        **{each: share.share for each, (share, _) in found.items()},
        kernel_overhead=median(row.seconds for row in started),
        tile=TILE,
        cores=device.cores,
        kin={each: kin for each, (_, kin) in found.items()} | _tiled(device),
        band=band(computing[1].level, name),
        origins={
            **{each: share.words + _loan(kin, name) for each, (share, kin) in found.items()},
            **_origins(device, started),
        },
        rows=(*computing[0].rows, *attending[0].rows, *moving[0].rows, *started),
    )


def calibrated_devices() -> tuple[str, ...]:
    """Return the keys of the devices of which products and streams were measured.

    >>> "Cloud.A100" in calibrated_devices()
    True
    """
    return tuple(key for key in with_products() if key in with_streams())


@lru_cache(maxsize=64)
def band(level: str, precision: str) -> tuple[float, float] | None:
    """Return between which factors of a predicted time 80 % of measured products lie.

    By the errors of the atlas at a level, on shapes that were not fitted; the middle of all
    series in a format, or in 16 bits where it has none.

    >>> low, high = band("sibling", "bf16")
    >>> low < 1 < high
    True
    """
    for path in ("bf16" if precision in SIXTEEN else precision, "bf16"):
        errors = [
            series.errors[level]
            for series in all_series().values()
            if (series.kind, series.path) == ("product", path) and level in series.errors
        ]
        if errors:
            return median(each.low for each in errors), median(each.high for each in errors)
    return None


def unit_width(device: Device, name: str) -> float:
    """Return a format's peak over that of general units; 0 where one is not on record.

    The wider the units for matrices, the harder they are to feed.

    >>> from mlsim import Hardware
    >>> unit_width(Hardware.Cloud.A100, "fp16"), unit_width(Hardware.Workstation.RTX4090, "fp16")
    (16, 2)
    """
    figures = device.compute.figures
    if name not in figures or "fp32" not in figures:
        return 0.0
    return round(figures[name].si / figures["fp32"].si)


def _nearest(
    device: Device,
    of: Callable[[Device], Share | None],
    measured: Collection[str],
    units: tuple[str, ...] = (),
    *,
    kind: str = UNITS,
) -> tuple[Share, Relatives] | None:
    """Return a share of the nearest devices that have one: the middle, where there are several.

    Those whose units are as wide, in the first of some formats in which any are, come first,
    be they farther away.
    """
    own = of(device) if device.key in measured and has_own("device") else None
    if own is not None:
        return own, Relatives("own", (device.key,))
    others = {key for key in measured if key != device.key}
    found: dict[str, Share] = {}
    level = ""
    while not found:
        alike = (_as_wide(device, each, others) for each in units)
        kin = next(filter(None, alike), None) or relatives(device.key, others, kind)
        if kin is None:
            return None
        level = kin.level
        found = {key: share for key in kin.keys if (share := of(device_with(key))) is not None}
        # Whoever was measured otherwise lends nothing.
        others -= set(kin.keys)
    middle = median(share.share for share in found.values())
    if len(found) == 1:
        words = next(iter(found.values())).words
    else:
        words = f"the median over {len(found)} devices"
    return Share(middle, words), Relatives(level, tuple(found))


def _as_wide(device: Device, name: str, others: Collection[str]) -> Relatives | None:
    """Return the nearest devices whose units for a format are as wide, else those of its maker."""
    width = unit_width(device, name)
    alike = [each for each in map(device_with, others) if width and unit_width(each, name) == width]
    found = relatives(device.key, [each.key for each in alike])
    same = [each.key for each in alike if each.vendor == device.vendor]
    return found or relatives(device.key, same, LIBRARY)


def _loan(kin: Relatives, name: str) -> str:
    """Say whose measurements were borrowed, and how far off such a loan is."""
    limits = band(kin.level, name)
    if kin.level == "own" or limits is None:
        return kin.words
    return (
        f"{kin.words}; with such a loan, 80 % of measured products took {limits[0]:.2f} to "
        f"{limits[1]:.2f} of the predicted time"
    )


def _attending(
    device: Device, name: str, computing: tuple[Share, Relatives]
) -> tuple[Share, Relatives]:
    """Return what attention reaches: on the device, on those of its products, or as they do."""
    share = attention_share(device, name) if has_own("device") else None
    if share is not None:
        return share, Relatives("own", (device.key,))
    kin = computing[1]
    if kin.level != "own":
        shares = [attention_share(device_with(key), name) for key in kin.keys]
        there = [each.share for each in shares if each is not None]
        if there:
            words = f"the median over {len(there)} of them"
            return Share(median(there), words), kin
    words = f"no attention in {name} is on record, so that of products is assumed"
    # Whose products they are stands beside the products.
    return Share(computing[0].share, words), Relatives("own", (device.key,))


def _tiled(device: Device) -> dict[str, Relatives]:
    """Return whose tiles a device's are; nothing where nobody counts its cores."""
    kin = tiling_of(device.key) if device.cores else None
    return {"tiling": kin} if kin else {}


def _origins(device: Device, started: tuple[LaunchRow, ...]) -> dict[str, str]:
    """Say in words where the numbers come from that are not shares."""
    if device.cores is None:
        tiles = f"no number of cores of {device.name} is on record, so all count as full"
        cores = f"not known: {tiles}"
    else:
        cores = f"{device.name}: {device.figures['cores'].origin()}"
    there = {row.device for row in started}
    elsewhere = "" if there == {device.key} else ", assumed here"
    where = ", ".join(sorted(there))
    return {
        "kernel_overhead": f"measured on {where}{elsewhere}: {counted(started, 'kernel')} with "
        f"one element; {sources(started)}",
        "tile_size": "convention: the common tile of a library for matrix products",
        "cores": cores,
    }


def _missing(device: Device) -> str:
    """Say that nothing is known, and what there is."""
    return (
        f"estimate='calibrated' needs measurements of {device.name} that are not on record: "
        "matrix products (its part of the peak) and streams of bytes (its part of the memory "
        "bandwidth). It has no relatives either, whose measurements could stand in. Measured "
        f"are: {', '.join(calibrated_devices())}. Use one of these, give compute_fraction, "
        "memory_fraction and kernel_overhead yourself, or use estimate='roofline' or 'bound'."
    )
