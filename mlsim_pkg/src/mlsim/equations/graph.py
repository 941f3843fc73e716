"""From what is known to what is asked: which equations, in which order.

Names do the wiring. A plan is made once for a pair (known, wanted) and reused.
Whoever gives an intermediate quantity overrides the equations behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mlsim.equations.registry import Equation
from mlsim.errors import UnreachableError


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
