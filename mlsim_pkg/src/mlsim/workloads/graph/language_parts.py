"""The parts of a language model's layers as nodes: attention, states, networks, experts, streams.

Counts are those of the operators of a step on one device; here a norm, an activation
function and an addition are layers of their own, as a framework runs them. Where a token is
several vectors, layers work on the first one, which is called the stream here as elsewhere; the
others are what each layer predicts, and corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim.equations import transformer
from mlsim.equations.transformer import stream_multiply_adds
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention, Recurrent
from mlsim.workloads.graph.fuse import BY_ROW, GATE, PROJECTION
from mlsim.workloads.graph.networks import Wiring
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism, StepOperator


class TokenWiring(Wiring):
    """The nodes so far of a model that reads `tokens` tokens, `hidden` numbers each."""

    def __init__(self, hidden: int, tokens: int, causal: bool, norm: str, vectors: int) -> None:
        super().__init__()
        self.hidden, self.tokens, self.causal = hidden, tokens, causal
        self._norm, self._vectors = norm, vectors
        # The node that chose tokens last: layers without an indexer look at the same ones.
        self.chosen = ""
        # The nodes that hold keys and values which later layers may read, by window and head.
        self.cached: dict[tuple[int, int], list[str]] = {}

    def each(self, name: str, kind: str, width: int, *inputs: str, **fields: Any) -> str:
        """Add what puts out so many numbers of each token."""
        return self.add(name, kind, (self.tokens, width), *inputs, **fields)

    def norm(self, name: str, source: str) -> str:
        """Add a norm over the model's width."""
        return self.inner_norm(name, source, self.hidden, self._vectors * self.hidden)

    def inner_norm(self, name: str, source: str, width: int, learned: int, *sides: int) -> str:
        """Add a norm over some width; of its learned numbers, those beyond the width are added."""
        weights = min(width, learned)
        shape = (self.tokens, *sides, width)
        fields = {"weights": weights, "biases": learned - weights, "function": self._norm}
        return self.add(name, "norm", shape, source, **fields)

    def linear(
        self, name: str, source: str, outputs: int, biases: int = 0, *, learned: bool = True
    ) -> str:
        """Add a matrix that each token of a source is multiplied with, or the only one it has.

        One that is not `learned` is that of an earlier node, which holds it.
        """
        *sides, inputs = self.shapes[source]
        rows = sides[0] if sides else 1
        return self.add(
            name,
            "linear",
            (*sides, outputs),
            source,
            function=PROJECTION if sides else "",
            weights=inputs * outputs * learned,
            biases=biases,
            multiply_adds=rows * inputs * outputs,
            window=inputs,
            outputs=outputs,
        )

    def part(self, name: str, source: str, width: int, what: str) -> str:
        """Show a part of each token's numbers."""
        return self.each(name, "reshape", width, source, function=what)

    def sum(self, name: str, sources: Sequence[str]) -> str:
        """Add vectors of tokens up, two at a time."""
        first, *others = sources
        for number, other in enumerate(others, 1):
            called = f"{name}_{number}" if number < len(others) else name
            first = self.each(called, "add", self.hidden, other, first)
        return first

    def pairs(self, window: int) -> tuple[int, int]:
        """Return the pairs of tokens that meet, and those that a mask hides."""
        window, square = min(window, self.tokens), self.tokens**2
        found = self.tokens * window
        if self.causal:
            found = int(transformer.attention_pairs(window, 0, self.tokens, window))
        return found, square - found


# Bytes of a token's number, where an indexer says which tokens are looked at.
_NUMBER = 8


def group_of(part: Any) -> str:
    """Return what the nodes of a part are called together."""
    return next(name for kind, (name, _) in _PARTS.items() if isinstance(part, kind))


def wire_part(sequence: TokenWiring, part: Any, name: str, source: str) -> list[str]:
    """Wire a part of a layer; return the nodes whose outputs are added to the stream."""
    wire = next(wire for kind, (_, wire) in _PARTS.items() if isinstance(part, kind))
    found: list[str] = wire(sequence, part, name, source)
    return found


def _operators(sequence: TokenWiring, part: Any) -> dict[str, StepOperator]:
    return {each.name: each for each in part.operators(sequence.hidden, Parallelism())}


def _attention(sequence: TokenWiring, part: Attention, name: str, source: str) -> list[str]:
    operators, hidden = _operators(sequence, part), sequence.hidden
    first = "queries" if part.shared_cache else "queries, keys, values"
    wired, columns = "queries" if part.shared_cache else "qkv", operators[first].outputs
    made = sequence.linear(f"{name}.{wired}", source, columns, part.bias * columns)
    mixed = part.heads * part.value_width
    gate = part.output_gate * mixed
    if part.shared_cache:
        inputs = _with_earlier_cache(sequence, part, name, made)
    else:
        inputs = [made]
        if part.qk_norm:
            inputs = _normed_heads(sequence, part, name, made, columns - gate)
        elif gate:
            inputs = [sequence.part(f"{name}.heads", made, columns - gate, first)]
        # Layers that read one cache have a window and a head's size in common.
        sequence.cached[part.window, part.head_size] = inputs[1:] if part.qk_norm else [made]
        if part.indexer:
            _index(sequence, part, name, source, source)
    last = _meet(sequence, part, name, operators["attention"], inputs)
    if gate:
        gates = sequence.part(f"{name}.gate", made, gate, "gate")
        last = sequence.each(f"{name}.gated", "multiply", mixed, last, gates, function=GATE)
    return [sequence.linear(f"{name}.output", last, hidden, part.output_bias * hidden)]


def _with_earlier_cache(
    sequence: TokenWiring, part: Attention, name: str, queries: str
) -> list[str]:
    """Return the queries, and the keys and values of an earlier layer that they meet."""
    seen = sequence.cached.get((part.window, part.head_size), [])
    if part.qk_norm:
        return [_head_norm(sequence, part, f"{name}.query", queries, part.heads), *seen]
    if len(seen) == 1:  # they are a part of one matrix's result
        kept = 2 * part.kv_heads * part.head_size
        seen = [sequence.part(f"{name}.cache", seen[0], kept, "keys, values")]
    return [queries, *seen]


def _normed_heads(
    sequence: TokenWiring, part: Attention, name: str, made: str, columns: int
) -> list[str]:
    """Add norms of queries and of keys, and perhaps of values, which learns nothing."""
    inputs = [
        _head_norm(sequence, part, f"{name}.query", made, part.heads),
        _head_norm(sequence, part, f"{name}.key", made, part.kv_heads),
    ]
    if part.value_norm or not part.values_from_keys:
        width = columns - (part.heads + part.kv_heads) * part.head_size
        width = part.kv_heads * part.value_width if part.value_norm else width
        values = sequence.part(f"{name}.values", made, width, "values")
        if part.value_norm:
            shape = (sequence.tokens, part.kv_heads, part.value_width)
            values = sequence.add(f"{name}.value_norm", "norm", shape, values, function="rms")
        inputs.append(values)
    return inputs


def _head_norm(sequence: TokenWiring, part: Attention, name: str, source: str, heads: int) -> str:
    """Add a norm of queries or of keys: by head with numbers for all, or of all heads at once."""
    width = heads * part.head_size
    turned = sequence.part(f"{name}_heads", source, width, "heads")
    sides = (width,) if part.wide_norm else (heads, part.head_size)
    fields = {"function": "rms", "weights": sides[-1]}
    return sequence.add(f"{name}_norm", "norm", (sequence.tokens, *sides), turned, **fields)


_Attends = Attention | LatentAttention


def _meet(
    sequence: TokenWiring, part: _Attends, name: str, operator: StepOperator, inputs: list[str]
) -> str:
    """Add what lets tokens see one another."""
    window = part.window or operator.attention_window
    pairs, hidden = sequence.pairs(window)
    each = operator.pair_multiply_adds
    # With latent attention, the cheaper of two ways; expanding is counted as a matrix.
    each = min(each, operator.absorbed_pair_multiply_adds or each)
    value = part.value_width if isinstance(part, Attention) else part.value_size
    words = ["causal"] * sequence.causal + ["window"] * bool(part.window)
    if part.chosen and not part.window:
        words.append("chosen")
        inputs = [*inputs, sequence.chosen] if sequence.chosen else inputs
    return sequence.add(
        f"{name}.attention",
        "attention",
        (sequence.tokens, part.heads * value),
        *inputs,
        function=", ".join(words),
        weights=operator.parameters,
        multiply_adds=each * pairs,
        masked_multiply_adds=each * hidden,
        # A number for each query and head, in 32 bits: what its scores add up to.
        kept_bytes=4 * part.heads * sequence.tokens,
    )


def _index(sequence: TokenWiring, mixer: _Attends, name: str, source: str, queries: str) -> None:
    """Add an indexer: what it chooses is read by the attention of this layer and the next."""
    part = mixer.indexer
    assert part is not None
    inputs = [sequence.linear(f"{name}.index.queries", queries, part.heads * part.size)]
    keys = sequence.linear(f"{name}.index.key.matrix", source, part.size)
    inputs.append(sequence.inner_norm(f"{name}.index.key.norm", keys, part.size, 2 * part.size))
    if part.weighted:
        inputs.append(sequence.linear(f"{name}.index.weights", source, part.heads))
    scores = next(each for each in part.operators(sequence.hidden) if each.name == "index scores")
    pairs, hidden = sequence.pairs(scores.attention_window)
    sequence.chosen = sequence.add(
        f"{name}.index.scores",
        "attention",
        (sequence.tokens, min(mixer.chosen, sequence.tokens)),
        *inputs,
        function="scores",
        multiply_adds=scores.pair_multiply_adds * pairs,
        masked_multiply_adds=scores.pair_multiply_adds * hidden,
        element_bytes=_NUMBER,
    )


def _latent(sequence: TokenWiring, part: LatentAttention, name: str, source: str) -> list[str]:
    narrow = source
    if part.query_rank:
        rank = part.query_rank
        narrow = sequence.linear(f"{name}.query_reduction", source, rank)
        narrow = sequence.inner_norm(f"{name}.query_norm", narrow, rank, rank)
    queries = part.heads * (part.content_size + part.rope_size)
    asked = sequence.linear(f"{name}.queries", narrow, queries)
    packed = sequence.linear(f"{name}.kv_compression", source, part.kv_rank + part.rope_size)
    vector = sequence.part(f"{name}.kv_compressed", packed, part.kv_rank, "keys, values")
    turned = sequence.part(f"{name}.kv_rotary_key", packed, part.rope_size, "rotary key")
    vector = sequence.inner_norm(f"{name}.kv_norm", vector, part.kv_rank, part.kv_rank)
    wide = part.heads * (part.content_size + part.value_size)
    both = sequence.linear(f"{name}.kv_expansion", vector, wide)
    if part.indexer:
        _index(sequence, part, name, source, narrow)
    operator = _operators(sequence, part)["attention"]
    met = _meet(sequence, part, name, operator, [asked, both, turned])
    return [sequence.linear(f"{name}.output", met, sequence.hidden)]


def _recurrent(sequence: TokenWiring, part: Recurrent, name: str, source: str) -> list[str]:
    operators = _operators(sequence, part)
    columns, state = operators["state inputs"].outputs, operators["state"]
    last = sequence.linear(f"{name}.inputs", source, columns)
    fields = {"function": type(part).__name__, "weights": state.parameters}
    done, inner = sequence.tokens * state.token_multiply_adds, state.token_elements - columns
    called = f"{name}.state"
    last = sequence.each(called, "recurrent", inner, last, multiply_adds=done, **fields)
    return [sequence.linear(f"{name}.output", last, sequence.hidden)]


def _feed(sequence: TokenWiring, part: FeedForward, name: str, source: str) -> list[str]:
    hidden, inner = sequence.hidden, part.size
    columns = part.branches * inner
    last = sequence.linear(f"{name}.up", source, columns, part.bias * columns)
    if part.cut:  # the smaller of the gate's numbers become zero, and weigh the rest
        gate = sequence.part(f"{name}.gate", last, inner, "gate")
        kept = sequence.each(f"{name}.cut", "elementwise", inner, gate, function=BY_ROW)
        kept = _activation(sequence, f"{name}.activation", kept, inner, gated=False)
        rest = sequence.part(f"{name}.rest", last, inner, "what the gate weighs")
        last = sequence.each(f"{name}.weigh", "multiply", inner, kept, rest)
    else:
        last = _activation(sequence, f"{name}.activation", last, inner, gated=part.gated)
    return [sequence.linear(f"{name}.down", last, hidden, part.bias * hidden)]


def _activation(sequence: TokenWiring, name: str, source: str, width: int, *, gated: bool) -> str:
    """Add an activation function; which one, the model does not tell."""
    function = "gated" if gated else ""
    return sequence.each(name, "activation", width, source, function=function)


def _experts(sequence: TokenWiring, part: Experts, name: str, source: str) -> list[str]:
    hidden, tokens = sequence.hidden, sequence.tokens
    scores = part.router_outputs
    router = sequence.add(
        f"{name}.router",
        "router",
        (tokens, scores),
        source,
        weights=scores * hidden,
        biases=part.router_bias * part.count,
        multiply_adds=tokens * scores * hidden,
        window=hidden,
        outputs=scores,
    )
    found = [_routed(sequence, part, name, source, router)]
    if part.shared_expert:
        (last,) = _feed(sequence, part.shared_expert, f"{name}.shared", source)
        if part.shared_gate:
            gate = sequence.part(f"{name}.shared.gate", router, 1, "gate of the shared expert")
            gated = f"{name}.shared.gated"
            last = sequence.each(gated, "multiply", hidden, last, gate, function=GATE)
        # The two are added up before the token is, as programs write it.
        found = [sequence.sum(f"{name}.both", [last, *found])]
    return found


def _routed(sequence: TokenWiring, part: Experts, name: str, source: str, router: str) -> str:
    """Add the experts among which the router chooses some for each token."""
    hidden, tokens, width = sequence.hidden, sequence.tokens, part.width(sequence.hidden)
    if part.latent:
        source = sequence.linear(f"{name}.to_their_width", source, width)
    branches, inner = part.expert.branches, part.per_token * part.size

    def matrices(end: str, sides: tuple[int, int], shape: tuple[int, ...], *given: str) -> str:
        return sequence.add(
            f"{name}.{end}",
            "experts",
            (tokens, *shape),
            *given,
            weights=part.count * sides[0] * sides[1],
            biases=part.count * part.bias * sides[1],
            chosen=(part.per_token, part.count),
            multiply_adds=tokens * part.per_token * sides[0] * sides[1],
            window=sides[0],
            outputs=sides[1],
            # Which experts a token goes to is no activation, and few numbers.
            read=tokens * width if end == "up" else None,
        )

    columns = branches * part.size
    last = matrices("up", (width, columns), (part.per_token, columns), source, router)
    last = _activation(sequence, f"{name}.activation", last, inner, gated=part.gated)
    last = matrices("down", (part.size, width), (part.per_token, width), last)
    last = sequence.each(f"{name}.weighted", "multiply", width, last, function="weighted sum")
    if part.latent:
        last = sequence.linear(f"{name}.from_their_width", last, hidden)
    return last


_PARTS: dict[type[Any], tuple[str, Any]] = {
    Attention: ("attention", _attention),
    LatentAttention: ("attention", _latent),
    Recurrent: ("state", _recurrent),
    FeedForward: ("feed_forward", _feed),
    Experts: ("experts", _experts),
}


@dataclass
class Streams:
    """The vectors of a token that layers don't work on, and what changes them."""

    sequence: TokenWiring
    model: Transformer
    # Nodes that hold the others, and the node that holds what all were predicted to be.
    others: tuple[str, ...] = ()
    predicted: str = ""

    @property
    def count(self) -> int:
        """How many vectors a token is."""
        return self.model.residual_streams

    @property
    def shape(self) -> tuple[int, int, int]:
        """Sides of all of them."""
        return self.count, self.sequence.tokens, self.model.hidden

    def make(self, embedding: str) -> str:
        """Make the others of the embedding, each as long as it is; return the first."""
        if self.count == 1:
            return embedding
        both = self._stacked("streams.made", embedding, (embedding,) * (self.count - 1))
        self.others = (self._others("streams.made.others", both),)
        return self._first("streams.made.first", both)

    def join(self, stream: str) -> str:
        """Bring the others back, and return the mean of all."""
        if self.count == 1:
            return stream
        wide, name = self.model.hidden, "streams.joined"
        parts = (
            self.sequence.part(f"{name}.part_{each}", self.others[0], wide, f"stream {each}")
            for each in range(1, self.count)
        )
        both = self._stacked(name, stream, parts)
        return self.sequence.each("streams.mean", "pooling", wide, both, function="mean")

    def _stacked(self, name: str, first: str, sources: Iterable[str]) -> str:
        """Add a matrix for each source, what makes it as long as the first, and all together."""
        sequence, wide, found = self.sequence, self.model.hidden, []
        row: dict[str, Any] = {"function": BY_ROW}
        length = sequence.each(f"{name}.length", "elementwise", 1, first, **row)
        for number, source in enumerate(sources, 1):
            made = sequence.linear(f"{name}.{number}", source, wide)
            found.append(sequence.each(f"{made}.length", "elementwise", wide, made, length, **row))
        return sequence.add(f"{name}.stacked", "concatenation", self.shape, first, *found)

    def predict(self, name: str, stream: str) -> str:
        """Predict all streams; return the first, on which the layer works."""
        weights = self._weights(f"{name}.predict", stream, self.count**2, learned=True)
        each = int(stream_multiply_adds(self.model.hidden, self.count))
        self.predicted = self.sequence.add(
            f"{name}.predict.predicted",
            "product",
            self.shape,
            stream,
            *self.others,
            weights,
            function="weighted sum",
            multiply_adds=self.sequence.tokens * each,
            window=self.count,
            outputs=self.count,
        )
        return self._first(f"{name}.predict.first", self.predicted)

    def correct(self, name: str, stream: str) -> tuple[str, str]:
        """Correct the predictions by the layer's output; return the first stream, and scaled."""
        weights = self._weights(f"{name}.correct", stream, self.count, learned=False)
        first = self._first(f"{name}.correct.first_predicted", self.predicted)
        missed = self.sequence.sum(f"{name}.correct.missed", [stream, first])
        corrected, made = f"{name}.correct.corrected", (self.predicted, missed, weights)
        self.sequence.add(corrected, "elementwise", self.shape, *made, function="corrected")
        self.others = (self._others(f"{name}.correct.others", corrected),)
        first = self._first(f"{name}.correct.first", corrected)
        scale, wide = f"{name}.correct.scale", self.model.hidden
        fields: dict[str, Any] = {"function": "scale", "weights": wide}
        return first, self.sequence.each(scale, "elementwise", wide, first, **fields)

    def add(self, name: str, source: str) -> None:
        """Add what a layer's embedding made to the others."""
        shape = (self.count - 1, *self.shape[1:])
        self.others = (self.sequence.add(name, "add", shape, *self.others, source),)

    def _first(self, name: str, source: str) -> str:
        return self.sequence.part(name, source, self.model.hidden, "the first stream")

    def _others(self, name: str, source: str) -> str:
        shape = (self.count - 1, *self.shape[1:])
        return self.sequence.add(name, "reshape", shape, source, function="the other streams")

    def _weights(self, name: str, source: str, outputs: int, *, learned: bool) -> str:
        """Add the router, and a matrix that makes so many weights of its scores.

        Its norm and matrix run twice in a layer; the node that runs first holds them.
        """
        sequence, wide, scores = self.sequence, self.model.hidden, self.count
        source = sequence.inner_norm(f"{name}.norm", source, wide, wide * learned)
        router = sequence.linear(f"{name}.router", source, scores, learned=learned)
        router = sequence.each(f"{name}.tanh", "activation", scores, router, function="tanh")
        return sequence.linear(f"{name}.weights", router, outputs)


def low_rank(sequence: TokenWiring, model: Transformer, name: str, source: str) -> str:
    """Add the path through few numbers, and its input; return the node that holds both."""
    narrow = sequence.linear(f"{name}.in", source, model.residual_rank)
    made = sequence.norm(f"{name}.norm", sequence.linear(f"{name}.out", narrow, model.hidden))
    return sequence.sum(f"{name}.sum", [source, made])
