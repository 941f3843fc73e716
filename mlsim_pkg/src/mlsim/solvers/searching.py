"""Searches of numbers, whatever they stand for: where a result jumps, how much inputs matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need
from mlsim.quantities import term
from mlsim.units import text

if TYPE_CHECKING:
    import pandas

# Points over a range, enough to see each operator change sides; halvings of a bracket, more
# than a float can tell.
SCAN = 2001
STEPS = 80


def scan(low: float, high: float, *, whole: bool) -> Any:
    """Return points over a range, evenly spread on a logarithmic scale.

    Raises
    ------
    InvalidValueError
        If the limits are not two positive values in order.
    """
    numpy = need("numpy", "a search", "arrays")
    if not 0 < low < high:
        raise InvalidValueError(f"between must be two positive values in order, not {low}, {high}.")
    points = numpy.geomspace(low, high, SCAN)
    return numpy.unique(numpy.round(points)) if whole else points


def bisect(
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


def not_reached(vary: str, target: str, value: float, points: Any, results: Any) -> str:
    """Say that a result does not reach a value, and which it has."""
    unit, base = term(target).printed, term(vary).printed
    return (
        f"{target} does not reach {text(value, unit)}: for {vary} from "
        f"{text(float(points[0]), base)} to {text(float(points[-1]), base)} it runs from "
        f"{text(float(results.min()), unit)} to {text(float(results.max()), unit)}."
    )


def elasticities(
    inputs: Iterable[tuple[str, float]], function: Callable[[str], Callable[[Any], Any]]
) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table, the most first.

    `elasticity` is the per cent by which the result changes when the input changes by one
    per cent; it is taken one per cent to either side.
    """
    numpy = need("numpy", "a sensitivity", "arrays")
    library = need("pandas", "a sensitivity", "arrays")
    rows = []
    for name, known in inputs:
        around = numpy.array([known * 0.99, known, known * 1.01])
        below, here, above = function(name)(around)
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
