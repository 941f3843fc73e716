"""The settings of this builder: `mlsim-book:` in `_quarto.yml` or in front matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim_book.errors import SourceError


def book_settings(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stands under `mlsim-book:`, nothing if it is no mapping.

    >>> book_settings({"mlsim-book": {"terms": False}}), book_settings({})
    ({'terms': False}, {})
    """
    given = metadata.get("mlsim-book")
    return given if isinstance(given, Mapping) else {}


def named_paths(metadata: Mapping[str, Any], key: str, hint: str) -> list[str]:
    """Return a setting that is a list of paths.

    Raises
    ------
    SourceError
        It is anything else; `hint` says what to write.

    >>> named_paths({"mlsim-book": {"exercises": ["questions"]}}, "exercises", "")
    ['questions']
    """
    given = book_settings(metadata).get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SourceError(
            f"`mlsim-book: {key}:` is {given!r}, which must be a list of paths",
            file="_quarto.yml",
            hint=hint,
        )
    return given
