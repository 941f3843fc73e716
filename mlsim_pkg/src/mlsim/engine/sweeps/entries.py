"""What an argument is given: one value, or several; and what a table shows of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.zoo import spaces

# Of arguments that are no quantities, those of which one value may be a list, or a pair.
_LISTS, _PAIRS = ("groups",), ("pue", "wue", "carbon_intensity", "water_intensity", "embodied")


def listed(name: str, value: Any) -> Any:
    """Return the values of an argument: the entries of a list, or the one that was given.

    Long arrays and ranges stay what they are.

    Raises
    ------
    InvalidValueError
        If it is an empty list.
    """
    entries: Any
    if hasattr(value, "tolist") and bool(getattr(value, "ndim", 0)):
        entries = _flat(value)
    elif isinstance(value, range):
        entries = value
    elif name in _LISTS and isinstance(value, (list, tuple)):
        entries = list(value) if value and isinstance(value[0], (list, tuple)) else [value]
    elif isinstance(value, (set, frozenset)):
        # A set has no order of its own, and a row has to have a place.
        entries = sorted(value, key=lambda each: (type(each).__name__, str(label(each)), str(each)))
    elif isinstance(value, tuple) and name in _PAIRS:
        entries = [value]
    elif isinstance(value, (list, tuple, spaces.Namespace, Iterator)):
        entries = list(value)
        if entries and all(isinstance(each, (list, tuple)) for each in entries) and name in _DEEP:
            entries = [part for each in entries for part in each]
    else:
        return [value]
    if len(entries) == 0:
        raise InvalidValueError(f"{name} is an empty list; give at least one entry.")
    return entries


# Of these a table of numbers may be given, which is read row by row.
_DEEP = ("batch_size", "prompt_tokens", "output_tokens")


def _flat(value: Any) -> Any:
    """Return the entries of an array of any shape, in its order; numbers stay an array."""
    import numpy as np

    if hasattr(value, "units"):
        return value.reshape(-1)
    flat = np.asarray(value).reshape(-1)
    return flat if flat.dtype.kind in "iuf" else flat.tolist()


def label(value: Any) -> Any:
    """Return what a table shows of a value: a number, or words.

    >>> label(8), label(None), label("bf16")
    (8, 'default', 'bf16')
    """
    if value is None:
        return "default"
    if isinstance(value, (bool, int, float, str)):
        return value
    name = getattr(value, "name", None) or getattr(value, "about", None)
    return name if isinstance(name, str) else str(value)
