"""What a transformer is made of: attention and its indexer, states, feed-forward networks, experts.

Each part counts its own parameters and yields its operators for one device of a
layout. All counts are whole numbers. State-space models and linear attention keep a state
instead of a cache: a matrix for each head, and the last inputs of a short convolution. It has
the same size however long the sequence is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.equations import transformer
from mlsim.equations.transformer import index_multiply_adds
from mlsim.errors import InvalidValueError
from mlsim.precision import precision
from mlsim.workloads.steps import UNLIMITED, Parallelism, StepOperator, matrix


class Part:
    """A part of a layer, which its operators describe."""

    __slots__ = ()

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device."""
        raise NotImplementedError

    def parameters(self, hidden: int) -> int:
        """Learned numbers in one layer."""
        return sum(each.parameters for each in self.operators(hidden, Parallelism()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A small attention that gives each earlier token a score: the highest ones are looked at.

    Its keys are cached as well, one for all its heads; no device of a group is spared any
    of it. Its queries are made of those that latent attention compressed, or of what comes
    into the layer (a rank of 0); its heads have weights (deepseek2025v32code), or choose
    for one KV head each.
    """

    heads: int
    size: int
    weighted: bool = True

    def operators(self, hidden: int, query_rank: int = 0) -> Iterator[StepOperator]:
        """Yield the operators of one layer, the same on each device."""
        queries, inputs = self.heads * self.size, query_rank or hidden
        yield matrix("index queries", inputs, queries, live=hidden + inputs + queries)
        live = 2 * hidden + queries
        keys = matrix("index keys", hidden, self.size, bias=2 * self.size, live=live + self.size)
        # The key is written to the cache, which counts it.
        yield replace(keys, token_elements=hidden)
        if self.weighted:
            weights = matrix("index weights", hidden, self.heads, live=live + self.heads)
            yield replace(weights, unquantised=True)
        pairs = int(index_multiply_adds(self.heads, self.size))
        yield StepOperator(
            name="index scores",
            kind="attention",
            pair_multiply_adds=pairs,
            absorbed_pair_multiply_adds=pairs,
            cached_elements=self.size,
            token_elements=queries + self.heads,
            live_elements=hidden + queries + self.heads,
        )


def _positive(**counts: int) -> None:
    """Refuse a count below one."""
    for name, count_ in counts.items():
        if count_ < 1:
            raise InvalidValueError(f"{name} must be 1 or more, not {count_}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Part):
    """Attention with heads, some of which may share a key and a value.

    `window` is the most tokens that a query sees (0: all); of each `full_every`
    layers the last one sees all nevertheless. `sinks` is one learned score per
    head. `value_size` is the width of a value where it is not that of a key; values
    may be made of the keys, without a matrix of their own. A norm on queries and keys
    is one for all heads, or (`wide_norm`) as wide as they are together; one on values
    (`value_norm`) has no numbers of its own. `output_gate` is one more matrix, whose
    result multiplies that of attention. With `chosen`, a query
    looks at so many tokens only, which an `indexer` chooses; the cache keeps all of them.
    With `shared_cache` it has queries only, and reads the keys and values that an earlier
    layer of the same heads and window has cached.
    """

    heads: int
    kv_heads: int
    head_size: int
    bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    window: int = 0
    full_every: int = 0
    value_size: int = 0
    values_from_keys: bool = False
    value_norm: bool = False
    wide_norm: bool = False
    output_gate: bool = False
    chosen: int = 0
    indexer: Indexer | None = None
    shared_cache: bool = False

    def __post_init__(self) -> None:
        _positive(heads=self.heads, kv_heads=self.kv_heads, head_size=self.head_size)
        if self.heads % self.kv_heads:
            raise InvalidValueError(
                f"kv_heads = {self.kv_heads} must divide heads = {self.heads}, "
                "since each key and value serves the same number of queries."
            )
        if self.shared_cache and (self.chosen or self.sinks or self.values_from_keys):
            raise InvalidValueError(
                "shared_cache: a layer that reads the cache of an earlier one has no keys to "
                "choose among, to sink into or to make values of. Leave out chosen, sinks and "
                "values_from_keys."
            )

    @property
    def value_width(self) -> int:
        """Numbers in one value: as many as in a key, unless said."""
        return self.value_size or self.head_size

    @property
    def cached_elements(self) -> int:
        """Elements that one layer caches of each token, an indexer's key among them."""
        if self.shared_cache:
            return 0
        return self._cached(self.kv_heads) + (self.indexer.size if self.indexer else 0)

    def _cached(self, kv_heads: int) -> int:
        sizes = self.head_size, self.value_width
        return int(transformer.unequal_cached_elements(kv_heads, *sizes))

    def _widths(self, heads: int, kv_heads: int) -> tuple[int, int, int]:
        """Return the columns of the first matrix, those of the gate, and numbers in norms."""
        gate = self.output_gate * heads * self.value_width
        made = 0 if self.shared_cache else kv_heads
        keys, values = made * self.head_size, made * self.value_width
        queries = heads * self.head_size
        columns = queries + gate + keys + (0 if self.values_from_keys else values)
        norms = queries + keys if self.wide_norm else (2 - self.shared_cache) * self.head_size
        return columns, gate, self.qk_norm * norms

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device, without the window."""
        tensor = parallelism.tensor
        heads = self.heads // tensor
        # Where there are more devices than KV heads, some hold the same one.
        kv_heads = max(self.kv_heads // tensor, 1)
        queries, mixed = heads * self.head_size, heads * self.value_width
        cached = self._cached(kv_heads)
        wide, gate, norms = self._widths(heads, kv_heads)
        yield matrix(
            "queries" if self.shared_cache else "queries, keys, values",
            hidden,
            wide,
            bias=self.bias * wide + norms,
            # Keys and values are written to the cache, which counts them.
            elements=hidden + queries + gate,
        )
        if self.indexer:
            yield from self.indexer.operators(hidden)
        yield StepOperator(
            name="attention",
            kind="attention",
            attention_window=self.chosen or UNLIMITED,
            pair_multiply_adds=int(
                transformer.unequal_pair_multiply_adds(heads, self.head_size, self.value_width)
            ),
            cached_elements=cached,
            shared_cache=self.shared_cache,
            token_elements=queries + gate + mixed,
            live_elements=hidden + queries + gate + mixed + cached,
        ).holding(self.sinks * heads)
        bias = self.output_bias * hidden
        yield matrix("attention output", mixed, hidden, bias=bias, adds=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward(Part):
    """A feed-forward network: two matrices, or three if a gate multiplies the first.

    With `cut`, the smaller of the gate's numbers become zero: those below a bound that
    follows from the mean and the spread of a token's. All must be there before it is known,
    so the gate is written, and read again.
    """

    size: int
    gated: bool = False
    bias: bool = False
    cut: bool = False

    def __post_init__(self) -> None:
        if self.cut and not self.gated:
            raise InvalidValueError(
                "cut = true needs a gate of which numbers are cut; give gated = true with it."
            )

    @property
    def branches(self) -> int:
        """Matrices into the inner layer: one, or two with a gate."""
        return 2 if self.gated else 1

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators for one device.

        The activation function is part of the first, or of what cuts the gate.
        """
        size = self.size // parallelism.tensor
        wide = self.branches * size
        moved, bias = hidden + (wide if self.cut else size), self.bias * wide
        yield matrix("feed-forward, up", hidden, wide, bias=bias, elements=moved)
        if self.cut:
            yield StepOperator(
                name="feed-forward, cut",
                kind="elementwise",
                token_elements=wide + size,
                live_elements=hidden + wide + size,
            )
        yield matrix("feed-forward, down", size, hidden, bias=self.bias * hidden, adds=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts(Part):
    """Feed-forward networks among which a router chooses some for each token.

    `shared` more of them see every token, behind a gate of one number if
    `shared_gate` says so. The first `dense_layers` layers have an ordinary
    feed-forward network instead. With `latent`, those that are chosen work at another
    width than the model's: two matrices bring tokens to it and back.
    """

    count: int
    per_token: int
    size: int
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared: int = 0
    shared_gate: bool = False
    dense_layers: int = 0
    latent: int = 0

    def __post_init__(self) -> None:
        _positive(count=self.count, per_token=self.per_token, size=self.size)
        if self.per_token > self.count:
            raise InvalidValueError(
                f"per_token = {self.per_token} experts can't be chosen from {self.count}."
            )

    @property
    def router_outputs(self) -> int:
        """Scores of a token: one for each expert, and one of the gate on the shared ones."""
        return self.count + self.shared_gate

    @property
    def expert(self) -> FeedForward:
        """One expert."""
        return FeedForward(size=self.size, gated=self.gated, bias=self.bias)

    @property
    def shared_expert(self) -> FeedForward | None:
        """All shared experts together: one network that is as wide as they are."""
        if not self.shared:
            return None
        return FeedForward(size=self.shared * self.size, gated=self.gated, bias=self.bias)

    def width(self, hidden: int) -> int:
        """Width at which the chosen experts work."""
        return self.latent or hidden

    def idle_parameters(self, hidden: int) -> int:
        """Learned numbers of one layer that one token does not meet."""
        return (self.count - self.per_token) * self.expert.parameters(self.width(hidden))

    def exchanged_elements(self, hidden: int, parallelism: Parallelism) -> float:
        """Return the elements of a token that a device sends to experts elsewhere, one way."""
        share = transformer.expert_rank_share(self.count, parallelism.expert, self.per_token)
        return float(
            transformer.expert_exchange_elements(
                self.width(hidden), parallelism.expert, parallelism.tensor, share
            )
        )

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device.

        All devices together compute what the tokens of all copies ask for, so
        each computes its part of its own copy's tokens.
        """
        router = matrix("router", hidden, self.router_outputs, bias=self.router_bias * self.count)
        yield replace(router, kind="router", wide_parameters=0)
        yield from self._chosen(hidden, parallelism)
        if self.shared_expert:
            for operator in self.shared_expert.operators(hidden, parallelism):
                name = operator.name.replace("feed-forward", "shared expert")
                yield replace(operator, name=name)

    def _chosen(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the experts among which the router chooses; no device is spared the latent ends."""
        width = self.width(hidden)
        if self.latent:
            yield matrix("experts, to their width", hidden, width, live=2 * hidden)
        spread = max(parallelism.tensor, parallelism.expert)
        inner, branches = self.per_token * self.size // parallelism.tensor, self.expert.branches
        one, added = width * self.size, width if self.latent else 2 * hidden
        for name, weights, biases, reads, writes in (
            ("experts, up", branches * one, branches * self.size, width, inner),
            ("experts, down", one, width, inner, added),
        ):
            kept = self.count * self.bias * biases // spread
            held = self.count * (weights + self.bias * biases) // spread
            up = name == "experts, up"
            yield StepOperator(
                name=name,
                kind="experts",
                token_multiply_adds=weights * self.per_token // parallelism.tensor,
                outputs=weights // reads // parallelism.tensor if up else width,
                parameters=held,
                parameters_routed=held,
                wide_parameters=kept,
                token_elements=reads + writes,
                live_elements=2 * hidden + branches * inner,
            )
        if self.latent:
            yield matrix("experts, from their width", width, hidden, adds=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Part):
    """Multi-head latent attention: keys and values are cached as one compressed vector.

    With `chosen`, a query looks at so many tokens only, which an `indexer` chooses: its
    own, or (None) that of an earlier layer. The cache keeps all of them.
    """

    heads: int
    query_rank: int
    kv_rank: int
    content_size: int
    rope_size: int
    value_size: int
    window: int = 0
    full_every: int = 0
    chosen: int = 0
    indexer: Indexer | None = None

    @property
    def kv_heads(self) -> int:
        """Heads that share the cache: one vector serves all."""
        return 1

    @property
    def cached_elements(self) -> int:
        """Elements that one layer caches of each token, an indexer's key among them."""
        return self._compressed + (self.indexer.size if self.indexer else 0)

    @property
    def _compressed(self) -> int:
        return int(transformer.latent_cached_elements(self.kv_rank, self.rope_size))

    def matrices(self, hidden: int, heads: int) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield each projection: name, inputs, outputs, norm before it, residual read."""
        query = heads * (self.content_size + self.rope_size)
        if self.query_rank:
            yield "query reduction", hidden, self.query_rank, 0, 0
            yield "queries", self.query_rank, query, self.query_rank, 0
        else:
            yield "queries", hidden, query, 0, 0
        yield "key and value compression", hidden, self._compressed, 0, 0
        both = heads * (self.content_size + self.value_size)
        yield "keys and values", self.kv_rank, both, self.kv_rank, 0
        yield "attention output", heads * self.value_size, hidden, 0, hidden

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device; its cache is not divided."""
        heads = self.heads // parallelism.tensor
        for name, inputs, outputs, norm, residual in self.matrices(hidden, heads):
            if name == "attention output":
                if self.indexer:
                    yield from self.indexer.operators(hidden, self.query_rank)
                attention = self._attention(hidden, heads)
                yield replace(attention, attention_window=self.chosen or UNLIMITED)
            yield matrix(
                name,
                inputs,
                outputs,
                bias=norm,
                # The compressed vector is written to the cache, which counts it.
                elements=inputs + residual + (0 if "compression" in name else outputs),
                live=hidden + inputs + outputs,
            )

    def _attention(self, hidden: int, heads: int) -> StepOperator:
        queries = heads * (self.content_size + self.rope_size)
        values = heads * self.value_size
        return StepOperator(
            name="attention",
            kind="attention",
            pair_multiply_adds=int(
                transformer.latent_pair_multiply_adds(
                    heads, self.content_size, self.rope_size, self.value_size
                )
            ),
            absorbed_pair_multiply_adds=int(
                transformer.absorbed_pair_multiply_adds(heads, self.kv_rank, self.rope_size)
            ),
            expand_multiply_adds=self.kv_rank * heads * (self.content_size + self.value_size),
            cached_elements=self._compressed,
            token_elements=queries + values,
            live_elements=hidden + 2 * queries + values,
        )


# What waits for the convolution is kept as the activations are.
_WAITING = precision("bf16").bytes


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Widths of a layer on one device.

    `columns` come out of the first matrix, of which `channels` go through the
    convolution; `inner` go into the last one. `learned` numbers are in no matrix, the
    convolution's among them; the state has `elements`, and `multiply_adds` for a token.
    """

    columns: int
    channels: int
    inner: int
    learned: int
    elements: int
    multiply_adds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(Part):
    """A layer with a state: its first and last matrix, and what is between them.

    `kernel` is the width of the convolution, in tokens; the state is kept in
    `state_format`.
    """

    kernel: int = 4
    state_format: str = "fp32"
    # It has no cache, so that no token is too far away.
    window = 0
    full_every = 0
    chosen = 0
    cached_elements = 0

    def _sizes(self, tensor: int) -> _Sizes:
        raise NotImplementedError

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        raise NotImplementedError

    def state_bytes(self, tensor: int = 1) -> float:
        """Memory of the state of one sequence in one layer, on one of so many devices."""
        sizes = self._sizes(tensor)
        waiting = transformer.waiting_elements(sizes.channels, self.kernel)
        kept = precision(self.state_format).bytes
        return float(transformer.sequence_state(kept, sizes.elements, _WAITING, waiting))

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device."""
        sizes = self._sizes(parallelism.tensor)
        columns, inner = sizes.columns, sizes.inner
        yield matrix("state inputs", hidden, columns)
        convolution = transformer.token_multiply_adds(sizes.channels * self.kernel)
        yield StepOperator(
            name="state",
            kind="state",
            token_multiply_adds=int(convolution) + sizes.multiply_adds,
            unquantised=True,
            token_elements=columns + inner,
            live_elements=hidden + columns + inner,
            sequence_state=self.state_bytes(parallelism.tensor),
        ).holding(sizes.learned)
        yield matrix("state output", inner, hidden, adds=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace(Recurrent):
    """A state-space layer of Mamba-2 (dao2024mamba2).

    Heads of a group share the two vectors that lead into the state and out of it.

    >>> nano = StateSpace(heads=64, head_size=64, state_size=128, groups=8)
    >>> nano.parameters(2688), nano.state_bytes()
    (38742208, 2134016.0)
    """

    heads: int
    head_size: int
    state_size: int
    groups: int
    convolution_bias: bool = True

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        return {"state heads": self.heads}

    def _sizes(self, tensor: int) -> _Sizes:
        heads, groups = self.heads // tensor, max(self.groups // tensor, 1)
        inner = heads * self.head_size
        channels = inner + 2 * groups * self.state_size
        elements = int(transformer.state_elements(heads, self.head_size, self.state_size))
        return _Sizes(
            # What multiplies the output, what is convolved, and a step for each head.
            columns=inner + channels + heads,
            channels=channels,
            inner=inner,
            # A decay, a skip and the bias of a step for each head, and the norm.
            learned=channels * (self.kernel + self.convolution_bias) + 3 * heads + inner,
            elements=elements,
            multiply_adds=int(transformer.state_space_multiply_adds(elements)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRule(Recurrent):
    """Linear attention with the gated delta rule (yang2024gated).

    A key may serve several values, each of which has a head of its own.

    >>> layer = DeltaRule(key_heads=16, heads=32, key_size=128, value_size=128)
    >>> layer.parameters(2048), layer.state_bytes()
    (33718464, 2146304.0)
    """

    key_heads: int
    heads: int
    key_size: int
    value_size: int

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        return {"linear key heads": self.key_heads, "linear value heads": self.heads}

    def _sizes(self, tensor: int) -> _Sizes:
        heads = self.heads // tensor
        inner = heads * self.value_size
        channels = 2 * (self.key_heads // tensor) * self.key_size + inner
        elements = int(transformer.state_elements(heads, self.key_size, self.value_size))
        return _Sizes(
            # What is convolved, what multiplies the output, and two gates for each head.
            columns=channels + inner + 2 * heads,
            channels=channels,
            inner=inner,
            # Two numbers for each head, and one norm for all.
            learned=channels * self.kernel + 2 * heads + self.value_size,
            elements=elements,
            multiply_adds=int(transformer.delta_rule_multiply_adds(elements)),
        )
