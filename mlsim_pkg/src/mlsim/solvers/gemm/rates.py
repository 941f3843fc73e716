"""The rates of a layer's kernels: datasheet's, somebody's named constants, or measured ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import linear_layer as sides
from mlsim.errors import UnsupportedPrecisionError
from mlsim.hardware.fastest_kernels import Chosen, fastest, series_of
from mlsim.hardware.kernel_times import LEAST_DEPTH, TILES
from mlsim.solvers.question import Known
from mlsim.workloads.recipes import LayerKernel

if TYPE_CHECKING:
    from mlsim.solvers.gemm.layer import Layer

# The path whose memory and starts stand for passes between formats.
STREAMS = "bf16"

Columns = dict[str, Any]


def columns(layer: Layer) -> tuple[dict[str, list[float]], dict[str, Any]]:
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


def check(layer: Layer) -> None:
    """Refuse a layer of which a kernel has no peak, or was not measured.

    Raises
    ------
    UnsupportedPrecisionError, NotMeasuredError
        As `columns`.
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
        known.add("not counted: a roofline has no starts", kernel_overhead=0.0)
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
