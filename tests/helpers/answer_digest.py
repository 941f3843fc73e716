"""An answer as a few cells of text: what it says, and sums that any of its numbers moves.

Results that the answer says first (`to_dict`) are kept one by one. All others are kept in groups:
each as how many there are, the sum of their logarithms, and that sum weighted by a number that
their names give. A number that moves by one part in 1e12 moves both sums by as much, however
small it is beside the others; if it is the only one, their ratio is its weight, so that its name
is known again. What has no logarithm (zero, negative, not a number) and all words are kept as
check sums. Nothing of this hangs on the order in which results are named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from mlsim.errors import MlsimError
from mlsim.values.attributes import result

ROOT = str(Path(__file__).parents[2])
# Parts of answers that have results of their own, and what answers say beside their results.
PARTS = ("prefill", "decode", "steady", "speculation", "baseline", "pools")
BESIDE = (
    *("operators", "kernels", "breakdown", "memory", "shares", "factors", "causes"),
    *("cause", "bottleneck", "limiting", "longest_context", "queueing", "held_back", "stopped"),
    *("totals", "moments", "peak", "step", "formats", "latency", "casts", "speedup"),
    *("left_out", "why", "verdict", "term", "fitting", "remedies", "low", "high"),
    *("total", "steps", "notes", "rows", "break_even_batch", "break_even_acceptance"),
)
DIFFERENCES = (r"\bcauses\b", r"\bshares\b|_share\b")
TIMES = ("time_to_first_token", "time_per_output_token", "request_latency")
SHORT = 4  # values of an array that are kept one by one
SUM = "sum of "
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
_TOLD_WORDS = 60


class Digest(NamedTuple):
    """An answer as cells of text by their columns, and the numbers behind its sums."""

    cells: dict[str, str]
    numbers: dict[str, dict[str, float]]


def digest(answer: Any) -> Digest:
    """Return what is kept of an answer."""
    with np.errstate(all="ignore"):
        return _digest(answer)


def _digest(answer: Any) -> Digest:
    groups = dict(_groups(answer))
    said = groups.pop("said")
    cells, words = {}, []
    for name, value in said.items():
        cells |= _told(name, value)
    numbers = {}
    for group, found in groups.items():
        of_group = {}
        for name, leaf in _leaves(found, ""):
            if isinstance(leaf, str):
                words.append(f"{group}/{name}={leaf}")
            else:
                of_group[name] = leaf
        if of_group:
            of_group = _without_dust(of_group)
            numbers[group] = of_group
            cells[SUM + group] = fingerprint(of_group)
    words += [f"{name}={leaf}" for name, leaf in _leaves(said, "") if isinstance(leaf, str)]
    cells["words"] = f"{crc32(_here(chr(10).join(sorted(words))).encode()):08x}"
    printed = " ".join(_NUMBER.findall(_here(_printed(answer))))
    cells["printed"] = f"{crc32(printed.encode()):08x}"
    return Digest(cells, numbers)


def _without_dust(numbers: dict[str, float]) -> dict[str, float]:
    """Return numbers with causes and shares to a billionth of the largest of their kind.

    They are differences of sums: one that is none is what rounding leaves, and hangs on an order.
    """
    steady = dict(numbers)
    for kind in DIFFERENCES:
        parts = {name: value for name, value in numbers.items() if re.search(kind, name)}
        largest = max((abs(each) for each in parts.values() if math.isfinite(each)), default=0.0)
        if largest:
            # added to 0, a negative nothing is plain
            steady |= {
                name: round(value / largest, 9) * largest + 0.0 if math.isfinite(value) else value
                for name, value in parts.items()
            }
    return steady


def _here(words: str) -> str:
    """Return words without the place of this repository, which paths begin with."""
    return words.replace(ROOT, "")


def fingerprint(numbers: Mapping[str, float]) -> str:
    """Return how many numbers there are, their sums, and a check sum of those without logarithm."""
    logs, odd = {}, []
    for name in sorted(numbers):
        value = float(numbers[name])
        if value > 0 and math.isfinite(value):
            logs[name] = math.log(value)
        else:
            size = abs(value)
            odd.append(f"{name}={value if not size else math.copysign(1, value)}")
            if math.isnan(value):
                odd[-1] = f"{name}=nan"
            elif size and math.isfinite(size):
                logs[name] = math.log(size)
            elif size:
                odd[-1] += "inf"
    plain = math.fsum(logs.values())
    weighted = math.fsum(weight(name) * each for name, each in logs.items())
    check = f" {crc32(' '.join(odd).encode()):08x}" if odd else ""
    return f"{len(numbers)} {plain!r} {weighted!r}{check}"


def weight(name: str) -> float:
    """Return the weight of a number in the second sum, from 1 to 2.

    >>> 1 <= weight("latency") < 2, weight("a") == weight("a")
    (True, True)
    """
    return 1 + crc32(name.encode()) / 2**32


def _groups(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an answer says first, and the groups of all the rest."""
    if hasattr(answer, "attrs") and hasattr(answer, "columns"):  # a table of pandas
        yield "said", {str(name): list(answer[name]) for name in answer.columns}
        yield "rest", {str(key): str(value) for key, value in answer.attrs.items()}
        return
    said = answer.to_dict() if hasattr(answer, "to_dict") else answer
    if hasattr(answer, "as_dict"):
        said = answer.as_dict()
    if not isinstance(said, Mapping):
        said = {"found": said} if _is_plain(answer) else {}
    yield "said", said
    if _is_plain(answer) or isinstance(answer, Mapping):
        yield (
            "rest",
            {name: each for name, each in said.items() if isinstance(each, Mapping | list)},
        )
        return
    yield "rest", {"json": said, "values": _values(answer)}
    yield "beside", {name: _attribute(answer, name) for name in BESIDE if _has(answer, name)}
    for name in PARTS:
        part = _attribute(answer, name) if _has(answer, name) else None
        if hasattr(part, "value"):
            found = {each: _attribute(part, each) for each in BESIDE if _has(part, each)}
            yield name, {"values": _values(part), "beside": found}
    if hasattr(answer, "each_request"):
        yield "requests", {name: _tried(answer.each_request, name) for name in TIMES}
    if hasattr(answer, "options"):
        yield "options", [each.found for each in answer.options]
    if hasattr(answer, "explain") and not getattr(answer, "shape", ()):
        yield "explained", _tried(lambda: answer.explain().to_dict())


def _values(answer: Any) -> dict[str, Any]:
    """Return every result of an answer that has them by name, or why there is none."""
    try:
        names = set(answer.names)
    except (AttributeError, NotImplementedError):
        if not hasattr(answer, "value"):
            return {}
        kind = type(answer)
        names = {each for each in dir(kind) if isinstance(getattr(kind, each, None), result)}
    return {name: _tried(answer.value, name) for name in sorted(names)}


def _tried(function: Any, *given: Any) -> Any:
    try:
        return function(*given)
    except (MlsimError, ArithmeticError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def _attribute(answer: Any, name: str) -> Any:
    return _tried(getattr, answer, name)


def _has(answer: Any, name: str) -> bool:
    """Say whether an answer has an attribute that is no method."""
    found = getattr(type(answer), name, None)
    own = name in getattr(answer, "__dict__", ())
    return own or (found is not None and not callable(found))


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | str) or hasattr(value, "si")


def _told(name: str, value: Any) -> dict[str, str]:
    """Return the cells of a result that an answer says first; of words, only short ones."""
    if isinstance(value, Mapping) and "value" in value:
        name, value = f"{name} [{value.get('unit', '')}]", value["value"]
    if hasattr(value, "si"):
        name, value = f"{name} [{value.unit if hasattr(value, 'unit') else ''}]", value.si
    if isinstance(value, str):
        return {name: value} if name in ("bottleneck", "verdict", "term", "predicted") else {}
    if value is None:
        return {name: "none"}
    if isinstance(value, Mapping):
        text = ", ".join(f"{key}: {each}" for key, each in value.items())
        short = all(isinstance(each, str) for each in value.values()) and len(text) < _TOLD_WORDS
        return {name: text} if short and name == "bottleneck" else {}
    leaves = [leaf for _, leaf in _leaves(value, "")]
    if not leaves or any(isinstance(each, str) for each in leaves):
        return {}
    if not _is_many(value):
        return {name: _text(leaves[0])}
    if len(leaves) <= SHORT and all(math.isfinite(each) for each in leaves):
        return {name: f"[{', '.join(map(_text, leaves))}]"}
    return {SUM + name: fingerprint({str(at): each for at, each in enumerate(leaves)})}


def _text(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(value)


def _is_many(value: Any) -> bool:
    return isinstance(value, Sequence | Mapping) or bool(getattr(value, "ndim", 0))


def _leaves(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, float | str]]:
    """Yield the numbers and words in a value, with their paths."""
    if isinstance(value, str | bool) or value is None:
        yield name, str(value)
    elif isinstance(value, int | float):
        yield name, float(value)
    elif hasattr(value, "si"):
        yield from _leaves(value.si, name, depth)
    elif hasattr(value, "tolist"):  # of NumPy
        yield from _leaves(value.tolist(), name, depth)
    elif type(value).__name__ == "Interval":
        yield from ((f"{name}.{end}", float(getattr(value, end))) for end in ("low", "high"))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, Sequence | set | frozenset):
        many = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        for at, each in enumerate(many):
            yield from _leaves(each, f"{name}[{at}]", depth + 1)
    elif hasattr(value, "explain") and hasattr(value, "value"):
        yield from _leaves(_values(value), name, depth + 1)
    elif hasattr(value, "rows"):
        yield from _leaves(list(value.rows), name, depth + 1)
    elif hasattr(value, "magnitude"):
        yield from _leaves(value.to_base_units().magnitude, name, depth + 1)
    elif hasattr(value, "to_dict"):
        yield from _leaves(value.to_dict(), name, depth + 1)
    elif hasattr(value, "__dataclass_fields__") and depth < 8:
        # What a refused layout was asked of keeps what else it was asked: no result of the answer.
        for key in set(value.__dataclass_fields__) - {"candidate"}:
            yield from _leaves(getattr(value, key), f"{name}.{key}", depth + 1)
    elif isinstance(getattr(value, "name", None), str):
        yield name, value.name


def _printed(answer: Any) -> str:
    """Return what is printed of an answer that has a form of its own."""
    plain = type(answer).__str__ is object.__str__
    return "" if plain or hasattr(answer, "columns") else str(answer)
