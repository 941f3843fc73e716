"""Asking backwards: the input that gives a result, and how much each input matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import UnreachableError, unknown_name
from mlsim.solvers.forward.configuration import Configuration
from mlsim.solvers.searching import bisect, elasticities, not_reached, scan

if TYPE_CHECKING:
    import pandas

# What may be varied: the batch, and all that is known of device and format.
VARIABLE = (
    "batch_size",
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "bytes_per_parameter",
    "bytes_per_element",
)


def find(
    configuration: Configuration,
    vary: str,
    target: str,
    value: float,
    between: tuple[float, float] | None,
) -> float:
    """Return the smallest value of `vary` at which `target` reaches `value`.

    A result may jump (a share does, when an operator changes sides): then it is
    the place of the jump. A batch is a whole number: the first that reaches it.

    Raises
    ------
    UnknownNameError
        If `vary` or `target` can't be varied or computed.
    UnreachableError
        If the result does not reach the value in the range; says which range
        of results it covers.
    """
    if vary not in VARIABLE:
        raise unknown_name("quantity that can be varied", vary, VARIABLE)
    allowed = configuration.givable
    if target not in allowed:
        raise unknown_name("result", target, allowed)
    low, high = between or _range(configuration, vary)
    at = _function(configuration, vary, target)
    points = scan(low, high, whole=vary == "batch_size")
    results = at(points) - value
    if results[0] == 0:
        return float(points[0])
    changes = (results[:-1] * results[1:] <= 0).nonzero()[0]
    if not len(changes):
        words = not_reached(vary, target, value, points, results + value)
        raise UnreachableError(f"{words} In {configuration.why}." if configuration.why else words)
    first = int(changes[0])
    low, high = float(points[first]), float(points[first + 1])
    return bisect(at, value, low, high, whole=vary == "batch_size")


def _range(configuration: Configuration, vary: str) -> tuple[float, float]:
    """Return where to look: a thousandth to a thousand times what is known."""
    if vary == "batch_size":
        return 1.0, 1e6
    known = float(configuration.question.known[vary])
    return known / 1000, known * 1000


def _function(configuration: Configuration, vary: str, target: str) -> Callable[[Any], Any]:
    """Return the result as a function of an array of values of `vary`."""

    def at(values: Any) -> Any:
        if vary == "batch_size":
            changed = replace(configuration, batch_size=values)
        else:
            changed = replace(configuration, given={**configuration.given, vary: values})
        return changed.question.evaluate(target)[target]

    return at


def sensitivity(configuration: Configuration, target: str) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table; see `elasticities`."""
    known = configuration.question.known
    return elasticities(
        ((name, float(known[name])) for name in VARIABLE),
        lambda name: _function(configuration, name, target),
    )
