"""A question about a training run: its kernels, what is known of it, and the plan to an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlsim.equations import Plan
from mlsim.solvers.training.job import Job
from mlsim.solvers.training.kernel_table import kernel_table
from mlsim.solvers.training.known import known
from mlsim.solvers.training.origins import origin
from mlsim.solvers.training.plan import find_plan
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.operators import OperatorTable


@dataclass(frozen=True, eq=False)
class Run(Job):
    """A job with its kernels, and all that is known of it."""

    table: OperatorTable[Kernel] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", kernel_table(self))

    @property
    def shape(self) -> tuple[int, ...]:
        """One point."""
        return ()

    @cached_property
    def known(self) -> dict[str, Any]:
        """Everything known but the kernels' columns, in base units."""
        return known(self, self.table)

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        return origin(self, self.known, name)

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        names = frozenset((*self.known, *self.table.names))
        return find_plan(self.variant, self.algorithm, names, wanted)
