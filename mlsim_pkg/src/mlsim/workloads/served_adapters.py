"""Adapters that are served beside a model: what a step does for them, on one device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mlsim.equations import transformer as count
from mlsim.workloads.adapted import Adapted, adapted
from mlsim.workloads.adapters import LoRA
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer

KIND = "adapter"


@lru_cache(maxsize=256)
def adapter_operators(
    model: Transformer, adapters: LoRA, many: int, parallelism: Parallelism
) -> tuple[tuple[StepOperator, float], ...]:
    """Return the operators of so many adapters, and parameters of one adapter in each.

    An adapter is two products: from a matrix's inputs to its rank, and to the outputs, which
    are added to those of the matrix.

    Raises
    ------
    InvalidValueError
        As `mlsim.workloads.adapters.adapted`.

    >>> from mlsim import LoRA, Models
    >>> rows = adapter_operators(Models.Llama3_8B, LoRA(rank=16, targets="q_proj"), 10,
    ...                          Parallelism())
    >>> [(each.name, int(size)) for each, size in rows]
    [('adapter of q_proj, in', 65536), ('adapter of q_proj, out', 65536)]
    """
    found = adapted(model, adapters, parallelism.of_weights)
    return tuple(row for each in found for row in _products(each, many, parallelism))


def _products(
    each: Adapted, many: int, parallelism: Parallelism
) -> tuple[tuple[StepOperator, float], ...]:
    held = {"many": many, "layers": each.layers, "pipeline": parallelism.pipeline}
    inputs, rank, outputs = each.inputs, each.rank, each.outputs
    name = f"adapter of {each.target}"
    # What goes out is added to what the matrix has written.
    return (
        _product(f"{name}, in", (inputs, rank), elements=inputs + rank, **held),
        _product(f"{name}, out", (rank, outputs), elements=rank + 2 * outputs, **held),
    )


def _product(
    name: str, sizes: tuple[int, int], *, elements: int, many: int, layers: int, pipeline: int
) -> tuple[StepOperator, float]:
    size, (_, outputs) = int(count.projection_parameters(*sizes)), sizes
    made = StepOperator(
        name=name,
        kind=KIND,
        token_multiply_adds=int(count.token_multiply_adds(size)),
        outputs=outputs,
        parameters=many * size,
        token_elements=elements,
        repeats=layers,
        resident_repeats=layers / pipeline,
        unquantised=True,
    )
    return made, float(size)
