"""A language model, lowered to the operators of one step on one device of a layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlsim.equations import transformer
from mlsim.workloads import layer_embeddings, residual_streams
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.projections import matrix
from mlsim.workloads.recurrent import Recurrent
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.language import Mixer, Transformer

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
    yield from layer_embeddings.operators(model, parallelism)
    yield from residual_streams.operators(model, parallelism)
    carried = residual_streams.carried_elements(model)
    for operator, repeats in _layers(model, parallelism):
        # What a layer reads of an earlier one's cache lies in memory once.
        held = 0.0 if operator.shared_cache else repeats / parallelism.pipeline
        live = operator.live_elements + carried
        yield replace(operator, repeats=repeats, resident_repeats=held, live_elements=live)
    if model.pooler:
        yield replace(
            matrix("pooler", hidden, hidden, bias=hidden, elements=2 * hidden),
            token_limit=1,
            unquantised=True,
        )
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
                yield local.renamed("attention in a window"), windowed
    for layers, feed in model.feeds:
        for operator in feed.operators(model.hidden, parallelism):
            unquantised = operator.kind == "router" or (
                model.quantised == "experts" and operator.kind != "experts"
            )
            yield replace(operator, unquantised=unquantised), layers


def _output(model: Transformer, parallelism: Parallelism) -> StepOperator:
    """Return the output layer: it works on the last token, and may be the embedding."""
    words = -(-model.vocabulary // parallelism.tensor)
    output = matrix(
        "output layer",
        model.hidden,
        words,
        bias=model.output_bias * words,
        elements=model.hidden + words,
    )
    # On the last stage of a pipeline it is there, and the embedding is not.
    shared = model.tied_embeddings and parallelism.pipeline == 1
    return replace(
        output,
        kind="output",
        parameters=model.output_bias * words if shared else output.parameters,
        resident_repeats=1.0,
        token_limit=1,
        unquantised=True,
    )


def _collectives(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    """Yield what is sent between devices."""
    hidden, tensor = model.hidden, parallelism.tensor
    if tensor > 1:
        yield StepOperator(
            name="all-reduce",
            kind="network",
            link_elements=transformer.all_reduce_elements(hidden, tensor),
            link_group=tensor,
            # After each mixer and each network, and after the embedding.
            repeats=sum(each for each, _ in (*model.mixers, *model.feeds)) + 1,
            resident_repeats=0.0,
        )
        if model.output_layer:
            yield StepOperator(
                name="gather of the output",
                kind="network",
                link_elements=model.vocabulary * (tensor - 1) / tensor,
                link_group=tensor,
                token_limit=1,
                resident_repeats=0.0,
            )
    if model.experts and parallelism.expert > tensor:
        # A token goes to each device elsewhere that has some of its experts, and comes back.
        away = model.experts.exchanged_elements(hidden, parallelism)
        yield StepOperator(
            name="tokens to their experts and back",
            kind="network",
            link_elements=2 * away,
            link_group=parallelism.expert,
            repeats=model.expert_layers,
            resident_repeats=0.0,
        )
    if parallelism.pipeline > 1:
        yield StepOperator(
            name="stage to stage",
            kind="network",
            link_elements=float(hidden),
            link_group=2,
            repeats=parallelism.pipeline - 1,
            resident_repeats=0.0,
        )


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
