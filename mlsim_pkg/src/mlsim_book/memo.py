"""What a step gave for a page the last time, for builds that follow each other in one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Memo:
    """Results by name, each with what it was made from.

    A preview keeps one from build to build, so that only changed pages are
    finished anew. It compares what a step is given, not the files that the step
    looks at: drop the memo when any of those changes.

    >>> memo = Memo()
    >>> memo.get("a", hex, 16), memo.get("a", oct, 16), memo.get("a", oct, 8)
    ('0x10', '0x10', '0o10')
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, Any]] = {}

    def get(
        self, name: Hashable, make: Callable[..., T], *given: object, beside: object = None
    ) -> T:
        """Return what was made under a name from equal things, or make it now.

        `beside` is what the result depends on but `make` isn't given.
        """
        kept = self._kept.get(name)
        if kept is not None and kept[0] == (given, beside):
            return cast(T, kept[1])
        result = make(*given)
        self._kept[name] = ((given, beside), result)
        return result
