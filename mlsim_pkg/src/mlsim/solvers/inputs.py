"""What a user gives, checked: bad input never becomes a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlsim.errors import InvalidValueError, MlsimError, UnknownArgumentError, nearest, need
from mlsim.quantities import term
from mlsim.units import to_base
from mlsim.values import counts

CALIBRATED = "calibrated"
ESTIMATES = ("roofline", "bound", CALIBRATED)

# Quantities that are parts of something: at most 1.
SHARES = frozenset(
    (
        "compute_bound_share",
        "compute_fraction",
        "expert_share",
        "filled_share",
        "goodput",
        "hardware_flops_utilization",
        "link_fraction",
        "memory_bound_share",
        "memory_fraction",
        "model_flops_utilization",
        "network_share",
        "overhead_share",
    )
)
# Quantities that count one by one: whole numbers from 1 up.
COUNTS = frozenset(
    (
        "cache_tokens",
        "device_batch",
        "device_tokens",
        "group_tokens",
        "largest_batch",
        "micro_batches",
        "pass_tokens",
        "pipeline_sends",
        "positions_read",
        "product_rows",
        "resident_batch",
        "tokens_worked",
        "unclipped_tokens",
        "waves",
    )
)

# Above this a float no longer counts one by one.
LARGEST = 2.0**53

# Units in which a bare number is understood.
BARE = ("1", "sample", "sample/s", "token", "token/sample")


def validate(name: str, value: Any, *, whole: bool = False, zero: bool = False) -> Any:
    """Return a number or an array of numbers in base units.

    Parameters
    ----------
    name
        The quantity, by its name in the vocabulary.
    value
        A number (where the quantity is a count), text such as "2 TB/s", a
        quantity, or a list or array of these.
    whole
        Whether only whole numbers from 1 up are allowed.
    zero
        Whether, among whole numbers, 0 is allowed too.

    Raises
    ------
    InvalidValueError
        If an entry is not positive and finite, or not whole where it must be;
        in an array, says which.
    UnitError
        If a unit is missing or of another kind.

    >>> validate("batch_size", 8, whole=True)
    8.0
    """
    # The usual case, first: it is asked several times for each solve.
    if whole and type(value) is int and 0 < value <= LARGEST and term(name).unit in BARE:
        return float(value)
    if isinstance(value, (list, tuple, range)):
        return _check_list(name, value, whole, zero)
    # A count of samples or tokens may be given as a bare number.
    base = term(name).unit
    bare = base in BARE
    if bare and isinstance(value, (str, bytes)):
        raise InvalidValueError(
            f"{name} must be {_allowed(whole, zero)}, not the text {value!r}. Leave out the quotes."
        )
    number = _counted(value, base)
    if number is None:
        number = to_base(value, "1" if bare and not hasattr(value, "units") else base, name)
    if hasattr(number, "__array__") and getattr(number, "ndim", False):
        return _check_array(name, number, whole, zero)
    return _check_one(name, value, number, whole, zero)


def _counted(value: Any, base: str) -> float | None:
    """Return a count or a rate as a number in a base unit that counts too; None of all else.

    20, and 20 per second, are 20 sample/s where samples per second are asked for.
    """
    if not isinstance(value, float) or not hasattr(value, "units") or not counts(base):
        return None
    said = (base, "1", *(["1/s"] if base.endswith("/s") else []))
    return float(value) if getattr(value, "base", "") in said else None


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; a word such as "no" would count as true.

    Raises
    ------
    InvalidValueError
        If it is neither.

    >>> check_flag("check_memory", False)
    False
    """
    if not isinstance(value, bool):
        raise InvalidValueError(f"{name} must be True or False, not {value!r}.")
    return value


def _allowed(whole: bool, zero: bool) -> str:
    return f"a whole number from {1 - zero} up" if whole else "a positive, finite number"


def _check_one(name: str, shown: Any, number: Any, whole: bool, zero: bool) -> float:
    refused = InvalidValueError(f"{name} must be {_allowed(whole, zero)}, not {shown!r}.")
    if isinstance(number, bool) or type(number).__name__ in ("bool", "MaskedConstant"):
        raise refused
    try:
        result = float(number)
    except (OverflowError, TypeError, ValueError):
        raise refused from None
    allowed = math.isfinite(result) and (result > 0 or (zero and result == 0))
    if not allowed or (whole and not result.is_integer()):
        raise refused
    if whole and result > LARGEST:
        raise InvalidValueError(f"{name} must be at most {LARGEST:,.0f}, not {result:g}.")
    return result


def _check_list(name: str, values: Sequence[Any], whole: bool, zero: bool) -> Any:
    if not len(values):
        raise InvalidValueError(f"{name} is an empty list; give at least one value.")
    if any(isinstance(value, (list, tuple, range)) for value in values):
        return validate(name, _array(values, name), whole=whole, zero=zero)
    checked = []
    for index, value in enumerate(values):
        try:
            checked.append(validate(name, value, whole=whole, zero=zero))
        except MlsimError as error:
            raise type(error)(f"entry {index} of {len(values)}: {error}") from None
    return _array(checked, name)


def _check_array(name: str, values: Any, whole: bool, zero: bool) -> Any:
    import numpy as np

    allowed = f"whole numbers from {1 - zero} up" if whole else "positive, finite numbers"
    if np.ma.is_masked(values):
        raise InvalidValueError(
            f"{name} has masked entries, whose mask would be lost. Give values.compressed(), "
            "the entries that stand, or values.filled(...) with numbers for the others."
        )
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InvalidValueError(f"{name} must hold {allowed}, not {array.dtype} values.")
    if not array.size:
        raise InvalidValueError(f"{name} is an empty array; give at least one value.")
    array = array.astype(float)
    bad = ~(np.isfinite(array) & ((array >= 0) if zero else (array > 0)))
    if whole:
        bad |= array > LARGEST
        bad |= array != np.floor(np.where(np.isfinite(array), array, 0))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        place = index[0] if len(index) == 1 else index
        raise InvalidValueError(
            f"{name} must hold {allowed}, but entry {place} is {array[index]:g}"
            + (f" (and {int(bad.sum()) - 1} more)." if bad.sum() > 1 else ".")
        )
    return array


def _array(values: Any, name: str) -> Any:
    np = need("numpy", "an array of points", "arrays")
    try:
        return np.array(values, dtype=None if isinstance(values[0], (list, tuple)) else float)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{name}: the entries don't form an array: {error}.") from None


def validate_given(given: Mapping[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """Check quantities that a caller gives to override what would be computed.

    Raises
    ------
    UnknownArgumentError
        If a name is none of `allowed`; suggests the nearest.
    InvalidValueError
        If a value can't be: a fractional count, or a share above 1.
    """
    for name in given:
        if name not in allowed:
            raise UnknownArgumentError(name, allowed)
    found = {name: validate(name, value, whole=name in COUNTS) for name, value in given.items()}
    for name in SHARES & found.keys():
        _check_share(name, found[name])
    return found


def _check_share(name: str, value: Any) -> None:
    largest = value.max() if getattr(value, "ndim", 0) else value
    if largest > 1:
        raise InvalidValueError(f"{name} is a share: it must be at most 1, not {largest:g}.")


def check_estimate(estimate: str) -> None:
    """Refuse an estimate that is none.

    Raises
    ------
    InvalidValueError
        Naming those that there are.
    """
    if estimate not in ESTIMATES:
        raise InvalidValueError(
            f"estimate must be one of {', '.join(ESTIMATES)}, not {estimate!r}."
            f"{nearest(estimate, ESTIMATES)}"
        )
