"""Times of attention and experts between the measured ones.

Of these kernels the shelf has a sample of shapes, not a grid. A time between them is that of
the equations with the series' own constants, times its ratio to the nearest measured rows.
How far this is off is measured on each row without itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import dist, exp, inf, log, log1p

from mlsim.errors import NotMeasuredError
from mlsim.hardware.attention_times import decode_time, prefill_time
from mlsim.hardware.kernel_constants import ENGINES, KernelSeries, kernel_series
from mlsim.hardware.kernel_times import PATHS, Rates, experts_time
from mlsim.measured.shelf import SHAPES, TimedKernel, shelf
from mlsim.measured.surfaces import CLOSE, NEAREST, Band, Reading, eight_in_ten
from mlsim.zoo import spaces

Sizes = tuple[int, ...]
KINDS = ("prefill", "decode", "experts")
# What must be as measured: between two of these nothing is interpolated.
_NAMED = {"prefill": ("head_size",), "decode": ("head_size",), "experts": ()}


def _prefill(x: Mapping[str, float], path: str, rates: Rates, c: Mapping[str, float]) -> float:
    numbers = x["sequences"] * x["tokens"] * x["head_size"]
    found = prefill_time(
        x["sequences"],
        x["tokens"],
        x["heads"],
        widths=(x["head_size"], x["head_size"]),
        moved=4 * numbers * x["heads"],
        cached=2 * _cache_bytes(path) * numbers * x["kv_heads"],
        rates=rates,
        c=c,
        window=x["window"] or inf,
    )
    return float(found)


def _decode(x: Mapping[str, float], path: str, rates: Rates, c: Mapping[str, float]) -> float:
    context = min(x["cached_tokens"] + 1, x["window"] or inf)
    pieces = x["sequences"] * x["kv_heads"]
    queries = x["sequences"] * x["heads"] * x["head_size"]
    moved = 2 * pieces * x["head_size"] * context * _cache_bytes(path) + 4 * queries
    flops = 4 * queries * context
    constants = {"compute_fraction": 1.0, **c}
    found = decode_time(
        pieces,
        context,
        flops,
        moved,
        rates=rates,
        c=constants,
        group=x["heads"] / x["kv_heads"],
        width=x["head_size"],
    )
    return float(found)


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


_TIMES: Mapping[str, Callable[..., float]] = {
    "prefill": _prefill,
    "decode": _decode,
    "experts": _experts,
}


@dataclass(frozen=True)
class Sample:
    """The measured kernels of a kind on one device, of one path and engine."""

    kind: str
    rows: tuple[TimedKernel, ...]
    series: KernelSeries
    rates: Rates

    @cached_property
    def times(self) -> dict[Sizes, float]:
        """Seconds by shape."""
        return {row.shape: row.seconds for row in self.rows}

    def formula(self, shape: Sizes) -> float:
        """Return the seconds that the equations say, with the constants of the series."""
        sizes = dict(zip(SHAPES[self.kind], map(float, shape), strict=True))
        return _TIMES[self.kind](sizes, self.series.path, self.rates, self.series.values)

    @cached_property
    def ratios(self) -> dict[Sizes, float]:
        """Logarithms of measured times over those of the equations."""
        return {shape: log(seconds / self.formula(shape)) for shape, seconds in self.times.items()}

    @cached_property
    def between(self) -> Band:
        """Limits of measured over interpolated times: eight in ten of rows left out."""
        return eight_in_ten([own - self._ratio(shape)[0] for shape, own in self.ratios.items()])

    @cached_property
    def ends(self) -> dict[str, tuple[int, int]]:
        """Least and most of each size that was measured."""
        columns = zip(SHAPES[self.kind], zip(*self.times, strict=True), strict=True)
        return {name: (min(sizes), max(sizes)) for name, sizes in columns}

    def read(self, shape: Sizes) -> Reading:
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
        self._check(shape)
        ratio, near = self._ratio(shape)
        seconds = self.formula(shape) * exp(ratio)
        return Reading(seconds, seconds * low, seconds * high, True, near)

    def _check(self, shape: Sizes) -> None:
        for (name, (low, high)), size in zip(self.ends.items(), shape, strict=True):
            place = SHAPES[self.kind].index(name)
            there = sorted({each[place] for each in self.times})
            if name in _NAMED[self.kind] and size not in there:
                raise NotMeasuredError(
                    f"{name} {size:,} was not measured of {self._what}; there are "
                    f"{', '.join(map(str, there))}."
                )
            if not low <= size <= high:
                raise NotMeasuredError(
                    f"{name} {size:,} lies outside of what was measured of {self._what}: from "
                    f"{low:,} to {high:,}."
                )

    @property
    def _what(self) -> str:
        return f"{self.kind} in {self.series.path} of {self.series.engine} on {self.series.device}"

    def _ratio(self, shape: Sizes) -> tuple[float, tuple[Sizes, ...]]:
        """Return the ratio near a shape, but not at it, and the rows it is from."""

        def far(other: Sizes) -> float:
            return dist([log1p(each) for each in shape], [log1p(each) for each in other])

        near = sorted((far(each), each) for each in self.ratios if each != shape)[:NEAREST]
        weights = [1 / (distance + CLOSE) for distance, _ in near]
        summed = sum(w * self.ratios[each] for w, (_, each) in zip(weights, near, strict=True))
        return summed / sum(weights), tuple(each for _, each in near)


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
    series = kernel_series(device, kind, path, chosen)
    return Sample(kind, own, series, _rates(series))


def _rates(series: KernelSeries) -> Rates:
    found, path = spaces.Hardware.get(series.device), series.path
    peak = PATHS[path].peak if series.kind == "experts" else path.partition("_")[0]
    return Rates(found.compute.figure(peak).si, found.bandwidth_si, series.cores)
