"""A question answered: its plan of equations, run on its operators and all that is known."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from mlsim.equations import Plan
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.units import quantity, scaled
from mlsim.workloads.operators import OperatorTable

ARRAYS = importlib.util.find_spec("numpy") is not None

# What binds for most of the time, as answers name it; the last but one is of the calibrated
# estimate, whose operators take time to start.
MEMORY_BOUND, COMPUTE_BOUND, NETWORK_BOUND = "Memory Bound", "Compute Bound", "Network Bound"
OVERHEAD_BOUND, DOES_NOT_FIT = "Overhead Bound", "Does Not Fit"


class Question(Protocol):
    """What can be evaluated: known quantities, operators, and equations."""

    @property
    def known(self) -> Mapping[str, Any]:
        """Known quantities but the operators' columns, in base units."""

    @property
    def table(self) -> OperatorTable[Any]:
        """The operators to reckon with."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""


def evaluate(
    configuration: Question,
    *wanted: str,
    table: OperatorTable[Any] | None = None,
) -> dict[str, Any]:
    """Compute quantities of a configuration.

    Returns floats for one point and arrays of the configuration's shape for
    many. A quantity of the operators has one value per row of the table (a
    first axis, or a list where NumPy is not installed).
    """
    table = configuration.table if table is None else table
    steps, known = configuration.plan(*wanted), configuration.known
    if configuration.shape:
        from mlsim.solvers.blocks import evaluate_blocks

        return evaluate_blocks(steps, known, table.columns_2d, configuration.shape)
    if ARRAYS:
        # No lists, so the plan's own function will do.
        values = {**known, **table.arrays}
        values.update(steps.compute(values))
    else:
        values = steps.run({**known, **table.columns})
    return {name: values[name] for name in wanted}


def quiet() -> AbstractContextManager[object]:
    """Let NumPy divide zero by zero without a word."""
    if not ARRAYS:
        return nullcontext()
    import numpy as np

    return np.errstate(divide="ignore", invalid="ignore")


class Answer:
    """What all answers do alike: a quantity with its unit by its name, a point by its index.

    An answer has a `value` for each name; what one point of many is, it says itself.
    """

    # What it is called in messages.
    noun = "answer"
    # What code that asks for it is likely to call it.
    variable = "answer"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        raise NotImplementedError

    def value(self, name: str) -> Any:
        """Return a quantity in its base unit: a float or an array."""
        raise NotImplementedError

    def _point(self, pick: Callable[[Any], float]) -> Any:
        """Return the answer at one point; `pick` takes its value out of an array."""
        raise InvalidValueError(f"this {self.noun} has no index.")

    def __getitem__(self, name: str | int | tuple[int, ...]) -> Any:
        """Return a quantity by name, with its unit, or the answer at one point by its index."""
        if not isinstance(name, str):
            return self._point(self._pick(name))
        value, unit = self.value(name), term(name).unit
        many = isinstance(value, list) or bool(getattr(value, "ndim", 0))
        return quantity(value, unit) if many else scaled(float(value), unit)

    def _pick(self, index: int | tuple[int, ...]) -> Callable[[Any], float]:
        """Return what takes one point out of an array.

        Raises
        ------
        InvalidValueError
            If this is one point, or the index is none of it.
        """
        shape = self.shape
        if not shape:
            raise InvalidValueError(f"this {self.noun} is one point; only an array has an index.")
        indices = index if isinstance(index, tuple) else (index,)
        whole = all(hasattr(i, "__index__") and not isinstance(i, bool) for i in indices)
        if len(indices) != len(shape) or not whole:
            raise InvalidValueError(
                f"an index of this {self.noun} is {len(shape)} whole number(s), not {index!r}."
            )
        import numpy as np

        return lambda value: float(np.broadcast_to(value, shape)[index])

    def one_point(self, what: str) -> None:
        """Refuse to go on with many points where only one makes sense.

        Raises
        ------
        InvalidValueError
            Naming a way to pick one.
        """
        if self.shape:
            raise InvalidValueError(
                f"this {self.noun} holds many points; pick one, such as {self.variable}[0].{what}."
            )
