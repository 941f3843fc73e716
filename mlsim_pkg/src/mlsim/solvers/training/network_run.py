"""A training run of a network of layers: every device takes samples through all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from mlsim.hardware.device_calibration import Calibration
from mlsim.software import Software, software as find_software
from mlsim.solvers.calibrated import in_program
from mlsim.solvers.question import Question
from mlsim.solvers.training.job import Job
from mlsim.solvers.training.network_known import known_of
from mlsim.solvers.training.plan import network_equations_for
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.training import step_table
from mlsim.workloads.model import Network, Operator, OperatorTable

# Numbers that each optimizer keeps of a parameter beside its weight.
OPTIMIZERS: Mapping[str, int] = {"sgd": 0, "momentum": 1, "adam": 2}

_graph = lru_cache(maxsize=64)(graph_of)


@dataclass(frozen=True, eq=False)
class NetworkRun(Job):
    """A job of a network with its kernels, and all that is known of it.

    `samples` is None where only a step is asked for.
    """

    optimizer: str = "momentum"
    samples: float | None = None
    table: OperatorTable[Operator] = field(init=False)

    def __post_init__(self) -> None:
        table = step_table(self.graph)
        object.__setattr__(self, "table", self._with_columns(table))

    @property
    def network(self) -> Network:
        """The network that is trained."""
        found: Network = self.model  # type: ignore[assignment]
        return found

    @property
    def moments(self) -> int:
        """Numbers that the optimizer keeps of each parameter beside its weight."""
        return OPTIMIZERS[self.optimizer]

    @property
    def graph(self) -> Graph:
        """Its layers."""
        return _graph(self.network)

    def _with_columns(self, table: OperatorTable[Operator]) -> OperatorTable[Operator]:
        """Return the table with what attention reaches, where that was measured apart."""
        found = self.achieved
        if found is None or "compute_fraction" in self.given:
            return table
        precision = self.precision.computes_as
        reached = tuple(
            in_program(_reached(found, row.kind), self.made_by, row.kind, self.device, precision)
            for row in table
        )
        return OperatorTable(
            table.operators, table.counted, {**table.extra, "compute_fraction": reached}
        )

    @property
    def made_by(self) -> Software:
        """The class of software; of other estimates than the calibrated one, none adds."""
        return self.software or find_software("kernels")

    @cached_property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        flags = {
            "calibrated": self.calibrated,
            "copied": self.precision.bits < 32,
            "bound": self.bound,
        }
        return frozenset(name for name, holds in flags.items() if holds)

    @cached_property
    def question(self) -> Question:
        """What is asked of this run: all that is known, its kernels, and the equations."""
        return Question(
            known_of(self),
            network_equations_for(self.variant, self.algorithm),
            lambda: self.labels,
            table=self.table,
        )


def _reached(found: Calibration, kind: str) -> float:
    return found.attention_fraction if kind == "attention" else found.compute_fraction
