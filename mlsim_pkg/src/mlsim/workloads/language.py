"""A transformer for language: an architecture, and the operators of one of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.equations import step
from mlsim.errors import InvalidValueError
from mlsim.precision import precision as find_precision
from mlsim.units import MEMORY
from mlsim.workloads import layer_embeddings, residual_streams
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.language_steps import NORMS, step_operators
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.layouts import check_layers, check_layout
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.recurrent import Recurrent
from mlsim.workloads.released import Released
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

QUANTISED = ("linear", "experts")
# What lets tokens see one another, and what treats each by itself; how many layers have it.
Mixer = Attention | LatentAttention | Recurrent
Feed = FeedForward | Experts
Mixers = tuple[tuple[int, Mixer], ...]
Feeds = tuple[tuple[int, Feed], ...]


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
    mixer_layers, feed_layers
        Where layers are of several kinds: how many have which attention or state, and
        how many which feed-forward network or experts. A layer may have one of the
        two only, or two networks. `attention` and `experts` are those of them that stand
        for the model.
    decoder
        Whether it generates: a token sees earlier ones only, and is cached.
    norm, norms, final_norm, embedding_norm
        Kind of norm, how many in a layer, and whether there are others.
    norms_after
        Whether norms stand behind a layer's parts, and not in front of them.
    layer_norms
        Norms in all layers together, where not each has as many.
    tied_embeddings, output_layer, output_bias
        Whether the output layer is the embedding table, is there, has a bias.
    positions, token_types, pooler
        Rows of learned tables; a last layer on the first token.
    quantised
        What a quantised format covers: "linear" layers, or "experts" only.
    layer_embedding, layer_vocabulary
        Width of an embedding that each layer has of each token, and the rows of its table,
        if not as many as tokens are known (see `layer_embeddings`).
    residual_streams, residual_rank
        Vectors of a token that each layer predicts and corrects, if there are several; width
        of a path through few numbers beside attention (see `residual_streams`).
    released
        The number formats in which its weights were published, if not in 16 bits.

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
    norms_after: bool = False
    layer_norms: int = 0
    final_norm: bool = True
    embedding_norm: bool = False
    tied_embeddings: bool = False
    output_layer: bool = True
    output_bias: bool = False
    positions: int = 0
    token_types: int = 0
    pooler: bool = False
    quantised: str = "linear"
    mixer_layers: Mixers = ()
    feed_layers: Feeds = ()
    layer_embedding: int = 0
    layer_vocabulary: int = 0
    residual_streams: int = 0
    residual_rank: int = 0
    released: Released | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("norm", NORMS), ("quantised", QUANTISED)):
            if getattr(self, name) not in allowed:
                raise InvalidValueError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}."
                )
        if self.mixer_layers or self.feed_layers or self.shares_cache:
            check_layers(self)
        if self.feed_layers:
            return
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
    def mixers(self) -> Mixers:
        """How many layers have which attention or state."""
        return self.mixer_layers or ((self.layers, self.attention),)

    @property
    def feeds(self) -> Feeds:
        """How many layers have which feed-forward network or experts."""
        if self.feed_layers:
            return self.feed_layers
        found: Feeds = ()
        if self.feed_forward and self.dense_layers:
            found = ((self.dense_layers, self.feed_forward),)
        if self.experts and self.layers > self.dense_layers:
            found = (*found, (self.layers - self.dense_layers, self.experts))
        return found

    @property
    def attentions(self) -> tuple[Attention | LatentAttention, ...]:
        """The kinds of attention that its layers have."""
        return tuple(each for _, each in self.mixers if not isinstance(each, Recurrent))

    @property
    def alike(self) -> bool:
        """Whether its layers are of one kind, but for windows and first layers without experts."""
        mixed = self.mixer_layers or self.feed_layers or self.attention.chosen
        return not (mixed or self.layer_embedding or self.residual_streams or self.residual_rank)

    @property
    def shares_cache(self) -> bool:
        """Whether some layers read the cache of an earlier one."""
        return any(isinstance(each, Attention) and each.shared_cache for _, each in self.mixers)

    @property
    def window(self) -> int:
        """Most tokens that a token sees in layers that don't see all; 0 if there are none."""
        return max(each.window or each.chosen for _, each in self.mixers)

    @property
    def state_bytes_per_sequence(self) -> float:
        """Memory of the states of one sequence, however long it is; 0 without such layers.

        >>> from mlsim import Models
        >>> Models.Llama3_8B.state_bytes_per_sequence
        0.0
        """
        return float(
            sum(each * one.state_bytes() for each, one in self.mixers if isinstance(one, Recurrent))
        )

    @property
    def sequence_states(self) -> Quantity:
        """The same as a value.

        >>> from mlsim import Models
        >>> print(Models.Nemotron_3_Nano_30B_A3B.sequence_states)
        46.8 MiB
        """
        layers = sum(each for each, one in self.mixers if isinstance(one, Recurrent))
        what = f"the states of its {layers} layers with a state"
        return self.counted(self.state_bytes_per_sequence, MEMORY, "states of a sequence", what)

    @property
    def dense_layers(self) -> int:
        """Layers with an ordinary feed-forward network."""
        if self.feed_layers:
            return sum(each for each, one in self.feed_layers if isinstance(one, FeedForward))
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return sum(each for each, one in self.feeds if isinstance(one, Experts))

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole sequence."""
        found = 0
        for each, one in self.mixers:
            if not one.window:
                found += 0 if isinstance(one, Recurrent) else each
            elif one.full_every:
                found += each // one.full_every
        return found

    @property
    def windowed_layers(self) -> int:
        """Layers whose attention sees the last tokens only."""
        attention = sum(each for each, one in self.mixers if not isinstance(one, Recurrent))
        return attention - self.full_layers

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
        found = sum(each * mixer.parameters(self.hidden) for each, mixer in self.mixers)
        for each, feed in self.feeds:
            if active and isinstance(feed, Experts):
                found += each * feed.active_parameters(self.hidden)
            else:
                found += each * feed.parameters(self.hidden)
        found += layer_embeddings.parameters(self) + residual_streams.parameters(self)
        found += self.norm_count * NORMS[self.norm] * self.hidden
        found += (self.vocabulary + self.positions + self.token_types) * self.hidden
        if self.output_layer:
            found += 0 if self.tied_embeddings else self.vocabulary * self.hidden
            found += self.output_bias * self.vocabulary
        return found + self.pooler * (self.hidden + 1) * self.hidden

    @property
    def norm_count(self) -> int:
        """Norms in the whole model."""
        within = self.layer_norms or self.norms * self.layers
        return within + self.final_norm + self.embedding_norm

    @property
    def model_cached_elements(self) -> int:
        """Elements of keys and values that all layers keep of one token."""
        return sum(each * mixer.cached_elements for each, mixer in self.mixers)

    def cache_bytes_per_token(self, precision: str = "bf16") -> Quantity:
        """Return the KV cache that one token takes in all layers.

        >>> from mlsim import Models
        >>> print(Models.Llama3_8B.cache_bytes_per_token().to("B"))
        131,072 B
        """
        if not self.decoder:
            raise InvalidValueError(f"{self.name} is an encoder: it keeps no KV cache.")
        each = find_precision(precision).bytes
        elements = f"{self.model_cached_elements:,} elements of keys and values in all layers"
        what = f"{elements}, of {each:g} bytes each,"
        value = self.model_cached_elements * each
        return self.counted(value, "B", "KV cache per token", what)

    _counts: ClassVar[tuple[str, ...]] = (
        "parameters",
        "active_parameters",
        "cache_bytes_per_token",
    )

    @property
    def parameters(self) -> Quantity:
        """Learned numbers in the model, as a value."""
        what = f"those of its {self.layers} layers, its tables and its norms"
        return self.counted(self.parameter_count, "parameter", "parameters", what)

    @property
    def active_parameters(self) -> Quantity:
        """Learned numbers that one token meets, as a value."""
        what = f"those of its {self.layers} layers, its tables and its norms that one token meets"
        return self.counted(self.active_parameter_count, "parameter", "active parameters", what)

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
            If the tokens are no whole numbers, or not within the model's context.

        >>> from mlsim import Models
        >>> Models.Llama2_7B.flop_count(1, 2048)
        14288420864
        """
        new_tokens = whole_tokens("new_tokens", new_tokens)
        cached_tokens = whole_tokens("cached_tokens", cached_tokens)
        if new_tokens < 1 or cached_tokens < 0 or new_tokens + cached_tokens > self.context:
            raise InvalidValueError(
                f"{new_tokens:,} new and {cached_tokens:,} cached tokens are not within the "
                f"context of {self.name}, {self.context:,}."
            )
        return _flop_count(self, new_tokens, cached_tokens, causal=causal, all_logits=all_logits)

    def check_layout(self, parallelism: Parallelism) -> None:
        """Refuse a layout that does not divide this model evenly.

        Raises
        ------
        InvalidValueError
            Naming what is not divided, and sizes that would.
        """
        check_layout(self, parallelism)

    def operators(self, parallelism: Parallelism | None = None) -> tuple[StepOperator, ...]:
        """Return the operators of one step on one device, equal ones in one row."""
        return step_operators(self, parallelism or Parallelism())


def whole_tokens(name: str, tokens: Any) -> int:
    """Return a count of tokens; True, 1.5 and NaN are none, 2e3 and NumPy's whole numbers are."""
    if isinstance(tokens, float) and tokens.is_integer():
        return int(tokens)
    if isinstance(tokens, bool) or not hasattr(tokens, "__index__"):
        raise InvalidValueError(f"{name} must be a whole number such as 2048, not {tokens!r}.")
    try:
        return index(tokens)
    except TypeError:  # an array of more than one entry
        raise InvalidValueError(f"{name} must be one whole number, not {tokens!r}.") from None


@lru_cache(maxsize=1024)
def _flop_count(
    model: Transformer, new_tokens: int, cached_tokens: int, *, causal: bool, all_logits: bool
) -> int:
    total = 0
    for operator in model.operators():
        each = all_logits and operator.kind == "output"
        tokens = new_tokens if each else min(new_tokens, operator.token_limit)
        window = operator.attention_window
        unclipped = step.unclipped_tokens(window, cached_tokens, new_tokens)
        pairs = step.attention_pairs(unclipped, cached_tokens, new_tokens, window)
        if not (causal and model.decoder):
            pairs = new_tokens * min(cached_tokens + new_tokens, window)
        attended = operator.pair_multiply_adds * int(pairs)
        if model.latent:
            attended = min(
                attended + operator.expand_multiply_adds * cached_tokens,
                operator.absorbed_pair_multiply_adds * int(pairs),
            )
        total += operator.repeats * (operator.token_multiply_adds * tokens + attended)
    return int(FLOPS_PER_MULTIPLY_ADD) * total
