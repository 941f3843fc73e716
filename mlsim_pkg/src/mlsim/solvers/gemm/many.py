"""One shape, or very many, in several formats at once: kernels that formats share run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.equations import linear_layer as physics
from mlsim.errors import InvalidValueError, MlsimError, UnreachableError, need
from mlsim.hardware.device import Device
from mlsim.solvers.gemm import rates
from mlsim.solvers.gemm.asked import in_format, layer
from mlsim.solvers.gemm.layer import Layer
from mlsim.workloads.recipes import PYTORCH, LayerKernel, recipes

if TYPE_CHECKING:
    import pandas

# Formats without passes that are compared if nobody names any.
PLAIN = ("bf16",)


class FormatTable:
    """Times of one layer, or of an array of them, in several formats.

    Attributes
    ----------
    formats
        Names: formats, or keys of recipes.
    left_out
        Those that the device can't run, or whose blocks don't fit, and why.

    >>> from mlsim import Engine
    >>> table = Engine.compare_formats([128, 8192], 4096, 4096, hardware="H100")
    >>> table.latency.shape == (len(table.formats), 2)
    True
    """

    def __init__(self, layers: dict[str, Layer], left_out: dict[str, str]) -> None:
        self.layers, self.left_out = layers, left_out
        self.formats = tuple(layers)

    @cached_property
    def _times(self) -> tuple[Any, Any, Any]:
        """Products, passes and baseline of each format, each of shape (formats, *points)."""
        numpy = need("numpy", "a comparison of formats", "arrays")
        kernels, counts = _merged(tuple(each.kernels for each in self.layers.values()))
        first = next(iter(self.layers.values()))
        union = replace(first, kernels=kernels)
        times = union.question.evaluate("operator_time")["operator_time"]
        times = numpy.broadcast_to(times, (len(kernels), *first.shape))
        flat = times.reshape(len(kernels), -1)
        found = (physics.several_times(each, flat) for each in counts)
        shape = (len(self.layers), *first.shape)
        products, casts, baseline = (each.reshape(shape) for each in found)
        return products, casts, baseline

    @property
    def latency(self) -> Any:
        """Times in s, of shape (formats, *points)."""
        products, casts, _ = self._times
        return physics.layer_latency(products, casts)

    @property
    def casts(self) -> Any:
        """Times in s of passes between formats, of shape (formats, *points)."""
        return self._times[1]

    @property
    def speedup(self) -> Any:
        """How many times as fast as 16 bits, of shape (formats, *points)."""
        return physics.format_speedup(self._times[2], self.latency)

    @property
    def best(self) -> Any:
        """The name of the fastest format, for each point."""
        numpy = need("numpy", "a comparison of formats", "arrays")
        return numpy.array(self.formats)[self.latency.argmin(axis=0)]

    def table(self) -> pandas.DataFrame:
        """Return one layer as a table, the fastest format first.

        Raises
        ------
        InvalidValueError
            Of an array of layers.
        """
        library = need("pandas", "a table", "arrays")
        if self.latency.ndim > 1:
            raise InvalidValueError("a table is of one layer: give M, N and K as single numbers.")
        found: pandas.DataFrame = library.DataFrame(
            {
                "format": self.formats,
                "latency": self.latency,
                "casts_time": self.casts,
                "format_speedup": self.speedup,
            }
        )
        return found.sort_values("latency", kind="stable").reset_index(drop=True)


@lru_cache(maxsize=64)
def _merged(several: tuple[tuple[LayerKernel, ...], ...]) -> tuple[tuple[LayerKernel, ...], Any]:
    """Return the kernels that differ, and how often each stands as what in each format."""
    import numpy as np

    place: dict[LayerKernel, int] = {}
    for kernels in several:
        for each in kernels:
            place.setdefault(_alike(each), len(place))
    counts = np.zeros((len(_REPEATS), len(several), len(place)))
    for row, kernels in enumerate(several):
        for each in kernels:
            for which, name in enumerate(_REPEATS):
                counts[which, row, place[_alike(each)]] += getattr(each, name)
    return tuple(place), counts


def _alike(kernel: LayerKernel) -> LayerKernel:
    """Return a kernel without what does not change its time: names, and where it counts."""
    own = float(kernel.product_repeats > 0)
    return replace(
        kernel, name="", does="", product_repeats=own, cast_repeats=0.0, baseline_repeats=0.0
    )


_REPEATS = ("product_repeats", "cast_repeats", "baseline_repeats")


def compare(
    sides: tuple[Any, Any, Any],
    device: Device,
    formats: Sequence[str] | None,
    **asked: Any,
) -> FormatTable:
    """Return times of a layer in several formats; see `Engine.compare_formats`.

    Raises
    ------
    MlsimError
        As `Engine.gemm`, for a format that was named.
    """
    named = formats is not None
    shelf = PYTORCH if asked.get("constants") else ""
    blank = layer(*sides, device, **{**asked, "fused": False})
    blank = replace(blank, fused=bool(asked.get("fused")))
    keys = [key for key, each in recipes(shelf).items() if blank.phase in each.phases]
    names = list(formats) if formats is not None else [*(() if shelf else PLAIN), *keys]
    found: dict[str, Layer] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _asked(name, blank, shelf)
        except MlsimError as error:
            if named:
                raise
            left_out[name] = str(error)
    if not found:
        raise UnreachableError(f"no format is left to compare: {next(iter(left_out.values()))}")
    return FormatTable(found, left_out)


def _asked(name: str, blank: Layer, shelf: str) -> Layer:
    there = recipes(shelf)
    recipe = name if name in there or str(name).endswith(".toml") else None
    if recipe is None or (recipe in there and not there[recipe].fuses(blank.phase)):
        blank = replace(blank, fused=False)
    made = in_format(blank, None if recipe else name, recipe)
    rates.check(made)
    return made
