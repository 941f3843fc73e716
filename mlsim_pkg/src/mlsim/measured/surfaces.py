"""Times of products between the measured ones: surfaces over rows, outputs and depth.

Of each device one series, of products in 16 bits, is a grid of powers of two. Between its
rows the logarithm of the time is linear in the logarithms of the three sides. Every other
series is a sample of shapes: it takes that surface times its own ratio to it, averaged over
its nearest rows. How far this is off is measured on rows that it did not use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product as combinations
from math import dist, exp, log
from statistics import median, quantiles

from mlsim.errors import NotMeasuredError, closest
from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import ENGINES, measured_devices
from mlsim.measured.shelf import TimedKernel, shelf
from mlsim.zoo import resolve

Shape = tuple[int, int, int]
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


class Grid:
    """The measured products whose three sides are powers of two, and what lies between."""

    def __init__(self, rows: Iterable[TimedKernel]) -> None:
        times = {_sides(row): row.seconds for row in rows}
        self.logs = {shape: log(s) for shape, s in times.items() if all(map(_is_power, shape))}
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
        return {_sides(row): row.seconds for row in self.rows}

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
            off = [own - self._ratio(shape)[0] for shape, own in self.ratios.items()]
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
        if not corners or not self._inside(shape):
            raise NotMeasuredError(self._refusal(shape))
        ratio, near = (0.0, tuple(corners)) if self.is_grid else self._ratio(shape)
        seconds, (low, high) = exp(self.grid.log_time(corners) + ratio), self.between
        return Reading(seconds, seconds * low, seconds * high, True, near)

    def _ratio(self, shape: Shape) -> tuple[float, tuple[Shape, ...]]:
        """Return the ratio to the grid near a shape, but not at it, and the rows it is from."""

        def far(other: Shape) -> float:
            return dist([log(each) for each in shape], [log(each) for each in other])

        near = sorted((far(each), each) for each in self.ratios if each != shape)[:NEAREST]
        weights = [1 / (distance + CLOSE) for distance, _ in near]
        summed = sum(w * self.ratios[each] for w, (_, each) in zip(weights, near, strict=True))
        return summed / sum(weights), tuple(each for _, each in near)

    @cached_property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """Least and most of each side that was measured, M, N and K."""
        return tuple(
            (min(shape[side] for shape in self.times), max(shape[side] for shape in self.times))
            for side in range(3)
        )

    def _inside(self, shape: Shape) -> bool:
        return all(low <= size <= high for size, (low, high) in zip(shape, self.ends, strict=True))

    def _refusal(self, shape: Shape) -> str:
        row = self.rows[0]
        given = ", ".join(f"{name}={size:,}" for name, size in zip("MNK", shape, strict=True))
        ranges = ", ".join(
            f"{name} from {low:,} to {high:,}"
            for name, (low, high) in zip("MNK", self.ends, strict=True)
        )
        what = f"{row.path} products of {row.engine} on {self.device}"
        if self._inside(shape):
            return (
                f"no {what} were measured on every side of {given}, though each side is in range "
                f"({ranges}): the largest sides were not measured together. Take a smaller one."
            )
        return (
            f"{given} lies outside of what was measured. The {what} have {ranges}. "
            "A laboratory does not extrapolate: take a shape within, or predict this one with "
            "`mlsim predict`."
        )


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
    one = {_sides(row): row.seconds for row in rows[GRID]}
    apart: list[float] = []
    for (path, engine), several in rows.items():
        if path == GRID[0] and engine != GRID[1]:
            logs = [log(row.seconds / one[_sides(row)]) for row in several if _sides(row) in one]
            usual = median(logs)
            apart += [each - usual for each in logs]
    return eight_in_ten(apart)


def eight_in_ten(logs: Sequence[float]) -> Band:
    """Return factors between which eight in ten of these logarithms lie, with 1 among them."""
    tenths = quantiles(logs, n=10, method="inclusive")
    # A time lies within its own band, even where nearly all rows are off to one side.
    return min(exp(tenths[0]), 1.0), max(exp(tenths[-1]), 1.0)


def _sides(row: TimedKernel) -> Shape:
    rows, outputs, depth = row.shape
    return rows, outputs, depth


def _is_power(size: int) -> bool:
    return size & (size - 1) == 0
