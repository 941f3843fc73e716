"""Operators of a language model's step, counted for one token on one device.

How many tokens there are, and how many are cached, comes in later.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

# More tokens than any sequence has: no limit.
UNLIMITED = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOperator:
    """One operator of a step, counted for one device.

    Attributes
    ----------
    name, kind
        Such as "feed-forward, up" and "projection".
    token_multiply_adds, pair_multiply_adds
        MAC for each token; for each query and key that meet.
    outputs
        Of a matrix product, how many numbers come out for each token; else 0.
    absorbed_pair_multiply_adds, expand_multiply_adds
        Of latent attention: MAC for each pair in the compressed space; MAC that
        expand one cached token.
    parameters, parameters_streamed, parameters_routed
        Held; read in each step; in experts, of which chosen ones are read.
    token_elements, live_elements
        Elements of activation read and written, and alive, for each token.
    cached_elements
        Elements cached for each token.
    shared_cache
        Whether what it reads of the cache is kept, and was written, by an earlier layer.
    attention_window, cache_window, token_limit
        Most tokens that a token sees, and that are kept; most tokens of a sequence
        worked on.
    sequence_state
        Memory of what is kept of a sequence, however long it is.
    link_elements, link_group
        Elements of each token sent to other devices; how many devices take part.
    between_nodes
        Whether it is sent over the links between nodes.
    repeats, resident_repeats
        How often it stands in the model; how often it lies on one device.
    unquantised, wide_parameters
        Whether a quantised format leaves its parameters in 16 bits; how many of them
        stay so in any case: biases and norms.
    """

    name: str
    kind: str
    token_multiply_adds: int = 0
    pair_multiply_adds: int = 0
    outputs: int = 0
    absorbed_pair_multiply_adds: int = 0
    expand_multiply_adds: int = 0
    parameters: int = 0
    parameters_streamed: int = 0
    parameters_routed: int = 0
    token_elements: int = 0
    live_elements: int = 0
    cached_elements: float = 0
    shared_cache: bool = False
    attention_window: int = UNLIMITED
    cache_window: int = UNLIMITED
    sequence_state: float = 0.0
    token_limit: int = UNLIMITED
    link_elements: float = 0.0
    link_group: int = 0
    between_nodes: bool = False
    repeats: int = 1
    resident_repeats: float = 1.0
    unquantised: bool = False
    wide_parameters: int = 0

    @property
    def written_elements(self) -> float:
        """Elements that it adds to the cache for each token."""
        return 0 if self.shared_cache else self.cached_elements

    def compulsory(self) -> StepOperator:
        """Return it without the traffic that a perfect program could avoid."""
        return replace(self, token_elements=0, link_elements=0.0)

    def scoring(self, tokens: int) -> StepOperator:
        """Return it with scores for so many tokens of a sequence, if it is for the last only."""
        return replace(self, token_limit=tokens) if self.token_limit == 1 else self

    def renamed(self, name: str) -> StepOperator:
        """Return it under another name."""
        return replace(self, name=name)


# What names an operator, or decides on its columns.
_NOT_COLUMNS = (
    *("name", "kind", "outputs"),
    *("live_elements", "unquantised", "wide_parameters", "link_group", "shared_cache"),
    "between_nodes",
)
# The columns that equations take, by their names in the vocabulary.
STEP_COLUMNS = tuple(each.name for each in fields(StepOperator) if each.name not in _NOT_COLUMNS)
