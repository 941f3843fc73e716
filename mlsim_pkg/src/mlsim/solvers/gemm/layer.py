"""A question about one linear layer: its sides, its kernels, and which equations answer it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from mlsim.equations import (
    Equation,
    calibration,
    equations_of,
    kernels,
    linear_layer,
    linear_layer as sides,
    roofline,
)
from mlsim.errors import UnsupportedPrecisionError
from mlsim.hardware.device import Device
from mlsim.hardware.kernel_times import LEAST_DEPTH, TILES
from mlsim.hardware.lone_kernels import FASTEST, Chosen, fastest, series_of
from mlsim.hardware.named_constants import DeviceConstants
from mlsim.records import DATA
from mlsim.solvers.question import Known, Question, recorded, shape_of
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.recipes import COLUMNS, LayerKernel, Recipe

# The path whose memory and starts stand for passes between formats.
STREAMS = "bf16"

Columns = dict[str, Any]


def rate_columns(layer: Layer) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Return columns of a layer's kernels that its device decides; and those that vary by point.

    Raises
    ------
    UnsupportedPrecisionError
        If the device, or the set of constants, has no peak for a format.
    NotMeasuredError
        If a calibrated estimate is asked of what nobody measured.
    """
    rows = [_columns(layer, kernel) for kernel in layer.kernels]
    names = rows[0]
    varying = {name for row in rows for name in names if getattr(row[name], "ndim", 0)}
    fixed = {name: [float(row[name]) for row in rows] for name in names if name not in varying}
    if not varying:
        return fixed, {}
    import numpy as np

    def wide(name: str) -> Any:
        each = [np.broadcast_to(row[name], layer.shape).reshape(-1) for row in rows]
        return np.stack(each)

    return fixed, {name: wide(name) for name in sorted(varying)}


def _columns(layer: Layer, kernel: LayerKernel) -> Columns:
    found: Columns = {"peak_flops": peak(layer, kernel)}
    if layer.estimate == "calibrated":
        found |= _measured(layer, kernel)
    own = {name: value for name, value in layer.given.items() if name in found}
    if kernel.baseline_repeats:
        # A peak that is given is that of the format which is asked about.
        own.pop("peak_flops", None)
    return {**found, **own}


def peak(layer: Layer, kernel: LayerKernel) -> float:
    """Return the peak in FLOP/s of a kernel's format; of a pass, the baseline's.

    Raises
    ------
    UnsupportedPrecisionError
        If there is none; says what there is.
    """
    if not kernel.computes:
        # It does no arithmetic, so any peak will do.
        return peak(layer, next(each for each in layer.kernels if each.computes))
    if layer.constants:
        return layer.constants.peak(kernel.computes)
    try:
        return layer.device.compute.figure(kernel.computes).si
    except UnsupportedPrecisionError as error:
        if layer.recipe is None or kernel.baseline_repeats:
            raise
        raise UnsupportedPrecisionError(
            f"the recipe {layer.recipe.key!r} multiplies in {kernel.computes}: {error}"
        ) from None


def check_rates(layer: Layer) -> None:
    """Refuse a layer of which a kernel has no peak, or was not measured.

    Raises
    ------
    UnsupportedPrecisionError, NotMeasuredError
        As `rate_columns`.
    """
    for kernel in layer.kernels:
        peak(layer, kernel)
        if layer.estimate == "calibrated":
            path = kernel.measured_as if kernel.computes else STREAMS
            series_of(layer.device, path, layer.backend)


def _measured(layer: Layer, kernel: LayerKernel) -> Columns:
    if not kernel.computes:
        return _pass(layer)
    chosen = chosen_kernel(layer, kernel)
    found = dict(chosen.columns)
    if layer.phase == "training" and kernel.product_repeats:
        # Passes stand in the table, and were timed with the product: once is enough.
        stream = _pass(layer)
        found |= {name: stream[name] for name in ("kernel_overhead", "quantized_element_bytes")}
    return found


def chosen_kernel(layer: Layer, kernel: LayerKernel) -> Chosen:
    """Return the measured kernel that is the fastest for one of a layer's products."""
    turned = {"turned_input": kernel.turned_input, "turned_weight": kernel.turned_weight}
    layer_sides = (layer.rows, layer.outputs, layer.inputs)
    return fastest(
        layer.device,
        kernel.measured_as,
        sides.turned_rows(layer.rows, layer.inputs, layer.weight_sets, turned["turned_weight"]),
        sides.turned_outputs(layer.outputs, layer.inputs, turned["turned_input"]),
        sides.turned_depth(*layer_sides, layer.weight_sets, *turned.values()),
        backend=layer.backend,
        products=layer.weight_sets,
    )


def _pass(layer: Layer) -> Columns:
    """Return the constants of a pass between formats: those of streams, and a kernel's start."""
    series = series_of(layer.device, STREAMS, layer.backend)[0]
    c = series.values
    return {
        "last_round_share": 1.0,
        "depth_start": 0.0,
        "split_start": 0.0,
        "resident_bytes": 1.0,
        "cache_speedup": 1.0,
        "kernel_overhead": c.get("kernel_overhead", 0.0),
        "compute_fraction": 1.0,
        "memory_fraction": c["memory_fraction"],
        "quantized_element_bytes": 0.0,
        "tile_size": TILES[0],
        "device_cores": series.cores,
    }


def add_known(layer: Layer, known: Known) -> None:
    """Add what is known of the device beside its memory, and the origins of the columns."""
    if layer.constants:
        own = layer.constants
        words = f"{own.words} ({own.note})" if own.note else own.words
        known.add(
            words,
            memory_bandwidth=own.memory_bandwidth,
            compute_fraction=own.compute_fraction,
            memory_fraction=own.memory_fraction,
            kernel_overhead=own.kernel_overhead,
        )
        known.columns(words, "peak_flops")
        return
    known.columns(partial(_peaks, layer), "peak_flops")
    if layer.estimate != "calibrated":
        known.add("not counted: a roofline has no launches", kernel_overhead=0.0)
        known.add("all: nobody gave another part", compute_fraction=1.0, memory_fraction=1.0)
        return
    known.add("convention: a core gets no thinner part of the depth", least_depth=LEAST_DEPTH)
    known.columns("of the kernels that compute_fraction names", *_pass(layer))
    known.columns(partial(_kernels, layer), "compute_fraction")


def _peaks(layer: Layer) -> str:
    """Say where the peaks are from."""
    names = dict.fromkeys(each.computes for each in layer.kernels if each.computes)
    figures = (layer.device.compute.figure(name) for name in names)
    return "; ".join(f"{layer.device.name}: {each.origin()}" for each in figures)


def _kernels(layer: Layer) -> str:
    """Say which measured kernels were chosen."""
    products = [each for each in layer.kernels if each.computes]
    words = (f"{each.name}: {chosen_kernel(layer, each).words}" for each in products)
    return "; ".join(dict.fromkeys(words))


def without_passes(kernels: tuple[LayerKernel, ...]) -> tuple[LayerKernel, ...]:
    """Return the products of kernels alone: what no operator before can take over."""
    return tuple(each for each in kernels if not each.cast_repeats)


ROOFLINE, BOUND, CALIBRATED = "roofline", "bound", "calibrated"

ALL = equations_of(
    linear_layer.LINEAR_LAYER,
    linear_layer.LINEAR_LAYER_TIMES,
    roofline.ROOFLINE,
    roofline.MEMORY,
    calibration.CALIBRATION,
    kernels.PRODUCT_KERNELS,
)
_BY_NAME = {each.name: each for each in ALL}
_DATA = tomllib.loads((DATA / "gemm.toml").read_text(encoding="utf-8"))
# What every estimate has, and what takes the place of some of it, by kind of question.
_ALWAYS = tuple(_DATA["always"].split())
_INSTEAD = {kind: tuple(names.split()) for kind, names in _DATA["instead"].items()}

# Bytes, more than any product has: of infinity, what it leaves would be no number.
_KEEPS_ALL = 1e30

# What a caller may give in place of what data or equations say.
GIVABLE = (
    *("peak_flops", "memory_bandwidth", "memory_capacity", "last_level_cache"),
    *("compute_fraction", "memory_fraction", "kernel_overhead"),
)


# Parts of the datasheet's rates, which a roofline has only if they are given.
SHARES = ("compute_fraction", "memory_fraction")


def equations_for(*kinds: str) -> tuple[Equation, ...]:
    """Return the equations of a question of some kinds, one for each quantity.

    >>> [each.name for each in equations_for("bound") if each.yields == "memory_time"]
    ['uncached_memory_time']
    """
    names = (*_ALWAYS, *(name for kind in kinds for name in _INSTEAD.get(kind, ())))
    return tuple({_BY_NAME[name].yields: _BY_NAME[name] for name in names}.values())


def every_equation() -> tuple[Equation, ...]:
    """Return the equations of all kinds of questions about a layer."""
    names = dict.fromkeys((*_ALWAYS, *(name for several in _INSTEAD.values() for name in several)))
    return tuple(_BY_NAME[name] for name in names)


@dataclass(frozen=True, eq=False)
class Layer:
    """One linear layer on a device, in a number format; sides are floats or arrays.

    Attributes
    ----------
    device, constants
        The device; somebody's named constants of it, if those are asked for.
    rows, outputs, inputs
        M (of all products together), N and K.
    weight_sets
        Products that run as one kernel, each with its own weights.
    kernels
        Products and passes, and those of the baseline.
    precision, recipe, phase, fused
        The format in words; the recipe, if there is one; inference or training; whether
        passes are fused into the operator before.
    estimate, activations, backend
        Which answer; where activations are; which engine's kernels.
    given, divides
        Quantities in place of data; what sides have to be multiples of, by "M", "N" and "K".
    """

    device: Device
    rows: Any
    outputs: Any
    inputs: Any
    weight_sets: Any
    kernels: tuple[LayerKernel, ...]
    precision: str
    recipe: Recipe | None
    phase: str
    fused: bool
    estimate: str
    constants: DeviceConstants | None
    activations: str
    backend: str
    given: Mapping[str, Any]
    divides: Mapping[str, int]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        sides = {"M": self.rows, "N": self.outputs, "K": self.inputs, "batch": self.weight_sets}
        return shape_of({**sides, **self.given})

    @property
    def kinds(self) -> tuple[str, ...]:
        """What chooses between equations for one quantity."""
        estimate = "named" if self.constants else self.estimate
        shares = estimate == ROOFLINE and not set(SHARES).isdisjoint(self.given)
        return (estimate, self.activations, "shares" if shares else "")

    @cached_property
    def question(self) -> Question:
        """What is asked of this layer: all that is known, and the equations."""
        columns, wide = rate_columns(self)
        table = OperatorTable(self.kernels, COLUMNS, columns)
        return Question(
            self._known(columns),
            equations_for(*self.kinds),
            lambda: self.labels,
            table=table,
            shape=self.shape,
            wide=wide,
        )

    def _known(self, columns: Mapping[str, Any]) -> Known:
        known = Known().add(
            "given",
            layer_rows=self.rows,
            layer_outputs=self.outputs,
            layer_inputs=self.inputs,
            weight_sets=self.weight_sets,
        )
        known.columns(self._source, *COLUMNS)
        known.add_memory(self.device)
        if cache := self.device.last_level_figure:
            known.add(recorded(self.device, cache), last_level_cache=cache.si)
        elif self.estimate == BOUND:
            # What nobody counted can't be held to keep nothing.
            known.add("unknown, so nothing is sure to move", last_level_cache=_KEEPS_ALL)
        if not any(each.scaled for each in self.kernels):
            known.add("no number of this layer has a scale that counts", scale_bytes=0.0)
        add_known(self, known)
        return known.add("given", **{n: v for n, v in self.given.items() if n not in columns})

    @property
    def _source(self) -> str:
        if self.recipe is None:
            return f"each operand in {self.precision}, read or written once"
        return f"recipe {self.recipe.key}: {self.recipe.where}; {self.recipe.source}"

    @property
    def estimate_words(self) -> str:
        """Which answer this is, in words."""
        if self.constants:
            return f"roofline with {self.constants.words.partition(':')[0]}"
        one = "" if self.backend == FASTEST or self.estimate != CALIBRATED else f" {self.backend}"
        return f"{self.estimate}{one}"

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": f"a linear layer, {self.phase}",
            "model_source": self._source,
            "hardware": self.device.name,
            "precision": self.precision,
            "estimate": self.estimate_words,
        }
