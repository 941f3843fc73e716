"""A transformer in training, lowered to the kernels of one micro-batch on one stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads import adapter_lowering
from mlsim.workloads.blocks import Attention
from mlsim.workloads.exchanges import exchanges
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.language import Transformer
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.passes import Passes, Recipe
from mlsim.workloads.steps import StepOperator


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
    padded = padded_model(model, parallelism.pipeline)
    padded.check_layout(parallelism)
    found: dict[Kernel, float] = {}
    for kernel, repeats in _lower(padded, parallelism, recipe):
        found[kernel] = found.get(kernel, 0.0) + repeats
    stages, layers = parallelism.pipeline, padded.layers
    full = stage_layers(model, stages)
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
    beside = adapter_lowering.beside(model, layer, name)
    if operator.token_limit == 1 and operator.kind != "output":
        return  # a pooler, which works on one token of each sequence
    if operator.kind == "attention":
        heads = model.attention.heads // tensor
        wide = float(operator.token_elements + operator.cached_elements)
        # Kept: queries, keys, values; the output is what the next matrix keeps.
        kept = (
            wide - operator.token_elements / 2 if isinstance(model.attention, Attention) else wide
        )
        if adapter_lowering.keeps_output(model, layer):
            kept = wide
        for kernel in layer.attention(operator, heads, kept):
            yield kernel, repeats
    elif operator.kind in ("projection", "router", "experts"):
        copies = model.experts.per_token if model.experts and operator.kind == "experts" else 1
        for kernel in layer.product(operator, copies, adapted=bool(beside)):
            yield kernel, repeats
        for kernel in adapter_lowering.kernels(layer, operator, beside):
            yield kernel, repeats
        if name.endswith(", up"):
            branches = _branches(model, name)
            size = copies * operator.outputs / branches
            for kernel in layer.activation(size, branches):
                yield kernel, repeats
    elif operator.kind == "output":
        yield from _output(operator, layer)


def _branches(model: Transformer, name: str) -> int:
    if model.experts and not name.startswith("feed-forward"):
        return model.experts.expert.branches
    return model.feed_forward.branches if model.feed_forward else 1


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
    dense = expert = 0.0
    for operator in padded_model(model, parallelism.pipeline).operators(parallelism.of_weights):
        count = operator.parameters * operator.resident_repeats
        if operator.kind == "experts":
            expert += count
        else:
            dense += count
    return dense, expert


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
