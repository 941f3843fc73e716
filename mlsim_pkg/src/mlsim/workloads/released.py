"""The number formats in which a model's weights were published."""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The formats of a published checkpoint, where they are not 16 bits throughout.

    Attributes
    ----------
    weights
        The format of what is quantised, scales and zero points included.
    activations, kv_cache
        Formats in which its products take their inputs, and in which it keeps keys and
        values; "" for 16 bits.
    operators
        Operators whose weights are in another format, by name.
    where
        Where that is said.

    >>> from mlsim import Models
    >>> print(Models.GPT_OSS_120B.released)
    mxfp4 in the experts, 16 bits elsewhere
    """

    weights: Precision
    activations: str = ""
    kv_cache: str = ""
    operators: tuple[tuple[str, Precision], ...] = ()
    covers: str = "linear"
    where: str = ""

    def __str__(self) -> str:
        others = dict.fromkeys(each.name for _, each in self.operators)
        if self.covers == "experts":
            return f"{self.weights.name} in the experts, 16 bits elsewhere"
        words = f"weights in {self.weights.name}"
        return f"{words}; some in {', '.join(others)}" if others else words
