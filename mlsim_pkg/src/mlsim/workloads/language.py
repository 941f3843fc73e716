"""A transformer for language: an architecture, and the operators of one of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.equations import step, transformer
from mlsim.errors import InvalidValueError
from mlsim.units import scaled
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention, matrix
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model
from mlsim.workloads.steps import Layout, StepOperator

if TYPE_CHECKING:
    from pint import Quantity

# Vectors of learned numbers in a norm: a scale, or a scale and a shift.
NORMS = {"rms": 1, "layer": 2}
QUANTISED = ("linear", "experts")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Transformer(Model):
    """A transformer that reads and, if it is a decoder, writes tokens.

    Parameters
    ----------
    layers, hidden, vocabulary, context
        How many layers, how wide, tokens known, longest sequence.
    attention, feed_forward, experts
        The parts of a layer; with `experts`, `feed_forward` is that of the
        first dense layers, if there are any.
    decoder
        Whether it generates: a token sees earlier ones only, and is cached.
    norm, norms, final_norm, embedding_norm
        Kind of norm, how many in a layer, and whether there are others.
    tied_embeddings, output_layer, output_bias
        Whether the output layer is the embedding table, is there, has a bias.
    positions, token_types, pooler
        Rows of learned tables; a last layer on the first token.
    quantised
        What a quantised format covers: "linear" layers, or "experts" only.

    >>> from mlsim import Models
    >>> Models.Llama3_8B.parameter_count
    8030261248

    Raises
    ------
    InvalidValueError
        If the parts don't fit together; says which.
    """

    layers: int
    hidden: int
    vocabulary: int
    context: int
    attention: Attention | LatentAttention
    feed_forward: FeedForward | None = None
    experts: Experts | None = None
    decoder: bool = True
    norm: str = "rms"
    norms: int = 2
    final_norm: bool = True
    embedding_norm: bool = False
    tied_embeddings: bool = False
    output_layer: bool = True
    output_bias: bool = False
    positions: int = 0
    token_types: int = 0
    pooler: bool = False
    quantised: str = "linear"

    def __post_init__(self) -> None:
        for name, allowed in (("norm", NORMS), ("quantised", QUANTISED)):
            if getattr(self, name) not in allowed:
                raise InvalidValueError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}."
                )
        if self.dense_layers and not self.feed_forward:
            raise InvalidValueError(
                f"{self.name}: {self.dense_layers} layers have no experts, so feed_forward "
                "must say what they have."
            )
        if self.dense_layers > self.layers:
            raise InvalidValueError(
                f"{self.name}: dense_layers = {self.dense_layers} is more than the "
                f"{self.layers} layers there are."
            )

    @property
    def dense_layers(self) -> int:
        """Layers with an ordinary feed-forward network."""
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole sequence."""
        if not self.attention.window:
            return self.layers
        return self.layers // self.attention.full_every if self.attention.full_every else 0

    @property
    def latent(self) -> bool:
        """Whether attention works in a compressed space."""
        return isinstance(self.attention, LatentAttention)

    @cached_property
    def parameter_count(self) -> int:
        """Learned numbers in the model."""
        return self._count(active=False)

    @cached_property
    def active_parameter_count(self) -> int:
        """Learned numbers that one token meets; fewer than all in a mixture of experts."""
        return self._count(active=True)

    def _count(self, *, active: bool) -> int:
        found = self.layers * self.attention.parameters(self.hidden)
        if self.feed_forward:
            found += self.dense_layers * self.feed_forward.parameters(self.hidden)
        if self.experts:
            count = self.experts.active_parameters if active else self.experts.parameters
            found += (self.layers - self.dense_layers) * count(self.hidden)
        found += self._norm_count * NORMS[self.norm] * self.hidden
        found += (self.vocabulary + self.positions + self.token_types) * self.hidden
        if self.output_layer:
            found += 0 if self.tied_embeddings else self.vocabulary * self.hidden
            found += self.output_bias * self.vocabulary
        return found + self.pooler * (self.hidden + 1) * self.hidden

    @property
    def _norm_count(self) -> int:
        return self.norms * self.layers + self.final_norm + self.embedding_norm

    @property
    def model_cached_elements(self) -> int:
        """Elements of keys and values that all layers keep of one token."""
        return self.layers * self.attention.cached_elements

    def cache_bytes_per_token(self, precision: str = "bf16") -> Quantity[Any]:
        """Return the KV cache that one token takes in all layers.

        >>> from mlsim import Models
        >>> print(Models.Llama3_8B.cache_bytes_per_token().to("B"))
        131072.0 B
        """
        from mlsim.precision import precision as find

        return scaled(self.model_cached_elements * find(precision).bytes, "B")

    def flop_count(
        self,
        new_tokens: int,
        cached_tokens: int = 0,
        *,
        causal: bool = True,
        all_logits: bool = False,
    ) -> int:
        """Return the FLOP of one step for one sequence, matrix products only.

        Parameters
        ----------
        new_tokens, cached_tokens
            Tokens that the step works on, and those before them.
        causal
            Whether the masked half of attention is skipped; otherwise each new
            token is counted with all tokens, as some programs compute it.
        all_logits
            Whether the output layer works on each new token, not the last only.

        Raises
        ------
        InvalidValueError
            If the tokens are not within the model's context.

        >>> from mlsim import Models
        >>> Models.Llama2_7B.flop_count(1, 2048)
        14288420864
        """
        if new_tokens < 1 or cached_tokens < 0 or new_tokens + cached_tokens > self.context:
            raise InvalidValueError(
                f"{new_tokens:,} new and {cached_tokens:,} cached tokens are not within the "
                f"context of {self.name}, {self.context:,}."
            )
        total = 0
        for operator in self.operators():
            each = all_logits and operator.kind == "output"
            tokens = new_tokens if each else min(new_tokens, operator.token_limit)
            window = operator.attention_window
            unclipped = step.unclipped_tokens(window, cached_tokens, new_tokens)
            pairs = step.attention_pairs(unclipped, cached_tokens, new_tokens, window)
            if not (causal and self.decoder):
                pairs = new_tokens * min(cached_tokens + new_tokens, window)
            attended = operator.pair_multiply_adds * int(pairs)
            if self.latent:
                attended = min(
                    attended + operator.expand_multiply_adds * cached_tokens,
                    operator.absorbed_pair_multiply_adds * int(pairs),
                )
            total += operator.repeats * (operator.token_multiply_adds * tokens + attended)
        return int(FLOPS_PER_MULTIPLY_ADD) * total

    def check_layout(self, layout: Layout) -> None:
        """Refuse a layout that does not divide this model evenly.

        Raises
        ------
        InvalidValueError
            Naming what is not divided, and sizes that would.
        """
        _divides("tensor_parallel", layout.tensor, "attention heads", self.attention.heads, self)
        kv_heads = self.attention.kv_heads
        if kv_heads % layout.tensor and layout.tensor % kv_heads:
            _divides("tensor_parallel", layout.tensor, "KV heads", kv_heads, self)
        if self.feed_forward:
            size = self.feed_forward.size
            _divides("tensor_parallel", layout.tensor, "feed-forward features", size, self)
        _divides("pipeline_parallel", layout.pipeline, "layers", self.layers, self)
        if self.experts:
            slices = max(layout.tensor // layout.expert, 1)
            _divides("tensor_parallel", slices, "features of an expert", self.experts.size, self)
        if layout.expert == 1:
            return
        if not self.experts:
            raise InvalidValueError(
                f"expert_parallel = {layout.expert}, but {self.name} has no experts. Leave it out."
            )
        _divides("expert_parallel", layout.expert, "experts", self.experts.count, self)
        within = layout.tensor * layout.data
        if within % layout.expert or (
            layout.tensor % layout.expert and layout.expert % layout.tensor
        ):
            raise InvalidValueError(
                f"expert_parallel = {layout.expert} can't be laid out over tensor_parallel x "
                f"data_parallel = {layout.tensor} x {layout.data} = {within} devices: it must "
                "divide their number, and divide or be a multiple of tensor_parallel."
            )

    def operators(self, layout: Layout | None = None) -> tuple[StepOperator, ...]:
        """Return the operators of one step on one device, equal ones in one row."""
        return _operators(self, layout or Layout())

    def _lower(self, layout: Layout) -> Iterator[StepOperator]:
        hidden = self.hidden
        tables = self.vocabulary // layout.tensor + self.positions + self.token_types
        yield StepOperator(
            name="embedding",
            kind="embedding",
            parameters=tables * hidden,
            token_elements=2 * hidden,
            live_elements=hidden,
            kept=True,
        )
        norm = NORMS[self.norm] * hidden
        yield StepOperator(
            name="norms",
            kind="norm",
            parameters=norm,
            parameters_streamed=norm,
            token_elements=2 * hidden,
            live_elements=3 * hidden,
            repeats=self._norm_count,
            resident_repeats=self._norm_count / layout.pipeline,
            kept=True,
        )
        for operator, repeats in self._layers(layout):
            yield replace(operator, repeats=repeats, resident_repeats=repeats / layout.pipeline)
        if self.pooler:
            yield replace(
                matrix("pooler", hidden, hidden, bias=hidden, elements=2 * hidden),
                token_limit=1,
                kept=True,
            )
        if self.output_layer:
            yield self._output(layout)
        yield from self._collectives(layout)

    def _layers(self, layout: Layout) -> Iterator[tuple[StepOperator, int]]:
        """Yield the operators of the layers, and how often each stands in the model."""
        for lowered in self.attention.operators(self.hidden, layout):
            operator = replace(lowered, kept=self.quantised == "experts")
            if not self.decoder:
                operator = _uncached(operator, self.attention, layout)
            if operator.kind != "attention":
                yield operator, self.layers
                continue
            windowed = self.layers - self.full_layers
            if self.full_layers:
                yield operator, self.full_layers
            if windowed:
                local = replace(operator, attention_window=self.attention.window)
                yield local.renamed("attention in a window"), windowed
        if self.feed_forward and self.dense_layers:
            for operator in self.feed_forward.operators(self.hidden, layout):
                yield replace(operator, kept=self.quantised == "experts"), self.dense_layers
        if self.experts:
            for operator in self.experts.operators(self.hidden, layout):
                kept = operator.kind == "router" or (
                    self.quantised == "experts" and operator.kind != "experts"
                )
                yield replace(operator, kept=kept), self.layers - self.dense_layers

    def _output(self, layout: Layout) -> StepOperator:
        """Return the output layer: it works on the last token, and may be the embedding."""
        words = -(-self.vocabulary // layout.tensor)
        output = matrix(
            "output layer",
            self.hidden,
            words,
            bias=self.output_bias * words,
            elements=self.hidden + words,
        )
        # On the last stage of a pipeline it is there, and the embedding is not.
        shared = self.tied_embeddings and layout.pipeline == 1
        return replace(
            output,
            kind="output",
            parameters=self.output_bias * words if shared else output.parameters,
            resident_repeats=1.0,
            token_limit=1,
            kept=True,
        )

    def _collectives(self, layout: Layout) -> Iterator[StepOperator]:
        """Yield what is sent between devices."""
        hidden, tensor = self.hidden, layout.tensor
        if tensor > 1:
            yield StepOperator(
                name="all-reduce",
                kind="network",
                link_elements=transformer.all_reduce_elements(hidden, tensor),
                link_group=tensor,
                repeats=2 * self.layers + 1,
                resident_repeats=0.0,
            )
            if self.output_layer:
                yield StepOperator(
                    name="gather of the output",
                    kind="network",
                    link_elements=self.vocabulary * (tensor - 1) / tensor,
                    link_group=tensor,
                    token_limit=1,
                    resident_repeats=0.0,
                )
        if self.experts and layout.expert > tensor:
            groups = layout.expert // tensor
            # A token goes to each of its experts that is elsewhere, and comes back.
            away = self.experts.per_token * hidden * (groups - 1) / groups
            yield StepOperator(
                name="tokens to their experts and back",
                kind="network",
                link_elements=2 * away / tensor,
                link_group=layout.expert,
                repeats=self.layers - self.dense_layers,
                resident_repeats=0.0,
            )
        if layout.pipeline > 1:
            yield StepOperator(
                name="stage to stage",
                kind="network",
                link_elements=float(hidden),
                link_group=2,
                repeats=layout.pipeline - 1,
                resident_repeats=0.0,
            )


def _uncached(
    operator: StepOperator, attention: Attention | LatentAttention, layout: Layout
) -> StepOperator:
    """Count the keys and values of an encoder as activations: it has no cache."""
    passed = attention.cached_elements // min(layout.tensor, attention.kv_heads)
    if operator.kind == "attention":
        return replace(operator, cached_elements=0, token_elements=operator.token_elements + passed)
    if operator.name == "queries, keys, values":
        return replace(operator, token_elements=operator.token_elements + passed)
    return operator


@lru_cache(maxsize=1024)
def _operators(model: Transformer, layout: Layout) -> tuple[StepOperator, ...]:
    model.check_layout(layout)
    # No token sees more than the context, and no step has more tokens.
    lowered = [
        replace(
            each,
            attention_window=min(each.attention_window, model.context),
            token_limit=min(each.token_limit, model.context),
        )
        for each in model._lower(layout)
    ]
    if layout.pipeline > 1:
        # The stage that holds most has the output layer instead of the embedding.
        has_output = model.output_layer
        lowered[0] = replace(lowered[0], resident_repeats=0.0 if has_output else 1.0)
    return tuple(lowered)


def _divides(name: str, size: int, what: str, count: int, model: Transformer) -> None:
    if count % size:
        near = [each for each in range(1, count + 1) if count % each == 0]
        below = [each for each in near if each < size][-3:]
        above = [each for each in near if each > size][:2]
        raise InvalidValueError(
            f"{name} = {size} does not divide the {count} {what} of {model.name}. "
            f"Near it are {', '.join(map(str, below + above))}."
        )
