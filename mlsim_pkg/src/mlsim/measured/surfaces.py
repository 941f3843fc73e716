"""Measured kernels as they were timed, and times between them.

The shelf has a few thousand for each device of the atlas. They come from the package that
`hardware.kernel_constants` names, chosen by `benchmarks/atlas`: of products in 16 bits a grid of
powers of two, of the rest a fair sample; besides, stairs of rows and products in several formats.

Of each device one series, of products in 16 bits, is a grid of powers of two. Between its
rows the logarithm of the time is linear in the logarithms of the three sides. Every other
series is a sample of shapes: it takes that surface times its own ratio to it, averaged over
its nearest rows. Of attention and experts a time is that of the equations with the series' own
constants, times its ratio to the nearest measured rows. How far this is off is measured on rows
that were not used.
"""

from __future__ import annotations

import csv
import gzip
import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product as combinations
from math import dist, exp, inf, log, log1p
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, cast

from mlsim.errors import DataFileError, NotMeasuredError, closest
from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import (
    ATLAS,
    ENGINES,
    SOURCE,
    KernelSeries,
    kernel_series,
    measured_devices,
)
from mlsim.hardware.kernel_times import PATHS, Rates, decode_time, experts_time, prefill_time
from mlsim.units import text
from mlsim.values import Origin, of_base
from mlsim.zoo import resolve, spaces

if TYPE_CHECKING:
    from mlsim.values.kinds import Plain, Quantity


COLUMNS = ("kind", "path", "engine", "version", "kernel", "fitted", "shape", "microseconds")

# What the numbers of a shape are, by kind.
_ATTENTION = ("sequences", "heads", "kv_heads", "head_size", "window")
SHAPES = {
    "product": ("rows", "outputs", "depth"),
    "prefill": ("tokens", *_ATTENTION),
    "decode": ("cached_tokens", *_ATTENTION),
    "latent_prefill": ("sequences", "tokens", "heads"),
    "latent_decode": ("sequences", "cached_tokens", "heads"),
    "experts": (
        *("tokens", "hidden", "width", "chosen", "experts"),
        *("tensor_parallel", "expert_parallel", "even"),
    ),
    "state": ("sequences", "tokens", "heads", "key_size", "value_size"),
    "exchange": ("devices", "elements"),
    "graph_all_reduce": ("devices", "elements"),
}


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """One measured shape.

    Attributes
    ----------
    kind, path, engine, version, kernel
        As in `KernelSeries`.
    fitted
        Whether constants were fitted to it.
    shape
        Numbers, named by `SHAPES`; elements of an exchange have two bytes each.
    seconds
        Its time; the median where it was measured several times.
    """

    kind: str
    path: str
    engine: str
    version: str
    kernel: str
    fitted: bool
    shape: tuple[int, ...]
    seconds: float


@lru_cache(maxsize=16)
def shelf(device: str) -> tuple[TimedKernel, ...]:
    """Return the measured kernels of a device, by its key.

    Raises
    ------
    NotMeasuredError
        If there are none; lists the devices that have some.

    >>> rows = [row for row in shelf("Cloud.H100") if row.kind == "product"]
    >>> len(rows) > 1000
    True
    """
    path = ATLAS / "shelf" / f"{device}.csv.gz"
    if not path.is_file():
        there = ", ".join(
            each.name.removesuffix(".csv.gz") for each in sorted(path.parent.iterdir())
        )
        raise NotMeasuredError(f"no kernels of {device} are on the shelf. There are: {there}.")
    content = gzip.decompress(path.read_bytes()).decode()
    found = []
    for cells in _rows(path, content, COLUMNS):
        kind, number_format, engine, version, kernel, fitted, shape, us = (
            cells[each] for each in COLUMNS
        )
        about = (kind, number_format, engine, version, kernel, fitted == "1")
        sizes = tuple(map(int, shape.split()))
        found.append(TimedKernel(*about, sizes, float(us) * 1e-6))
    return tuple(found)


def _rows(path: Path, content: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the rows of a table that `benchmarks/atlas` wrote, and that must have these columns."""
    reader = csv.DictReader(io.StringIO(content))
    if tuple(reader.fieldnames or ()) != columns:
        raise DataFileError(f"{path}:1: the columns must be {', '.join(columns)}.")
    yield from reader


Shape = tuple[int, ...]
Band = tuple[float, float]

# The series that is a grid, by path and engine; nearest rows that make a ratio.
GRID = ("bf16", "trtllm")
NEAREST = 5
# Keeps a row that lies next to the shape from being the only one that counts.
CLOSE = 0.1


@dataclass(frozen=True, slots=True)
class Reading:
    """A time read off a surface.

    Attributes
    ----------
    seconds, low, high
        The time; limits between which eight in ten lie.
    interpolated
        Whether it lies between measured rows, or is one.
    neighbours
        Measured shapes that it was made of.
    """

    seconds: float
    low: float
    high: float
    interpolated: bool
    neighbours: tuple[tuple[int, ...], ...]

    def times(self) -> dict[str, float]:
        """Return the time and its limits, as columns of a table."""
        return {"time": self.seconds, "low": self.low, "high": self.high}


class Grid:
    """The measured products whose three sides are powers of two, and what lies between."""

    def __init__(self, rows: Iterable[TimedKernel]) -> None:
        times = {row.shape: row.seconds for row in rows}
        powers = (shape for shape in times if all(size & (size - 1) == 0 for size in shape))
        self.logs = {shape: log(times[shape]) for shape in powers}
        self.axes = [sorted({shape[side] for shape in self.logs}) for side in range(3)]

    def corners(self, shape: Shape) -> dict[Shape, float]:
        """Return the rows around a shape and their weights; none if any is not there."""
        ends: list[list[tuple[int, float]]] = []
        for axis, size in zip(self.axes, shape, strict=True):
            if not axis[0] <= size <= axis[-1]:
                return {}
            place = bisect_right(axis, size) - 1
            below = axis[place]
            if below == size:
                ends.append([(below, 1.0)])
                continue
            above = axis[place + 1]
            weight = log(size / below) / log(above / below)
            ends.append([(below, 1 - weight), (above, weight)])
        found: dict[Shape, float] = {}
        for (m, a), (n, b), (k, c) in combinations(*ends):
            if (m, n, k) not in self.logs:
                return {}
            found[m, n, k] = a * b * c
        return found

    def log_time(self, corners: dict[Shape, float]) -> float:
        """Return the logarithm of the time from rows and their weights."""
        return sum(weight * self.logs[shape] for shape, weight in corners.items())


@dataclass(frozen=True)
class Surface:
    """The measured products of one device, path and engine.

    Attributes
    ----------
    device, rows
        Key of the zoo; rows of one series.
    grid
        Of the same device.
    same
        Limits of a time when another program times the same product, as shares of it.
    """

    device: str
    rows: tuple[TimedKernel, ...]
    grid: Grid
    same: Band

    @cached_property
    def times(self) -> dict[Shape, float]:
        """Seconds by shape."""
        return {row.shape: row.seconds for row in self.rows}

    @property
    def is_grid(self) -> bool:
        """Whether it is the series that is a grid."""
        return (self.rows[0].path, self.rows[0].engine) == GRID

    @cached_property
    def ratios(self) -> dict[Shape, float]:
        """Logarithms of its times over the grid's, where that has one."""
        found = {}
        for shape, seconds in self.times.items():
            if corners := self.grid.corners(shape):
                found[shape] = log(seconds) - self.grid.log_time(corners)
        return found

    @cached_property
    def between(self) -> Band:
        """Limits of measured over interpolated times: eight in ten of rows left out."""
        if self.is_grid:
            off = [each for shape, each in self.ratios.items() if shape not in self.grid.logs]
        else:
            off = [own - ratio_near(shape, self.ratios)[0] for shape, own in self.ratios.items()]
        return eight_in_ten(off)

    def read(self, shape: Shape) -> Reading:
        """Return the time of a product.

        Raises
        ------
        NotMeasuredError
            If it lies outside of what was measured; says what was.
        """
        if shape in self.times:
            seconds, (low, high) = self.times[shape], self.same
            return Reading(seconds, seconds * low, seconds * high, False, (shape,))
        corners = self.grid.corners(shape)
        sides = tuple(zip("MNK", shape, self.ends, strict=True))
        inside = all(low <= size <= high for _, size, (low, high) in sides)
        if not corners or not inside:
            row = self.rows[0]
            given = ", ".join(f"{name}={size:,}" for name, size, _ in sides)
            ranges = ", ".join(f"{name} from {low:,} to {high:,}" for name, _, (low, high) in sides)
            what = f"{row.path} products of {row.engine} on {self.device}"
            raise NotMeasuredError(
                f"no {what} were measured on every side of {given}, though each side is in range "
                f"({ranges}): the largest sides were not measured together. Take a smaller one."
                if inside
                else f"{given} lies outside of what was measured. The {what} have {ranges}. "
                "A laboratory does not extrapolate: take a shape within, or predict this one with "
                "`mlsim predict`."
            )
        ratio, near = (0.0, tuple(corners)) if self.is_grid else ratio_near(shape, self.ratios)
        seconds, (low, high) = exp(self.grid.log_time(corners) + ratio), self.between
        return Reading(seconds, seconds * low, seconds * high, True, near)

    @cached_property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """Least and most of each side that was measured, M, N and K."""
        return tuple((min(sizes), max(sizes)) for sizes in zip(*self.times, strict=True))


@lru_cache(maxsize=64)
def surfaces(device: str) -> dict[tuple[str, str], Surface]:
    """Return the products of a device by path and engine.

    Raises
    ------
    NotMeasuredError
        If the shelf has none of that device; lists those that it has.

    >>> reading = surfaces("Cloud.H100")["bf16", "trtllm"].read((4096, 4096, 4096))
    >>> reading.interpolated, round(reading.seconds * 1e6)
    (False, 174)
    """
    rows: dict[tuple[str, str], list[TimedKernel]] = {}
    for row in shelf(device):
        if row.kind == "product":
            rows.setdefault((row.path, row.engine), []).append(row)
    grid, same = Grid(rows[GRID]), _programs(rows)
    return {key: Surface(device, tuple(several), grid, same) for key, several in rows.items()}


def in_order(found: dict[tuple[str, str], Surface]) -> list[tuple[tuple[str, str], Surface]]:
    """Return surfaces by precision, and within one by the backend that is the default."""
    return sorted(
        found.items(), key=lambda item: (item[0][0], ENGINES["product"].index(item[0][1]))
    )


def find_surface(hardware: Device | str, precision: str, backend: str) -> Surface:
    """Return the products that a caller asks for, of the first backend if none is named.

    Raises
    ------
    NotMeasuredError
        If the device, the precision or the backend was not measured; says what was.

    >>> find_surface("H100", "fp8", "").rows[0].engine
    'trtllm'
    """
    key = resolve.device(hardware).key
    there = measured_devices("product")
    if key not in there:
        raise NotMeasuredError(
            f"the laboratory has no {key}: nobody's kernels of it are on the shelf. It has "
            f"{', '.join(there)}. Take one of those, or predict {key} with Engine.solve."
        )
    found = in_order(surfaces(key))
    for (path, engine), surface in found:
        if path == precision and backend in ("", engine):
            return surface
    pairs = ", ".join(f"{path} of {engine}" for (path, engine), _ in found)
    near = closest(precision, [path for (path, _), _ in found], 1)
    meant = f" Did you mean {near[0]!r}?" if near and near[0] != precision else ""
    if precision in ("fp16", "float16", "half"):
        meant = " Products in 16 bits were timed in bf16, which has the same peak."
    raise NotMeasuredError(
        f"no products in {precision!r}{f' of {backend!r}' if backend else ''} were measured on "
        f"{key}.{meant} There are: {pairs}."
    )


def _programs(rows: dict[tuple[str, str], list[TimedKernel]]) -> Band:
    """Return how far apart programs time the same product in 16 bits, but for a usual factor."""
    one = {row.shape: row.seconds for row in rows[GRID]}
    apart: list[float] = []
    for (path, engine), several in rows.items():
        if path == GRID[0] and engine != GRID[1]:
            logs = [log(row.seconds / one[row.shape]) for row in several if row.shape in one]
            usual = median(logs)
            apart += [each - usual for each in logs]
    return eight_in_ten(apart)


def ratio_near(
    shape: Shape, ratios: Mapping[Shape, float], scale: Callable[[float], float] = log
) -> tuple[float, tuple[Shape, ...]]:
    """Return the ratio near a shape, but not at it, and the rows it is from."""
    here = [scale(each) for each in shape]
    near = sorted(
        (dist(here, [scale(each) for each in other]), other) for other in ratios if other != shape
    )[:NEAREST]
    weights = [1 / (distance + CLOSE) for distance, _ in near]
    summed = sum(w * ratios[each] for w, (_, each) in zip(weights, near, strict=True))
    return summed / sum(weights), tuple(each for _, each in near)


def eight_in_ten(logs: Sequence[float]) -> Band:
    """Return factors between which eight in ten of these logarithms lie, with 1 among them."""
    tenths = quantiles(logs, n=10, method="inclusive")
    # A time lies within its own band, even where nearly all rows are off to one side.
    return min(exp(tenths[0]), 1.0), max(exp(tenths[-1]), 1.0)


# What must be as measured: between two of these nothing is interpolated.
_NAMED = {"prefill": ("head_size",), "decode": ("head_size",), "experts": ()}


def _prefill(x: Mapping[str, float], path: str, rates: Rates, c: Mapping[str, float]) -> float:
    numbers = x["sequences"] * x["tokens"] * x["head_size"]
    moved, widths = 4 * numbers * x["heads"], (x["head_size"], x["head_size"])
    cached, window = 2 * _cache_bytes(path) * numbers * x["kv_heads"], x["window"] or inf
    sizes = (x["sequences"], x["tokens"], x["heads"])
    return float(
        prefill_time(
            *sizes, widths=widths, moved=moved, cached=cached, rates=rates, c=c, window=window
        )
    )


def _decode(x: Mapping[str, float], path: str, rates: Rates, c: Mapping[str, float]) -> float:
    context = min(x["cached_tokens"] + 1, x["window"] or inf)
    pieces = x["sequences"] * x["kv_heads"]
    queries = x["sequences"] * x["heads"] * x["head_size"]
    moved = 2 * pieces * x["head_size"] * context * _cache_bytes(path) + 4 * queries
    flops = 4 * queries * context
    constants = {"compute_fraction": 1.0, **c}
    group, width = x["heads"] / x["kv_heads"], x["head_size"]
    work = (pieces, context, flops, moved)
    return float(decode_time(*work, rates=rates, c=constants, group=group, width=width))


def _experts(x: Mapping[str, float], path: str, rates: Rates, c: Mapping[str, float]) -> float:
    found = experts_time(
        x["tokens"],
        hidden=x["hidden"],
        width=x["width"] / x["tensor_parallel"],
        chosen=x["chosen"],
        experts_of_layer=x["experts"],
        devices=x["expert_parallel"],
        path=PATHS[path],
        rates=rates,
        c=c,
        even=x["even"],
    )
    return float(found)


def _cache_bytes(path: str) -> float:
    return 1.0 if path.endswith("fp8") else 2.0


_TIMES = {"prefill": _prefill, "decode": _decode, "experts": _experts}


@dataclass(frozen=True)
class Sample:
    """The measured kernels of a kind on one device, of one path and engine."""

    kind: str
    rows: tuple[TimedKernel, ...]
    series: KernelSeries
    rates: Rates

    @cached_property
    def times(self) -> dict[Shape, float]:
        """Seconds by shape."""
        return {row.shape: row.seconds for row in self.rows}

    def formula(self, shape: Shape) -> float:
        """Return the seconds that the equations say, with the constants of the series."""
        sizes = dict(zip(SHAPES[self.kind], map(float, shape), strict=True))
        return _TIMES[self.kind](sizes, self.series.path, self.rates, self.series.values)

    @cached_property
    def ratios(self) -> dict[Shape, float]:
        """Logarithms of measured times over those of the equations."""
        return {shape: log(seconds / self.formula(shape)) for shape, seconds in self.times.items()}

    @cached_property
    def between(self) -> Band:
        """Limits of measured over interpolated times: eight in ten of rows left out."""
        return eight_in_ten(
            [own - ratio_near(shape, self.ratios, log1p)[0] for shape, own in self.ratios.items()]
        )

    @cached_property
    def ends(self) -> dict[str, tuple[int, int]]:
        """Least and most of each size that was measured."""
        columns = zip(SHAPES[self.kind], zip(*self.times, strict=True), strict=True)
        return {name: (min(sizes), max(sizes)) for name, sizes in columns}

    def read(self, shape: Shape) -> Reading:
        """Return the time of a kernel.

        Raises
        ------
        NotMeasuredError
            If it lies outside of what was measured; says what was.
        """
        low, high = self.between
        if shape in self.times:
            seconds = self.times[shape]
            return Reading(seconds, seconds, seconds, False, (shape,))
        what = f"{self.kind} in {self.series.path} of {self.series.engine} on {self.series.device}"
        for place, ((name, (least, most)), size) in enumerate(
            zip(self.ends.items(), shape, strict=True)
        ):
            there = sorted({each[place] for each in self.times})
            if name in _NAMED[self.kind] and size not in there:
                raise NotMeasuredError(
                    f"{name} {size:,} was not measured of {what}; there are "
                    f"{', '.join(map(str, there))}."
                )
            if not least <= size <= most:
                raise NotMeasuredError(
                    f"{name} {size:,} lies outside of what was measured of {what}: from "
                    f"{least:,} to {most:,}."
                )
        ratio, near = ratio_near(shape, self.ratios, log1p)
        seconds = self.formula(shape) * exp(ratio)
        return Reading(seconds, seconds * low, seconds * high, True, near)


@lru_cache(maxsize=128)
def sample(device: str, kind: str, path: str, engine: str = "") -> Sample:
    """Return the kernels of a kind, of the first engine that has them if none is named.

    Raises
    ------
    NotMeasuredError
        If there are none; says which there are.

    >>> found = sample("Cloud.H100", "decode", "bf16")
    >>> low, high = found.between
    >>> len(found.rows), low < 1 < high
    (120, True)
    """
    rows = [row for row in shelf(device) if row.kind == kind]
    pairs = {(row.path, row.engine) for row in rows}
    engines = [engine] if engine else list(ENGINES.get(kind, ENGINES["product"]))
    chosen = next((each for each in engines if (path, each) in pairs), None)
    if chosen is None:
        there = ", ".join(f"{one} of {other}" for one, other in sorted(pairs)) or "none"
        raise NotMeasuredError(
            f"no {kind} in {path!r}{f' of {engine!r}' if engine else ''} was measured on {device}. "
            f"There are: {there}."
        )
    own = tuple(row for row in rows if (row.path, row.engine) == (path, chosen))
    series, found = kernel_series(device, kind, path, chosen), spaces.Hardware.get(device)
    peak = PATHS[path].peak if kind == "experts" else path.partition("_")[0]
    rates = Rates(found.compute.figure(peak).si, found.bandwidth_si, series.cores)
    return Sample(kind, own, series, rates)


FORMATS = ("bf16", "fp8", "fp4")
# Slices of the atlas, and their columns of times in us, by format.
_SIDES = ("rows", "outputs", "depth")
_SLICES = {"stairs": {"bf16": "us"}, "formats": {name: f"{name}_us" for name in FORMATS}}


@dataclass(frozen=True, slots=True)
class MeasuredProduct:
    """A product M x N x K on a device, and its time in s by format.

    Attributes
    ----------
    device
        A key of the zoo.
    rows, outputs, depth
        M, N and K.
    seconds
        By format, that of the fastest backend, or of one backend.
    backend
        That backend.
    source
        Key of the document.
    """

    device: str
    rows: int
    outputs: int
    depth: int
    seconds: Mapping[str, float]
    backend: str = "fastest backend"
    source: str = SOURCE

    def time(self, name: str = "bf16") -> Quantity:
        """Return the time in a format, a value.

        >>> print(measured_formats("Cloud.H100")[-1].time("fp8"))
        11.9 ms
        """
        words = f"measured time in {name}"
        sides = f"M={self.rows:,}, N={self.outputs:,}, K={self.depth:,}"
        measured = f"measured on {self.device.split('.')[-1]}, {self.backend}, {sides}"
        brief = f"{words} = {text(self.seconds[name], 's')}, {measured} [@{self.source}]"
        return of_base(self.seconds[name], "s", Origin(words, brief))

    def speedup(self, name: str) -> Plain:
        """Return how many times as fast a format is as 16 bits, a value.

        >>> row = measured_formats("Cloud.H100")[-1]
        >>> row.speedup("fp8") > 1
        True
        """
        return cast("Plain", self.time() / self.time(name))


def measured_stairs(device: str = "Cloud.A100") -> tuple[MeasuredProduct, ...]:
    """Return two products in BF16 with ever more rows, on one backend of a device.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.

    >>> sorted({(row.outputs, row.depth) for row in measured_stairs()})
    [(7168, 4096), (51200, 8192)]
    """
    return _slice("stairs", device)


def measured_formats(device: str) -> tuple[MeasuredProduct, ...]:
    """Return products with square weights in several formats, the fastest backend of each.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.

    >>> list(measured_formats("Cloud.B200")[0].seconds)
    ['bf16', 'fp8', 'fp4']
    """
    return _slice("formats", device)


def _slice(name: str, device: str) -> tuple[MeasuredProduct, ...]:
    rows = _products(name)
    found = tuple(row for row in rows if row.device == device)
    if not found:
        there = ", ".join(dict.fromkeys(row.device for row in rows))
        raise NotMeasuredError(f"no such slice of {device} is on record. There are: {there}.")
    return found


@cache
def _products(name: str) -> tuple[MeasuredProduct, ...]:
    path, times, found = ATLAS / f"{name}.csv", _SLICES[name], []
    about = ("device", *(("engine",) if name == "stairs" else ()))
    for row in _rows(path, path.read_text("utf-8"), (*about, *_SIDES, *times.values())):
        m, n, k = (int(row[each]) for each in _SIDES)
        seconds = {each: float(row[us]) * 1e-6 for each, us in times.items() if row[us]}
        backend = row.get("engine", "fastest backend")
        found.append(MeasuredProduct(row["device"], m, n, k, seconds, backend))
    return tuple(found)
