"""One shape, or very many, in several formats at once: kernels that formats share run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations import linear_layer_times as physics
from mlsim.errors import InvalidValueError, MlsimError, UnreachableError, need
from mlsim.hardware.device import Device
from mlsim.solvers.gemm.asked import layer
from mlsim.solvers.gemm.layer import Layer
from mlsim.workloads.linear_layer import LayerKernel
from mlsim.workloads.recipes import PYTORCH, recipes

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
        place: dict[Any, int] = {}
        kernels: list[LayerKernel] = []
        for each in self.layers.values():
            for kernel in each.kernels:
                key = _alike(kernel)
                if key not in place:
                    place[key] = len(kernels)
                    kernels.append(kernel)
        counts = numpy.zeros((3, len(self.layers), len(kernels)))
        for row, each in enumerate(self.layers.values()):
            for kernel in each.kernels:
                key = _alike(kernel)
                for which, name in enumerate(_REPEATS):
                    counts[which, row, place[key]] += getattr(kernel, name)
        first = next(iter(self.layers.values()))
        union = replace(first, kernels=tuple(kernels))
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
    phase = "training" if asked.get("training") else "inference"
    keys = [key for key, each in recipes(shelf).items() if phase in each.phases]
    names = list(formats) if formats is not None else [*(() if shelf else PLAIN), *keys]
    found: dict[str, Layer] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _asked(name, sides, device, shelf, dict(asked))
        except MlsimError as error:
            if named:
                raise
            left_out[name] = str(error)
    if not found:
        raise UnreachableError(f"no format is left to compare: {next(iter(left_out.values()))}")
    return FormatTable(found, left_out)


def _asked(
    name: str, sides: tuple[Any, Any, Any], device: Device, shelf: str, asked: dict[str, Any]
) -> Layer:
    there = recipes(shelf)
    recipe = name if name in there or str(name).endswith(".toml") else None
    if recipe is None or (recipe in there and not there[recipe].fuses):
        asked["fused"] = False
    made = layer(*sides, device, recipe=recipe, precision=None if recipe else name, **asked)
    _ = made.question  # refuses what has no peak, or was not measured
    return made
