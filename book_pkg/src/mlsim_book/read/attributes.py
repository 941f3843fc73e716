"""Write pandoc attributes, `{#id .class key="value"}`, always in the same order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def attributes(
    *,
    label: str | None = None,
    classes: Iterable[str] = (),
    pairs: Mapping[str, Any] | None = None,
) -> str:
    r"""Return attributes in braces; pairs whose value is None are left out.

    >>> attributes(label="fig-a", classes=["cell"], pairs={"n": 2, "t": 'a "b"', "no": None})
    '{#fig-a .cell n="2" t="a \\"b\\""}'
    """
    parts = [f"#{label}"] if label else []
    parts += [f".{name.lstrip('.')}" for name in classes]
    parts += [
        f'{key}="{value_text(value)}"' for key, value in (pairs or {}).items() if value is not None
    ]
    return "{" + " ".join(parts) + "}"


def value_text(value: Any) -> str:
    r"""Return a value as it stands between the quotes of an attribute.

    >>> value_text(True), value_text(["a"])
    ('true', '[\\"a\\"]')
    """
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return " ".join(text.replace("\\", "\\\\").replace('"', '\\"').split("\n"))


def fence_for(text: str, *, least: int = 3) -> str:
    """Return a run of backticks longer than any in a text.

    >>> fence_for("a ``` b")
    '````'
    """
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(least, longest + 1)
