"""What tells one sweep from another: a digest of each part of the question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mlsim.engine.sweeps.question import Question
from mlsim.errors import InvalidValueError


def digests(question: Question) -> dict[str, str]:
    """Return a digest of each argument, of the results, and "all" of them.

    The same for the same question in another process; another one if a figure of a record
    changes, or the package's version.

    Raises
    ------
    InvalidValueError
        If a value can't be told from another of its kind, such as a function.
    """
    parts = {axis.name: _digest(axis.name, axis.entries) for axis in question.axes}
    parts["door"] = question.door.name
    parts["results"] = _digest("results", question.results)
    parts["version of mlsim"] = _version()
    parts["all"] = _digest("all", sorted(parts.items()))
    return parts


def _version() -> str:
    try:
        return version("mlsim")
    except PackageNotFoundError:
        return "not installed"


def _digest(name: str, value: Any) -> str:
    found = hashlib.sha256()
    _feed(found, name, value)
    return found.hexdigest()[:32]


def _feed(found: Any, name: str, value: Any) -> None:
    """Add a value to a digest: its kind, and what it holds."""
    found.update(type(value).__name__.encode() + b"(")
    if hasattr(value, "tobytes"):
        found.update(str(value.dtype).encode() + str(value.shape).encode() + value.tobytes())
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        found.update(repr(value).encode())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _feed(found, name, key)
            _feed(found, name, value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            _feed(found, name, each)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            if each.compare or each.name == "name":
                _feed(found, name, getattr(value, each.name))
    elif hasattr(value, "units"):
        found.update(f"{value.magnitude!r} {value.units!s}".encode())
    elif hasattr(value, "__fspath__") or hasattr(value, "isoformat"):
        found.update(str(value).encode())
    elif not _own(found, name, value):
        raise InvalidValueError(
            f"{name} = {value!r} can't be told from others of its kind, so a folder could not say "
            "which sweep it holds. Give a name, a number or a record; or leave out=... out."
        )
    found.update(b")")


def _own(found: Any, name: str, value: Any) -> bool:
    """Add an object by its attributes, if it is one of this package; tell whether it is."""
    if not type(value).__module__.startswith("mlsim.") or not hasattr(value, "__dict__"):
        return False
    for key in sorted(value.__dict__):
        _feed(found, name, key)
        _feed(found, name, value.__dict__[key])
    return True
