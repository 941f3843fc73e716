"""The computation graph of a language model that reads a sequence at once, without a cache.

And `graph`, the door for any model of the zoo. A Transformer says how many layers have which
part, and not which ones. Only where it has several kinds does that leave anything open: the
rarer kind then stands behind so many of the usual one, as it does in the models that are built
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.fuse import PROJECTION
from mlsim.workloads.graph.language_parts import Streams, TokenWiring, group_of, low_rank, wire_part
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.language import NORMS, Feed, Mixer, Transformer, whole_tokens
from mlsim.workloads.model import Network
from mlsim.workloads.residuals import table_parameters


def graph(model: Any, tokens: int | None = None, *, all_logits: bool = False) -> Graph:
    """Return the computation graph of a model, for one sample.

    Parameters
    ----------
    model
        A network or a language model, of the zoo or of a file.
    tokens
        Of a language model, the length of the sequence; no other network has one.
    all_logits
        Of a language model, whether each token has an output, as in training.

    Raises
    ------
    InvalidValueError
        If a language model has no tokens, or a network has some.
    WrongKindError
        If it is neither.

    >>> from mlsim import Models
    >>> len(graph(Models.LeNet5_Variant).layers), len(graph(Models.GPT2, 512).layers)
    (12, 124)
    """
    if isinstance(model, Transformer):
        if tokens is None:
            raise InvalidValueError(
                f"{model.name} is a language model: say how many tokens a sequence has, such as "
                f"tokens={min(512, model.context)} (1 to {model.context:,})."
            )
        return language_graph(model, tokens, all_logits=all_logits)
    if not isinstance(model, Network):
        raise WrongKindError(
            f"a model of the zoo or of a file belongs here, such as Models.ResNet50, not {model!r}."
        )
    if tokens is not None or all_logits:
        wrong = f"tokens={tokens!r}" if tokens is not None else "all_logits=True"
        raise InvalidValueError(
            f"{wrong} is for language models; the input of {model.name} has one size. Leave it out."
        )
    return graph_of(model)


def language_graph(model: Transformer, tokens: int, *, all_logits: bool = False) -> Graph:
    """Return the computation graph of a language model for one sequence, read at once.

    It counts what `model.flop_count(tokens)` counts: a decoder's token sees itself and those
    before it (what the mask hides stands in `masked_multiply_adds`), an encoder's sees all.
    Norms stand in front of the parts of a layer, unless the model says otherwise or ends without
    one; a single norm serves parts side by side. Positions that turn queries and keys have no
    layer of their own: they learn nothing and are no matrix product.

    Parameters
    ----------
    model
        A language model of the zoo, or of a `config.json`.
    tokens
        Length of the sequence.
    all_logits
        Whether the output layer works on each token, as in training, or on the last one only.

    Raises
    ------
    InvalidValueError
        If the tokens are no whole number, or not within the model's context.

    >>> from mlsim import Models
    >>> graph = language_graph(Models.Llama3_8B, 512)
    >>> graph["layers.0.attention.qkv"].shape, graph.parameters
    ((512, 6144), 8030261248)
    """
    tokens = whole_tokens("tokens", tokens)
    if not 1 <= tokens <= model.context:
        raise InvalidValueError(
            f"tokens = {tokens:,} is not within the context of {model.name}: give 1 to "
            f"{model.context:,}."
        )
    sequence = TokenWiring(model.hidden, tokens, model.decoder, model.norm, NORMS[model.norm])
    blocks, notes = blocks_of(model)
    sequence.notes.extend(notes)
    stream = _embedding(sequence, model)
    rows = _layer_embeddings(sequence, model, stream)
    streams = Streams(sequence, model) if model.residual_streams else None
    if streams:
        stream = streams.make(stream)
    for number, block in enumerate(blocks):
        name = f"layers.{number}"
        if streams:
            stream = streams.predict(f"{name}.streams", stream)
        stream = shown = _layer(sequence, model, block, name, stream)
        if streams:
            stream, shown = streams.correct(f"{name}.streams", stream)
        if rows:
            made = _layer_embedding(sequence, model, f"{name}.embedding", shown, rows)
            if block.embedding_norm:
                made = sequence.norm(f"{name}.embedding.norm", made)
            if not streams:
                stream = sequence.sum(f"{name}.embedding.add", [stream, made])
            elif streams.count > 1:
                streams.add(f"{name}.embedding.add", made)
    if streams:
        stream = streams.join(stream)
    if model.final_norm:
        stream = sequence.norm("norm", stream)
    _ends(sequence, model, stream, all_logits=all_logits)
    return sequence.graph()


def _embedding(sequence: TokenWiring, model: Transformer) -> str:
    """Wire what makes vectors of the numbers of words."""
    words = sequence.add("tokens", "input", (sequence.tokens,), element_bytes=8)
    hidden = model.hidden
    fields = {"table": model.vocabulary * hidden, "read": sequence.tokens * hidden}
    stream = sequence.each("embedding", "embedding", hidden, words, **fields)
    for name, learned in (("token_types", model.token_types), ("positions", model.positions)):
        if learned:  # the first rows are read, once for all samples, and added to what is there
            read = min(learned, sequence.tokens)
            fields = {"weights": read * hidden, "table": (learned - read) * hidden}
            stream = sequence.each(name, "positions", hidden, stream, **fields)
    return sequence.norm("embedding_norm", stream) if model.embedding_norm else stream


def _layer_embeddings(sequence: TokenWiring, model: Transformer, stream: str) -> str:
    """Wire the embedding that has a part for each layer, if there is one; return its last node."""
    width = model.layer_embedding
    if not width:
        return ""
    all_ = model.layers * width
    fields = {"table": table_parameters(model), "read": sequence.tokens * all_}
    rows = sequence.each("layer_embeddings", "embedding", all_, "tokens", **fields)
    made = sequence.linear("layer_embeddings_matrix", stream, all_)
    norm: dict[str, Any] = {"function": model.norm, "weights": width}
    made = sequence.each("layer_embeddings_norm", "norm", all_, made, **norm)
    return sequence.each("layer_embeddings_sum", "add", all_, made, rows)


def _layer_embedding(
    sequence: TokenWiring, model: Transformer, name: str, stream: str, rows: str
) -> str:
    """Wire what a layer makes of its part of the embedding, which is added to the token."""
    width = model.layer_embedding
    narrow = sequence.linear(f"{name}.in", stream, width)
    narrow = sequence.each(f"{name}.activation", "activation", width, narrow)
    own = sequence.part(f"{name}.part", rows, width, "this layer's part")
    weighed = sequence.each(f"{name}.weigh", "multiply", width, narrow, own)
    return sequence.linear(f"{name}.out", weighed, model.hidden)


def _layer(sequence: TokenWiring, model: Transformer, block: Block, name: str, stream: str) -> str:
    """Wire one layer; return the stream with what its parts added."""
    parts, norms = (*block.mixers, *block.feeds), block.norms
    behind = model.embedding_norm and not model.final_norm
    alone = norms == 1 and len(parts) > 1
    shared = sequence.norm(f"{name}.norm", stream) if alone else ""
    norms -= alone
    ends = norms - (0 if model.norms_after else len(parts))
    for number, part in enumerate(parts):
        group = f"{name}.{group_of(part)}"
        source = shared or stream
        if not behind and not model.norms_after and number < norms:
            source = sequence.norm(f"{group}.norm", stream)
        beside = ""
        if model.residual_rank and part in block.mixers:
            beside = low_rank(sequence, model, f"{name}.low_rank", source)
        added = wire_part(sequence, part, group, source)
        if not behind and number < ends:
            added = [sequence.norm(f"{group}.norm_after", sequence.sum(f"{group}.sum", added))]
        stream = sequence.sum(f"{group}.add", [stream, *added])
        if beside:
            stream = sequence.sum(f"{name}.low_rank.add", [stream, beside])
        if behind and number < norms:
            stream = sequence.norm(f"{group}.norm", stream)
    for number in range(max(norms - (1 if behind else 2) * len(parts), 0)):
        stream = sequence.norm(f"{name}.norm_{number + 1}", stream)
    return stream


def _ends(sequence: TokenWiring, model: Transformer, stream: str, *, all_logits: bool) -> None:
    """Wire what comes behind the layers: on the first token, on the last one, or on all."""
    hidden, words = model.hidden, model.vocabulary
    if model.pooler:
        first = sequence.add("first_token", "reshape", (hidden,), stream, function="first token")
        last = sequence.linear("pooler", first, hidden, hidden)
        sequence.add("pooler_activation", "activation", (hidden,), last)
    if not model.output_layer:
        return
    rows = sequence.tokens if all_logits else 1
    if not all_logits:
        stream = sequence.add("last_token", "reshape", (hidden,), stream, function="last token")
    weights = hidden * words
    sequence.add(
        "output",
        "linear",
        (rows, words) if all_logits else (words,),
        stream,
        function=PROJECTION,
        weights=0 if model.tied_embeddings else weights,
        tied=weights if model.tied_embeddings else 0,
        biases=model.output_bias * words,
        multiply_adds=rows * weights,
        window=hidden,
        outputs=words,
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
            tuple(tuple(each for each in row if (id(each) in kinds) == mixes) for mixes in (1, 0))
            for row in rows
        ]
    elif model.shares_cache:  # who reads the cache of others comes after them
        mixed = []
        for shares in (False, True):
            own = [each for each in mixers if getattr(each[1], "shared_cache", False) == shares]
            mixed += _spread(own, _total(own))
        pairs = list(zip(mixed, _in_order(feeds), strict=True))
    else:
        fed = _spread(feeds, model.layers) if model.feed_layers else _in_order(feeds)
        windowed = bool(mixers) and len(model.mixers) == 1
        mixed = _each_last(model) if windowed else _spread(mixers, model.layers)
        pairs = list(zip(mixed, fed, strict=True))
    # Whether some layers have another part than others, in an order that is not told.
    groups = (each for each in (model.mixer_layers, model.feed_layers) if len(each) > 1)
    counts = (count for group in (*groups, model.mixers) for count, _ in group)
    unknown = []
    if min(counts) < model.layers:
        unknown.append(
            f"which of the {model.layers} layers has which part is not told: they are spread "
            "evenly, and only their number is certain."
        )
    if model.norms:
        parts = max(len(mixed) + len(fed) for mixed, fed in pairs)
        if model.norms > 2 * parts + (model.layer_embedding > 0):
            unknown.append(
                f"where {model.norms} norms of a layer stand is not told: what is left over "
                "stands at its end."
            )
    found = []
    for first, then in pairs:
        behind = model.layer_embedding > 0 and model.norms > 2 * (len(first) + len(then))
        found.append(Block(first, then, model.norms - behind, behind))
    return tuple(found), tuple(unknown)


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
        (number / count, order)
        for order, (count, _) in enumerate(some)
        for number in range(1, count + 1)
    )
    rows: list[list[Any]] = [[] for _ in range(layers)]
    if len(some) > 1:
        for index, (_, order) in enumerate(places):
            rows[index % layers].append(some[order][1])
    return [(*(each for each in row if each is not None), *everywhere) for row in rows]
