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
from itertools import product
from statistics import median
from types import MappingProxyType

from mlsim.equations import calibration as physics
from mlsim.errors import NotMeasuredError
from mlsim.hardware.device import Device, device_with
from mlsim.hardware.kernel_constants import (
    ENGINES,
    LIBRARY,
    MEMORY,
    SOURCE,
    UNITS,
    KernelSeries,
    Loan,
    Relatives,
    all_series,
    has_own,
    kernel_series,
    loans,
    measured_devices,
    middle,
    near_kernels,
    relatives,
    whole_only,
)
from mlsim.hardware.measured_kernels import (
    AttentionRow,
    KernelRow,
    LaunchRow,
    ProductRow,
    attentions,
    launches,
    products,
    streams,
)
from mlsim.precision import precision as find_precision

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
    overhead, peak = median(row.seconds for row in launches()), device.compute.figure
    # The part of the peak on the cores that a product filled.
    reached = median(
        row.flops / (row.seconds - overhead) / (peak(row.precision).si * filled(row, device))
        for row in rows
    )
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
    known = [key for key, *rest in all_series() if rest[:2] == ["product", "bf16"]]
    several = [each for each in keys if each in known] or known
    found = [kernel_series(each, "product", "bf16").values for each in several]
    lost, small = ("last_round_share", "small_tile_fraction")
    return median(each[lost] for each in found), median(each[small] for each in found)


def tiling_of(key: str) -> Relatives | None:
    """Return whose tiles a device's are: they are a library's, whatever the memory."""
    return relatives(key, measured_devices("product"), LIBRARY)


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


def sources(rows: tuple[KernelRow, ...]) -> str:
    """Return the keys of the rows' sources."""
    return ", ".join(dict.fromkeys(row.source for row in rows))


def counted(rows: tuple[KernelRow, ...], what: str) -> str:
    """Return how many rows there are of something, in words."""
    return f"{len(rows)} {what}{'s' if len(rows) > 1 else ''}"


_WIDE = ("bf16", "fp16")
# Data paths by the formats of weights and activations, the first that was measured. Mixtures
# that are released in 8 bits have scales for blocks of their weights. MXFP4 beside 16 bits has
# none: which kernels a service takes differs, so a class of software may name its path.
_PATHS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(product(_WIDE, _WIDE), ("bf16",)),
        **{("int4", wide): ("int4_weights",) for wide in _WIDE},
        ("fp8", "fp8"): ("fp8_block", "fp8"),
        ("fp4", "fp4"): ("fp4",),
        ("nvfp4", "fp4"): ("fp4",),
        ("mxfp4", "fp8"): ("mxfp4_fp8",),
    }
)
EXPERT_NAMES = (
    *("compute_fraction", "memory_fraction", "kernel_overhead"),
    *("imbalance", "spread", "data_passes", "half_width"),
    *("expert_tile", "elsewhere_share"),
)


def paths(weights: str, activations: str) -> tuple[str, ...]:
    """Return the data paths of experts in these formats; none where nobody measured them.

    >>> paths("fp8", "fp8"), paths("bf16", "bf16"), paths("int8", "int8")
    (('fp8_block', 'fp8'), ('bf16',), ())
    """
    return _PATHS.get((weights, activations), ())


@lru_cache(maxsize=256)
def expert_constants(
    device: str,
    engine: str,
    weights: str,
    activations: str,
    own_path: str = "",
    *,
    sliced: bool = False,
) -> tuple[Mapping[str, float], str, Relatives] | None:
    """Return the constants of a device's experts, and whose they are; None if nobody's will do.

    They are those of its own kernels, else the middle of its siblings' or its family's. For
    a program that is none of the measured engines, the first of them stands in.

    Parameters
    ----------
    device, engine
        Keys, such as "Cloud.H100" and "vllm".
    weights, activations
        Formats of the experts, such as "fp8".
    own_path
        The data path that the program takes, where it is not that of the formats.
    sliced
        Whether a device holds slices of experts. A kernel that was timed on whole ones only may
        not run on them, so that of another engine comes first.

    >>> found, words, kin = expert_constants("Cloud.H100", "vllm", "bf16", "bf16")
    >>> 0 < found["compute_fraction"] < 1, found["data_passes"] > 1
    (True, True)
    """
    for path in (own_path,) if own_path else paths(weights, activations):
        near = ((each, near_kernels(device, "experts", path, each)) for each in _engines(engine))
        several = [(each, kin) for each, kin in near if kin]
        cut = [
            (each, kin)
            for each, kin in several
            if not whole_only() & {(key, "experts", path, each) for key in kin.keys}
        ]
        for each, kin in (cut if sliced and cut else several)[:1]:
            found = middle(kin, "experts", path, each)
            words = f"fitted to experts in {path} of {each}{kin.words}; {SOURCE}"
            return MappingProxyType({name: found[name] for name in EXPERT_NAMES}), words, kin
    return None


def _engines(engine: str) -> tuple[str, ...]:
    """Return in which order engines are asked for."""
    known = ENGINES["experts"]
    return (engine, *(each for each in known if each != engine)) if engine in known else known


STATE_NAMES = ("compute_fraction", "scan_step_time")


@lru_cache(maxsize=64)
def state_constants(device: str, engine: str) -> tuple[Mapping[str, float], str, Relatives] | None:
    """Return the constants of a device's states, and whose they are; None if nobody's will do.

    They are those of its own kernels, else the middle of its siblings' or its family's. For
    a program that is none of the measured engines, the first of them stands in.

    >>> found, words, kin = state_constants("Cloud.B200", "vllm")
    >>> 0.05 < found["compute_fraction"] < 0.5, 1e-7 < found["scan_step_time"] < 1e-5
    (True, True)
    """
    known = ENGINES["state"]
    # A narrower class has its engine's name in front: vllm_async.
    own = engine.partition("_")[0]
    for each in (own, *known) if own in known else known:
        if kin := near_kernels(device, "state", "bf16", each):
            found = middle(kin, "state", "bf16", each)
            words = f"fitted to states of {each}{kin.words}; {SOURCE}"
            return MappingProxyType({name: found[name] for name in STATE_NAMES}), words, kin
    return None


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
        # Of a device whose cores nobody counts there are no tiles.
        kin={each: kin for each, (_, kin) in found.items()}
        | ({"tiling": tiles} if device.cores and (tiles := tiling_of(device.key)) else {}),
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
