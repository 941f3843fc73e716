"""One linear layer as kernels: its products, and the passes that change a tensor's format.

The layer's input is M x K, its weights are K x N, its output is M x N. A kernel is what it
moves for an element of each of the three, so the equations of `linear_layer` hold for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from mlsim.precision import precision

# Products of a layer: what each multiplies, and what comes out; by the tensors' names.
PRODUCTS = MappingProxyType(
    {
        "forward": ("input", "weight", "output"),
        "input_gradient": ("output", "weight", "input"),
        "weight_gradient": ("input", "output", "weight"),
    }
)
# Which of them a phase does.
PHASES = MappingProxyType({"inference": ("forward",), "training": tuple(PRODUCTS)})

# Columns that count scales.
SCALES = (
    *("input_scale_bytes", "weight_scale_bytes", "output_scale_bytes"),
    *("row_scale_bytes", "outputs_scale_bytes", "inputs_scale_bytes", "whole_scale_bytes"),
)

# A product and a sum.
POINT_FLOPS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKernel:
    """One kernel of a linear layer; numbers are columns, by their names in the vocabulary.

    Attributes
    ----------
    name, does
        Such as "forward" or "quantize the input"; what it does, in words.
    computes
        The format whose peak holds; "" for a pass.
    measured_as
        The path of measured kernels that it is; "" if none is.
    """

    name: str
    does: str = ""
    computes: str = ""
    measured_as: str = ""
    point_flops: float = 0.0
    input_element_bytes: float = 0.0
    weight_element_bytes: float = 0.0
    output_element_bytes: float = 0.0
    input_scale_bytes: float = 0.0
    weight_scale_bytes: float = 0.0
    output_scale_bytes: float = 0.0
    row_scale_bytes: float = 0.0
    outputs_scale_bytes: float = 0.0
    inputs_scale_bytes: float = 0.0
    whole_scale_bytes: float = 0.0
    reads_scale_share: float = 0.0
    depth_scale_share: float = 0.0
    input_read: float = 0.0
    weight_read: float = 0.0
    output_read: float = 0.0
    turned_input: float = 0.0
    turned_weight: float = 0.0
    product_repeats: float = 0.0
    cast_repeats: float = 0.0
    baseline_repeats: float = 0.0

    @property
    def held_repeats(self) -> float:
        """Whether memory has to hold what it moves: 1 for the product that is asked about."""
        return float(self.name.startswith("forward") and self.product_repeats > 0)

    @property
    def scaled(self) -> bool:
        """Whether it moves scales."""
        return any(getattr(self, name) for name in SCALES)

    @property
    def repeats(self) -> float:
        """Whether it belongs to the layer that is asked about: 1, or 0 for the baseline."""
        return self.product_repeats + self.cast_repeats


# Those of its attributes that equations take.
_WORDS = ("name", "does", "computes", "measured_as")
COLUMNS = (
    *(each.name for each in fields(LayerKernel) if each.name not in _WORDS),
    "repeats",
    "held_repeats",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """The formats of a product, and how its operands are scaled.

    Attributes
    ----------
    left, right, result, computes
        Formats of the two operands and the result; the one whose peak holds.
    left_scales, right_scales
        What shares a scale: "" for a whole tensor, "M", "N" or "K" for each row or column of
        that name, or a block such as "1x32".
    scale_bytes, whole_blocks
        Bytes of a scale; size of blocks where only whole ones among all reads count.
    measured_as
        The path of measured kernels.
    """

    left: str
    right: str
    result: str
    computes: str
    left_scales: str = ""
    right_scales: str = ""
    scale_bytes: float = 0.0
    whole_blocks: int = 0
    measured_as: str = ""


def product(name: str, operands: Operands, **repeats: float) -> LayerKernel:
    """Return one of a layer's products as a kernel.

    >>> bf16 = Operands(left="bf16", right="bf16", result="bf16", computes="bf16")
    >>> product("forward", bf16, product_repeats=1.0).output_element_bytes
    2.0
    """
    left, right, result = PRODUCTS[name]
    formats = dict(
        zip((left, right, result), (operands.left, operands.right, operands.result), strict=True)
    )
    columns = {f"{tensor}_element_bytes": value_bytes(name) for tensor, name in formats.items()}
    columns |= {f"{tensor}_read": 1.0 for tensor in (left, right)}
    for tensor, scales in ((left, operands.left_scales), (right, operands.right_scales)):
        _add_scales(columns, tensor, scales, operands.scale_bytes)
    if operands.whole_blocks:
        columns["whole_scale_bytes"] = operands.scale_bytes
        columns["reads_scale_share"] = 1 / operands.whole_blocks
    said = name.replace("_", " ")
    return LayerKernel(
        name=f"{said}, {operands.computes}" if repeats.get("baseline_repeats") else said,
        does=f"{operands.left} times {operands.right}, {operands.result} out",
        computes=operands.computes,
        measured_as=operands.measured_as,
        point_flops=POINT_FLOPS,
        turned_input=float(name == "input_gradient"),
        turned_weight=float(name == "weight_gradient"),
        **columns,
        **repeats,
    )


def cast(
    tensor: str,
    does: str,
    *,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    scales: tuple[str, ...] = (),
    scale_bytes: float = 0.0,
    whole_blocks: int = 0,
) -> LayerKernel:
    """Return a pass over a tensor as a kernel: each format that it reads or writes, once.

    >>> cast("input", "quantize", reads=("bf16",), writes=("fp8",)).input_element_bytes
    3.0
    """
    columns: dict[str, Any] = {
        f"{tensor}_element_bytes": sum(map(value_bytes, (*reads, *writes))) + 0.0
    }
    for each in scales:
        _add_scales(columns, tensor, each, scale_bytes)
    if whole_blocks:
        columns["whole_scale_bytes"] = scale_bytes
        columns["depth_scale_share"] = 1 / whole_blocks
    words = "gradient of the output" if tensor == "output" else tensor
    return LayerKernel(name=f"{words}: {does}", does=does, cast_repeats=1.0, **columns)


def value_bytes(name: str) -> float:
    """Return the bytes of a value alone, without its share of scales.

    >>> value_bytes("mxfp4"), value_bytes("fp8")
    (0.5, 1.0)
    """
    return precision(name).value_bits / 8


_SIDES = {"M": "row_scale_bytes", "N": "outputs_scale_bytes", "K": "inputs_scale_bytes"}


def _add_scales(columns: dict[str, float], tensor: str, scales: str, size: float) -> None:
    """Add the bytes of scales to what a kernel moves."""
    if not scales:
        return
    if scales in _SIDES:
        columns[_SIDES[scales]] = columns.get(_SIDES[scales], 0.0) + size
        return
    rows, _, depth = scales.partition("x")
    name = f"{tensor}_scale_bytes"
    columns[name] = columns.get(name, 0.0) + size / (int(rows) * int(depth))


def cast_bytes(kernels: Iterable[LayerKernel]) -> dict[str, float]:
    """Return what all passes together move for an element of each matrix, by quantity.

    Scales by row or column don't grow with the elements, and are left out.

    >>> cast_bytes([cast("input", "quantize", reads=("bf16",), writes=("fp8",))])
    {'input_cast_bytes': 3.0, 'weight_cast_bytes': 0.0, 'output_cast_bytes': 0.0}
    """
    passes = [each for each in kernels if each.cast_repeats]
    return {
        f"{tensor}_cast_bytes": sum(
            getattr(each, f"{tensor}_element_bytes") + getattr(each, f"{tensor}_scale_bytes")
            for each in passes
        )
        + 0.0
        for tensor in ("input", "weight", "output")
    }
