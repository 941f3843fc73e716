"""A question about one linear layer: its sides, its kernels, and which equations answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations import Equation, calibration, equations_of, kernels, linear_layer, roofline
from mlsim.errors import InvalidValueError
from mlsim.hardware.device import Device
from mlsim.hardware.fastest_kernels import FASTEST
from mlsim.hardware.named_constants import DeviceConstants
from mlsim.solvers.gemm import rates
from mlsim.solvers.gemm.wide import WideQuestion
from mlsim.solvers.question import Known, Question, recorded
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.recipes import COLUMNS, LayerKernel, Recipe

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
# What every estimate has.
_ALWAYS = (
    *("layer_flops", "input_bytes", "layer_weight_bytes", "output_bytes", "scale_bytes"),
    *("layer_bytes_moved", "operands_memory", "memory_free"),
    *("compute_time", "memory_time", "longest_time"),
    *("products_time", "casts_time", "baseline_time", "layer_latency", "casts_share"),
    *("format_speedup", "compute_limited", "memory_limited", "compute_limited_time"),
    *("memory_limited_time", "compute_limited_share", "memory_limited_share"),
    *("start_limited_share", "total_flops", "total_bytes", "network_intensity"),
    *("achieved_flops", "arithmetic_intensity"),
)
_INSTEAD = {
    "shares": ("reached_compute_time", "calibrated_memory_time"),
    "named": ("reached_compute_time", "calibrated_memory_time", "whole_block_scale_bytes"),
    BOUND: ("uncached_bytes", "uncached_memory_time"),
    CALIBRATED: (
        *("turned_rows", "turned_outputs", "turned_depth", "shared_cores"),
        *("input_quantized_bytes", "depth_parts", "split_rounds", "split_filled_share"),
        *("calibrated_compute_time", "cached_memory_time", "tile_product_time"),
        "measured_kernel_time",
    ),
    "on-chip": ("kept_input_bytes", "kept_output_bytes"),
}

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
        values = [self.rows, self.outputs, self.inputs, self.weight_sets, *self.given.values()]
        if not any(getattr(value, "ndim", 0) for value in values):
            return ()
        import numpy as np

        try:
            return np.broadcast_shapes(*(np.shape(value) for value in values))
        except ValueError:
            names = ("M", "N", "K", "batch", *self.given)
            shapes = ", ".join(
                f"{name} {np.shape(value)}" for name, value in zip(names, values, strict=True)
            )
            raise InvalidValueError(f"these shapes don't broadcast: {shapes}.") from None

    @property
    def kinds(self) -> tuple[str, ...]:
        """What chooses between equations for one quantity."""
        estimate = "named" if self.constants else self.estimate
        shares = estimate == ROOFLINE and not set(SHARES).isdisjoint(self.given)
        return (estimate, self.activations, "shares" if shares else "")

    @cached_property
    def question(self) -> Question:
        """What is asked of this layer: all that is known, and the equations."""
        columns, wide = rates.columns(self)
        table = OperatorTable(self.kernels, COLUMNS, columns)
        return WideQuestion(
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
        rates.add_known(self, known)
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
