"""How long a sequence fits: the memory that is left, over what each token takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsim.equations import serving_counts as counts
from mlsim.equations.functions import maximum, total
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
    batch = value("device_batch")
    element, resident = value("bytes_per_element"), value("resident_batch")
    left = counts.context_memory(
        value("usable_memory"), value("weight_memory"), element, value("logits"), batch
    )
    columns = service.table.columns
    states = total(columns["sequence_state"], columns["resident_repeats"])
    if states:
        left = counts.memory_beside_states(left, states, resident)
    # Either a chunk is full, or each token but the last also takes its activations.
    each = counts.step_token_memory(element, value("live_elements"), batch)
    beside_chunk = counts.full_chunk_sequence_memory(left, value("chunk_memory"), resident)
    growing = counts.growing_sequence_memory(left, each, resident)
    tokens = maximum(
        _tokens(service, value, beside_chunk, 0.0),
        _tokens(service, value, growing, counts.token_activations(each, resident)),
    )
    return _whole_blocks(tokens, service.block_tokens, float(model.context))


def _tokens(service: Service, value: Callable[[str], Any], memory: Any, activations: Any) -> Any:
    """Return the length at which a sequence takes all of its memory.

    A layer with a window takes no more once the window is full, so memory grows
    in two straight lines, the second one flatter; `activations` is what each token
    takes beside the cache.
    """
    window = float(service.model.window or service.model.context)
    within, always = (_cached_elements(service, window, windowed=each) for each in (True, False))
    size = value("bytes_per_cached_element")
    windowed = counts.layers_cache(size, within)
    lasting = counts.growing_token_memory(counts.layers_cache(size, always), activations)
    tokens = counts.short_sequence_length(memory, windowed, lasting)
    if not within:
        return tokens
    if always or getattr(activations, "ndim", 0) or activations > 0:
        later = counts.long_sequence_length(memory, windowed, window, lasting)
    else:
        limit = float(service.model.context)
        later = counts.windowed_sequence_length(memory, windowed, window, limit)
    # Memory is a concave function of length, so the longer answer is the true one.
    return maximum(tokens, later)


def _cached_elements(service: Service, window: float, *, windowed: bool) -> Any:
    """Return elements of cache for each token in the layers with a window, or in the others."""
    rows = [
        each
        for each in service.table
        if windowed == (bool(service.model.window) and each.cache_window <= window)
    ]
    cached = [each.cached_elements for each in rows]
    return total(cached, [each.resident_repeats for each in rows])


def _whole_blocks(tokens: Any, block: float, context: float) -> Any:
    whole = counts.fitting_tokens(tokens, block)
    if not getattr(tokens, "ndim", 0):
        return int(max(min(whole, context), 0))
    import numpy as np

    return np.clip(whole, 0, context)
