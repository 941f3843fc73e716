"""The settings of this builder: `mlsim-book:` in `_quarto.yml` or in front matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def book_settings(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stands under `mlsim-book:`, nothing if it is no mapping.

    >>> book_settings({"mlsim-book": {"terms": False}}), book_settings({})
    ({'terms': False}, {})
    """
    given = metadata.get("mlsim-book")
    return given if isinstance(given, Mapping) else {}
