"""What programs write as several operations becomes one layer, and records become a graph.

Attention that is written out is one layer, and reads pieces where they lie. Positions by
rotation turn pairs of numbers by an angle that grows with the position: programs write it as
sums of the numbers, and of the numbers in another order, each times a constant. And a mean or a
deviation of each row, some operations on those few numbers, and an operation of them and the row
are one layer: a compiler does all of it while the row is at hand, as it does with a norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlsim.workloads.graph import Graph, Node
from mlsim.workloads.graph.fuse import BY_ROW, NOT_RUN
from mlsim.workloads.pytorch.handlers import visible
from mlsim.workloads.pytorch.recorder import BIASES, TABLE, WEIGHTS, Record, Use, readers_of

# What may stand between the products besides the softmax.
_BEFORE = frozenset(("elementwise", "positions", "activation", "concatenation"))
_AFTER = frozenset(("elementwise", "dropout", "reshape"))
# What treats each number by itself.
_EACH = frozenset(("elementwise", "activation", "add", "multiply"))


Readers = dict[Record, list[Record]]
# What a record and its readers tell: whether records become another; those that go are added.
Rule = Callable[[Record, Readers, set[Record]], None]


def rewritten(records: list[Record], *rules: Rule) -> list[Record]:
    """Return the records after each rule was asked about each of them."""
    for rule in rules:
        readers = readers_of(records)
        gone: set[Record] = set()
        for record in records:
            rule(record, readers, gone)
        records = [each for each in records if each not in gone]
    return records


def join_attention(record: Record, readers: Readers, gone: set[Record]) -> None:
    """Make one record of attention that is written out.

    Scores are made by a product of two tensors, scaled, masked, put through a softmax and
    multiplied with a third; nothing else may read them.
    """
    if record.kind != "softmax" or record in gone:
        return
    before = _before(record, readers)
    after = _after(record, readers)
    if before and after and before[0].kind == after[-1].kind == "product":
        gone.update((*before, record, *after[:-1]))
        _join(before, record, after)


def read_in_pieces(record: Record, readers: Readers, gone: set[Record]) -> None:
    """Leave out what only joins pieces for attention to read.

    Keys of latent attention are a piece of each head and a turned piece that all heads share;
    kernels of attention read the two where they lie.
    """
    joins = record.kind == "concatenation" and not record.uses
    if joins and readers[record] and all(one.kind == "attention" for one in readers[record]):
        gone.add(record)
        for one in readers[record]:
            pieces = [each for each in one.inputs if each is not record]
            one.inputs = list(dict.fromkeys((*pieces, *record.inputs)))


def spread_in_readers(record: Record, readers: Readers, gone: set[Record]) -> None:
    """Read numbers that are repeated where they lie.

    What treats each number by itself reads one of them several times; a product would want
    them side by side.
    """
    alone = all(each.kind in _EACH for each in readers[record])
    if record.function == "repeat" and readers[record] and alone:
        record.kind, record.function = "reshape", "repeated"


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


def _before(softmax: Record, readers: Readers) -> list[Record]:
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


def _is_largest(node: Record, reader: Record, readers: Readers) -> bool:
    """Tell whether a layer is the largest score, which is subtracted so that none overflows."""
    return node.kind == "pooling" and node.function == "max" and readers[node] == [reader]


def _after(softmax: Record, readers: Readers) -> list[Record]:
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


def _join(before: list[Record], softmax: Record, after: list[Record]) -> None:
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


TURNED = "turned"
# What a turn is written with: products with a constant, and other signs.
_WITHIN = frozenset(("scale", "neg", TURNED))
# A sum has two sides. A whole and its two halves are three views of the same numbers.
_SIDES = 2
_WHOLE_AND_HALVES = 3


def join_rotations(record: Record, readers: Readers, gone: set[Record]) -> None:
    """Make one record of a turn.

    All of it comes from one layer's numbers; nothing else reads what lies between.
    """
    if record.kind in ("add", "concatenation") and not record.uses:
        within, views = _between(record)
        if _is_turn(record, within, views, readers):
            gone.update(within)
            _join_rotation(record, views, readers, within)


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


def _is_turn(last: Record, within: set[Record], views: list[Record], readers: Readers) -> bool:
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


def _join_rotation(
    last: Record, views: list[Record], readers: Readers, within: set[Record]
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


_FIGURES = frozenset(("mean", "std", "var", "sum", "max", "min"))


def join_row_statistics(rows: Record, readers: Readers, gone: set[Record]) -> None:
    """Put figures of rows into the layer that they change.

    If several layers use a figure, finding it is a layer of its own.
    """
    found = [each for each in _figures_of(rows, readers) if each not in gone]
    if not found:
        return
    within = _with_what_follows(found, readers)
    last, chain = _last(rows, within, readers)
    if last is not None:
        _join_row(last, rows, within | chain, readers)
        gone.update((within | chain) - {last})


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
    """Tell whether a layer reduces each row to one number."""
    reduces = record.kind in ("pooling", "other") and record.function in _FIGURES
    return reduces and record.shape == (*rows.shape[:-1], 1) and rows.shape[-1] > 1


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


def _join_row(last: Record, rows: Record, within: set[Record], readers: Readers) -> None:
    """Make one layer of all that lies between the rows and the last use of their figures."""
    inside = {last, *within}
    read = [each for one in inside for each in one.inputs if each not in inside]
    last.inputs = [rows, *(each for each in dict.fromkeys(read) if each is not rows)]
    last.kind, last.function, last.window = "elementwise", BY_ROW, 0
    for source in last.inputs:
        readers[source] = [each for each in readers[source] if each not in inside] + [last]


# What is counted for one sample.
# What a layer has as it was recorded.
_SAME = (
    *("name", "kind", "function", "buffers", "window", "outputs", "chosen"),
    *("element_bytes", "in_place"),
)
_COUNTS = ("multiply_adds", "masked_multiply_adds", "read", "kept_bytes")


def assemble(
    records: list[Record], batch: int, others: list[Record] | None, parameters: dict[str, int]
) -> Graph:
    """Return the graph of recorded layers.

    Parameters
    ----------
    records, batch
        Layers as they were seen, and the samples that they worked on.
    others
        The same of another batch, from which it follows what grows with it; None if the
        module does not take one.
    parameters
        Numbers in each parameter.
    """
    notes: list[str] = []
    claims = _claims(records)
    if others is None:
        notes.append("It takes one sample only, so all of it is counted as growing with the batch.")
    elif [each.kind for each in records] != [each.kind for each in others]:
        notes.append("It does something else for a larger batch; it is counted as for one sample.")
    pairs = [None] * len(records) if others is None or notes else others
    nodes = [
        _node(record, batch, other, claims[record])
        for record, other in zip(records, pairs, strict=True)
    ]
    claimed = {use.parameter for record in records for use in record.uses}
    nodes.extend(_not_run(parameters, claimed, notes))
    return Graph(tuple(nodes), tuple(notes))


def _claims(records: list[Record]) -> dict[Record, dict[str, int]]:
    """Return which numbers of parameters each record holds: each stands in one record only.

    Of several that share a parameter it is the one that reads most of it.
    """
    best: dict[str, tuple[Record, Use]] = {}
    for record in records:
        for use in record.uses:
            held = best.get(use.parameter)
            weight = use.role != TABLE, use.read
            if held is None or weight > (held[1].role != TABLE, held[1].read):
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


def _node(record: Record, batch: int, other: Record | None, held: dict[str, int]) -> Node:
    once = other is not None and (record.shape, record.multiply_adds) == (
        other.shape,
        other.multiply_adds,
    )
    share = 1 if once else batch
    counts = {name: getattr(record, name) for name in _COUNTS}
    counts = {name: value if value is None else value // share for name, value in counts.items()}
    shape = record.shape if once else _one(record.shape, batch, other)
    return Node(
        shape=shape,
        inputs=tuple(each.name for each in record.inputs),
        weights=held[WEIGHTS],
        biases=held[BIASES],
        table=held[TABLE],
        once=once,
        **{name: getattr(record, name) for name in _SAME},
        **counts,
    )


def _one(shape: tuple[int, ...], batch: int, other: Record | None) -> tuple[int, ...]:
    """Return a shape for one sample: the side that grows with the batch, divided by it."""
    place = 0
    if other is not None and len(other.shape) == len(shape):
        grown = [index for index, size in enumerate(shape) if other.shape[index] != size]
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
