"""Which parts each layer of a language model has, and in what order.

A Transformer says how many layers have which part, and not which ones. Only where it has
several kinds does that leave anything open: the rarer kind then stands behind so many of
the usual one, as it does in the models that are built so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlsim.workloads.language import Feed, Mixer, Transformer

SPREAD = (
    "which of the {layers} layers has which part is not told: they are spread evenly, and only "
    "their number is certain."
)
SOME_NORMS = (
    "where {norms} norms of a layer stand is not told: what is left over stands at its end."
)


@dataclass(frozen=True, slots=True)
class Block:
    """One layer: the parts that it has, in the order in which they run, and how many norms.

    One more stands behind what a layer's embedding adds, if `embedding_norm` says so.
    """

    mixers: tuple[Mixer, ...]
    feeds: tuple[Feed, ...]
    norms: int
    embedding_norm: bool = False

    @property
    def parts(self) -> tuple[Mixer | Feed, ...]:
        """All parts."""
        return (*self.mixers, *self.feeds)


def blocks_of(model: Transformer) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """Return the layers of a model, and what of their order is not known, in words.

    >>> from mlsim import Models
    >>> blocks, notes = blocks_of(Models.Qwen3_Next_80B_A3B)
    >>> [type(each.mixers[0]).__name__ for each in blocks][:4], len(notes)
    (['DeltaRule', 'DeltaRule', 'DeltaRule', 'Attention'], 1)
    """
    mixers = [each for group in model.mixers for each in _windows(*group)]
    feeds: list[tuple[int, Any]] = list(model.feeds)
    one_each = model.norms == 1 and _total(mixers) + _total(feeds) == model.layers
    if one_each:
        kinds = {id(part) for _, part in mixers}
        rows = _spread([*mixers, *feeds], model.layers)
        pairs = [
            (tuple(each for each in row if id(each) in kinds), tuple(_others(row, kinds)))
            for row in rows
        ]
    elif model.shares_cache:  # who reads the cache of others comes after them
        own = [(count, part) for count, part in mixers if not _shares(part)]
        others = [(count, part) for count, part in mixers if _shares(part)]
        mixed = [*_spread(own, _total(own)), *_spread(others, _total(others))]
        pairs = list(zip(mixed, _in_order(feeds), strict=True))
    else:
        fed = _spread(feeds, model.layers) if model.feed_layers else _in_order(feeds)
        windowed = bool(mixers) and len(model.mixers) == 1
        mixed = _each_last(model) if windowed else _spread(mixers, model.layers)
        pairs = list(zip(mixed, fed, strict=True))
    told = [SPREAD.format(layers=model.layers)] if _is_open(model) else []
    if model.norms * model.layers and not model.layer_norms:
        parts = max(len(mixed) + len(fed) for mixed, fed in pairs)
        if model.norms > 2 * parts + (model.layer_embedding > 0):
            told.append(SOME_NORMS.format(norms=model.norms))
    return tuple(_with_norms(model, *pair) for pair in pairs), tuple(told)


def _shares(part: Any) -> bool:
    """Tell whether a part reads keys and values of an earlier layer."""
    return bool(getattr(part, "shared_cache", False))


def _is_open(model: Transformer) -> bool:
    """Tell whether some layers have another part than others, in an order that is not told."""
    return any(
        len(groups) > 1 and any(each < model.layers for each, _ in groups)
        for groups in (model.mixer_layers, model.feed_layers)
    ) or any(each < model.layers for each, _ in model.mixers)


def _with_norms(model: Transformer, mixers: Sequence[Any], feeds: Sequence[Any]) -> Block:
    """Return a layer with its norms: so many each, or one for each part."""
    parts = len(mixers) + len(feeds)
    norms = parts if model.layer_norms else model.norms
    behind = model.layer_embedding > 0 and norms > 2 * parts
    return Block(tuple(mixers), tuple(feeds), norms - behind, behind)


def _windows(layers: int, mixer: Any) -> list[tuple[int, Any]]:
    """Return how many layers see a window, and how many see all nevertheless."""
    if not (mixer.window and mixer.full_every):
        return [(layers, mixer)]
    full = layers // mixer.full_every
    found = [(layers - full, mixer), (full, replace(mixer, window=0, full_every=0))]
    return [each for each in found if each[0]]


def _each_last(model: Transformer) -> list[tuple[Any, ...]]:
    """Return the mixers where of each few layers the last one sees all."""
    mixer: Any
    ((layers, mixer),) = model.mixers
    if not (mixer.window and mixer.full_every):
        return _spread([(layers, mixer)], model.layers)
    wide = replace(mixer, window=0, full_every=0)
    return [(mixer if number % mixer.full_every else wide,) for number in range(1, layers + 1)]


def _in_order(feeds: Sequence[tuple[int, Any]]) -> list[tuple[Any, ...]]:
    """Return the networks of layers of which the first ones have no experts."""
    return [(feed,) for layers, feed in feeds for _ in range(layers)]


def _others(row: Sequence[Any], kinds: set[int]) -> list[Any]:
    return [each for each in row if id(each) not in kinds]


def _total(groups: Sequence[tuple[int, Any]]) -> int:
    return sum(layers for layers, _ in groups)


def _spread(groups: Sequence[tuple[int, Any]], layers: int) -> list[tuple[Any, ...]]:
    """Return what each layer has: what all have, and the others one after another, evenly.

    >>> _spread([(3, "usual"), (1, "rare")], 4)
    [('usual',), ('usual',), ('usual',), ('rare',)]
    """
    everywhere = [part for count, part in groups if count == layers]
    some = [(count, part) for count, part in groups if count != layers]
    # What is left out of some layers leaves a gap, which is spread as well.
    some.append((max(layers - _total(some), 0), None))
    places = sorted(
        ((number / count, order) for order, (count, _) in enumerate(some) for number in _to(count))
    )
    rows: list[list[Any]] = [[] for _ in range(layers)]
    if len(some) > 1:
        for index, (_, order) in enumerate(places):
            rows[index % layers].append(some[order][1])
    return [(*(each for each in row if each is not None), *everywhere) for row in rows]


def _to(count: int) -> range:
    return range(1, count + 1)
