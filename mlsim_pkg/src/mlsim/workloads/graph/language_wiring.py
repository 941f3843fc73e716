"""What wires a language model: norms, matrices, additions, and the pairs of tokens that meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlsim.equations import step
from mlsim.workloads.graph.fuse import PROJECTION
from mlsim.workloads.graph.wiring import Wiring


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

    def norm(self, name: str, source: str) -> str:
        """Add a norm over the model's width."""
        return self.inner_norm(name, source, self.hidden, self._vectors * self.hidden)

    def inner_norm(self, name: str, source: str, width: int, learned: int, *sides: int) -> str:
        """Add a norm over some width; of its learned numbers, those beyond the width are added."""
        weights = min(width, learned)
        shape = (self.tokens, *sides, width)
        told = {"weights": weights, "biases": learned - weights, "function": self._norm}
        return self.add(name, "norm", shape, source, **told)

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
        return self.add(name, "reshape", (self.tokens, width), source, function=what)

    def sum(self, name: str, sources: Sequence[str]) -> str:
        """Add vectors of tokens up, two at a time."""
        first, *others = sources
        pairs = [*(f"{name}_{number}" for number in range(1, len(others))), name]
        shape = (self.tokens, self.hidden)
        return reduce(
            lambda found, each: self.add(each[0], "add", shape, each[1], found),
            zip(pairs, others, strict=False),
            first,
        )

    def pairs(self, window: int) -> tuple[int, int]:
        """Return the pairs of tokens that meet, and those that a mask hides."""
        window, square = min(window, self.tokens), self.tokens**2
        found = self.tokens * window
        if self.causal:
            found = int(step.attention_pairs(window, 0, self.tokens, window))
        return found, square - found
