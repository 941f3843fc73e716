"""What is known of fine-tuning with adapters before any equation is used, each with its origin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mlsim.workloads.adapters import NF4, widest
from mlsim.workloads.training_lowering import (
    adapter_parameters_on_device,
    multiply_adds,
    padded_model,
    quantized_on_device,
    spared_multiply_adds,
)

if TYPE_CHECKING:
    from mlsim.solvers.question import Known
    from mlsim.solvers.training.job import Job
    from mlsim.workloads.adapters import LoRA

_NF4 = "NF4 with double quantization [Dettmers et al., 2023]"
# Of a frozen weight: one forward, and one for the gradient of its input.
_FROZEN_MULTIPLY_ADDS = 2.0


def add_adapters(known: Known, job: Job) -> None:
    """Add what is trained and what is frozen, in which formats, and how it is divided."""
    adapters = job.recipe.adapters
    if adapters is None:
        return
    _add_sizes(known, job, adapters)
    _add_work(known, job, adapters)
    _add_formats(known, job)
    words = partial(_layout, job)
    if job.parallelism.copies == 1 or job.parallelism.shard != "zero3":
        known.add(words, frozen_gathers=0.0, exchanged_frozen_parameters=0.0)


def _layout(job: Job) -> str:
    return f"layout: {job.parallelism}; each copy has all frozen weights"


def _words(job: Job, adapters: LoRA) -> str:
    return f"{adapters}, from the architecture of {job.model.name} ({job.model.source})"


def _add_sizes(known: Known, job: Job, adapters: LoRA) -> None:
    padded = padded_model(job.model, job.parallelism.pipeline)
    dense, expert = adapter_parameters_on_device(padded, adapters, job.parallelism)
    known.add(
        partial(_words, job, adapters),
        adapter_dense_parameters=dense,
        adapter_expert_parameters=expert,
        trained_parameters=float(adapters.parameters(job.model)),
    )


def _add_work(known: Known, job: Job, adapters: LoRA) -> None:
    tokens = int(job.sequence_tokens)
    frozen, own = multiply_adds(job.model, adapters, tokens)
    spared = spared_multiply_adds(job.model, adapters, tokens, causal="causal" in job.variant)
    known.add(
        partial(_words, job, adapters),
        frozen_multiply_adds=frozen,
        adapter_multiply_adds=own,
        spared_multiply_adds=spared,
    )
    once = "definition: one forward, and one backward, since frozen weights have no gradients"
    known.add(once, training_multiply_adds=_FROZEN_MULTIPLY_ADDS)


def _add_formats(known: Known, job: Job) -> None:
    if not job.recipe.quantized:
        same = "frozen weights are kept as they compute"
        known.add(same, frozen_bytes=known["bytes_per_parameter"], dequantized_at_once=0.0)
        return
    padded = padded_model(job.model, job.parallelism.pipeline)
    known.add(_NF4, **NF4)
    known.add(
        f"{_NF4}: the matrices of the layers, from the architecture of {job.model.name}",
        quantized_parameters=quantized_on_device(padded, job.parallelism),
        dequantized_at_once=widest(job.model, job.parallelism),
    )
