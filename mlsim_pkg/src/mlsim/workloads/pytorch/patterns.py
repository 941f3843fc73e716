"""Attention that is written out becomes one layer, and reads pieces where they lie."""

from __future__ import annotations

from mlsim.workloads.pytorch.products import visible
from mlsim.workloads.pytorch.records import Record, readers_of

# What may stand between the products besides the softmax.
_BEFORE = frozenset(("elementwise", "positions", "activation", "concatenation"))
_AFTER = frozenset(("elementwise", "dropout", "reshape"))
# What treats each number by itself.
_EACH = frozenset(("elementwise", "activation", "add", "multiply"))


def join_attention(records: list[Record], batch: int) -> list[Record]:
    """Return the records with attention in one of each where it is written out.

    Scores are made by a product of two tensors, scaled, masked, put through a softmax and
    multiplied with a third; nothing else may read them.
    """
    readers = readers_of(records)
    gone: set[Record] = set()
    for record in records:
        if record.kind != "softmax" or record in gone:
            continue
        before = _before(record, readers)
        after = _after(record, readers)
        if before and after and before[0].kind == after[-1].kind == "product":
            gone.update((*before, record, *after[:-1]))
            _join(before, record, after, batch)
    return [each for each in records if each not in gone]


def read_in_pieces(records: list[Record]) -> list[Record]:
    """Return the records without what only joins pieces for attention to read.

    Keys of latent attention are a piece of each head and a turned piece that all heads share;
    kernels of attention read the two where they lie.
    """
    readers = readers_of(records)
    gone: set[Record] = set()
    for record in records:
        joins = record.kind == "concatenation" and not record.uses
        if joins and readers[record] and all(one.kind == "attention" for one in readers[record]):
            gone.add(record)
            for one in readers[record]:
                pieces = [each for each in one.inputs if each is not record]
                one.inputs = list(dict.fromkeys((*pieces, *record.inputs)))
    return [each for each in records if each not in gone]


def spread_in_readers(records: list[Record]) -> list[Record]:
    """Return the records with numbers that are repeated read where they lie.

    What treats each number by itself reads one of them several times; a product would want
    them side by side.
    """
    readers = readers_of(records)
    for record in records:
        alone = all(each.kind in _EACH for each in readers[record])
        if record.function == "repeat" and readers[record] and alone:
            record.kind, record.function = "reshape", "repeated"
    return records


def read_as_rows(records: list[Record]) -> list[Record]:
    """Return the records without what only prepares numbers of words for a table.

    Such as which of them the table knows: the lookup does it as it reads them.
    """
    readers = readers_of(records)
    gone: set[Record] = set()
    for record in reversed(records):
        words = record.kind == "elementwise" and record.element_bytes and readers[record]
        if words and all(each.kind == "embedding" or each in gone for each in readers[record]):
            gone.add(record)
    for record in records:
        while gone.intersection(record.inputs):
            inner = [each.inputs if each in gone else [each] for each in record.inputs]
            record.inputs = list(dict.fromkeys(one for each in inner for one in each))
    return [each for each in records if each not in gone]


def _before(softmax: Record, readers: dict[Record, list[Record]]) -> list[Record]:
    """Return what leads to a softmax, from the product of queries and keys on."""
    found: list[Record] = []
    node = softmax
    while node.inputs:
        source = node.inputs[0]
        found[:0] = [source, *(each for each in readers[source] if each is not node)]
        if not all(each is node or _is_largest(each, node, readers) for each in readers[source]):
            return []
        if source.kind == "product":
            return found if len(source.inputs) <= 2 else []
        less_largest = source.kind == "add" and _is_largest(source.inputs[-1], source, readers)
        if source.kind not in _BEFORE and not less_largest:
            return []
        node = source
    return []


def _is_largest(node: Record, reader: Record, readers: dict[Record, list[Record]]) -> bool:
    """Tell whether a layer is the largest score, which is subtracted so that none overflows."""
    return node.kind == "pooling" and node.function == "max" and readers[node] == [reader]


def _after(softmax: Record, readers: dict[Record, list[Record]]) -> list[Record]:
    """Return what follows a softmax, up to the product with the values."""
    found: list[Record] = []
    node = softmax
    while len(readers[node]) == 1:
        (reader,) = readers[node]
        found.append(reader)
        if reader.kind == "product":
            return found if reader.inputs and reader.inputs[0] is node else []
        if reader.kind not in _AFTER:
            return []
        node = reader
    return []


def _join(before: list[Record], softmax: Record, after: list[Record], batch: int) -> None:
    """Make the last product the whole attention."""
    first, last = before[0], after[-1]
    rows, columns = first.shape[-2:]
    scores = first.elements
    masks = [each.mask for each in before if each.mask is not None]
    seen, causal = visible(rows, columns, masks[-1] if masks else None, causal=False)
    done = first.multiply_adds + last.multiply_adds
    inside = {first, softmax, *before, *after}
    inputs = [each for one in (*before, *after) for each in one.inputs if each not in inside]
    last.kind, last.function = "attention", "causal, written out" if causal else "written out"
    last.inputs = list(dict.fromkeys(inputs))
    last.uses = [use for each in (*before, *after) for use in each.uses]
    last.multiply_adds = done * seen // (rows * columns)
    last.masked_multiply_adds = done - last.multiply_adds
    last.outputs = last.window = 0
    # The probabilities of all pairs are kept, and what was dropped of them.
    kept = 1 + sum(each.kind == "dropout" for each in after)
    last.kept_bytes = 4 * kept * scores
