"""How long a sequence fits: the memory that is left, over what each token takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import WrongKindError

if TYPE_CHECKING:
    from mlsim.solvers.serving import Serving


def longest_context(serving: Serving) -> Any:
    """Return the longest sequence of which a batch of this size fits, in tokens.

    Whole blocks, at most the model's context; 0 if not even one block fits. A
    layer with a window takes no more once the window is full, so memory grows
    in two straight lines, the second one flatter.

    Raises
    ------
    WrongKindError
        If the model is an encoder, which keeps no cache.
    """
    service = serving.service
    model = service.model
    if not model.decoder:
        raise WrongKindError(f"{model.name} is an encoder: it keeps no cache that could grow.")
    left = serving._value("usable_memory") - serving._value("weight_memory")
    left = left - serving._value("activation_memory")
    left = left / serving.prefill.value("resident_batch")
    window = float(model.attention.window or model.context)
    elements = {
        full: sum(
            operator.cached_elements * operator.resident_repeats
            for operator in service.table
            if (operator.attention_window > window or not model.attention.window) == full
        )
        for full in (True, False)
    }
    # Bytes of a token in layers that see all, and in those with a window.
    size = service.shared["bytes_per_cached_element"]
    always, within = elements[True] * size, elements[False] * size
    tokens = left / (always + within)
    if elements[False]:
        later = (
            (left - within * window) / always if elements[True] else _endless(left, within, window)
        )
        # Memory is a concave function of length, so the longer answer is the true one.
        tokens = (tokens + later + abs(tokens - later)) / 2
    return _whole_blocks(tokens, service.block_tokens, float(model.context))


def _endless(left: Any, within: Any, window: float) -> Any:
    """All layers have a window: once it is full, a sequence may be of any length."""
    return (left >= within * window) * 1e18


def _whole_blocks(tokens: Any, block: float, context: float) -> Any:
    if not getattr(tokens, "ndim", 0):
        return int(max(min(tokens // block * block, context), 0))
    import numpy as np

    return np.clip(tokens // block * block, 0, context)
