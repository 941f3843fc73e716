"""From what was recorded at two batch sizes to a computation graph for one sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlsim.workloads.graph.fuse import NOT_RUN
from mlsim.workloads.graph.nodes import Graph, Node
from mlsim.workloads.pytorch.records import BIASES, TABLE, WEIGHTS, Record, Use

# What is counted for one sample.
# What a layer has as it was recorded.
_SAME = (
    *("name", "kind", "function", "buffers", "window", "outputs", "chosen"),
    *("element_bytes", "in_place"),
)
_COUNTS = ("multiply_adds", "masked_multiply_adds", "read", "kept_bytes")


def assemble(
    records: list[Record],
    batch: int,
    others: list[Record] | None,
    other_batch: int,
    parameters: dict[str, int],
) -> Graph:
    """Return the graph of recorded layers.

    Parameters
    ----------
    records, batch
        Layers as they were seen, and the samples that they worked on.
    others, other_batch
        The same of another batch, from which it follows what grows with it; None if the
        module does not take one.
    parameters
        Numbers in each parameter.
    """
    notes: list[str] = []
    claims = _claims(records)
    pairs = _pairs(records, others, notes)
    nodes = []
    for record, other in zip(records, pairs, strict=True):
        nodes.append(_node(record, batch, other, other_batch, claims[record]))
    claimed = {use.parameter for record in records for use in record.uses}
    nodes.extend(_not_run(parameters, claimed, notes))
    return Graph(tuple(nodes), tuple(notes))


def _pairs(
    records: list[Record], others: list[Record] | None, notes: list[str]
) -> list[Record] | list[None]:
    if others is None:
        notes.append("It takes one sample only, so all of it is counted as growing with the batch.")
        return [None] * len(records)
    if [each.kind for each in records] != [each.kind for each in others]:
        notes.append("It does something else for a larger batch; it is counted as for one sample.")
        return [None] * len(records)
    return others


def _claims(records: list[Record]) -> dict[Record, dict[str, int]]:
    """Return which numbers of parameters each record holds: each stands in one record only.

    Of several that share a parameter it is the one that reads most of it.
    """
    best: dict[str, tuple[Record, Use]] = {}
    for record in records:
        for use in record.uses:
            held = best.get(use.parameter)
            if held is None or _weight(use) > _weight(held[1]):
                best[use.parameter] = (record, use)
    found: dict[Record, dict[str, int]] = {
        record: {WEIGHTS: 0, BIASES: 0, TABLE: 0} for record in records
    }
    for record, use in best.values():
        read = 0 if use.role == TABLE else use.read
        if use.role != TABLE:
            found[record][use.role] += read
        found[record][TABLE] += use.size - read
    return found


def _weight(use: Use) -> tuple[bool, int]:
    return use.role != TABLE, use.read


def _node(
    record: Record, batch: int, other: Record | None, other_batch: int, held: dict[str, int]
) -> Node:
    counts: dict[str, Any] = {}
    once = False
    if other is not None:
        once = record.shape == other.shape and record.multiply_adds == other.multiply_adds
    share = 1 if once else batch
    for name in _COUNTS:
        value = getattr(record, name)
        counts[name] = value if value is None else value // share
    return Node(
        shape=_one(record.shape, batch, None if once or other is None else other.shape, once=once),
        inputs=tuple(each.name for each in record.inputs),
        weights=held[WEIGHTS],
        biases=held[BIASES],
        table=held[TABLE],
        once=once,
        **{name: getattr(record, name) for name in _SAME},
        **counts,
    )


def _one(
    shape: tuple[int, ...], batch: int, other: tuple[int, ...] | None, *, once: bool
) -> tuple[int, ...]:
    """Return a shape for one sample: the side that grows with the batch, divided by it."""
    if once:
        return shape
    place = 0
    if other is not None and len(other) == len(shape):
        grown = [index for index, size in enumerate(shape) if other[index] != size]
        place = grown[0] if grown else 0
    if not shape:
        return shape
    side = shape[place] // batch
    rest = (*shape[:place], *shape[place + 1 :])
    if side == 1 and (rest or len(shape) == 1):
        return rest or (1,)
    return (*shape[:place], side, *shape[place + 1 :])


def _not_run(
    parameters: dict[str, int], claimed: Iterable[str], notes: list[str]
) -> Iterable[Node]:
    """Yield what a module holds and did not use, such as a head that only trains."""
    left = {name: size for name, size in parameters.items() if name not in set(claimed)}
    places: dict[str, int] = {}
    for name, size in left.items():
        place = name.partition(".")[0] if "." in name else name
        places[place] = places.get(place, 0) + size
    for place, size in places.items():
        notes.append(f"{place}: {size:,} parameters are held and not used in this pass.")
        name = f"{place}_{NOT_RUN}".replace(" ", "_")
        yield Node(name=name, kind="other", function=NOT_RUN, shape=(0,), table=size)
