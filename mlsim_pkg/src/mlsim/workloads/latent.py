"""Latent attention: keys and values are kept as one compressed vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.equations import transformer as count
from mlsim.workloads.indexer import Indexer
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.projections import matrix
from mlsim.workloads.steps import UNLIMITED, StepOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
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
        return int(count.latent_cached_elements(self.kv_rank, self.rope_size))

    def parameters(self, hidden: int) -> int:
        """Learned numbers in one layer's attention, two inner norms among them."""
        found = sum(
            inputs * outputs for _, inputs, outputs, _, _ in self.matrices(hidden, self.heads)
        ) + (self.query_rank + self.kv_rank)
        if self.indexer:
            found += self.indexer.parameters(hidden, self.query_rank)
        return found

    def matrices(self, hidden: int, heads: int) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield each projection: name, inputs, outputs, norm before it, residual read."""
        query = heads * (self.content_size + self.rope_size)
        if self.query_rank:
            yield "query reduction", hidden, self.query_rank, 0, 0
            yield "queries", self.query_rank, query, self.query_rank, 0
        else:
            yield "queries", hidden, query, 0, 0
        yield "key and value compression", hidden, self._compressed, 0, 0
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
                count.latent_pair_multiply_adds(
                    heads, self.content_size, self.rope_size, self.value_size
                )
            ),
            absorbed_pair_multiply_adds=int(
                count.absorbed_pair_multiply_adds(heads, self.kv_rank, self.rope_size)
            ),
            expand_multiply_adds=self.kv_rank * heads * (self.content_size + self.value_size),
            cached_elements=self._compressed,
            token_elements=queries + values,
            live_elements=hidden + 2 * queries + values,
        )
