"""Number formats: how many bits one value takes in memory.

TF32 is a way to compute, not to store: its values lie in memory as 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mlsim.errors import unknown_name


# There is one object for each format, so they are told apart by identity.
@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """A number format: its name and the bits that one stored value takes.

    A format with scales shared by a block counts them in: MXFP4 keeps 8 bits
    for 32 values, NVFP4 8 bits for 16. It computes as its values do: `values`
    is their format, if it has another name.
    """

    name: str
    bits: float
    values: str = ""

    @property
    def computes_as(self) -> str:
        """The format whose peak rate a device has for it."""
        return self.values or self.name

    @property
    def value_bits(self) -> float:
        """Bits of a value alone, without its share of scales and zero points.

        >>> precision("mxfp4").value_bits, precision("mxfp4").bits
        (4, 4.25)
        """
        return PRECISIONS[self.computes_as].bits

    @property
    def as_weights(self) -> Precision:
        """The form in which weights are kept in it: those of int4 in groups.

        Four bits of a whole number are too few for a whole matrix, so programs keep a
        scale and a zero point for each group of 128 weights. Wider formats have one
        scale for each row or matrix, which is next to nothing.

        >>> precision("int4").as_weights.bits, precision("fp8").as_weights.bits
        (4.15625, 8)
        """
        plain = self.name == "int4" and self.bits == self.value_bits
        return in_groups("int4", 128, zero_points=True) if plain else self

    @property
    def bytes(self) -> float:
        """Bytes that one stored value takes.

        >>> precision("fp16").bytes
        2.0
        """
        return self.bits / 8


# Bits of a value; how many share a scale of 8 bits, where they do, and what they are.
_BITS = {
    "fp64": 64,
    "fp32": 32,
    "tf32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "int8": 8,
    "nvfp4": 4 + 8 / 16,
    "mxfp4": 4 + 8 / 32,
    "fp4": 4,
    "int4": 4,
}
PRECISIONS = {
    name: Precision(name, bits, "fp4" if name in ("nvfp4", "mxfp4") else "")
    for name, bits in _BITS.items()
}
# What frameworks and programs call them; an FP8 of either kind takes as much and runs as fast.
_OTHERS = {
    **dict.fromkeys(("float64", "f64", "double"), "fp64"),
    **dict.fromkeys(("float32", "f32", "float", "single"), "fp32"),
    "tensorfloat32": "tf32",
    **dict.fromkeys(("bfloat16", "bfloat", "brainfloat16"), "bf16"),
    **dict.fromkeys(("float16", "f16", "half"), "fp16"),
    **dict.fromkeys(("float8", "f8", "fp8e4m3", "fp8e4m3fn", "fp8e5m2"), "fp8"),
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e4m3"), "fp8"),
    **dict.fromkeys(("e4m3", "e4m3fn", "e5m2"), "fp8"),
    **dict.fromkeys(("i8", "s8"), "int8"),
    **dict.fromkeys(("i4", "s4"), "int4"),
}
# What has been made in groups, by its name, so that an answer's names are understood.
_IN_GROUPS: dict[str, Precision] = {}


def by_default(name: str, stated: str = "") -> str:
    """Say which format was taken and why, where nobody asked for one.

    `stated` is what a file says of the format of its parameters.

    >>> by_default("fp16")
    'fp16, since no other was given'
    >>> by_default("bf16", "float32")
    'bf16, since no other was asked for; its config.json says float32: ask for fp32 to count that'
    """
    if not stated or precision(stated).name == name:
        return f"{name}, since no other was given"
    return (
        f"{name}, since no other was asked for; its config.json says {stated}: ask for "
        f"{precision(stated).name} to count that"
    )


@lru_cache(maxsize=256)
def in_groups(
    values: str,
    group: int,
    columns: int = 1,
    *,
    scale_bits: int = 16,
    zero_points: bool = False,
) -> Precision:
    """Return the format of weights that share a scale: so many in a row, or in a block.

    Parameters
    ----------
    values
        The format of the weights, such as "int4".
    group, columns
        Weights that share a scale: `group` of them, or a block of `group` x `columns`.
    scale_bits
        Bits of a scale.
    zero_points
        Whether a group also has a zero point, in as many bits as a weight.

    >>> in_groups("int4", 32, zero_points=True).bits  # (16 + 4) / 32 more
    4.625
    >>> in_groups("fp8", 128, 128, scale_bits=32).name
    'fp8 in blocks of 128 x 128'
    """
    bits = precision(values).bits
    shared = scale_bits + (bits if zero_points else 0)
    where = f"groups of {group}" if columns == 1 else f"blocks of {group} x {columns}"
    alone = "" if zero_points or not values.startswith("int") else " (no zero points)"
    name = f"{values} in {where}{alone}"
    made = Precision(name, bits + shared / (group * columns), values)
    return _IN_GROUPS.setdefault(name, made)


def mixed(most: Precision, layers: Mapping[Precision, int]) -> Precision:
    """Return what weights take on average that are in several formats, and compute as in most.

    >>> mixed(precision("fp8"), {precision("fp8"): 3, precision("bf16"): 1}).bits
    10.0
    """
    of = sum(layers.values())
    bits = sum(each.bits * count for each, count in layers.items()) / of
    others = ", ".join(each.name for each in layers if each is not most)
    name = f"{most.name} in {layers[most]} of {of} layers, else {others}"
    return _IN_GROUPS.setdefault(name, Precision(name, bits, most.computes_as))


def precision(name: str | Precision) -> Precision:
    """Return the number format of that name, as we, a framework or a program writes it.

    Raises
    ------
    UnknownNameError
        If there is none; lists those that exist.

    >>> precision("bf16").bits, precision("torch.bfloat16").name, precision("Half").name
    (16, 'bf16', 'fp16')
    """
    if isinstance(name, Precision):
        return name
    if isinstance(name, str):
        found = PRECISIONS.get(name) or _IN_GROUPS.get(name)
        if found:
            return found
        plain = re.sub(r"[ _-]", "", name.lower().removeprefix("torch."))
        if (known := _OTHERS.get(plain, plain)) in PRECISIONS:
            return PRECISIONS[known]
    raise unknown_name("precision", name, PRECISIONS)


def recorded(name: str) -> Precision:
    """Return the number format of a data file, which has one way to write each.

    Raises
    ------
    UnknownNameError
        If there is none, or it is written in another way.
    """
    found = precision(name)
    if found.name != name:
        raise unknown_name("precision", name, PRECISIONS, like=found.name)
    return found
