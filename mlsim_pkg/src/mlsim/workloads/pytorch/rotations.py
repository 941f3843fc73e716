"""Positions by rotation: the several operations that turn queries and keys become one layer.

Pairs of numbers are turned by an angle that grows with the position. Programs write it as
sums of the numbers, and of the numbers in another order, each times a constant.
"""

from __future__ import annotations

from mlsim.workloads.pytorch.records import Record, readers_of

TURNED = "turned"
# What a turn is written with: products with a constant, and other signs.
_WITHIN = frozenset(("scale", "neg", TURNED))
# A sum has two sides. A whole and its two halves are three views of the same numbers.
_SIDES = 2
_WHOLE_AND_HALVES = 3


def join_rotations(records: list[Record]) -> list[Record]:
    """Return the records with each turn in one of them.

    All of it comes from one layer's numbers; nothing else reads what lies between.
    """
    readers = readers_of(records)
    gone: set[Record] = set()
    for record in records:
        if record.kind in ("add", "concatenation") and not record.uses:
            within, views = _between(record)
            if _is_turn(record, within, views, readers):
                gone.update(within)
                _join(record, views, readers, within)
    return [each for each in records if each not in gone]


def _between(last: Record) -> tuple[set[Record], list[Record]]:
    """Return what leads to a layer by products with constants, and the views where it starts."""
    within: set[Record] = set()
    views: dict[Record, None] = {}
    stack = [last]
    while stack:
        for source in stack.pop().inputs:
            plain = source.kind == "elementwise" and source.function in _WITHIN
            if (plain or source.kind == "concatenation") and not source.uses:
                if source not in within:
                    within.add(source)
                    stack.append(source)
            else:
                views[source] = None
    return within, list(views)


def _is_turn(
    last: Record,
    within: set[Record],
    views: list[Record],
    readers: dict[Record, list[Record]],
) -> bool:
    """Tell whether a layer ends a turn: a sum of two products, or parts of which one was turned."""
    if last.kind == "add":
        ends = len(last.inputs) == _SIDES and within.issuperset(last.inputs)
    else:
        ends = any(each.function == TURNED for each in last.inputs)
    return (
        ends
        and len({_whole(each) for each in views}) == 1
        and all(within.union((last,)).issuperset(readers[each]) for each in within)
    )


def _whole(view: Record) -> Record:
    while view.kind == "reshape":
        view = view.inputs[0]
    return view


def _join(
    last: Record,
    views: list[Record],
    readers: dict[Record, list[Record]],
    within: set[Record],
) -> None:
    """Make the last layer the whole turn."""
    whole, largest = _whole(views[0]), max(views, key=lambda each: each.elements)
    halves = sum(each.elements for each in views) == 2 * largest.elements
    inputs = views
    if last.elements == whole.elements:
        inputs = [whole]
    elif len(views) >= _WHOLE_AND_HALVES and halves:
        inputs = [largest]
    for source in dict.fromkeys((*views, whole)):
        readers[source] = [each for each in readers[source] if each not in within]
    for source in inputs:
        if last not in readers[source]:
            readers[source].append(last)
    last.kind, last.function, last.inputs = "elementwise", TURNED, list(inputs)
    last.multiply_adds, last.window, last.outputs, last.mask = 0, 0, 0, None
