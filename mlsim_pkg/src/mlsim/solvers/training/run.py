"""A training run: a job with its kernels, and the question that it comes down to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from mlsim.solvers.question import Question
from mlsim.solvers.training.job import Job
from mlsim.solvers.training.kernel_table import kernel_table
from mlsim.solvers.training.known import known_of
from mlsim.solvers.training.plan import equations_for
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.model import OperatorTable


@dataclass(frozen=True, eq=False)
class Run(Job):
    """A job with its kernels, and all that is known of it."""

    table: OperatorTable[Kernel] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", kernel_table(self))

    @cached_property
    def question(self) -> Question:
        """What is asked of this run: all that is known, its kernels, and the equations."""
        return Question(
            known_of(self, self.table),
            equations_for(self.variant, self.algorithm),
            lambda: self.labels,
            table=self.table,
        )
