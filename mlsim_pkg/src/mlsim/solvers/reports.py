"""What reports of all answers share: values for JSON, and lines for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Any


def plain(value: Any) -> Any:
    """Turn NumPy values into what JSON knows; NaN, which it doesn't, into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def listed(rows: Iterable[tuple[str, str]], label: int, width: int = 66) -> list[str]:
    """Write names and values as lines; a long value goes on below its beginning.

    >>> listed([("time", "1 s"), ("used for", "this and that")], 10, 9)
    ['  time      1 s', '  used for  this and', '            that']
    """
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
        for index, part in enumerate(parts or [""]):
            lines.append(f"  {'' if index else name:<{label}}{part}")
    return lines
