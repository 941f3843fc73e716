"""Asking backwards: the input that gives a result, and how much each input matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnreachableError, need, unknown_name
from mlsim.quantities import term
from mlsim.solvers.forward.configuration import Configuration
from mlsim.units import text

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
SCAN = 2001  # points over the range, enough to see each operator change sides
STEPS = 80  # halvings of the bracket that was found: more than a float can tell


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
    scan = _scan(low, high, whole=vary == "batch_size")
    results = at(scan) - value
    if results[0] == 0:
        return float(scan[0])
    changes = (results[:-1] * results[1:] <= 0).nonzero()[0]
    if not len(changes):
        words = _not_reached(vary, target, value, scan, results + value)
        raise UnreachableError(f"{words} In {configuration.why}." if configuration.why else words)
    first = int(changes[0])
    return _bisect(
        at, value, float(scan[first]), float(scan[first + 1]), whole=vary == "batch_size"
    )


def _range(configuration: Configuration, vary: str) -> tuple[float, float]:
    """Return where to look: a thousandth to a thousand times what is known."""
    if vary == "batch_size":
        return 1.0, 1e6
    known = float(configuration.question.known[vary])
    return known / 1000, known * 1000


def _scan(low: float, high: float, *, whole: bool) -> Any:
    numpy = need("numpy", "a search", "arrays")
    if not 0 < low < high:
        raise InvalidValueError(f"between must be two positive values in order, not {low}, {high}.")
    points = numpy.geomspace(low, high, SCAN)
    return numpy.unique(numpy.round(points)) if whole else points


def _function(configuration: Configuration, vary: str, target: str) -> Callable[[Any], Any]:
    """Return the result as a function of an array of values of `vary`."""

    def at(values: Any) -> Any:
        if vary == "batch_size":
            changed = replace(configuration, batch_size=values)
        else:
            changed = replace(configuration, given={**configuration.given, vary: values})
        return changed.question.evaluate(target)[target]

    return at


def _bisect(
    at: Callable[[Any], Any], value: float, low: float, high: float, *, whole: bool
) -> float:
    """Halve the bracket until it is as narrow as numbers allow."""
    numpy = need("numpy", "a search", "arrays")

    def beyond(point: float) -> bool:
        return bool(at(numpy.array([point]))[0] > value)

    start = beyond(low)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if whole:
            middle = float(int(middle))
        if middle in (low, high):
            break
        if beyond(middle) == start:
            low = middle
        else:
            high = middle
    return high


def _not_reached(vary: str, target: str, value: float, scan: Any, results: Any) -> str:
    unit, base = term(target).unit, term(vary).unit
    return (
        f"{target} does not reach {text(value, unit)}: for {vary} from "
        f"{text(float(scan[0]), base)} to {text(float(scan[-1]), base)} it runs from "
        f"{text(float(results.min()), unit)} to {text(float(results.max()), unit)}."
    )


def sensitivity(configuration: Configuration, target: str) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table.

    `elasticity` is the per cent by which the result changes when the input
    changes by one per cent; it is taken one per cent to either side.
    """
    numpy = need("numpy", "a sensitivity", "arrays")
    library = need("pandas", "a sensitivity", "arrays")
    rows = []
    for name in VARIABLE:
        known = float(configuration.question.known[name])
        around = numpy.array([known * 0.99, known, known * 1.01])
        below, here, above = _function(configuration, name, target)(around)
        # Logarithms, so that the input's and the result's units don't matter.
        elasticity = numpy.log(above / below) / numpy.log(1.01 / 0.99) if here > 0 else 0.0
        rows.append(
            {
                "input": name,
                "value": known,
                "unit": term(name).unit,
                "elasticity": float(numpy.round(elasticity, 6)) + 0.0,
            }
        )
    table: pandas.DataFrame = library.DataFrame(rows)
    order = table["elasticity"].abs().sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)
