"""What moved between two lists of a page's numbers, or two answers of the command line.

Values are the same within one part in 1e12; all else is compared as it stands.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from page_numbers import Entry

CLOSE = 1e-12
Key = Callable[[Entry], Any]
# How two lists are brought together: by all that matters, then by less.
_LESS_AND_LESS: tuple[Key, ...] = (
    lambda each: (each.value, each.unit, each.name, each.text if not each.value else ""),
    lambda each: (each.name, each.place) if each.name else each,
    lambda each: (each.value, each.unit) if each.value else each,
    lambda each: each.text,
)


class Move(NamedTuple):
    """One number that is other than it was, new, or gone."""

    old: Entry | None
    new: Entry | None

    @property
    def what(self) -> tuple[str, ...]:
        """What is other: added, removed, or the parts of it that changed."""
        if self.old is None or self.new is None:
            return ("added",) if self.old is None else ("removed",)
        pairs = zip(Entry._fields, self.old, self.new, strict=True)
        other = [name for name, old, new in pairs if old != new]
        return tuple(dict.fromkeys("origin" if name == "rest" else name for name in other))

    def __str__(self) -> str:
        if self.old is None or self.new is None:
            return f"{self.what[0]}: {_shown(self.new or self.old)}"
        lines = [f"{self.old.text} -> {self.new.text}: other {', '.join(self.what)}"]
        if {"value", "unit"} & set(self.what):
            lines.append(f"{_value(self.old)} -> {_value(self.new)}")
        if "name" in self.what:
            lines.append(f"name: {self.old.name!r} -> {self.new.name!r}")
        if "place" in self.what:
            lines.append(f"place: {self.old.place} -> {self.new.place}")
        if self.old.origin != self.new.origin:
            lines.append(f"origin: {self.old.origin!r} -> {self.new.origin!r}")
        elif "origin" in self.what:
            lines.append(f"origin: other below its first line, {self.new.origin!r}")
        return "\n    ".join(lines)


def moves(old: Sequence[Entry], new: Sequence[Entry]) -> list[Move]:
    """Return what moved between two runs of a page, in its order."""
    pairs = _paired(old, _as_before(old, new), _LESS_AND_LESS)
    return [Move(*pair) for pair in pairs if pair[0] != pair[1]]


def _as_before(old: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """Return the new numbers; one that is as good as an old one has its value to the last digit."""
    known: dict[str, list[float]] = defaultdict(list)
    before: dict[tuple[str, float], str] = {}
    for each in old:
        if each.value:
            known[each.unit].append(float(each.value))
            before[each.unit, float(each.value)] = each.value
    for values in known.values():
        values.sort()
    found = []
    for each in new:
        close = _nearest(known[each.unit], float(each.value)) if each.value else None
        value = each.value if close is None else before[each.unit, close]
        found.append(each._replace(value=value))
    return found


def _nearest(values: list[float], wanted: float) -> float | None:
    place = bisect_left(values, wanted)
    near = [each for each in values[max(place - 1, 0) : place + 1] if same(each, wanted)]
    return min(near, key=lambda each: abs(each - wanted), default=None)


def _paired(
    old: Sequence[Entry], new: Sequence[Entry], keys: Sequence[Key]
) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Pair numbers in order by the first key; what it leaves between them, by the next one."""
    if not keys or not old or not new:
        if len(old) == len(new):
            yield from zip(old, new, strict=True)
        else:
            yield from ((each, None) for each in old)
            yield from ((None, each) for each in new)
        return
    sides = [[keys[0](each) for each in side] for side in (old, new)]
    for tag, a, b, c, d in SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(old[a:b], new[c:d], strict=True)
        else:
            yield from _paired(old[a:b], new[c:d], keys[1:])


def _shown(each: Entry | None) -> str:
    assert each is not None
    parts = [each.text, f"({_value(each)})" if each.value else "", each.place, each.name]
    return " ".join(part for part in parts if part)


def _value(each: Entry) -> str:
    return f"{each.value} {each.unit}" if each.value else "no value"


def same(old: Any, new: Any) -> bool:
    """Say whether two plain values are the same: floats within one part in 1e12, no other kind."""
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=CLOSE, abs_tol=0.0) or (old != old and new != new)
    return type(old) is type(new) and bool(old == new)


def other_leaves(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two answers of JSON, with its path."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(each for each in new if each not in old)]:
            yield from other_leaves(old.get(key, _Nothing), new.get(key, _Nothing), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from other_leaves(*pair, f"{path}[{index}]")
    elif not same(old, new):
        yield f"{path.lstrip('.')}: {_brief(old)} -> {_brief(new)}"


class _Nothing:
    """Stands for what an answer doesn't have."""


def _brief(value: Any) -> str:
    if value is _Nothing:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
