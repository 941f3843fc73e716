"""The parts of a language model's layers as nodes: attention, states, networks, experts, streams.

Counts are those of the operators of a step on one device; here a norm, an activation
function and an addition are layers of their own, as a framework runs them. Where a token is
several vectors, layers work on the first one, which is called the stream here as elsewhere; the
others are what each layer predicts, and corrects.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        self,
        name: str,
        source: str,
        inputs: int,
        outputs: int,
        *,
        biases: int = 0,
        rows: int = 0,
        learned: bool = True,
    ) -> str:
        """Add a matrix that each token is multiplied with, or so many rows only.

        One that is not `learned` is that of an earlier node, which holds it.
        """
        rows = rows or self.tokens
        return self.add(
            name,
            "linear",
            (rows, outputs) if rows == self.tokens else (outputs,),
            source,
            function=PROJECTION if rows == self.tokens else "",
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
    if part.shared_cache:
        return _with_earlier_cache(sequence, part, name, source)
    columns = operators["queries, keys, values"].outputs
    queries, mixed = part.heads * part.head_size, part.heads * part.value_width
    keys = part.kv_heads * part.head_size
    gate = part.output_gate * mixed
    qkv = sequence.linear(f"{name}.qkv", source, hidden, columns, biases=part.bias * columns)
    inputs = kept = [qkv]
    if part.qk_norm:
        inputs = [
            _head_norm(sequence, part, f"{name}.query", qkv, part.heads),
            _head_norm(sequence, part, f"{name}.key", qkv, part.kv_heads),
        ]
        values = columns - gate - queries - keys
        if part.value_norm:
            inputs.append(_value_norm(sequence, part, name, qkv))
        elif not part.values_from_keys:
            inputs.append(sequence.part(f"{name}.values", qkv, values, "values"))
        kept = inputs[1:]
    elif gate:
        inputs = [sequence.part(f"{name}.heads", qkv, columns - gate, "queries, keys, values")]
    if part.indexer:
        _index(sequence, part, name, source, source)
    sequence.cached[_cache_of(part)] = kept
    last = _meet(sequence, part, name, operators["attention"], inputs)
    if gate:
        gates = sequence.part(f"{name}.gate", qkv, gate, "gate")
        last = sequence.each(f"{name}.gated", "multiply", mixed, last, gates, function=GATE)
    biases = part.output_bias * hidden
    return [sequence.linear(f"{name}.output", last, mixed, hidden, biases=biases)]


def _cache_of(part: Attention) -> tuple[int, int]:
    """Return what layers have in common that read one cache: their window, and their heads."""
    return part.window, part.head_size


def _with_earlier_cache(
    sequence: TokenWiring, part: Attention, name: str, source: str
) -> list[str]:
    """Wire attention that has queries only, and reads keys and values of an earlier layer."""
    operators, hidden = _operators(sequence, part), sequence.hidden
    columns = operators["queries"].outputs
    asked = sequence.linear(f"{name}.queries", source, hidden, columns, biases=part.bias * columns)
    if part.qk_norm:
        asked = _head_norm(sequence, part, f"{name}.query", asked, part.heads)
    seen = sequence.cached.get(_cache_of(part), [])
    if len(seen) == 1 and not part.qk_norm:  # they are a part of one matrix's result
        kept = 2 * part.kv_heads * part.head_size
        seen = [sequence.part(f"{name}.cache", seen[0], kept, "keys, values")]
    last = _meet(sequence, part, name, operators["attention"], [asked, *seen])
    biases = part.output_bias * hidden
    mixed = part.heads * part.value_width
    return [sequence.linear(f"{name}.output", last, mixed, hidden, biases=biases)]


def _head_norm(sequence: TokenWiring, part: Attention, name: str, source: str, heads: int) -> str:
    """Add a norm of queries or of keys: by head with numbers for all, or of all heads at once."""
    width = heads * part.head_size
    turned = sequence.part(f"{name}_heads", source, width, "heads")
    shape: tuple[int, ...] = (sequence.tokens, heads, part.head_size)
    weights = part.head_size
    if part.wide_norm:
        shape, weights = (sequence.tokens, width), width
    return sequence.add(f"{name}_norm", "norm", shape, turned, function="rms", weights=weights)


def _value_norm(sequence: TokenWiring, part: Attention, name: str, source: str) -> str:
    """Add a norm of values, by head, which learns nothing."""
    shape = (sequence.tokens, part.kv_heads, part.value_width)
    values = sequence.part(f"{name}.values", source, part.kv_heads * part.value_width, "values")
    return sequence.add(f"{name}.value_norm", "norm", shape, values, function="rms")


def _meet(
    sequence: TokenWiring,
    part: Attention | LatentAttention,
    name: str,
    operator: StepOperator,
    inputs: list[str],
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


def _index(
    sequence: TokenWiring,
    mixer: Attention | LatentAttention,
    name: str,
    source: str,
    queries: str,
) -> None:
    """Add an indexer: what it chooses is read by the attention of this layer and the next."""
    part = mixer.indexer
    assert part is not None
    width = next(node.shape[-1] for node in reversed(sequence.nodes) if node.name == queries)
    columns, tokens = part.heads * part.size, sequence.tokens
    inputs = [sequence.linear(f"{name}.index.queries", queries, width, columns)]
    keys = sequence.linear(f"{name}.index.key.matrix", source, sequence.hidden, part.size)
    inputs.append(sequence.inner_norm(f"{name}.index.key.norm", keys, part.size, 2 * part.size))
    if part.weighted:
        weights = f"{name}.index.weights"
        inputs.append(sequence.linear(weights, source, sequence.hidden, part.heads))
    scores = next(each for each in part.operators(sequence.hidden) if each.name == "index scores")
    pairs, hidden = sequence.pairs(scores.attention_window)
    sequence.chosen = sequence.add(
        f"{name}.index.scores",
        "attention",
        (tokens, min(mixer.chosen, tokens)),
        *inputs,
        function="scores",
        multiply_adds=scores.pair_multiply_adds * pairs,
        masked_multiply_adds=scores.pair_multiply_adds * hidden,
        element_bytes=_NUMBER,
    )


def _latent(sequence: TokenWiring, part: LatentAttention, name: str, source: str) -> list[str]:
    operators, hidden = _operators(sequence, part), sequence.hidden
    queries = part.heads * (part.content_size + part.rope_size)
    narrow, inputs = source, hidden
    if part.query_rank:
        rank = inputs = part.query_rank
        narrow = sequence.linear(f"{name}.query_reduction", source, hidden, rank)
        narrow = sequence.inner_norm(f"{name}.query_norm", narrow, rank, rank)
    asked = sequence.linear(f"{name}.queries", narrow, inputs, queries)
    kept = part.kv_rank + part.rope_size
    packed = sequence.linear(f"{name}.kv_compression", source, hidden, kept)
    vector = sequence.part(f"{name}.kv_compressed", packed, part.kv_rank, "keys, values")
    turned = sequence.part(f"{name}.kv_rotary_key", packed, part.rope_size, "rotary key")
    vector = sequence.inner_norm(f"{name}.kv_norm", vector, part.kv_rank, part.kv_rank)
    wide = part.heads * (part.content_size + part.value_size)
    both = sequence.linear(f"{name}.kv_expansion", vector, part.kv_rank, wide)
    if part.indexer:
        _index(sequence, part, name, source, narrow)
    mixed = part.heads * part.value_size
    met = _meet(sequence, part, name, operators["attention"], [asked, both, turned])
    return [sequence.linear(f"{name}.output", met, mixed, hidden)]


def _recurrent(sequence: TokenWiring, part: Recurrent, name: str, source: str) -> list[str]:
    operators, hidden = _operators(sequence, part), sequence.hidden
    columns = operators["state inputs"].outputs
    state = operators["state"]
    inner = state.token_elements - columns
    last = sequence.linear(f"{name}.inputs", source, hidden, columns)
    last = sequence.each(
        f"{name}.state",
        "recurrent",
        inner,
        last,
        function=type(part).__name__,
        weights=state.parameters,
        multiply_adds=sequence.tokens * state.token_multiply_adds,
    )
    return [sequence.linear(f"{name}.output", last, inner, hidden)]


def _feed(sequence: TokenWiring, part: FeedForward, name: str, source: str) -> list[str]:
    hidden, inner = sequence.hidden, part.size
    columns = part.branches * inner
    last = sequence.linear(f"{name}.up", source, hidden, columns, biases=part.bias * columns)
    if part.cut:
        last = _cut(sequence, name, last, inner)
    else:
        last = _activation(sequence, f"{name}.activation", last, inner, gated=part.gated)
    return [sequence.linear(f"{name}.down", last, inner, hidden, biases=part.bias * hidden)]


def _cut(sequence: TokenWiring, name: str, source: str, width: int) -> str:
    """Add what sets the smaller of a gate's numbers to zero, and weighs the rest."""
    gate = sequence.part(f"{name}.gate", source, width, "gate")
    found = sequence.each(f"{name}.cut", "elementwise", width, gate, function=BY_ROW)
    found = sequence.each(f"{name}.activation", "activation", width, found)
    rest = sequence.part(f"{name}.rest", source, width, "what the gate weighs")
    return sequence.each(f"{name}.weigh", "multiply", width, found, rest)


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
        source = sequence.linear(f"{name}.to_their_width", source, hidden, width)
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
        last = sequence.linear(f"{name}.from_their_width", last, width, hidden)
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
        length = self._length("streams.made.length", embedding)
        made = [
            self._turned(f"streams.made.{number}", embedding, length)
            for number in range(1, self.count)
        ]
        if not made:
            return embedding
        both = "streams.made.stacked"
        self.sequence.add(both, "concatenation", self.shape, embedding, *made)
        self.others = (self._others("streams.made.others", both),)
        return self._first("streams.made.first", both)

    def join(self, stream: str) -> str:
        """Bring the others back, and return the mean of all."""
        wide, found = self.model.hidden, []
        length = self._length("streams.joined.length", stream)
        for number in range(1, self.count):
            name = f"streams.joined.part_{number}"
            one = self.sequence.part(name, self.others[0], wide, f"stream {number}")
            found.append(self._turned(f"streams.joined.{number}", one, length))
        if not found:
            return stream
        both = "streams.joined.stacked"
        self.sequence.add(both, "concatenation", self.shape, stream, *found)
        return self.sequence.each("streams.mean", "pooling", wide, both, function="mean")

    def _length(self, name: str, first: str) -> str:
        """Add what finds how long the first stream is, of each token."""
        return self.sequence.each(name, "elementwise", 1, first, function=BY_ROW)

    def _turned(self, name: str, source: str, length: str) -> str:
        """Add a matrix, and what makes its result as long as the first stream."""
        sequence, wide = self.sequence, self.model.hidden
        made = sequence.linear(name, source, wide, wide)
        turned = f"{name}.length"
        return sequence.each(turned, "elementwise", wide, made, length, function=BY_ROW)

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
        router = sequence.linear(f"{name}.router", source, wide, scores, learned=learned)
        router = sequence.each(f"{name}.tanh", "activation", scores, router, function="tanh")
        return sequence.linear(f"{name}.weights", router, scores, outputs)


def low_rank(sequence: TokenWiring, model: Transformer, name: str, source: str) -> str:
    """Add the path through few numbers, and its input; return the node that holds both."""
    wide, rank = model.hidden, model.residual_rank
    narrow = sequence.linear(f"{name}.in", source, wide, rank)
    made = sequence.norm(f"{name}.norm", sequence.linear(f"{name}.out", narrow, rank, wide))
    return sequence.sum(f"{name}.sum", [source, made])
