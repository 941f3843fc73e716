"""What a transformer is made of: attention, feed-forward networks, experts.

Each part counts its own parameters and yields its operators for one device of a
layout. All counts are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlsim.equations import transformer as count
from mlsim.errors import InvalidValueError
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.steps import StepOperator


def matrix(
    name: str,
    inputs: int,
    outputs: int,
    *,
    split: int = 1,
    bias: int = 0,
    elements: int = 0,
    live: int = 0,
) -> StepOperator:
    """Return a projection, of which one device of `split` holds a part.

    It holds `bias` more numbers, reads and writes `elements` of activation for
    each token, and `live` of them are alive meanwhile.
    """
    weights = count.projection_parameters(inputs, outputs)
    held = -(-(weights + bias) // split)
    return StepOperator(
        name=name,
        kind="projection",
        token_multiply_adds=count.token_multiply_adds(-(-weights // split)),
        outputs=-(-outputs // split),
        parameters=held,
        parameters_streamed=held,
        token_elements=elements,
        live_elements=live,
    )


def _positive(**counts: int) -> None:
    """Refuse a count below one."""
    for name, count_ in counts.items():
        if count_ < 1:
            raise InvalidValueError(f"{name} must be 1 or more, not {count_}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Attention with heads, some of which may share a key and a value.

    `window` is the most tokens that a query sees (0: all); of each `full_every`
    layers the last one sees all nevertheless. `sinks` is one learned score per
    head. A norm on queries and keys is one for all heads, or (`wide_norm`) as wide as
    they are together.
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
    wide_norm: bool = False

    def __post_init__(self) -> None:
        _positive(heads=self.heads, kv_heads=self.kv_heads, head_size=self.head_size)
        if self.heads % self.kv_heads:
            raise InvalidValueError(
                f"kv_heads = {self.kv_heads} must divide heads = {self.heads}, "
                "since each key and value serves the same number of queries."
            )

    @property
    def queries(self) -> int:
        """Width of all queries together."""
        return self.heads * self.head_size

    @property
    def cached_elements(self) -> int:
        """Elements that one layer caches of each token."""
        return int(count.cached_elements(self.kv_heads, self.head_size))

    def parameters(self, hidden: int) -> int:
        """Learned numbers in one layer's attention."""
        wide = self.queries + self.cached_elements
        return (
            hidden * wide
            + self.bias * wide
            + self.queries * hidden
            + self.output_bias * hidden
            + self._norms(self.heads, self.kv_heads)
            + self.sinks * self.heads
        )

    def _norms(self, heads: int, kv_heads: int) -> int:
        """Learned numbers in the norms of queries and keys."""
        wide = heads + kv_heads if self.wide_norm else 2
        return self.qk_norm * wide * self.head_size

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device, without the window."""
        tensor = parallelism.tensor
        heads = self.heads // tensor
        # Where there are more devices than KV heads, some hold the same one.
        kv_heads = max(self.kv_heads // tensor, 1)
        queries, cached = heads * self.head_size, 2 * kv_heads * self.head_size
        wide = queries + cached
        yield matrix(
            "queries, keys, values",
            hidden,
            wide,
            bias=self.bias * wide + self._norms(heads, kv_heads),
            # Keys and values are written to the cache, which counts them.
            elements=hidden + queries,
            live=2 * hidden + wide,
        )
        yield StepOperator(
            name="attention",
            kind="attention",
            pair_multiply_adds=int(count.pair_multiply_adds(heads, self.head_size)),
            parameters=self.sinks * heads,
            parameters_streamed=self.sinks * heads,
            cached_elements=cached,
            token_elements=2 * queries,
            live_elements=hidden + 2 * queries + cached,
        )
        # The output is added to what came in, which is read too.
        yield matrix(
            "attention output",
            queries,
            hidden,
            bias=self.output_bias * hidden,
            elements=queries + 2 * hidden,
            live=queries + 2 * hidden,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are cached as one compressed vector."""

    heads: int
    query_rank: int
    kv_rank: int
    content_size: int
    rope_size: int
    value_size: int
    window: int = 0
    full_every: int = 0

    @property
    def kv_heads(self) -> int:
        """Heads that share the cache: one vector serves all."""
        return 1

    @property
    def cached_elements(self) -> int:
        """Elements that one layer caches of each token."""
        return int(count.latent_cached_elements(self.kv_rank, self.rope_size))

    def parameters(self, hidden: int) -> int:
        """Learned numbers in one layer's attention, two inner norms among them."""
        return sum(
            inputs * outputs for _, inputs, outputs, _, _ in self._matrices(hidden, self.heads)
        ) + (self.query_rank + self.kv_rank)

    def _matrices(self, hidden: int, heads: int) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield each projection: name, inputs, outputs, norm before it, residual read."""
        query = heads * (self.content_size + self.rope_size)
        if self.query_rank:
            yield "query reduction", hidden, self.query_rank, 0, 0
            yield "queries", self.query_rank, query, self.query_rank, 0
        else:
            yield "queries", hidden, query, 0, 0
        yield "key and value compression", hidden, self.cached_elements, 0, 0
        yield (
            "keys and values",
            self.kv_rank,
            heads * (self.content_size + self.value_size),
            self.kv_rank,
            0,
        )
        yield "attention output", heads * self.value_size, hidden, 0, hidden

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device; its cache is not divided."""
        heads = self.heads // parallelism.tensor
        for name, inputs, outputs, norm, residual in self._matrices(hidden, heads):
            if name == "attention output":
                yield self._attention(hidden, heads)
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
                count.latent_pair_multiply_adds(
                    heads, self.content_size, self.rope_size, self.value_size
                )
            ),
            absorbed_pair_multiply_adds=int(
                count.absorbed_pair_multiply_adds(heads, self.kv_rank, self.rope_size)
            ),
            expand_multiply_adds=self.kv_rank * heads * (self.content_size + self.value_size),
            cached_elements=self.cached_elements,
            token_elements=queries + values,
            live_elements=hidden + 2 * queries + values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """A feed-forward network: two matrices, or three if a gate multiplies the first."""

    size: int
    gated: bool = False
    bias: bool = False

    @property
    def branches(self) -> int:
        """Matrices into the inner layer: one, or two with a gate."""
        return 2 if self.gated else 1

    def parameters(self, hidden: int) -> int:
        """Learned numbers of one network."""
        weights = (self.branches + 1) * hidden * self.size
        return weights + self.bias * (self.branches * self.size + hidden)

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators for one device; the activation function is part of the first."""
        size = self.size // parallelism.tensor
        yield matrix(
            "feed-forward, up",
            hidden,
            self.branches * size,
            bias=self.bias * self.branches * size,
            elements=hidden + size,
            live=2 * hidden + self.branches * size,
        )
        yield matrix(
            "feed-forward, down",
            size,
            hidden,
            bias=self.bias * hidden,
            elements=size + 2 * hidden,
            live=2 * hidden + size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Feed-forward networks among which a router chooses some for each token.

    `shared` more of them see every token, behind a gate of one number if
    `shared_gate` says so. The first `dense_layers` layers have an ordinary
    feed-forward network instead.
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

    def parameters(self, hidden: int) -> int:
        """Learned numbers of one layer: all experts, the shared ones, the router."""
        experts = self.count * self.expert.parameters(hidden)
        if self.shared_expert:
            experts += self.shared_expert.parameters(hidden)
        return experts + self.router_outputs * hidden + self.router_bias * self.count

    def active_parameters(self, hidden: int) -> int:
        """Learned numbers of one layer that one token meets."""
        unused = (self.count - self.per_token) * self.expert.parameters(hidden)
        return self.parameters(hidden) - unused

    def exchanged_elements(self, hidden: int, parallelism: Parallelism) -> float:
        """Return the elements of a token that a device sends to experts elsewhere, one way."""
        share = count.expert_rank_share(self.count, parallelism.expert, self.per_token)
        return float(
            count.expert_exchange_elements(hidden, parallelism.expert, parallelism.tensor, share)
        )

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device.

        All devices together compute what the tokens of all copies ask for, so
        each computes its part of its own copy's tokens.
        """
        outputs = self.router_outputs
        router = outputs * hidden + self.router_bias * self.count
        yield StepOperator(
            name="router",
            kind="router",
            token_multiply_adds=outputs * hidden,
            outputs=outputs,
            parameters=router,
            parameters_streamed=router,
            token_elements=hidden + outputs,
            live_elements=2 * hidden + outputs,
        )
        spread = max(parallelism.tensor, parallelism.expert)
        inner, branches = self.per_token * self.size // parallelism.tensor, self.expert.branches
        one = hidden * self.size
        for name, weights, biases, reads, writes in (
            ("experts, up", branches * one, branches * self.size, hidden, inner),
            ("experts, down", one, hidden, inner, 2 * hidden),
        ):
            held = self.count * (weights + self.bias * biases) // spread
            yield StepOperator(
                name=name,
                kind="experts",
                token_multiply_adds=weights * self.per_token // parallelism.tensor,
                outputs=weights // reads // parallelism.tensor if name == "experts, up" else hidden,
                parameters=held,
                parameters_routed=held,
                token_elements=reads + writes,
                live_elements=2 * hidden + branches * inner,
            )
        if self.shared_expert:
            for operator in self.shared_expert.operators(hidden, parallelism):
                yield operator.renamed(operator.name.replace("feed-forward", "shared expert"))
