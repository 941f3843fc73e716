"""Which number format holds what: weights, activations, KV cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError, UnsupportedPrecisionError
from mlsim.hardware import Device
from mlsim.precision import Precision, by_default, precision as find
from mlsim.workloads.model import Released

if TYPE_CHECKING:
    from mlsim.workloads.steps import StepOperator

_SHORT = re.compile(r"w(\d+)a(\d+)(?:kv(\d+))?")
WIDE = 16
WIDE_BYTES = find("bf16").bytes


def kept_bytes(precision: Precision) -> float:
    """Return bytes of a number that is kept in 16 bits where matrices compute in fewer.

    >>> kept_bytes(find("fp8")), kept_bytes(find("fp32"))
    (2.0, 4.0)
    """
    return max(precision.bytes, WIDE_BYTES)


@dataclass(frozen=True, slots=True)
class Formats:
    """Number formats of weights, of activations, and of the KV cache."""

    weights: Precision
    activations: Precision
    kv_cache: Precision
    # Operators whose weights are in another format, by name; why nobody had to ask.
    apart: tuple[tuple[str, Precision], ...] = ()
    why: str = field(default="", compare=False)
    # Whether one format was named for all, and none for the KV cache.
    follows: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """One name if all are the same, else each.

        >>> formats("w4a16").name
        'weights int4 in groups of 128, activations bf16, KV cache bf16'
        """
        others = dict.fromkeys(each.name for _, each in self.apart)
        some = f" (some {', '.join(others)})" if others else ""
        if self.weights == self.activations == self.kv_cache and not some:
            return self.weights.name
        return (
            f"weights {self.weights.name}{some}, activations {self.activations.name}, "
            f"KV cache {self.kv_cache.name}"
        )

    @property
    def cache_follows(self) -> str:
        """Say that a KV cache has fewer bits because all was to have them; "" if it was named.

        >>> formats("w8a8").cache_follows, formats("fp8", kv_cache="fp8").cache_follows
        ('', '')
        """
        cache = self.kv_cache
        if not self.follows or cache.bits >= WIDE:
            return ""
        return (
            f"KV cache in {cache.name}, since that was asked of all: {cache.bits:g} bits, where "
            "engines keep 16 unless told. Name the cache's format to have another"
        )

    def computing(self, device: Device) -> tuple[Precision, Precision, Precision]:
        """Return the formats in which matrices, attention, and what is kept wide compute.

        A product takes the wider of its two factors: weights and activations,
        or queries and the cache. What a quantized format leaves alone computes
        in 16 bits.

        Raises
        ------
        UnsupportedPrecisionError
            If the device has no peak for one of them; says what would do.
        """
        linear = _wider(self.weights, self.activations)
        attention = _wider(self.activations, self.kv_cache)
        kept = _wider(linear, _sixteen(device)) if linear.bits < WIDE else linear
        for each in (linear, attention, kept):
            if each.computes_as not in device.compute.figures:
                raise UnsupportedPrecisionError(
                    f"{device.name} can't compute in {each.name}: no peak is on record. It has: "
                    f"{', '.join(device.compute.precisions)}. Weights and KV cache may be in any "
                    "format; set activations= (and with it the arithmetic) to one of these."
                )
        return linear, attention, kept

    def of(self, operator: str) -> Precision | None:
        """Return the format of an operator's weights, if it has one of its own."""
        return dict(self.apart).get(operator)

    def computing_apart(self, device: Device) -> dict[str, Precision]:
        """Return the formats in which operators compute that have weights of their own format."""
        found = {}
        kept = self.computing(device)[2]
        for name, weights in self.apart:
            wider = _wider(weights, self.activations)
            narrow = weights.bits < WIDE and wider.computes_as in device.compute.figures
            found[name] = wider if narrow else kept
        return found

    def of_operators(
        self, operators: Sequence[StepOperator], device: Device
    ) -> tuple[Precision, ...]:
        """Return the format in which each operator of a step computes."""
        linear, attention, kept = self.computing(device)
        own = {"attention": attention, "output": kept, "router": kept}
        own_weights = self.computing_apart(device)
        return tuple(
            own_weights.get(each.name, own.get(each.kind, kept if each.unquantised else linear))
            for each in operators
        )

    def all_computing(self, device: Device) -> tuple[Precision, ...]:
        """Return all formats in which something computes."""
        return (*self.computing(device), *self.computing_apart(device).values())


def _wider(one: Precision, other: Precision) -> Precision:
    return one if one.bits > other.bits else other


def _sixteen(device: Device) -> Precision:
    return find("bf16" if "bf16" in device.compute.figures else "fp16")


def formats(
    precision: str | Precision | None,
    weights: str | Precision | None = None,
    activations: str | Precision | None = None,
    kv_cache: str | Precision | None = None,
    *,
    device: Device | None = None,
    released: Released | None = None,
    stated: str = "",
) -> Formats:
    """Return the formats of a service.

    Parameters
    ----------
    precision
        The format of all three, such as "bf16"; or "w4a16", "w8a8kv8": bits of
        weights, activations and (16 if left out) KV cache. So "fp8" is for the cache as well,
        which an answer says, and "w8a8" names two of the three. None is what the model
        was released in, else 16 bits. Weights in int4 have a scale and a zero point
        for each group of 128.
    weights, activations, kv_cache
        To set one of them apart.
    device
        Where it decides what 16 bits are: bf16, or fp16 if it has no bf16.
    released
        The formats in which the model was published, if not in 16 bits.
    stated
        The format that its file states of the parameters, if it does.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    InvalidValueError
        If a short name has other bits than 4, 8 and 16.

    >>> formats("w8a8", kv_cache="fp8").kv_cache.name
    'fp8'
    """
    sixteen = _sixteen(device) if device else find("bf16")
    if precision is None and weights is None:
        assumed = _assumed(released, sixteen, device, stated)
        if activations is None and kv_cache is None:
            return assumed
        return replace(
            assumed,
            activations=assumed.activations if activations is None else find(activations),
            kv_cache=assumed.kv_cache if kv_cache is None else find(kv_cache),
        )
    try:
        return _formats(precision, (weights, activations, kv_cache), sixteen)
    except TypeError:
        # What can't be hashed is no name.
        return _formats.__wrapped__(precision, (weights, activations, kv_cache), sixteen)


def _assumed(
    released: Released | None, sixteen: Precision, device: Device | None, stated: str
) -> Formats:
    """Return the formats where nobody asks for any: the released ones, else 16 bits."""
    if not released:
        return Formats(sixteen, sixteen, sixteen, why=by_default(sixteen.name, stated))
    # What the device can't compute in is brought to 16 bits first.
    narrow = released.activations and find(released.activations)
    computes = narrow and (device is None or narrow.computes_as in device.compute.figures)
    activations = narrow if narrow and computes else sixteen
    cache = find(released.kv_cache) if released.kv_cache else sixteen
    if device and cache.bits < WIDE and cache.computes_as not in device.compute.figures:
        cache = sixteen
    # What is called bf16 in a checkpoint is what the device has of 16 bits.
    apart = tuple(
        (name, sixteen if each.bits == WIDE else each) for name, each in released.operators
    )
    why = f"{released}, as it was released ({released.where})"
    return Formats(released.weights, activations, cache, apart, why)


@lru_cache(maxsize=128)
def _formats(
    precision: str | Precision | None,
    given: tuple[str | Precision | None, ...],
    sixteen: Precision,
) -> Formats:
    named: list[str | Precision] = [sixteen if precision is None else precision] * 3
    short = _SHORT.fullmatch(precision.lower()) if isinstance(precision, str) else None
    if short:
        parts = [bits or "16" for bits in short.groups()]
        for bits in parts:
            if bits not in ("4", "8", "16"):
                raise InvalidValueError(
                    f"precision {precision!r}: bits must be 4, 8 or 16, not {bits}."
                )
        named = [sixteen if bits == "16" else f"int{bits}" for bits in parts]
    chosen = [
        find(one if one is not None else all_) for one, all_ in zip(given, named, strict=True)
    ]
    follows = precision is not None and given[2] is None and not short
    return Formats(chosen[0].as_weights, chosen[1], chosen[2], follows=follows)
