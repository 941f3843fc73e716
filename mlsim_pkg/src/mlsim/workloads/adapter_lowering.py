"""Fine-tuning with adapters, lowered: what their kernels do, and what frozen matrices leave out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlsim.equations import step
from mlsim.workloads.adapted import Adapted, adapted
from mlsim.workloads.adapters import LoRA
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.passes import Passes
from mlsim.workloads.steps import UNLIMITED, StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer

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


def keeps_output(model: Transformer, layer: Passes) -> bool:
    """Tell whether attention keeps its output itself, which elsewhere the next matrix keeps.

    Flash attention needs it on the way back; the next matrix does if it learns.
    """
    if layer.recipe.adapters is None or layer.recipe.standard:
        return False
    return not beside(model, layer, "attention output")


def kernels(layer: Passes, operator: StepOperator, found: tuple[Adapted, ...]) -> Iterator[Kernel]:
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
    into, out = met * rank * inputs, met * rank * outputs
    first, second = each.held * rank * inputs, each.held * rank * outputs
    narrow, wide = met * (inputs + rank), met * (rank + outputs)
    yield layer.forward(
        f"{name}, in",
        "product",
        token_multiply_adds=into,
        outputs=rank,
        parameters_streamed=first,
        token_elements=narrow,
    )
    yield layer.forward(
        f"{name}, out",
        "product",
        token_multiply_adds=out,
        outputs=outputs,
        parameters_streamed=second,
        token_elements=wide + met * outputs,
        saved_elements=met * rank,
    )
    yield layer.backward(
        f"{name}, out: input gradient",
        "product",
        token_multiply_adds=out,
        outputs=rank,
        parameters_streamed=second,
        token_elements=wide,
    )
    yield layer.backward(
        f"{name}, out: weight gradient",
        "product",
        token_multiply_adds=out,
        row_tokens=0.0,
        fixed_rows=rank,
        outputs=outputs,
        gradients_accumulated=second,
        token_elements=wide,
    )
    yield layer.backward(
        f"{name}, in: input gradient",
        "product",
        token_multiply_adds=into,
        outputs=inputs,
        parameters_streamed=first,
        token_elements=narrow + met * inputs,
    )
    yield layer.backward(
        f"{name}, in: weight gradient",
        "product",
        token_multiply_adds=into,
        row_tokens=0.0,
        fixed_rows=inputs,
        outputs=rank,
        gradients_accumulated=first,
        token_elements=narrow,
    )


def parameters_on_device(
    model: Transformer, adapters: LoRA, parallelism: Parallelism
) -> tuple[float, float]:
    """Return the adapters' parameters on one device of the fullest stage: dense, and of experts.

    `model` has as many layers in each stage as a full one.
    """
    dense = expert = 0.0
    for each in adapted(model, adapters, parallelism.of_weights):
        count = each.size * each.held * each.layers / parallelism.pipeline
        if each.operator.startswith("experts"):
            expert += count
        else:
            dense += count
    return dense, expert


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
    unclipped = step.unclipped_tokens(window, 0, tokens)
    return float(step.attention_pairs(unclipped, 0, tokens, window))
