"""The few functions that equations may use beside arithmetic.

Each looks at its arguments and does the right thing for floats, NumPy arrays,
Pint quantities and SymPy symbols, so that one equation body serves them all.
No library is imported here: an argument of its type shows it is there already.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

# What equations take and give: a float, a NumPy array, a Pint quantity, a SymPy symbol, or
# a list with one value for each operator. No one type has their arithmetic in common.
Value: TypeAlias = Any

# What stands beside an array in nearly all calls.
_BESIDE = frozenset(("ndarray", "float", "int", "float64"))


def _kind(*values: Value) -> str:
    """Tell how to compute: "symbol", "quantity", "array" or "float"."""
    # Nearly all calls are these, and sweeps make many of them.
    first = values[0].__class__.__name__
    if first == "ndarray" and values[-1].__class__.__name__ in _BESIDE:
        return "array"
    if first == "float":
        last = values[-1].__class__.__name__
        if last == "float":
            return "float"
        if last == "ndarray":
            return "array"
    kinds = {type(value).__module__.partition(".")[0] for value in values}
    for library, kind in (("sympy", "symbol"), ("pint", "quantity")):
        if library in kinds:
            return kind
    # A function of ours applied to symbols is made in this package.
    if any(hasattr(value, "free_symbols") for value in values):
        return "symbol"
    # A Quantity's class is made by its registry; it still has units.
    if any(hasattr(value, "_REGISTRY") for value in values):
        return "quantity"
    return "array" if any(hasattr(value, "__array__") for value in values) else "float"


def _symbolic(name: str, *values: Value) -> Value:
    from mlsim.equations.symbols import function

    return function(name)(*values)


def maximum(a: Value, b: Value) -> Value:
    """Return the larger of two values, element by element.

    >>> maximum(2.0, 3.0)
    3.0
    """
    # Sweeps and single solves alike make many of these calls.
    if a.__class__ is float and (b.__class__ is float or b.__class__ is int):
        return a if a >= b else b
    kind = _kind(a, b)
    if kind == "float":
        return a if a >= b else b
    if kind == "symbol":
        return _symbolic("max", a, b)
    if kind == "quantity":
        return _by_quantity(maximum, a, b)
    return sys.modules["numpy"].maximum(a, b)


def minimum(a: Value, b: Value) -> Value:
    """Return the smaller of two values, element by element.

    >>> minimum(2.0, 3.0)
    2.0
    """
    if a.__class__ is float and (b.__class__ is float or b.__class__ is int):
        return a if a <= b else b
    kind = _kind(a, b)
    if kind == "float":
        return a if a <= b else b
    if kind == "symbol":
        return _symbolic("min", a, b)
    if kind == "quantity":
        return _by_quantity(minimum, a, b)
    return sys.modules["numpy"].minimum(a, b)


def exceeds(a: Value, b: Value) -> Value:
    """Return 1 where a > b and 0 elsewhere (an Iverson bracket).

    >>> exceeds(3.0, 2.0), exceeds(2.0, 2.0)
    (1.0, 0.0)
    """
    kind = _kind(a, b)
    if kind == "float":
        return 1.0 if a > b else 0.0
    if kind == "symbol":
        return _symbolic("exceeds", a, b)
    if kind == "quantity":
        return exceeds(a.magnitude, b.to(a.units).magnitude)
    return sys.modules["numpy"].greater(a, b)


def floor(a: Value) -> Value:
    """Round down to a whole number.

    >>> floor(3.7)
    3
    """
    kind = "float" if a.__class__ is float else _kind(a)
    if kind == "float":
        return math.floor(a)
    if kind == "symbol":
        return _symbolic("floor", a)
    if kind == "quantity":
        return a._REGISTRY.Quantity(floor(a.magnitude), a.units)
    return sys.modules["numpy"].floor(a)


def ceil(a: Value) -> Value:
    """Round up to a whole number.

    >>> ceil(3.2), ceil(4.0)
    (4.0, 4.0)
    """
    kind = "float" if a.__class__ is float else _kind(a)
    if kind == "float":
        return float(math.ceil(a))
    if kind == "symbol":
        return _symbolic("ceil", a)
    if kind == "quantity":
        return a._REGISTRY.Quantity(ceil(a.magnitude), a.units)
    return sys.modules["numpy"].ceil(a)


def square_root(a: Value) -> Value:
    """Return the square root.

    >>> square_root(9.0)
    3.0
    """
    kind = _kind(a)
    if kind == "symbol":
        return _symbolic("square_root", a)
    # A power keeps the units of a quantity, and takes floats and arrays alike.
    return a**0.5


def log2(a: Value) -> Value:
    """Return the logarithm to base 2.

    >>> log2(8.0)
    3.0
    """
    kind = _kind(a)
    if kind == "float":
        return math.log2(a)
    if kind == "symbol":
        return _symbolic("log2", a)
    return sys.modules["numpy"].log2(a)


def decay(a: Value) -> Value:
    """Return e to the power of minus a: the chance of none where a are expected.

    >>> decay(0.0)
    1.0
    """
    kind = _kind(a)
    if kind == "float":
        return math.exp(-a)
    if kind == "symbol":
        return _symbolic("decay", a)
    return sys.modules["numpy"].exp(-a)


def geometric(ratio: Value, terms: Value) -> Value:
    """Return the sum of the first powers of a ratio: 1 + r + r^2 + ..., so many terms.

    In closed form (1 - r^n) / (1 - r), which for a ratio of 1 is n.

    >>> geometric(0.5, 3), geometric(1.0, 3)
    (1.75, 3.0)
    """
    kind = _kind(ratio, terms)
    if kind == "symbol":
        return (1 - ratio**terms) / (1 - ratio)
    if kind == "quantity":
        return geometric(*(getattr(each, "magnitude", each) for each in (ratio, terms)))
    if kind == "float":
        return float(terms) if ratio == 1 else (1 - ratio**terms) / (1 - ratio)
    numpy = sys.modules["numpy"]
    one = numpy.equal(ratio, 1)
    below = numpy.where(one, 0.0, ratio)
    return numpy.where(one, terms, (1 - below**terms) / (1 - below))


def greatest(count: Value) -> Value:
    """Return the mean of the greatest of so many numbers from a standard normal distribution.

    By the rule of Chen and Tyler (1999): 6 % too high for two numbers, within 2 % from three on.

    >>> round(greatest(32.0), 2)
    2.06
    """
    kind = _kind(count)
    if kind == "symbol":
        return _symbolic("greatest", count)
    if kind == "array":
        return sys.modules["numpy"].vectorize(greatest, otypes=[float])(count)
    from statistics import NormalDist

    return NormalDist().inv_cdf(0.5264 ** (1 / count))


def missed(all_there: Value, marked: Value, drawn: Value) -> Value:
    """Return the chance that draws without putting back take none of the marked ones.

    Of n there, m marked and k drawn: one binomial over another, (n - m, k) over (n, k).

    >>> missed(4.0, 1.0, 2)
    0.5
    >>> missed(4.0, 3.0, 2)
    0.0
    """
    kind = _kind(all_there, marked, drawn)
    if kind == "symbol":
        return _symbolic("missed", all_there, marked, drawn)
    if kind == "array":
        return sys.modules["numpy"].vectorize(missed, otypes=[float])(all_there, marked, drawn)
    share = 1.0
    for taken in range(int(drawn)):
        share *= max(all_there - marked - taken, 0.0) / (all_there - taken)
    return share


def total(values: Value, repeats: Value) -> Value:
    """Add up over operators, each as often as it stands in the network.

    A list or an array holds one operator per row (its first axis); a single
    value is one operator.

    >>> total([1.0, 2.0], [3, 1])
    5.0
    >>> total(2.0, 3)
    6.0
    """
    if isinstance(repeats, (list, tuple)):
        if not isinstance(values, (list, tuple)):
            values = [values] * len(repeats)
        return math.fsum(value * count for value, count in zip(values, repeats, strict=True))
    kind = _kind(values, repeats)
    if kind == "symbol":
        return _symbolic("total", values, repeats)
    if kind == "quantity":
        units = getattr(values, "units", 1)
        counts = getattr(repeats, "magnitude", repeats)
        return total(getattr(values, "magnitude", values), counts) * units
    if kind == "array" and getattr(repeats, "ndim", False):
        if getattr(values, "ndim", 0) < repeats.ndim:
            # No axis of operators: the same value holds for each of them.
            return values * float(repeats.sum())
        # A matrix product is one pass over the rows; multiply-and-sum is two.
        return (repeats if repeats.ndim == 1 else repeats.ravel()) @ values
    return values * repeats


def _by_quantity(function: Callable[[Value, Value], Value], a: Value, b: Value) -> Value:
    """Apply a function of two values to two quantities of one dimension."""
    return a._REGISTRY.Quantity(function(a.magnitude, b.to(a.units).magnitude), a.units)
