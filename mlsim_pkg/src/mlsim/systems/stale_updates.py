"""Gradient descent with gradients of old weights, where the answer is known exactly.

On a quadratic of curvature c, the gradient at weight x is c x. Devices that don't wait for
one another apply a gradient that belongs to the weight of d updates ago. How large a
learning rate may then be follows from the roots of a polynomial.
"""

from __future__ import annotations

import math

from mlsim.errors import InvalidValueError, check_whole


def stale_descent(rate: float, delay: int, steps: int, *, curvature: float = 1.0) -> list[float]:
    """Return the weight after each update, from 1, with gradients `delay` updates old.

    Before there is an old weight, the first one stands for it.

    Raises
    ------
    InvalidValueError
        If the rate or the curvature is not a positive number, or a count is not whole.

    >>> stale_descent(0.5, 0, 3)
    [1.0, 0.5, 0.25, 0.125]
    >>> stale_descent(0.5, 1, 4)
    [1.0, 0.5, 0.0, -0.25, -0.25]
    """
    _positive("rate", rate)
    _positive("curvature", curvature)
    check_whole("steps", steps, 0)
    check_whole("delay", delay, 0)
    weights = [1.0]
    for step in range(steps):
        old = weights[max(step - delay, 0)]
        weights.append(weights[-1] - rate * curvature * old)
    return weights


def largest_stable_rate(delay: int, *, curvature: float = 1.0) -> float:
    r"""Return the learning rate above which stale updates grow without end.

    The weights obey x(t+1) = x(t) - η c x(t-d). They shrink if all roots of
    z^(d+1) - z^d + η c lie inside the unit circle. The first root reaches the circle at
    η c = 2 sin(π / (4d + 2)), at the angle π / (2d + 1).

    Raises
    ------
    InvalidValueError
        If the delay is not a whole number from 0 up, or the curvature is not positive.

    >>> largest_stable_rate(0), round(largest_stable_rate(1), 6)
    (2.0, 1.0)
    """
    check_whole("delay", delay, 0)
    _positive("curvature", curvature)
    return 2 * math.sin(math.pi / (4 * delay + 2)) / curvature


def _positive(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
        raise InvalidValueError(f"{name} must be a positive number, not {value!r}.")
