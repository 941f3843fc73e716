"""How long a sequence fits: the memory that is left, over what each token takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsim.errors import WrongKindError
from mlsim.solvers.serving.service import Service


def longest_context(service: Service, value: Callable[[str], Any]) -> Any:
    """Return the longest sequence of which a batch of this size fits, in tokens.

    `value` gives quantities of its prefill.
    Whole blocks, at most the model's context; 0 if not even one block fits. All
    but the last token may be a prompt, whose activations grow until a chunk is full.

    Raises
    ------
    WrongKindError
        If the model is an encoder, which keeps no cache.
    """
    model = service.model
    if not model.decoder:
        raise WrongKindError(f"{model.name} is an encoder: it keeps no cache that could grow.")
    working, resident = value("device_batch"), value("resident_batch")
    left = value("usable_memory") - value("weight_memory")
    left = left - value("bytes_per_element") * value("logits") * working
    # Either a chunk is full, or each token but the last also takes its activations.
    each = value("bytes_per_element") * value("live_elements") * working
    with_chunk = _tokens(service, value, (left - value("chunk_memory")) / resident, 0.0)
    tokens = _larger(with_chunk, _tokens(service, value, (left + each) / resident, each / resident))
    return _whole_blocks(tokens, service.block_tokens, float(model.context))


def _tokens(service: Service, value: Callable[[str], Any], left: Any, more: Any) -> Any:
    """Return the length at which a sequence takes what is left.

    A layer with a window takes no more once the window is full, so memory grows
    in two straight lines, the second one flatter; `more` is what each token takes
    beside the cache.
    """
    model = service.model
    window = float(model.attention.window or model.context)
    per_token = {True: 0.0, False: 0.0}
    for operator in service.table:
        windowed = bool(model.attention.window) and operator.attention_window <= window
        per_token[windowed] += operator.cached_elements * operator.resident_repeats
    size = value("bytes_per_cached_element")
    within, always = per_token[True] * size, per_token[False] * size + more
    tokens = left / (always + within)
    if not per_token[True]:
        return tokens
    rest = left - within * window
    # All layers may have a window: once it is full, a sequence may be of any length.
    grows = per_token[False] or getattr(more, "ndim", 0) or more > 0
    later = rest / always if grows else (rest >= 0) * 1e18
    # Memory is a concave function of length, so the longer answer is the true one.
    return _larger(tokens, later)


def _larger(one: Any, other: Any) -> Any:
    return (one + other + abs(one - other)) / 2


def _whole_blocks(tokens: Any, block: float, context: float) -> Any:
    if not getattr(tokens, "ndim", 0):
        return int(max(min(tokens // block * block, context), 0))
    import numpy as np

    return np.clip(tokens // block * block, 0, context)
