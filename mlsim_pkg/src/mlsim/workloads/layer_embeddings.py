"""An embedding for each layer: a row of one wide table, a part of which enters each layer.

Besides the usual embedding a token has a row of a second table, with `layer_embedding`
numbers for each layer (Gemma 3n and the small Gemma 4). A step reads the rows of its
tokens, not the table. A matrix turns the usual embedding into as many numbers, which are
added to the row. In each layer one matrix brings the token to that width, the layer's part
of the row multiplies it, and another matrix brings it back. Tensor parallelism divides the
rows of the table; each device holds the matrices, which are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mlsim.equations import transformer as count
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.projections import matrix
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer


def table_parameters(model: Transformer) -> int:
    """Return the numbers in the table, of which a token looks up one row."""
    rows = model.layer_vocabulary or model.vocabulary
    return int(count.projection_parameters(rows, model.layers * model.layer_embedding))


def parameters(model: Transformer) -> int:
    """Return the learned numbers that layer embeddings add, but for a norm in each layer."""
    width = model.layer_embedding
    if not width:
        return 0
    own = int(count.projection_parameters(model.hidden, width))
    # The matrix from the usual embedding has a norm, of one layer's width.
    return table_parameters(model) + 3 * model.layers * own + width


def operators(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    """Yield the operators for one device: the look-up, its matrix, and two for each layer."""
    hidden, width, tensor = model.hidden, model.layer_embedding, parallelism.tensor
    if not width:
        return
    row = model.layers * width
    yield StepOperator(
        name="layer embeddings",
        kind="embedding",
        parameters=table_parameters(model) // tensor,
        token_elements=2 * row,
        live_elements=hidden + row,
        unquantised=True,
    )
    yield matrix(
        "layer embeddings, from the token's",
        hidden,
        row,
        bias=width,
        # It adds the row that was looked up.
        elements=hidden + 2 * row,
        live=hidden + 2 * row,
    )
    # Where a token is several vectors, what comes back is added to the others (residual_streams).
    back = width + (1 if model.residual_streams else 2) * hidden
    for name, inputs, outputs, elements in (
        ("layer embedding, to its width", hidden, width, hidden + 2 * width),
        ("layer embedding, back", width, hidden, back),
    ):
        each = matrix(name, inputs, outputs, elements=elements, live=2 * hidden + 2 * width)
        yield replace(each, repeats=model.layers, resident_repeats=float(model.layers))
    if tensor > 1:
        yield StepOperator(
            name="all-reduce of layer embeddings",
            kind="network",
            link_elements=count.all_reduce_elements(row, tensor),
            link_group=tensor,
            resident_repeats=0.0,
        )
