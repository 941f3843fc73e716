"""Asking a layer backwards: from which size on a result holds, and how much each input matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING, Any

from mlsim.errors import UnreachableError, need, unknown_name
from mlsim.quantities import term
from mlsim.solvers.gemm.layer import GIVABLE
from mlsim.solvers.inputs import validate
from mlsim.solvers.searching import elasticities
from mlsim.units import text

if TYPE_CHECKING:
    import pandas

    from mlsim.solvers.gemm.gemm import Gemm

# Sizes are tried up to this, one multiple of the block of scales after the other.
LARGEST = 65536

_SIDES = {
    "M": ("rows",),
    "N": ("outputs",),
    "K": ("inputs",),
    "size": ("rows", "outputs", "inputs"),
}
_OF_SIDES = {"rows": "M", "outputs": "N", "inputs": "K"}


def from_which(gemm: Gemm, vary: str, target: str, value: Any) -> int:
    """Return the least size from which a result stays at or above a value.

    Raises
    ------
    UnknownNameError
        If there is no such side or result.
    UnreachableError
        If the largest size that is tried is below the value.
    """
    numpy = need("numpy", "a search", "arrays")
    gemm.one_point("find()")
    if vary not in _SIDES:
        raise unknown_name("side to vary", vary, _SIDES)
    if target not in gemm.names:
        raise unknown_name("result of a gemm", target, gemm.names)
    wanted = float(validate(target, value))
    block = _block(gemm, _SIDES[vary])
    sizes = numpy.arange(block, LARGEST + 1, block, dtype=float)
    changed = replace(gemm.layer, **dict.fromkeys(_SIDES[vary], sizes))
    results = changed.question.evaluate(target)[target]
    below = numpy.flatnonzero(~(results >= wanted))
    if not below.size:
        return int(sizes[0])
    if below[-1] == sizes.size - 1:
        unit = term(target).printed
        raise UnreachableError(
            f"{target} is {text(float(results[-1]), unit)} at {vary} = {sizes[-1]:,.0f}, below "
            f"{text(wanted, unit)}; the most is {text(float(results.max()), unit)}, at "
            f"{vary} = {sizes[results.argmax()]:,.0f}."
        )
    return int(sizes[below[-1] + 1])


def _block(gemm: Gemm, sides: tuple[str, ...]) -> int:
    """Return what each size has to be a multiple of."""
    divides = gemm.layer.divides
    return lcm(*(divides.get(_OF_SIDES[side], 1) for side in sides))


def sensitivity(gemm: Gemm, target: str) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table; see `elasticities`."""
    layer, known = gemm.layer, gemm.question.known
    table = gemm.question.table.columns

    def function(name: str) -> Callable[[Any], Any]:
        def at(values: Any) -> Any:
            if name in _OF_QUANTITIES:
                changed = replace(layer, **{_OF_QUANTITIES[name]: values})
            else:
                changed = replace(layer, given={**layer.given, name: values})
            return changed.question.evaluate(target)[target]

        return at

    inputs = [(name, float(known[name])) for name in (*_OF_QUANTITIES, *GIVABLE) if name in known]
    inputs += [(name, table[name][0]) for name in GIVABLE if name in table]
    return elasticities([each for each in inputs if each[1] > 0], function)


_OF_QUANTITIES = {"layer_rows": "rows", "layer_outputs": "outputs", "layer_inputs": "inputs"}
