"""A question answered: its plan of equations, run on its operators and all that is known."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from mlsim.equations import Plan
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
