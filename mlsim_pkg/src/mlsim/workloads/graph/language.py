"""The computation graph of a language model that reads a sequence at once, without a cache."""

from __future__ import annotations

from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads.graph.fuse import PROJECTION
from mlsim.workloads.graph.language_layers import Block, blocks_of
from mlsim.workloads.graph.language_parts import group_of, wire_part
from mlsim.workloads.graph.language_streams import Streams, low_rank
from mlsim.workloads.graph.language_wiring import TokenWiring
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.language import Transformer, whole_tokens
from mlsim.workloads.language_steps import NORMS
from mlsim.workloads.layer_embeddings import table_parameters


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
    WrongKindError
        If it is no language model.
    InvalidValueError
        If the tokens are no whole number, or not within the model's context.

    >>> from mlsim import Models
    >>> graph = language_graph(Models.Llama3_8B, 512)
    >>> graph["layers.0.attention.qkv"].shape, graph.parameters
    ((512, 6144), 8030261248)
    """
    if not isinstance(model, Transformer):
        raise WrongKindError(
            f"a language model belongs here, not {model!r}; mlsim.workloads.graph.graph takes "
            "other networks too."
        )
    tokens = _within(model, tokens)
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


def _within(model: Transformer, tokens: Any) -> int:
    """Return a number of tokens that the model can read."""
    found = whole_tokens("tokens", tokens)
    if not 1 <= found <= model.context:
        raise InvalidValueError(
            f"tokens = {found:,} is not within the context of {model.name}: give 1 to "
            f"{model.context:,}."
        )
    return found


def _embedding(sequence: TokenWiring, model: Transformer) -> str:
    """Wire what makes vectors of the numbers of words."""
    words = sequence.add("tokens", "input", (sequence.tokens,), element_bytes=8)
    shape = (sequence.tokens, model.hidden)
    rows = sequence.tokens * model.hidden
    table = model.vocabulary * model.hidden
    stream = sequence.add("embedding", "embedding", shape, words, table=table, read=rows)
    for name, learned in (("token_types", model.token_types), ("positions", model.positions)):
        if learned:  # the first rows are read, once for all samples, and added to what is there
            read = min(learned, sequence.tokens)
            told = {"weights": read * model.hidden, "table": (learned - read) * model.hidden}
            stream = sequence.add(name, "positions", shape, stream, **told)
    return sequence.norm("embedding_norm", stream) if model.embedding_norm else stream


def _layer_embeddings(sequence: TokenWiring, model: Transformer, stream: str) -> str:
    """Wire the embedding that has a part for each layer, if there is one; return its last node."""
    width = model.layer_embedding
    if not width:
        return ""
    shape = (sequence.tokens, model.layers * width)
    told = {"table": table_parameters(model), "read": sequence.tokens * shape[1]}
    rows = sequence.add("layer_embeddings", "embedding", shape, "tokens", **told)
    made = sequence.linear("layer_embeddings_matrix", stream, model.hidden, shape[1])
    made = sequence.add(
        "layer_embeddings_norm", "norm", shape, made, function=model.norm, weights=width
    )
    return sequence.add("layer_embeddings_sum", "add", shape, made, rows)


def _layer_embedding(
    sequence: TokenWiring, model: Transformer, name: str, stream: str, rows: str
) -> str:
    """Wire what a layer makes of its part of the embedding, which is added to the token."""
    width, hidden = model.layer_embedding, model.hidden
    shape = (sequence.tokens, width)
    narrow = sequence.linear(f"{name}.in", stream, hidden, width)
    narrow = sequence.add(f"{name}.activation", "activation", shape, narrow)
    own = sequence.part(f"{name}.part", rows, width, "this layer's part")
    weighed = sequence.add(f"{name}.weigh", "multiply", shape, narrow, own)
    return sequence.linear(f"{name}.out", weighed, width, hidden)


def _layer(sequence: TokenWiring, model: Transformer, block: Block, name: str, stream: str) -> str:
    """Wire one layer; return the stream with what its parts added."""
    parts, norms = block.parts, block.norms
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
        last = sequence.linear("pooler", first, hidden, hidden, rows=1, biases=hidden)
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
