"""A plan folded: what the same values decide is worked out before the loop.

Most quantities of a step are a constant plus a slope times the batch. Folding runs a plan
once on such straight lines, and leaves the rest of the equations to be run for each batch:
of ResNet-50's eleven equations on columns, five.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from mlsim.equations.graph import Plan

Run = Callable[[Mapping[str, Any]], dict[str, Any]]


class Line:
    """A value that grows in a straight line: a constant, and a slope; floats or arrays.

    It knows sums, and products with what does not change. Anything else is a TypeError,
    which tells that a result is no such line.
    """

    __slots__ = ("constant", "slope")
    # An array leaves the arithmetic to the line.
    __array_ufunc__ = None

    def __init__(self, constant: Any, slope: Any) -> None:
        self.constant, self.slope = constant, slope

    @property
    def ndim(self) -> int:
        """Dimensions of its values."""
        return max(getattr(self.constant, "ndim", 0), getattr(self.slope, "ndim", 0))

    def __add__(self, other: Any) -> Line:
        if isinstance(other, Line):
            return Line(self.constant + other.constant, self.slope + other.slope)
        return Line(self.constant + other, self.slope)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Line:
        if isinstance(other, Line):
            return Line(self.constant - other.constant, self.slope - other.slope)
        return Line(self.constant - other, self.slope)

    def __rsub__(self, other: Any) -> Line:
        return Line(other - self.constant, -self.slope)

    def __mul__(self, factor: Any) -> Line:
        if isinstance(factor, Line):
            return NotImplemented
        return Line(self.constant * factor, self.slope * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Line:
        if isinstance(divisor, Line):
            return NotImplemented
        return Line(self.constant / divisor, self.slope / divisor)

    def __rmatmul__(self, repeats: Any) -> Line:
        constant, slope = (
            repeats @ part if getattr(part, "ndim", 0) else part * float(repeats.sum())
            for part in (self.constant, self.slope)
        )
        return Line(constant, slope)

    def __bool__(self) -> bool:
        raise TypeError("a line has no truth")


_VARIES = object()


def fold(plan: Plan, known: Mapping[str, Any], changing: Collection[str]) -> Run:
    """Return a plan as a function of what changes alone; all else is in `known`.

    The function takes at least the values that change, floats or arrays, and returns
    what is wanted.

    >>> from mlsim.equations import EQUATIONS, plan
    >>> found = plan(EQUATIONS.values(), ["flops", "peak_flops"], ["compute_time"])
    >>> fold(found, {"peak_flops": 2e14}, ["flops"])({"flops": 1e14})
    {'compute_time': 0.5}
    """
    values = dict(known)
    # A line is a function of one value.
    alone = len(changing) == 1
    for name in changing:
        values[name] = Line(0.0, 1.0) if alone else _VARIES
    rest = []
    for step in plan.steps:
        inputs = [values[name] for name in step.inputs]
        varies = any(each is _VARIES for each in inputs)
        try:
            values[step.yields] = _VARIES if varies else step.function(*inputs)
        except TypeError:
            values[step.yields] = _VARIES
        if values[step.yields] is _VARIES:
            rest.append(step)
    made = {step.yields for step in rest}
    needed = {name for step in rest for name in step.inputs}.union(plan.wanted) - made
    space: dict[str, Any] = {f"do_{step.name}": step.function for step in rest}
    lines = [f"{name} = given[{name!r}]" for name in sorted({*changing})]
    for name in sorted(needed.difference(changing)):
        lines += _written(name, values[name], space, next(iter(changing), ""))
    last = {name: step for step in rest for name in (*step.inputs, step.yields)}
    for step in rest:
        lines.append(f"{step.yields} = do_{step.name}({', '.join(step.inputs)})")
        # A block's memory is given back while it is still in the cache.
        done = [name for name in last if last[name] is step and name in made]
        done = sorted(set(done).difference(plan.wanted))
        lines += [f"del {', '.join(done)}"] if done else []
    lines.append("return {" + ", ".join(f"{name!r}: {name}" for name in plan.wanted) + "}")
    exec(_compiled("def run(given):\n    " + "\n    ".join(lines)), space)  # noqa: S102
    run: Run = space["run"]
    return run


def _written(name: str, value: Any, space: dict[str, Any], changing: str) -> list[str]:
    """Return the lines that give a quantity its value, and put its constants in place."""
    if not isinstance(value, Line):
        space[f"at_{name}"] = value
        return [f"{name} = at_{name}"]
    space[f"slope_{name}"] = value.slope
    grows = f"{name} = slope_{name} * {changing}"
    nothing = value.constant == 0.0
    if nothing.all() if getattr(nothing, "ndim", 0) else nothing:
        return [grows]
    space[f"constant_{name}"] = value.constant
    # In place where the slope has the form of the result: a block is not written twice.
    if getattr(value.slope, "ndim", 0) >= getattr(value.constant, "ndim", 0):
        return [grows, f"{name} += constant_{name}"]
    return [f"{grows} + constant_{name}"]


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<folded plan>", "exec")
