"""The question about a forward pass, at the rates that were measured on the device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mlsim.equations import Equation
from mlsim.hardware.device_calibration import Calibration
from mlsim.solvers import calibrated
from mlsim.solvers.forward.configuration import GIVABLE, SOLVER, Configuration, with_lookups
from mlsim.solvers.question import Known
from mlsim.workloads.operators import NetworkOperators

CALIBRATED_SOLVER = calibrated.network_equations(SOLVER)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (
    *GIVABLE,
    *calibrated.OF_DEVICE,
    "waves",
    "filled_share",
    "operator_time",
    "total_overhead_time",
    "overhead_share",
)


@dataclass(frozen=True, eq=False)
class CalibratedConfiguration(Configuration):
    """A question whose rates are those that were measured on the device.

    Raises
    ------
    NotMeasuredError
        If there are no measurements of the device, unless all of it is given.
    """

    givable: ClassVar[tuple[str, ...]] = CALIBRATED_GIVABLE

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.calibrations

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that answer the question."""
        tables = self.model.operators.table_parameters
        return with_lookups(CALIBRATED_SOLVER) if tables else CALIBRATED_SOLVER

    @cached_property
    def calibrations(self) -> dict[str, Calibration]:
        """What the device was measured to reach; empty if all of it is given."""
        return calibrated.constants(self.device, (self.precision.name,), self.given)

    @property
    def operators(self) -> NetworkOperators:
        """All operators in order, with the width of each product."""
        return self.model.operators.with_outputs

    @property
    def table(self) -> NetworkOperators:
        """The operators to reckon with: equal ones in one row."""
        return self.model.operators.merged.with_outputs.with_tables

    def _on_record(self) -> Known:
        known = super()._on_record()
        calibrated.add_tiling(known, self.device)
        calibrated.add_origins(known, self.device, self.calibrations)
        for found in self.calibrations.values():
            known.update({name: getattr(found, name) for name in calibrated.OF_DEVICE})
        return known
