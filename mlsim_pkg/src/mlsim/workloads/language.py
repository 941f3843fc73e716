"""A transformer for language: an architecture, whose parts must fit, and a step's operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.equations import transformer
from mlsim.errors import InvalidValueError
from mlsim.precision import precision as find_precision
from mlsim.units import MEMORY
from mlsim.workloads import residuals
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention, Recurrent
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model, Released
from mlsim.workloads.steps import Parallelism, StepOperator, matrix, sent

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


# Vectors of learned numbers in a norm: a scale, or a scale and a shift, or none.
NORMS = {"rms": 1, "layer": 2, "plain": 0}


def _lower(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    hidden = model.hidden
    tables = model.vocabulary // parallelism.tensor + model.positions + model.token_types
    yield StepOperator(
        name="embedding",
        kind="embedding",
        parameters=tables * hidden,
        token_elements=2 * hidden,
        live_elements=hidden,
        # Of a pipeline, the stage that holds most has the output layer in its place.
        resident_repeats=0.0 if parallelism.pipeline > 1 and model.output_layer else 1.0,
        unquantised=True,
    )
    norm = NORMS[model.norm] * hidden
    yield StepOperator(
        name="norms",
        kind="norm",
        parameters=norm,
        parameters_streamed=norm,
        token_elements=2 * hidden,
        live_elements=3 * hidden,
        repeats=model.norm_count,
        resident_repeats=model.norm_count / parallelism.pipeline,
        unquantised=True,
    )
    yield from residuals.operators(model, parallelism)
    carried = residuals.carried_elements(model)
    for operator, repeats in _layers(model, parallelism):
        # What a layer reads of an earlier one's cache lies in memory once.
        held = 0.0 if operator.shared_cache else repeats / parallelism.pipeline
        live = operator.live_elements + carried
        yield replace(operator, repeats=repeats, resident_repeats=held, live_elements=live)
    if model.pooler:
        pooler = matrix("pooler", hidden, hidden, bias=hidden, live=0)
        yield replace(pooler, token_limit=1, unquantised=True)
    if model.output_layer:
        yield _output(model, parallelism)
    yield from _collectives(model, parallelism)


def _layers(model: Transformer, parallelism: Parallelism) -> Iterator[tuple[StepOperator, int]]:
    """Yield the operators of the layers, and how often each stands in the model."""
    for layers, mixer in model.mixers:
        windowed = layers if mixer.window else 0
        if mixer.window and mixer.full_every:
            windowed -= layers // mixer.full_every
        for lowered in mixer.operators(model.hidden, parallelism):
            # One that is left alone in any format stays so.
            left = lowered.unquantised or model.quantised == "experts"
            operator = replace(lowered, unquantised=left)
            if not model.decoder:
                operator = _uncached(operator, mixer, parallelism)
            if operator.kind != "attention":
                yield operator, layers
                continue
            if layers > windowed:
                yield operator, layers - windowed
            if windowed:
                local = replace(operator, attention_window=mixer.window, cache_window=mixer.window)
                yield replace(local, name="attention in a window"), windowed
    for layers, feed in model.feeds:
        for operator in feed.operators(model.hidden, parallelism):
            unquantised = operator.kind == "router" or (
                model.quantised == "experts" and operator.kind != "experts"
            )
            yield replace(operator, unquantised=unquantised), layers


def _output(model: Transformer, parallelism: Parallelism) -> StepOperator:
    """Return the output layer: it works on the last token, and may be the embedding."""
    words = -(-model.vocabulary // parallelism.tensor)
    bias = model.output_bias * words
    output = matrix("output layer", model.hidden, words, bias=bias, live=0)
    # On the last stage of a pipeline it is there, and the embedding is not.
    shared = model.tied_embeddings and parallelism.pipeline == 1
    return replace(
        output,
        kind="output",
        parameters=bias if shared else output.parameters,
        resident_repeats=1.0,
        token_limit=1,
        unquantised=True,
    )


def _collectives(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    """Yield what is sent between devices."""
    hidden, tensor = model.hidden, parallelism.tensor
    if tensor > 1:
        # After each mixer and each network, and after the embedding.
        repeats = sum(each for each, _ in (*model.mixers, *model.feeds)) + 1
        elements = transformer.all_reduce_elements(hidden, tensor)
        yield sent("all-reduce", elements, tensor, repeats=repeats)
        if model.output_layer:
            elements = model.vocabulary * (tensor - 1) / tensor
            yield sent("gather of the output", elements, tensor, token_limit=1)
    if model.experts and parallelism.expert > tensor:
        # A token goes to each device elsewhere that has some of its experts, and comes back.
        away = model.experts.exchanged_elements(hidden, parallelism)
        name, layers = "tokens to their experts and back", model.expert_layers
        yield sent(name, 2 * away, parallelism.expert, repeats=layers)
    if parallelism.pipeline > 1:
        yield sent("stage to stage", float(hidden), 2, repeats=parallelism.pipeline - 1)


def _uncached(operator: StepOperator, attention: Mixer, parallelism: Parallelism) -> StepOperator:
    """Count the keys and values of an encoder as activations: it has no cache."""
    if isinstance(attention, Recurrent):
        return operator
    passed = attention.cached_elements // min(parallelism.tensor, attention.kv_heads)
    if operator.kind == "attention":
        return replace(operator, cached_elements=0, token_elements=operator.token_elements + passed)
    if operator.name == "queries, keys, values":
        return replace(operator, token_elements=operator.token_elements + passed)
    return operator


@lru_cache(maxsize=1024)
def step_operators(model: Transformer, parallelism: Parallelism) -> tuple[StepOperator, ...]:
    """Return the operators of one step on one device, equal ones in one row.

    Raises
    ------
    InvalidValueError
        If the layout does not divide the model evenly; says what would.
    """
    model.check_layout(parallelism)
    # No token sees more than the context, and no step has more tokens.
    return tuple(
        replace(
            each,
            attention_window=min(each.attention_window, model.context),
            cache_window=min(each.cache_window, model.context),
            token_limit=min(each.token_limit, model.context),
        )
        for each in _lower(model, parallelism)
    )


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
    tied_embeddings, output_layer, output_bias
        Whether the output layer is the embedding table, is there, has a bias.
    positions, token_types, pooler
        Rows of learned tables; a last layer on the first token.
    quantised
        What a quantized format covers: "linear" layers, or "experts" only.
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
        return int(sum(each.parameters * each.resident_repeats for each in self.operators()))

    @cached_property
    def active_parameter_count(self) -> int:
        """Learned numbers that one token meets; fewer than all in a mixture of experts."""
        routed = ((each, one) for each, one in self.feeds if isinstance(one, Experts))
        return self.parameter_count - sum(
            each * one.idle_parameters(self.hidden) for each, one in routed
        )

    @property
    def norm_count(self) -> int:
        """Norms in the whole model."""
        return self.norms * self.layers + self.final_norm + self.embedding_norm

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
        tensor, expert = parallelism.tensor, parallelism.expert
        for _, mixer in self.mixers:
            if isinstance(mixer, Recurrent):
                for what, count in mixer.parts().items():
                    _divides("tensor_parallel", tensor, what, count, self)
                continue
            _divides("tensor_parallel", tensor, "attention heads", mixer.heads, self)
            kv_heads = mixer.kv_heads
            if kv_heads % tensor and tensor % kv_heads:
                _divides("tensor_parallel", tensor, "KV heads", kv_heads, self)
        for size in dict.fromkeys(
            each.size for _, each in self.feeds if isinstance(each, FeedForward)
        ):
            _divides("tensor_parallel", tensor, "feed-forward features", size, self)
        _divides("pipeline_parallel", parallelism.pipeline, "layers", self.layers, self)
        read_apart = {
            "the cache of an earlier layer": self.shares_cache,
            "a table of their own": self.layer_embedding,
            "several streams": self.residual_streams,
        }
        shared = next((words for words, there in read_apart.items() if there), "")
        if parallelism.pipeline > 1 and shared:
            raise InvalidValueError(
                f"pipeline_parallel = {parallelism.pipeline}: layers of {self.name} read {shared}, "
                "which may lie on another stage; what would be sent is not counted here. Use "
                "tensor_parallel, or leave pipeline_parallel out."
            )
        if self.experts:
            slices = max(tensor // expert, 1)
            _divides("tensor_parallel", slices, "features of an expert", self.experts.size, self)
        if expert == 1:
            return
        if not self.experts:
            raise InvalidValueError(
                f"expert_parallel = {expert}, but {self.name} has no experts. Leave it out."
            )
        _divides("expert_parallel", expert, "experts", self.experts.count, self)
        within = tensor * parallelism.data
        if within % expert or (tensor % expert and expert % tensor):
            raise InvalidValueError(
                f"expert_parallel = {expert} can't be laid out over tensor_parallel x "
                f"data_parallel = {tensor} x {parallelism.data} = {within} devices: it must "
                "divide their number, and divide or be a multiple of tensor_parallel."
            )

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
        unclipped = transformer.unclipped_tokens(window, cached_tokens, new_tokens)
        pairs = transformer.attention_pairs(unclipped, cached_tokens, new_tokens, window)
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


def check_layers(model: Transformer) -> None:
    """Refuse layers of several kinds that don't fit together.

    Raises
    ------
    InvalidValueError
        Naming what is too many, or can't stand beside what.
    """
    for name, parts in (("mixer_layers", model.mixers), ("feed_layers", model.feeds)):
        wrong = next((each for each, _ in parts if not 1 <= each <= model.layers), None)
        if wrong is not None:
            raise InvalidValueError(
                f"{model.name}: {name} gives a part to {wrong} of the {model.layers} layers."
            )
    mixed = sum(each for each, _ in model.mixers)
    if mixed > model.layers:
        raise InvalidValueError(
            f"{model.name}: mixer_layers has {mixed} layers, more than the {model.layers} "
            "there are."
        )
    windows = {each.window or each.chosen for _, each in model.mixers} - {0}
    if len(windows) > 1:
        found = " and ".join(map(str, sorted(windows)))
        raise InvalidValueError(
            f"{model.name}: layers with windows of {found} tokens; the mean over an output is "
            "known for one window only."
        )
    if len({isinstance(each, LatentAttention) for each in model.attentions}) > 1:
        raise InvalidValueError(
            f"{model.name}: layers with latent attention beside others with heads of their own "
            "can't be told here."
        )
    if model.shares_cache:
        _check_shared(model)


def _check_shared(model: Transformer) -> None:
    """Refuse layers that read an earlier cache which no layer makes, or which is no cache."""
    own = [each for each in model.attentions if isinstance(each, Attention)]
    made = {(each.kv_heads, each.head_size, each.window) for each in own if not each.shared_cache}
    for each in own:
        if each.shared_cache and (each.kv_heads, each.head_size, each.window) not in made:
            window = f"a window of {each.window:,}" if each.window else "no window"
            raise InvalidValueError(
                f"{model.name}: layers with shared_cache read {each.kv_heads} KV heads of "
                f"{each.head_size} with {window}, which no other layer caches. Give a mixer "
                "without shared_cache that does."
            )
    if not model.decoder:
        raise InvalidValueError(f"{model.name} is an encoder: it has no cache to share.")
    if len(own) < len(model.mixers):
        raise InvalidValueError(
            f"{model.name}: layers that share a cache beside layers with a state, or with latent "
            "attention, can't be told here."
        )


def _divides(name: str, size: int, what: str, count: int, model: Transformer) -> None:
    if count % size:
        near = [each for each in range(1, count + 1) if count % each == 0]
        below = [each for each in near if each < size][-3:]
        above = [each for each in near if each > size][:2]
        raise InvalidValueError(
            f"{name} = {size} does not divide the {count} {what} of {model.name}. "
            f"Near it are {', '.join(map(str, below + above))}."
        )
