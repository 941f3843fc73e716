"""Recipes of low precision, as data: one linear layer as kernels.

The layer's input is M x K, its weights are K x N, its output is M x N. A kernel is what it
moves for an element of each of the three, so the equations of linear layers hold for all.

A file of `data/recipes` says, for inference and for training, in which format each product
runs, and which kernels bring its operands there: what each reads and writes. The same layer
has other kernels in PyTorch's own count, so those recipes have a shelf of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mlsim import records
from mlsim.errors import InvalidValueError, MlsimError, nearest, unknown_name
from mlsim.precision import PRECISIONS, precision
from mlsim.records.references import references

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
    computes: str
    result: str = "bf16"
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


FOLDER = records.DATA / "recipes"
# Where the recipes are that PyTorch's roofline counts in its own way.
PYTORCH = "torchao"

# What reads of a kernel go away if the operator before it does the work: those, or all of it.
FUSED = ("read", "whole")
_TENSORS = {"input": "input", "weight": "weight", "grad_output": "output"}
_TOP = ("key", "name", "source", "where", "note", "scale_bytes", "divides", "architectures")
_PHASE = ("products", "kernels")
_PRODUCT = (
    *("left", "right", "result", "computes", "left_scales", "right_scales"),
    *("scale_bytes", "whole_blocks", "measured_as"),
)
_KERNEL = ("tensor", "does", "reads", "writes", "scales", "scale_bytes", "whole_blocks", "fused")
_SCALES = re.compile(r"|[MNK]|[1-9]\d*x[1-9]\d*")


@dataclass(frozen=True)
class Phase:
    """What a recipe does in inference or in training.

    Attributes
    ----------
    products
        The formats of each product, by its name.
    kernels
        The passes, in order: as they are, and fused into the operator before where they can
        be (None if nothing is left of one).
    """

    products: Mapping[str, Operands]
    kernels: tuple[tuple[LayerKernel, LayerKernel | None], ...]


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a linear layer runs in low precision.

    Attributes
    ----------
    key, name
        Such as "fp8_rowwise", and in words.
    source, where, note
        The document that it is from, the place in it, anything else worth knowing.
    divides
        Sides that must be multiples of a number, by "M", "N" and "K"; M in training only.
    architectures
        Those whose units multiply this format; empty if a peak is enough.
    phases
        By "inference" and "training"; not all have both.
    """

    key: str
    name: str
    source: str
    where: str
    note: str
    divides: Mapping[str, int]
    architectures: tuple[str, ...]
    phases: Mapping[str, Phase]

    @cache  # noqa: B019  (recipes are few, and stay)
    def kernels(self, phase: str, *, fused: bool = False) -> tuple[LayerKernel, ...]:
        """Return the kernels of a phase: its products first, then its passes.

        Raises
        ------
        InvalidValueError
            If the recipe has no such phase; says which it has.

        >>> [each.name for each in recipe("fp8_rowwise").kernels("inference")]
        ['forward', 'input: quantize each row']
        """
        if phase not in self.phases:
            raise InvalidValueError(
                f"the recipe {self.key!r} is for {' and '.join(self.phases)}, not for {phase}."
            )
        found = self.phases[phase]
        there = [name for name in PRODUCTS if name in found.products]
        products = [product(name, found.products[name], product_repeats=1.0) for name in there]
        passes = [after if fused else before for before, after in found.kernels]
        return (*products, *(each for each in passes if each is not None))

    def fuses(self, phase: str) -> bool:
        """Tell whether any pass of a phase can be fused into the operator before.

        >>> recipe("fp8_rowwise").fuses("training"), recipe("int4_weights").fuses("inference")
        (True, False)
        """
        pairs = self.phases[phase].kernels if phase in self.phases else ()
        return any(before is not after for before, after in pairs)


def recipe(name: str | Path | Recipe, shelf: str = "") -> Recipe:
    """Return a recipe by its key, or from a file whose path ends in .toml.

    Raises
    ------
    UnknownNameError
        If there is no such recipe; suggests the nearest.
    DataFileError
        If a file is not as it should be; names file and line.

    >>> recipe("mxfp8").divides["K"]
    32
    """
    if isinstance(name, Recipe):
        return name
    if str(name).endswith(".toml"):
        return load_recipe(Path(name))
    there = recipes(shelf)
    if name not in there:
        raise unknown_name("recipe", name, there)
    return there[str(name)]


@cache
def recipes(shelf: str = "") -> Mapping[str, Recipe]:
    """Return all recipes by key: ours, or those of a shelf such as "torchao".

    >>> "nvfp4" in recipes(), "mxfp8_cublas" in recipes("torchao")
    (True, True)
    """
    found = [load_recipe(path) for path in sorted((FOLDER / shelf).glob("*.toml"))]
    return {each.key: each for each in found}


@cache
def plain(name: str, phase: str, *, baseline: bool = False) -> tuple[LayerKernel, ...]:
    """Return the products of a phase in one format, with no passes: both operands are in it.

    Results have 16 bits, or more where the operands do. Values in blocks carry their scales.

    >>> [each.input_element_bytes for each in plain("fp8", "training")]
    [1.0, 2.0, 1.0]
    """
    found = precision(name)
    short = found.value_bits < 16
    block = {"nvfp4": "1x16", "mxfp4": "1x32"}.get(found.name, "")
    operands = Operands(
        left=found.name,
        right=found.name,
        result="bf16" if short else found.name,
        computes=found.computes_as,
        left_scales=block,
        right_scales=block,
        scale_bytes=1.0 if block else 0.0,
        measured_as=_MEASURED.get(found.name, ""),
    )
    count = {"baseline_repeats" if baseline else "product_repeats": 1.0}
    return tuple(product(each, operands, **count) for each in PHASES[phase])


# Paths of measured kernels for a format on both sides; 16 bits of either kind are one.
_MEASURED = {
    **dict.fromkeys(("bf16", "fp16"), "bf16"),
    **dict.fromkeys(("fp4", "nvfp4"), "fp4"),
    "fp8": "fp8",
    "int8": "int8",
}


def load_recipe(path: str | Path) -> Recipe:
    """Read a recipe's file.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a format or a tensor is none, or a phase lacks a
        product; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, (*_TOP, *PHASES))
    texts = {name: file.need(data, name, str) for name in ("key", "name", "source", "where")}
    if texts["source"] not in references():
        near = nearest(texts["source"], references())
        raise file.error(f"source {texts['source']!r} is not in the bibliography.{near}", "source")
    phases = {name: _phase(file, data[name], name) for name in PHASES if name in data}
    if not phases:
        raise file.error("a recipe needs a phase: add [inference...] or [training...].")
    note = data.get("note", "")
    divides = data.get("divides", {})
    file.only(divides, ("M", "N", "K"), "divides")
    for side in divides:
        if file.need(divides, side, int, "divides") < 1:
            raise file.error(f"divides.{side} must be a whole number from 1 up.", "divides", side)
    architectures = tuple(data.get("architectures", ()))
    return Recipe(**texts, note=note, divides=divides, architectures=architectures, phases=phases)


def _phase(file: records.DataFile, table: Any, name: str) -> Phase:
    file.only(table, _PHASE, name)
    products = table.get("products", {})
    file.only(products, PHASES[name], name, "products")
    for each in PHASES[name]:
        if each not in products:
            raise file.error(f"[{name}.products.{each}] is missing.", name, "products")
    kernels = table.get("kernels", {})
    file.only(kernels, kernels, name, "kernels")
    operands = {}
    for each, said in products.items():
        keys = (name, "products", each)
        file.only(said, _PRODUCT, *keys)
        for needed in ("left", "right", "computes"):
            file.need(said, needed, str, *keys)
        operands[each] = Operands(**_values(file, said, *keys))
    passes = (_passes(file, said, name, "kernels", each) for each, said in kernels.items())
    return Phase(operands, tuple(passes))


def _passes(
    file: records.DataFile, table: Any, *keys: str
) -> tuple[LayerKernel, LayerKernel | None]:
    """Return a pass as it is, and fused into the operator before it."""
    file.only(table, _KERNEL, *keys)
    for name, allowed in (("tensor", tuple(_TENSORS)), ("fused", FUSED)):
        if name in table and table[name] not in allowed:
            raise file.error(
                f"{name} must be one of {', '.join(allowed)}, not {table[name]!r}."
                f"{nearest(str(table[name]), allowed)}",
                *keys,
                name,
            )
    tensor, does = (file.need(table, name, str, *keys) for name in ("tensor", "does"))
    if tensor != "input" and "whole_blocks" in table:
        raise file.error("whole blocks are counted of the input alone.", *keys, "whole_blocks")
    values = {"reads": (), "writes": (), **_values(file, table, *keys)}
    fused = values.pop("fused", "")
    del values["tensor"], values["does"]
    before = cast(_TENSORS[tensor], does, **values)
    if not fused:
        return before, before
    after = None if fused == "whole" else cast(_TENSORS[tensor], does, **{**values, "reads": ()})
    return before, after


def _values(file: records.DataFile, table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return what a table says; its formats, scales and sizes must be some."""
    found = {"scale_bytes": file.data.get("scale_bytes", 0.0), **table}
    for name in _LISTS & table.keys():
        found[name] = tuple(file.need(table, name, list, *keys))
    for name, value in found.items():
        is_right, words = _CHECKS.get(name, (None, str))
        for each in value if name in _LISTS else (value,):
            if is_right and not is_right(each):
                raise file.error(words(each), *(keys if name in table else ()), name)
    return found


def _is_format(name: Any) -> bool:
    try:
        return value_bytes(name) > 0
    except (MlsimError, TypeError):
        return False


_LISTS = {"reads", "writes", "scales"}
# What each value must be, and how to say what it is not.
_Check = tuple[Callable[[Any], bool], Callable[[Any], str]]
_FORMAT: _Check = (
    _is_format,
    lambda name: (
        f"no format is called {name!r}.{nearest(name, PRECISIONS)} There are: "
        f"{', '.join(PRECISIONS)}."
    ),
)
_BY_SIDE: _Check = (
    lambda text: isinstance(text, str) and _SCALES.fullmatch(text) is not None,
    lambda text: (
        "scales must be M, N or K (one for each row or column of that name), or a block such as "
        f'"1x32", not {text!r}.'
    ),
)
_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(("left", "right", "result", "computes", "reads", "writes"), _FORMAT),
    **dict.fromkeys(("left_scales", "right_scales", "scales"), _BY_SIDE),
    "scale_bytes": (
        lambda size: isinstance(size, (int, float)) and not isinstance(size, bool) and size >= 0,
        lambda size: f"scale_bytes must be a number, not {size!r}.",
    ),
    "whole_blocks": (
        lambda blocks: type(blocks) is int and blocks > 0,
        lambda _: "whole_blocks must be a whole number from 1 up.",
    ),
}
