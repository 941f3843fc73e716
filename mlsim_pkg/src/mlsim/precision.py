"""Number formats: how many bits one value takes in memory.

TF32 is a way to compute, not to store: its values lie in memory as 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.errors import unknown_name


# There is one object for each format, so they are told apart by identity.
@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """A number format: its name and the bits that one stored value takes.

    A format with scales shared by a block counts them in: MXFP4 keeps 8 bits
    for 32 values, NVFP4 8 bits for 16. It computes as its values do.
    """

    name: str
    bits: float

    @property
    def computes_as(self) -> str:
        """The format whose peak rate a device has for it."""
        return "fp4" if self.name in ("mxfp4", "nvfp4") else self.name

    @property
    def bytes(self) -> float:
        """Bytes that one stored value takes.

        >>> precision("fp16").bytes
        2.0
        """
        return self.bits / 8


PRECISIONS = {
    name: Precision(name, bits)
    for name, bits in {
        "fp64": 64,
        "fp32": 32,
        "tf32": 32,
        "bf16": 16,
        "fp16": 16,
        "fp8": 8,
        "int8": 8,
        "nvfp4": 4.5,
        "mxfp4": 4.25,
        "fp4": 4,
        "int4": 4,
    }.items()
}


def precision(name: str | Precision) -> Precision:
    """Return the number format of that name.

    Raises
    ------
    UnknownNameError
        If there is none; lists those that exist.

    >>> precision("bf16").bits
    16
    """
    if isinstance(name, Precision):
        return name
    found = PRECISIONS.get(name) if isinstance(name, str) else None
    if found is None:
        raise unknown_name("precision", name, PRECISIONS)
    return found
