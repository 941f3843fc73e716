"""Operators of a trace: work from shapes, and the time of what each started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsim.profiling.measured_profile import MeasuredKernel
from mlsim.profiling.read.shapes import COUNTED, flops_of, may_work

_NO_SHAPES = "the trace has no shapes. Profile with record_shapes=True"
_OTHERS = "its work is not counted from shapes: only matrix products, convolutions and attention"


@dataclass(slots=True)
class Operator:
    """One call of an operator."""

    name: str
    place: tuple[Any, Any]
    start: float
    end: float
    identity: Any
    shape: str
    flops: float | None
    counted: bool
    type: str = ""
    own: float = 0.0
    owner: Operator | None = None

    @classmethod
    def of(
        cls,
        name: str,
        place: tuple[Any, Any],
        interval: tuple[float, float],
        identity: Any,
        args: dict[str, Any],
    ) -> Operator:
        """Make one of an event."""
        dims = args.get("Input Dims")
        counted = name in COUNTED and isinstance(dims, list)
        flops = flops_of(name, dims, args.get("Concrete Inputs")) if counted else None
        shape = " x ".join(str(each) for each in dims[:3] if each) if isinstance(dims, list) else ""
        types = args.get("Input type")
        kind = next((str(each) for each in types if each), "") if isinstance(types, list) else ""
        return cls(name, place, *interval, identity, shape[:120], flops, counted, kind)


def operators_of(
    operators: list[Operator], owners: Mapping[Any, float], *, gpu: bool
) -> tuple[MeasuredKernel, ...]:
    """Add operators up by name and shape, with the time of their kernels, or on a CPU their own.

    What an operator starts is part of it if its work was counted, so that time and work belong
    together: a convolution with all that it calls. `owners` has the time of the kernels that
    each operator started, by its identity.
    """
    _nest(operators)
    rows: dict[tuple[str, str], list[Any]] = {}
    if gpu:
        by_id = {each.identity: each for each in operators if each.identity is not None}
        seen = set()
        for owner, seconds in owners.items():
            found = by_id.get(owner)
            if found is None:
                continue
            row = _owner(found)
            _add(rows, row, seconds, first=id(row) not in seen)
            seen.add(id(row))
    else:
        done = set()
        for each in operators:
            row = _owner(each)
            _add(rows, row, each.own, first=id(row) not in done)
            done.add(id(row))
    shapes = any(each.shape for each in operators)
    found_rows = [_row(key, value, shapes=shapes) for key, value in rows.items()]
    return tuple(sorted(found_rows, key=lambda each: -(each.seconds or 0.0)))


def _owner(operator: Operator) -> Operator:
    """Return the outermost operator around this one whose work was counted, else itself."""
    found, each = operator, operator.owner
    if operator.counted:
        found = operator
    while each is not None:
        if each.counted:
            found = each
        each = each.owner
    return found


def _nest(operators: list[Operator]) -> None:
    """Find out what each operator was called by, and its time without what it called."""
    by_place: dict[tuple[Any, Any], list[Operator]] = {}
    for each in operators:
        by_place.setdefault(each.place, []).append(each)
    for group in by_place.values():
        stack: list[Operator] = []
        for each in sorted(group, key=lambda one: (one.start, -one.end)):
            each.own = each.end - each.start
            while stack and stack[-1].end <= each.start:
                stack.pop()
            if stack:
                each.owner = stack[-1]
                stack[-1].own = max(stack[-1].own - each.own, 0.0)
            stack.append(each)


def _add(
    rows: dict[tuple[str, str], list[Any]], row: Operator, time: float, *, first: bool
) -> None:
    kept = rows.setdefault((row.name, row.shape), [0, 0.0, row.flops, 0.0, row.type])
    kept[1] += time
    if first:
        kept[0] += 1
        kept[3] += row.flops or 0.0


def _row(key: tuple[str, str], value: list[Any], *, shapes: bool) -> MeasuredKernel:
    name, shape = key
    calls, seconds, flops, work, kind = value
    missing = {"dram": "a PyTorch trace counts no bytes"}
    operations: dict[str, float] = {}
    if flops is not None:
        operations = {"any": work}
    elif not shapes:
        missing["flops"] = _NO_SHAPES
    elif name in COUNTED or may_work(name):
        missing["flops"] = _OTHERS
    else:
        # What is no product does little: counted as none, as the book counts work.
        operations = {"any": 0.0}
    sources = {"seconds": "durations of the events"}
    if flops is not None:
        sources["any"] = "2 x multiply-adds, from the recorded shapes"
    elif operations:
        sources["any"] = "no matrix product, convolution or attention: counted as none"
    return MeasuredKernel(
        name,
        calls,
        seconds,
        operations,
        {},
        sources,
        missing,
        {key: word for key, word in (("shape", shape), ("type", kind)) if word},
        "operator",
    )
