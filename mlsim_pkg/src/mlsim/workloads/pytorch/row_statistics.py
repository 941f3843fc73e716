"""What a row's own figures change is one layer: its mean, its spread, and what is done with them.

Programs write it as a mean or a deviation of each row, some operations on those few numbers,
and an operation of them and the row. A compiler does all of it while the row is at hand, as
it does with a norm.
"""

from __future__ import annotations

from mlsim.workloads.graph.fuse import BY_ROW
from mlsim.workloads.pytorch.records import Record, readers_of

Readers = dict[Record, list[Record]]
_EACH = frozenset(("elementwise", "activation", "add", "multiply"))
_FIGURES = frozenset(("mean", "std", "var", "sum", "max", "min"))


def join_row_statistics(records: list[Record]) -> list[Record]:
    """Return the records with figures of rows in the layer that they change.

    If several layers use a figure, finding it is a layer of its own.
    """
    readers = readers_of(records)
    gone: set[Record] = set()
    for rows in records:
        found = [each for each in _figures_of(rows, readers) if each not in gone]
        if not found:
            continue
        within = _with_what_follows(found, readers)
        last, chain = _last(rows, within, readers)
        if last is not None:
            _join(last, rows, within | chain, readers)
            gone.update((within | chain) - {last})
    return [each for each in records if each not in gone]


def _figures_of(rows: Record, readers: Readers) -> list[Record]:
    """Return what finds one number of each row, and what is done to the row for it alone."""
    found: list[Record] = []
    for reader in readers[rows]:
        if _is_figure(reader, rows):
            found.append(reader)
        elif _plain(reader) and len(reader.inputs) == 1 and reader.elements == rows.elements:
            ends = readers[reader]  # such as its square
            if len(ends) == 1 and _is_figure(ends[0], rows):
                found += [reader, ends[0]]
    return list(dict.fromkeys(found))


def _is_figure(record: Record, rows: Record) -> bool:
    reduces = record.kind in ("pooling", "other") and record.function in _FIGURES
    return reduces and _one_each(record, rows)


def _one_each(record: Record, rows: Record) -> bool:
    """Tell whether a layer puts out one number of each row."""
    return record.shape == (*rows.shape[:-1], 1) and rows.shape[-1] > 1


def _plain(record: Record) -> bool:
    return record.kind in _EACH and not record.uses


def _with_what_follows(found: list[Record], readers: Readers) -> set[Record]:
    """Return figures of rows with all that is computed of them alone."""
    within = set(found)
    stack = [each for each in found if each.shape[-1] == 1]
    while stack:
        node = stack.pop()
        for reader in readers[node]:
            own = reader.shape == node.shape and within.issuperset(reader.inputs)
            if own and _plain(reader) and reader not in within:
                within.add(reader)
                stack.extend((reader, *(each for each in reader.inputs if each in found)))
    return within


def _last(rows: Record, within: set[Record], readers: Readers) -> tuple[Record | None, set[Record]]:
    """Return the layer in which the figures are used, and what leads from the rows to it.

    It is the last of the figures themselves, if somebody else uses it; None if several are.
    """
    shown = [each for each in within if any(one not in within for one in readers[each])]
    outside = {one for each in shown for one in readers[each]} - within
    for last in outside:
        chain = _chain(last, rows, readers) if _plain(last) else None
        if chain is not None and outside <= {last, *chain}:
            return last, chain
    return (shown[0] if len(shown) == 1 else None), set()


def _chain(last: Record, rows: Record, readers: Readers) -> set[Record] | None:
    """Return what stands between rows and a layer; None if others read it, or it is no chain."""
    found: set[Record] = set()
    node = last
    while True:
        wide = [each for each in node.inputs if each.elements == rows.elements]
        if wide == [rows]:
            return found
        if len(wide) != 1 or not _plain(wide[0]) or readers[wide[0]] != [node]:
            return None
        node = wide[0]
        found.add(node)


def _join(last: Record, rows: Record, within: set[Record], readers: Readers) -> None:
    """Make one layer of all that lies between the rows and the last use of their figures."""
    inside = {last, *within}
    read = [each for one in inside for each in one.inputs if each not in inside]
    last.inputs = [rows, *(each for each in dict.fromkeys(read) if each is not rows)]
    last.kind, last.function, last.window = "elementwise", BY_ROW, 0
    for source in last.inputs:
        readers[source] = [each for each in readers[source] if each not in inside] + [last]
