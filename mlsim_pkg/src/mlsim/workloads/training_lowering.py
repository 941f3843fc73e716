"""A transformer in training, lowered to the kernels of one micro-batch on one stage.

With what devices of a stage send to one another, and what fine-tuning with adapters does beside
frozen matrices, and leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from mlsim.equations import transformer
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads.adapters import Adapted, LoRA, adapted
from mlsim.workloads.blocks import Attention
from mlsim.workloads.kernels import Kernel, Passes, Recipe
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import UNLIMITED, Parallelism, StepOperator


@lru_cache(maxsize=4096)
def kernels(model: Transformer, parallelism: Parallelism, recipe: Recipe) -> tuple[Kernel, ...]:
    """Return the kernels of one micro-batch on the slowest stage, equal ones in one row.

    That is the last stage, with its share of the layers and the output layer; of a
    pipeline of one stage, the whole model. Where stages don't divide the layers, the last
    one has a layer less than a full stage.

    Raises
    ------
    InvalidValueError
        If the spread does not divide the model; says what would.
    WrongKindError
        If layers are of several kinds.

    >>> from mlsim import Models
    >>> rows = kernels(Models.Llama3_8B, Parallelism(), Recipe())
    >>> sum(row.token_multiply_adds * row.all_repeats for row in rows) / 3e9  # 1 + 2 passes
    7.504658432
    """
    check_trainable(model)
    stages, full = parallelism.pipeline, stage_layers(model, parallelism.pipeline)
    padded = padded_model(model, stages)
    padded.check_layout(parallelism)
    found: dict[Kernel, float] = {}
    for kernel, repeats in _lower(padded, parallelism, recipe):
        found[kernel] = found.get(kernel, 0.0) + repeats
    layers = padded.layers
    # The last stage is spared a layer where they don't divide; the first, which keeps most, is
    # as full as any.
    share = (full - (model.layers < layers)) / full
    return tuple(
        replace(
            kernel.times(repeats / stages * (1.0 if kernel.output_repeats else share)),
            saved_repeats=kernel.saved_repeats * repeats / stages,
            live_repeats=kernel.live_repeats * repeats / layers,
        )
        for kernel, repeats in found.items()
    )


def stage_layers(model: Transformer, stages: int) -> int:
    """Return the layers of a full stage: of 70 layers on 12 stages, six.

    >>> from mlsim import Models
    >>> stage_layers(Models.BLOOM_176B, 12)
    6
    """
    return -(-model.layers // stages)


@lru_cache(maxsize=256)
def padded_model(model: Transformer, stages: int) -> Transformer:
    """Return a model with as many layers in each stage as a full one has.

    Raises
    ------
    InvalidValueError
        If stages don't divide layers of several kinds.
    """
    layers = stage_layers(model, stages) * stages
    if layers == model.layers:
        return model
    if model.mixer_layers or model.feed_layers:
        raise InvalidValueError(
            f"pipeline_parallel = {stages} does not divide the {model.layers} layers of "
            f"{model.name}, which are of several kinds: unequal stages of them are not counted."
        )
    return replace(model, layers=layers)


def check_trainable(model: Transformer) -> None:
    """Refuse a model whose way back is not known here.

    Raises
    ------
    WrongKindError
        If layers are of several kinds, have a state or an embedding of their own, or look
        at chosen tokens.
    """
    if not model.alike:
        raise WrongKindError(
            f"{model.name} has layers of several kinds, or ones that keep a state, have an "
            "embedding of their own, several residual streams, or look at chosen tokens: what "
            "their training keeps and computes again is not counted here. Engine.serve and "
            "Engine.fit know it; of models whose layers are alike, Engine.train does."
        )


def _lower(
    model: Transformer, parallelism: Parallelism, recipe: Recipe
) -> Iterator[tuple[Kernel, float]]:
    """Yield each kernel with how often it stands in the whole model."""
    layer = Passes(recipe, parallelism, model.hidden)
    layers = float(model.layers)
    if recipe.recompute == "full":
        # Only what comes into each layer is kept.
        entry = Kernel(name="layer input", kind="kept", saved_elements=layer.narrow)
        yield replace(entry, saved_repeats=1.0), layers
    # Of a stage as if there were one only: the share of its layers comes later.
    for operator in model.operators(replace(parallelism.of_weights, pipeline=1)):
        yield from _of_operator(operator, model, layer)
    for kernel in layer.norm():
        yield kernel, float(model.norms * model.layers)
    for kernel in layer.residual():
        yield kernel, 2 * layers
    for kernel in exchanges(model, parallelism, again=recipe.recompute == "full"):
        yield kernel, layers
    if parallelism.pipeline == 1:
        # A row of the table is read; its gradient is added to the table's.
        table = Kernel(name="embedding", kind="elementwise", forward_repeats=1.0)
        yield replace(table, token_elements=2 * layer.narrow), 1.0
        if recipe.adapters:
            return  # the table is frozen
        back = replace(table, name="embedding: gradient", forward_repeats=0.0, backward_repeats=1.0)
        yield replace(back, token_elements=3 * layer.narrow), 1.0


def _of_operator(
    operator: StepOperator, model: Transformer, layer: Passes
) -> Iterator[tuple[Kernel, float]]:
    """Yield the kernels that an operator of inference becomes."""
    repeats, tensor = float(operator.repeats), layer.parallelism.tensor
    name = operator.name
    found = beside(model, layer, name)
    if operator.token_limit == 1 and operator.kind != "output":
        return  # a pooler, which works on one token of each sequence
    if operator.kind == "attention":
        heads = model.attention.heads // tensor
        kept, recipe = float(operator.token_elements + operator.cached_elements), layer.recipe
        # Kept: queries, keys, values. The output is what the next matrix keeps if it learns; else
        # flash attention needs it on the way back.
        alone = recipe.adapters and not (
            recipe.standard or beside(model, layer, "attention output")
        )
        if isinstance(model.attention, Attention) and not alone:
            kept -= operator.token_elements / 2
        for kernel in layer.attention(operator, heads, kept):
            yield kernel, repeats
    elif operator.kind in ("projection", "router", "experts"):
        copies = model.experts.per_token if model.experts and operator.kind == "experts" else 1
        for kernel in layer.product(operator, copies, adapted=bool(found)):
            yield kernel, repeats
        for kernel in adapter_kernels(layer, operator, found):
            yield kernel, repeats
        if name.endswith(", up"):
            routed = model.experts and not name.startswith("feed-forward")
            feed = model.experts.expert if model.experts and routed else model.feed_forward
            branches = feed.branches if feed else 1
            size = copies * operator.outputs / branches
            for kernel in layer.activation(size, branches):
                yield kernel, repeats
    elif operator.kind == "output":
        yield from _output(operator, layer)


def _output(operator: StepOperator, layer: Passes) -> Iterator[tuple[Kernel, float]]:
    """Yield the output layer, which training needs for each token, and its loss."""
    stages = layer.parallelism.pipeline
    plain = Passes(replace(layer.recipe, recompute="none"), layer.parallelism, layer.hidden)
    streamed = operator.outputs * layer.hidden
    operator = replace(operator, parameters_streamed=streamed, parameters_routed=0)
    scores = float(operator.outputs)
    # Kept in 32 bits: twice as many elements.
    loss = plain.forward(
        "loss", "elementwise", token_elements=3 * scores, saved_elements=2 * scores
    )
    back = plain.backward("loss: gradient", "elementwise", token_elements=3 * scores)
    for kernel in (*plain.product(operator), loss, back):
        # The last stage has it, so that one device of each pipeline does.
        marked = replace(kernel, output_repeats=kernel.all_repeats)
        first_keeps_most = replace(marked, saved_repeats=0.0) if stages > 1 else marked
        yield first_keeps_most, float(stages)


def parameters_on_device(model: Transformer, parallelism: Parallelism) -> tuple[float, float]:
    """Return parameters on one device of the fullest stage: dense ones, and of experts."""
    held = padded_model(model, parallelism.pipeline).operators(parallelism.of_weights)
    counts = ((each.kind == "experts", each.parameters * each.resident_repeats) for each in held)
    return _dense_and_experts(counts)


def _dense_and_experts(counts: Iterable[tuple[bool, float]]) -> tuple[float, float]:
    """Add up parameters, each with whether experts hold it."""
    found = [0.0, 0.0]
    for in_experts, count in counts:
        found[in_experts] += count
    return found[0], found[1]


def output_multiply_adds(model: Transformer, tokens: int) -> float:
    """Return MAC of the output layer for one sequence."""
    rows = (each for each in model.operators() if each.kind == "output")
    return float(sum(each.token_multiply_adds * tokens for each in rows))


def score_multiply_adds(model: Transformer, tokens: int) -> float:
    """Return MAC for all pairs of tokens of one sequence, masked ones included."""
    return float(
        sum(
            each.pair_multiply_adds * each.repeats * tokens * min(tokens, each.attention_window)
            for each in model.operators()
        )
    )


def exchanges(model: Transformer, parallelism: Parallelism, *, again: bool) -> Iterator[Kernel]:
    """Yield what is sent in one layer; `again`: whether whole layers are computed again."""
    tensor, once_more = parallelism.tensor, float(again)
    if tensor > 1:  # after attention, and after the feed-forward network
        elements, hops = model.hidden * (tensor - 1) / tensor, tensor - 1
        if parallelism.sequence:
            # Each all-reduce is done in two halves; on the way back the inputs, of
            # which each device kept a part, are gathered once more.
            name, times = "reduce and scatter, or gather", (4.0, 4.0 * once_more, 6.0)
            sent = _sent(name, elements, (hops, tensor, 1), times)
        else:
            times = (2.0, 2.0 * once_more, 2.0)
            sent = _sent("all-reduce", 2 * elements, (2 * hops, tensor, 1), times)
        yield replace(sent, collective=True)
    if parallelism.context > 1:
        hops = parallelism.context - 1
        cached = model.attention.cached_elements / min(tensor, model.attention.kv_heads)
        # On the way back, their gradients go round as well.
        name, times = "keys and values round the ring", (1.0, once_more, 2.0)
        yield _sent(name, hops * cached, (hops, parallelism.context, tensor), times)
    if model.experts and parallelism.expert > tensor:
        groups = parallelism.expert // tensor
        away = model.experts.exchanged_elements(model.hidden, parallelism)
        share = (model.layers - model.dense_layers) / model.layers
        name, times = "tokens to their experts, or back", (1.0, once_more, 1.0)
        twice = tuple(2.0 * each * share for each in times)
        yield _sent(name, away, (groups - 1, groups, tensor), twice)


def _sent(
    name: str, elements: float, place: tuple[int, int, int], times: tuple[float, ...]
) -> Kernel:
    """Return what devices send to one another.

    `place` has the messages that follow one another, the devices that take part, and how far
    apart they are numbered; `times` how often it is sent forward, again, and on the way back.
    """
    hops, span, stride = place
    forward, again, back = times
    return Kernel(
        name=name,
        kind="network",
        link_elements=elements,
        link_hops=hops,
        link_span=span,
        link_stride=stride,
        forward_repeats=forward,
        recompute_repeats=again,
        backward_repeats=back,
    )


# What a frozen matrix is, of the operators of a step.
_LINEAR = ("projection", "experts")
_PRODUCTS = (*_LINEAR, "router", "output")


def beside(model: Transformer, layer: Passes, operator: str) -> tuple[Adapted, ...]:
    """Return the adapters that stand beside an operator; none where all weights are trained."""
    adapters = layer.recipe.adapters
    if adapters is None:
        return ()
    found = adapted(model, adapters, layer.parallelism.of_weights)
    return tuple(each for each in found if each.operator == operator)


def adapter_kernels(
    layer: Passes, operator: StepOperator, found: tuple[Adapted, ...]
) -> Iterator[Kernel]:
    """Yield what fine-tuning adds to a frozen product: dequantization, and its adapters."""
    quantized = float(operator.parameters - operator.wide_parameters)
    if layer.recipe.quantized and operator.kind in _LINEAR and quantized:
        name = f"{operator.name}: dequantization"
        yield layer.forward(name, "elementwise", parameters_dequantized=quantized)
        yield layer.backward(f"{name} again", "elementwise", parameters_dequantized=quantized)
    for each in found:
        yield from _adapter(layer, each)


def _adapter(layer: Passes, each: Adapted) -> Iterator[Kernel]:
    """Yield the two products of an adapter, and the four of its way back.

    What comes out is added to what the frozen matrix has written, and its input's gradient to
    that of the matrix. Its input is kept once, for the matrix and all adapters that read it.
    """
    name, met, rank = f"adapter of {each.target}", each.met, float(each.rank)
    inputs, outputs = float(each.inputs), float(each.outputs)
    into, out = rank * inputs, rank * outputs
    narrow, wide = met * (inputs + rank), met * (rank + outputs)
    moved = (narrow, narrow + met * inputs, narrow)
    counts = {"work": met * into, "held": each.held * into, "kept": 0.0}
    first, *first_back = layer.ways(f"{name}, in", (inputs, rank), moved, **counts)
    moved = (wide + met * outputs, wide, wide)
    counts = {"work": met * out, "held": each.held * out, "kept": met * rank}
    second = layer.ways(f"{name}, out", (rank, outputs), moved, **counts)
    yield from (first, *second, *first_back)


def adapter_parameters_on_device(
    model: Transformer, adapters: LoRA, parallelism: Parallelism
) -> tuple[float, float]:
    """Return the adapters' parameters on one device of the fullest stage: dense, and of experts.

    `model` has as many layers in each stage as a full one.
    """
    stages, found = parallelism.pipeline, adapted(model, adapters, parallelism.of_weights)
    return _dense_and_experts(
        (each.operator.startswith("experts"), each.size * each.held * each.layers / stages)
        for each in found
    )


def quantized_on_device(model: Transformer, parallelism: Parallelism) -> float:
    """Return the frozen parameters on one device that are quantized: the layers' matrices."""
    return float(
        sum(
            (each.parameters - each.wide_parameters) * each.resident_repeats
            for each in model.operators(parallelism.of_weights)
            if each.kind in _LINEAR and each.token_limit > 1
        )
    )


def multiply_adds(model: Transformer, adapters: LoRA, tokens: int) -> tuple[float, float]:
    """Return MAC of one sequence forward: of all frozen matrices, and of the adapters."""
    frozen = sum(
        each.token_multiply_adds
        * each.repeats
        * (tokens if each.kind == "output" else min(tokens, each.token_limit))
        for each in model.operators()
        if each.kind in _PRODUCTS
    )
    own = sum(each.size * each.met * each.layers * tokens for each in adapted(model, adapters))
    return float(frozen), float(own)


def spared_multiply_adds(model: Transformer, adapters: LoRA, tokens: int, *, causal: bool) -> float:
    """Return MAC on the way back of one sequence that nothing needs: those below all adapters.

    In the first layer, no gradient is asked of what comes before the first adapter, nor of
    what that adapter reads.
    """
    found = adapted(model, adapters)
    mixer, feed = model.mixers[0][1], model.feeds[0][1]
    alone = Parallelism()
    spared = 0.0
    for part in (mixer, feed):
        for each in part.operators(model.hidden, alone):
            if each.kind == "attention":
                window = mixer.window or UNLIMITED
                pairs = _pairs(tokens, window, causal=causal and model.decoder)
                spared += 2 * each.pair_multiply_adds * pairs
                continue
            spared += each.token_multiply_adds * tokens
            own = [one for one in found if one.operator == each.name]
            if own:
                return spared + sum(one.rank * one.inputs * one.met * tokens for one in own)
    return spared


def _pairs(tokens: int, window: int, *, causal: bool) -> float:
    if not causal:
        return float(tokens * min(tokens, window))
    unclipped = transformer.unclipped_tokens(window, 0, tokens)
    return float(transformer.attention_pairs(unclipped, 0, tokens, window))
