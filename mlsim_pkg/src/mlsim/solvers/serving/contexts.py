"""At which lengths of the cache decode is looked at, to know its mean over an output."""

from __future__ import annotations

from typing import Any

from mlsim.equations import serving as counts
from mlsim.errors import InvalidValueError
from mlsim.solvers.inputs import validate
from mlsim.solvers.serving.service import Service
from mlsim.workloads.language import Transformer

STEPS = ("first_token_time", "middle_token_time", "last_token_time")
WINDOWED_STEPS = (
    "first_token_time",
    "filling_token_time",
    "full_window_time",
    "later_token_time",
    "last_token_time",
)


def decode_contexts(service: Service) -> dict[str, Any]:
    """Return the tokens cached at each step that the mean is made of, by its name.

    The first step has the prompt in the cache, the last one all but the last token.
    Where layers have a window, its filling parts the output in two.
    """
    first = service.prompt_tokens
    # Prefill makes the first token; an output of one has no decode step of its own.
    last = counts.last_cached_tokens(first, service.output_tokens)
    window = service.model.window
    middle = counts.middle_cached_tokens
    if not window:
        return dict(zip(STEPS, (first, middle(first, last), last), strict=True))
    full = counts.full_cached_tokens(first, last, float(window))
    points = (first, middle(first, full), full, middle(full, last), last)
    return dict(zip(WINDOWED_STEPS, points, strict=True))


def check_context(model: Transformer, context: Any) -> Any:
    """Return the tokens cached as a float or an array of floats; none is allowed.

    Raises
    ------
    InvalidValueError
        If it is no whole number, or beyond the model's context.
    """
    cached = validate("cached_tokens", context, whole=True, zero=True)
    longest = float(cached.max() if getattr(cached, "ndim", 0) else cached)
    if longest >= model.context:
        raise InvalidValueError(
            f"{longest:,.0f} tokens cached and a new one are more than the context of "
            f"{model.name}, {model.context:,}."
        )
    return cached


def filling_share(service: Service) -> Any:
    """Return the part of the output that is written before a window is full."""
    contexts = decode_contexts(service)
    first, last = contexts["first_token_time"], contexts["last_token_time"]
    full = contexts["full_window_time"]
    return counts.filling_share(first, full, last)
