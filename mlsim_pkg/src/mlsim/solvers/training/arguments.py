"""Single arguments of a training run, checked: numbers, words, shares, formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mlsim.errors import InvalidValueError, check_whole, nearest
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.formats import WIDE
from mlsim.solvers.inputs import validate
from mlsim.solvers.training.job import Overlap
from mlsim.systems import Cluster, System


def one_number(name: str, value: Any, *, whole: bool = False) -> float:
    """Return one number in its base unit; refuse an array."""
    return single(name, validate(name, value, whole=whole))


def single(name: str, found: Any) -> float:
    """Return what is one number; refuse an array."""
    if getattr(found, "ndim", 0):
        raise InvalidValueError(
            f"{name} must be one number, not an array: ask for one run at a time."
        )
    return float(found)


def whole(name: str, size: Any) -> int:
    """Return a whole number from 1 up; refuse anything else."""
    return check_whole(name, size)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return a word that is allowed; refuse another."""
    if value not in allowed:
        raise InvalidValueError(
            f"{name} must be one of {', '.join(allowed)}, not {value!r}."
            f"{nearest(str(value), allowed)}"
        )
    return str(value)


def share_of(name: str, value: Any, *, below_one: bool = False) -> float:
    """Return a share from 0 to 1; refuse anything else."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    if not fits or (below_one and value == 1):
        end = "below 1" if below_one else "at most 1"
        raise InvalidValueError(f"{name} must be a share of at least 0 and {end}, not {value!r}.")
    return float(value)


def gradients_format(
    given: str | Precision | None, precision: Precision, system: Device | System | Cluster
) -> Precision:
    """Return the format of gradients: that of the weights, unless told otherwise."""
    device = system if isinstance(system, Device) else system.device
    if precision.name.startswith("int"):
        raise InvalidValueError(
            f"precision = {precision.name!r}: training needs floating-point numbers, such as "
            "'bf16' or 'fp8'."
        )
    device.compute.figure(precision)  # refuses a format that it can't compute in
    if given is not None:
        found = find_precision(given)
        if found.bits < WIDE or found.name.startswith("int"):
            raise InvalidValueError(
                f"gradients = {found.name!r}: they are added up over micro-batches, in 16 bits or "
                "more, such as 'bf16' or 'fp32'."
            )
        return found
    return precision if precision.bits >= 16 else find_precision("bf16")


def overlap_of(value: Any) -> Overlap:
    """Return what computing hides: one share for all that is sent, or one for each part."""
    if not isinstance(value, Mapping):
        share = share_of("overlap", value)
        return Overlap(share, share, share)
    allowed = tuple(each.name for each in fields(Overlap))
    for name in value:
        one_of("a part of overlap", name, allowed)
    return Overlap(**{name: share_of(f"overlap[{name!r}]", part) for name, part in value.items()})
