"""From what is known to what is asked: which equations, in which order.

Names do the wiring. A plan is made once for a pair (known, wanted) and reused.
Whoever gives an intermediate quantity overrides the equations behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any

from mlsim.equations.registry import Equation
from mlsim.errors import UnreachableError

# A plan with all but a few values put in: from those to what is wanted.
Folded = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Plan:
    """Equations in an order in which each finds its inputs ready."""

    wanted: tuple[str, ...]
    steps: tuple[Equation, ...]

    def run(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate all steps; return everything known and everything wanted.

        Values may be floats, NumPy arrays or quantities. A list holds one value
        per operator and is mapped row by row, so that the plan also runs where
        NumPy is not installed.
        """
        if not any(type(value) is list for value in known.values()):
            return {**known, **self.compute(known)}
        values = dict(known)
        for step in self.steps:
            values[step.yields] = _row_by_row(step, [values[name] for name in step.inputs])
        return values

    @cached_property
    def compute(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """The steps as one Python function from known values to wanted ones.

        Values are floats, arrays or quantities, but not lists.

        A sweep runs a plan thousands of times on small blocks; looking every
        name up in a dictionary costs as much there as the arithmetic.
        """
        made = {step.yields for step in self.steps}
        used = {name for step in self.steps for name in step.inputs} - made
        kept = made & set(self.wanted)
        last = {name: step for step in self.steps for name in (*step.inputs, step.yields)}
        lines = [f"{name} = known[{name!r}]" for name in sorted(used)]
        for step in self.steps:
            lines.append(f"{step.yields} = do_{step.name}({', '.join(step.inputs)})")
            # A block's memory is given back while it is still in the cache.
            done = sorted(name for name in made - kept if last[name] is step)
            lines += [f"del {', '.join(done)}"] if done else []
        lines += ["return {" + ", ".join(f"{name!r}: {name}" for name in sorted(kept)) + "}"]
        space: dict[str, Any] = {f"do_{step.name}": step.function for step in self.steps}
        exec("def run(known):\n    " + "\n    ".join(lines), space)  # noqa: S102
        run: Callable[[Mapping[str, Any]], dict[str, Any]] = space["run"]
        return run

    def split(self, changing: Iterable[str]) -> tuple[Plan, Plan]:
        """Part the steps into those that don't depend on `changing`, and the rest."""
        moving = set(changing)
        fixed, varied = [], []
        for step in self.steps:
            if moving.isdisjoint(step.inputs):
                fixed.append(step)
            else:
                varied.append(step)
                moving.add(step.yields)
        ready = tuple(step.yields for step in fixed)
        return Plan(ready, tuple(fixed)), Plan(self.wanted, tuple(varied))


def _row_by_row(step: Equation, inputs: list[Any]) -> Any:
    if step.sums or not any(type(value) is list for value in inputs):
        return step.function(*inputs)
    rows = max(len(value) for value in inputs if type(value) is list)
    columns = [value if type(value) is list else [value] * rows for value in inputs]
    return [step.function(*row) for row in zip(*columns, strict=True)]


def plan(equations: Iterable[Equation], known: Iterable[str], wanted: Iterable[str]) -> Plan:
    """Find the equations that lead from `known` to `wanted`.

    Parameters
    ----------
    equations
        The candidates, at most one for each quantity.
    known, wanted
        Names of the vocabulary.

    Raises
    ------
    UnreachableError
        If something that is needed is neither known nor computed by an
        equation; the message says what is missing.

    >>> from mlsim.equations import EQUATIONS
    >>> found = plan(EQUATIONS.values(), ["peak_flops", "memory_bandwidth"], ["ridge_point"])
    >>> [step.name for step in found.steps]
    ['ridge_point']
    """
    return _plan(tuple(equations), frozenset(known), tuple(wanted))


@lru_cache(maxsize=512)
def _plan(equations: tuple[Equation, ...], known: frozenset[str], wanted: tuple[str, ...]) -> Plan:
    by_result = {equation.yields: equation for equation in equations}
    ready = set(known)
    steps: list[Equation] = []
    missing: list[str] = []

    def reach(name: str, path: tuple[str, ...]) -> None:
        if name in ready or name in missing:
            return
        step = by_result.get(name)
        if step is None or name in path:
            missing.append(name)
            return
        for needed in step.inputs:
            reach(needed, (*path, name))
        steps.append(step)
        ready.add(name)

    for name in wanted:
        reach(name, ())
    if missing:
        raise UnreachableError(
            f"{', '.join(wanted)} can't be computed: nothing gives "
            f"{', '.join(missing)}. Give it, or what leads to it."
        )
    return Plan(wanted, tuple(steps))


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


def fold(
    plan: Plan, known: Mapping[str, Any], changing: Collection[str], *, written: bool = False
) -> Folded:
    """Return a plan as a function of what changes alone; all else is in `known`.

    Most quantities of a step are a constant plus a slope times the batch. A plan is run
    once on such straight lines, and what is none of them is left to be run each time: of
    eleven equations on the columns of a network, five.

    The function takes at least the values that change, floats or arrays, and returns
    what is wanted. Many steps are written into one another, few only if asked to be
    `written`: they are faster, and take longer to make.

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
    space: dict[str, Any] = {}
    lines = [f"{name} = given[{name!r}]" for name in sorted({*changing})]
    together = written or len(rest) > _FEW
    rest_lines = _rest(tuple(rest), plan.wanted, values, space) if together else None
    # What is fixed is written where it is used, unless it is asked for.
    direct = set(plan.wanted) if rest_lines is not None else needed
    lines += [
        line
        for name in sorted(needed.difference(changing))
        if name in direct or isinstance(values[name], Line)
        for line in _written(name, values[name], space, next(iter(changing), ""))
    ]
    lines += rest_lines if rest_lines is not None else _called(rest, space)
    lines.append("return {" + ", ".join(f"{name!r}: {name}" for name in plan.wanted) + "}")
    exec(_compiled("def run(given):\n    " + "\n    ".join(lines)), space)  # noqa: S102
    run: Folded = space["run"]
    return run


# So many steps share too little: they are called one by one, if nobody asks otherwise.
_FEW = 6


def _rest(
    rest: tuple[Equation, ...],
    wanted: tuple[str, ...],
    values: Mapping[str, Any],
    space: dict[str, Any],
) -> list[str] | None:
    """Return the lines of the steps that are run each time, written into one another.

    None where one of them is written otherwise than equations are.
    """
    from mlsim.equations.inline import inlined, library

    inputs = {name for step in rest for name in step.inputs}
    known = {name: value for name, value in values.items() if name in inputs}
    fixed = frozenset(
        name
        for name, value in known.items()
        if not isinstance(value, Line) and value is not _VARIES
    )
    code = inlined(rest, fixed, wanted)
    if code is None:
        return None
    space |= library({name: known[name] for name in fixed})
    space |= {f"at_{name}": space["number"](known[name]) for name in fixed}
    for name, each in code.before:
        space[name] = eval(each, space)  # noqa: S307
    return list(code.lines)


def _called(rest: Sequence[Equation], space: dict[str, Any]) -> list[str]:
    """Return the lines that call steps one by one."""
    space |= {f"do_{step.name}": step.function for step in rest}
    return [f"{step.yields} = do_{step.name}({', '.join(step.inputs)})" for step in rest]


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
