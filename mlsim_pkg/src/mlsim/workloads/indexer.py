"""An indexer: it chooses the tokens that attention looks at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsim.equations.recurrent import index_multiply_adds
from mlsim.workloads.projections import matrix
from mlsim.workloads.steps import StepOperator


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

    def parameters(self, hidden: int, query_rank: int = 0) -> int:
        """Learned numbers: of queries, of one key, of norms, and a weight for each head."""
        queries = (query_rank or hidden) * self.heads * self.size
        return queries + hidden * (self.size + self.weighted * self.heads) + 2 * self.size

    def operators(self, hidden: int, query_rank: int = 0) -> Iterator[StepOperator]:
        """Yield the operators of one layer, the same on each device."""
        queries, inputs = self.heads * self.size, query_rank or hidden
        yield matrix(
            "index queries",
            inputs,
            queries,
            elements=inputs + queries,
            live=hidden + inputs + queries,
        )
        yield matrix(
            "index keys",
            hidden,
            self.size,
            bias=2 * self.size,
            # The key is written to the cache, which counts it.
            elements=hidden,
            live=2 * hidden + queries + self.size,
        )
        if self.weighted:
            weights = matrix(
                "index weights",
                hidden,
                self.heads,
                elements=hidden + self.heads,
                live=2 * hidden + queries + self.heads,
            )
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
