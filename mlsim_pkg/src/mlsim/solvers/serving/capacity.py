"""How long a sequence fits: the memory that is left, over what each token takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsim.equations import serving as counts, switches
from mlsim.equations.functions import maximum, minimum, total
from mlsim.equations.serving import cache_tokens
from mlsim.errors import WrongKindError
from mlsim.solvers.serving.service import Service


def longest_context(service: Service, value: Callable[[str], Any]) -> Any:
    """Return the longest sequence of which a batch of this size fits, in tokens.

    `value` gives quantities of its prefill.
    At most the model's context; 0 if not even one block fits. All tokens but those of
    the output are a prompt, whose activations grow until a chunk is full.

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
    if service.switches.prefix_count is not None:
        left = switches.memory_beside_prefixes(left, value("cache_saved"))
    each = counts.step_token_memory(element, value("live_elements"), batch)

    def beside(activations: Any) -> Any:
        """Return the length in whole blocks beside activations that don't grow with it."""
        memory = counts.full_chunk_sequence_memory(left, activations, resident)
        return _in_blocks(service, _tokens(service, value, memory, 0.0))

    def growing(output: Any) -> Any:
        """Return the length where all tokens but the output's also take activations."""
        memory = counts.growing_sequence_memory(left, each, output, resident)
        apiece = counts.token_activations(each, resident)
        longest = _tokens(service, value, memory, apiece)
        whole = _in_blocks(service, longest)
        # The next block may have room for its cache, but not for all of its activations.
        cache = _cache(service, value, cache_tokens(whole, 1.0, service.block_tokens))
        room = counts.full_chunk_sequence_memory(left, 0.0, resident)
        return maximum(whole, counts.tokens_beside_cache(room, cache, apiece, output))

    # Either a chunk is full, or activations grow; the prompt has one token at least.
    shorter = minimum(growing(service.output_tokens), beside(each))
    tokens = maximum(beside(value("chunk_memory")), maximum(growing(1.0), shorter))
    return _within(tokens, float(model.context))


def _in_blocks(service: Service, tokens: Any) -> Any:
    """Return the tokens of whole blocks; the block in which a context ends is not filled."""
    whole, context = counts.fitting_tokens(tokens, service.block_tokens), service.model.context
    if not getattr(tokens, "ndim", 0):
        return float(context) if tokens >= context else whole
    import numpy as np

    return np.where(tokens >= context, float(context), whole)


def _tokens(service: Service, value: Callable[[str], Any], memory: Any, activations: Any) -> Any:
    """Return the length at which a sequence takes all of its memory.

    A layer with a window takes no more once the window is full, so memory grows
    in two straight lines, the second one flatter; `activations` is what each token
    takes beside the cache.
    """
    window = float(service.model.window or service.model.context)
    within, always = (_cached_elements(service, window, windowed=each) for each in (True, False))
    size = value("bytes_per_cached_element")
    windowed = _kept(service, counts.layers_cache(size, within))
    layers = _kept(service, counts.layers_cache(size, always), drafted=True)
    lasting = counts.growing_token_memory(layers, activations)
    tokens = counts.short_sequence_length(memory, windowed, lasting)
    if not within:
        return tokens
    grows = always or service.switches.draft is not None
    if grows or getattr(activations, "ndim", 0) or activations > 0:
        later = counts.long_sequence_length(memory, windowed, window, lasting)
    else:
        limit = float(service.model.context)
        later = counts.windowed_sequence_length(memory, windowed, window, limit)
    # Memory is a concave function of length, so the longer answer is the true one.
    return maximum(tokens, later)


def _cache(service: Service, value: Callable[[str], Any], tokens: Any) -> Any:
    """Return the cache of a sequence of so many tokens, in bytes."""
    window = float(service.model.window or service.model.context)
    size = value("bytes_per_cached_element")
    windowed, lasting = (
        _kept(
            service,
            counts.layers_cache(size, _cached_elements(service, window, windowed=each)),
            drafted=not each,
        )
        for each in (True, False)
    )
    return counts.length_cache(windowed, window, lasting, tokens)


def _kept(service: Service, layers: Any, *, drafted: bool = False) -> Any:
    """Return what of the cache of one token stays on a device, with that of a draft."""
    on = service.switches
    if on.offload is None and on.draft is None:
        return layers
    offloaded = on.offload.cache if on.offload else 0.0
    return switches.layers_cache_on_device(
        layers, offloaded, _of_draft(service) if drafted else 0.0
    )


def _of_draft(service: Service) -> Any:
    """Return the cache of one token that a draft keeps, as if it had no windows."""
    draft = service.switches.draft
    if draft is None:
        return 0.0
    elements = total(
        draft.table.columns["cached_elements"], draft.table.columns["resident_repeats"]
    )
    return counts.layers_cache(draft.base["bytes_per_cached_element"], elements)


def _cached_elements(service: Service, window: float, *, windowed: bool) -> Any:
    """Return elements of cache for each token in the layers with a window, or in the others."""
    rows = [
        each
        for each in service.table
        if windowed == (bool(service.model.window) and each.cache_window <= window)
    ]
    cached = [each.cached_elements for each in rows]
    return total(cached, [each.resident_repeats for each in rows])


def _within(tokens: Any, context: float) -> Any:
    if not getattr(tokens, "ndim", 0):
        return int(max(min(tokens, context), 0))
    import numpy as np

    return np.clip(tokens, 0, context)
