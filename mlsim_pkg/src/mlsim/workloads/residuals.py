"""What is beside a plain residual: several streams, a path through few numbers, layer embeddings.

With AltUp (Gemma 3n) a token is several vectors, its streams, of which a layer works on the
first one only. Before the layer, a router weighs all streams to predict each of them; after
it, each is corrected by what the first one's prediction missed. Matrices make the further
streams of the embedding, and join them before the last norm. With LAuReL, the input of
attention also goes through two matrices and a few numbers between them, and is added.

The router's norm and matrix run twice in a layer, and a step reads them once. Tensor
parallelism divides the matrices at both ends by columns, and the path's two by the numbers
between them; what mixes streams is small, and each device does it (so do vLLM and SGLang).

With layer embeddings (Gemma 3n and the small Gemma 4) a token has, besides the usual embedding,
a row of a second table, with `layer_embedding` numbers for each layer. A step reads the rows of
its tokens, not the table. A matrix turns the usual embedding into as many numbers, which are
added to the row. In each layer one matrix brings the token to that width, the layer's part
of the row multiplies it, and another matrix brings it back. Tensor parallelism divides the
rows of the table; each device holds the matrices, which are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mlsim.equations import transformer as count
from mlsim.workloads.steps import Parallelism, StepOperator, matrix, sent

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer


def operators(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    """Yield the operators of residuals and layer embeddings for one device."""
    yield from _layer_embedding_operators(model, parallelism)
    yield from _stream_operators(model, parallelism)


def carried_elements(model: Transformer) -> int:
    """Return what each layer leaves alive of a token besides the vector that it works on."""
    return max(model.residual_streams - 1, 0) * model.hidden


def _stream_operators(model: Transformer, parallelism: Parallelism) -> Iterator[StepOperator]:
    layers, tensor = model.layers, parallelism.tensor
    if model.residual_rank:
        yield from (_repeated(each, layers) for each in _low_rank(model, tensor))
    if model.residual_streams:
        yield from _ends(model, tensor)
        yield from (_repeated(each, layers) for each in (*_predict(model), *_correct(model)))
    if tensor > 1:
        yield from _sent(model, tensor)


def _low_rank(model: Transformer, tensor: int) -> Iterator[StepOperator]:
    """Yield the path through few numbers: it is added to its input, and both to the token."""
    hidden, rank = model.hidden, -(-model.residual_rank // tensor)
    live = 4 * hidden + carried_elements(model)
    yield matrix("low-rank residual, in", hidden, rank, live=live)
    yield matrix("low-rank residual, out", rank, hidden, live=live)
    yield _norm("low-rank residual, norm", hidden, live)
    for name in ("low-rank residual, sum", "low-rank residual, added"):
        yield _elementwise(name, 3 * hidden, live)


def _ends(model: Transformer, tensor: int) -> Iterator[StepOperator]:
    """Yield what makes streams of the embedding, and what joins them."""
    hidden, streams = model.hidden, model.residual_streams
    others, live = streams - 1, 2 * streams * hidden
    if others:
        columns = -(-hidden // tensor)
        yield matrix("streams, made", hidden, others * columns, live=live)
        yield _repeated(matrix("streams, joined", hidden, columns, live=live), others)
        # At both ends each is brought to the length of the first stream, and all are put side
        # by side.
        yield replace(_elementwise("streams, length of the first", hidden + 1, live), repeats=2)
        yield replace(_elementwise("streams, length", 2 * hidden + 1, live), repeats=2 * others)
        yield replace(_elementwise("streams, stacked", 2 * streams * hidden, live), repeats=2)
        yield _elementwise("streams, mean", (streams + 1) * hidden, live)


def _sent(model: Transformer, tensor: int) -> Iterator[StepOperator]:
    """Yield what devices send: the path's sum in each layer, and the streams at both ends."""
    hidden = model.hidden
    if model.residual_rank:
        elements = float(count.all_reduce_elements(hidden, tensor))
        yield sent("all-reduce of low-rank residuals", elements, tensor, repeats=model.layers)
    if model.residual_streams > 1:
        others = (model.residual_streams - 1) * hidden
        yield sent("gather of streams", others * (tensor - 1) / tensor, tensor, repeats=2)


def _predict(model: Transformer) -> Iterator[StepOperator]:
    """Yield what predicts the streams before a layer."""
    hidden, streams = model.hidden, model.residual_streams
    weights = streams**2
    moved = 2 * streams * hidden + weights
    yield _norm("streams, norm", hidden, moved)
    yield from _weights(model, "predict", weights)
    yield replace(
        _elementwise("streams, predicted", moved, moved),
        token_multiply_adds=int(count.stream_multiply_adds(hidden, streams)),
    )


def _correct(model: Transformer) -> Iterator[StepOperator]:
    """Yield what corrects the predictions after a layer, and shows the first one to its end."""
    hidden, streams = model.hidden, model.residual_streams
    moved = (2 * streams + 1) * hidden + streams
    # What runs a second time in a layer holds and reads its numbers once.
    yield _norm("streams, norm", hidden, moved).holding(0)
    router, own = _weights(model, "correct", streams)
    yield from (router.holding(0), own)
    yield _elementwise("streams, missed", 3 * hidden, moved)
    yield _elementwise("streams, corrected", moved, moved)
    yield _elementwise("streams, scale", 2 * hidden, moved).holding(hidden)
    if model.layer_embedding:
        others = (streams - 1) * hidden
        yield _elementwise("layer embedding, to the streams", 2 * others + hidden, moved)


def _weights(model: Transformer, what: str, outputs: int) -> Iterator[StepOperator]:
    """Yield the router, and the matrix that makes so many weights of its scores."""
    hidden, streams = model.hidden, model.residual_streams
    live = streams * hidden + hidden + streams + outputs
    router = matrix("streams, router", hidden, streams, live=live)
    made = matrix(f"streams, weights to {what}", streams, outputs, live=live)
    yield from (replace(each, unquantised=True) for each in (router, made))


def _norm(name: str, hidden: int, live: int) -> StepOperator:
    return replace(_elementwise(name, 2 * hidden, live), kind="norm").holding(hidden)


def _elementwise(name: str, elements: int, live: int) -> StepOperator:
    return StepOperator(name=name, kind="elementwise", token_elements=elements, live_elements=live)


def _repeated(operator: StepOperator, times: int) -> StepOperator:
    return replace(operator, repeats=times, resident_repeats=float(times))


def table_parameters(model: Transformer) -> int:
    """Return the numbers in the table, of which a token looks up one row."""
    rows = model.layer_vocabulary or model.vocabulary
    return int(count.projection_parameters(rows, model.layers * model.layer_embedding))


def _layer_embedding_operators(
    model: Transformer, parallelism: Parallelism
) -> Iterator[StepOperator]:
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
    # It adds the row that was looked up.
    yield matrix("layer embeddings, from the token's", hidden, row, bias=width, adds=True)
    # Where a token is several vectors, what comes back is added to the others (residual_streams).
    back = width + (1 if model.residual_streams else 2) * hidden
    live = 2 * hidden + 2 * width
    into = matrix("layer embedding, to its width", hidden, width, elements=live - hidden, live=live)
    out = matrix("layer embedding, back", width, hidden, elements=back, live=live)
    yield from (_repeated(each, model.layers) for each in (into, out))
    if tensor > 1:
        elements = count.all_reduce_elements(row, tensor)
        yield sent("all-reduce of layer embeddings", elements, tensor)
