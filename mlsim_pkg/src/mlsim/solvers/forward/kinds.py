"""Other questions about a forward pass: at measured rates, and where a cache keeps activations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

from mlsim.equations import Equation, equations_of, roofline as cache_equations
from mlsim.equations.calibration import brought_bytes
from mlsim.errors import InvalidValueError
from mlsim.hardware.device_calibration import Calibration
from mlsim.hardware.kernel_constants import Loan
from mlsim.parameters import CALIBRATED, check
from mlsim.precision import PRECISIONS
from mlsim.software import Software, software as find_software
from mlsim.solvers import calibrated
from mlsim.solvers.calibrated import without_given
from mlsim.solvers.forward.configuration import (
    GIVABLE,
    MOST_KEPT,
    SOLVER,
    Configuration,
    with_lookups,
)
from mlsim.solvers.question import Known, recorded
from mlsim.workloads.model import NetworkOperators

# Those of a program whose host takes part, and whose kernels are not fused: all there are.
CALIBRATED_SOLVER = calibrated.network_equations(SOLVER, hosted=True, unfused=True)
# What a program adds to a pass of a network.
_OF_CALLS = ("host_launch_time", "call_time", "call_bandwidth")

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (
    *GIVABLE,
    *calibrated.OF_DEVICE,
    *("waves", "filled_share", "operator_time", "total_overhead_time", "overhead_share"),
)


@dataclass(frozen=True, eq=False)
class CalibratedConfiguration(Configuration):
    """A question whose rates are those that were measured on the device.

    Raises
    ------
    NotMeasuredError
        If there are no measurements of the device, unless all of it is given.
    """

    software: Software = field(default_factory=lambda: find_software(calibrated.DEFAULTS["solve"]))

    givable: ClassVar[tuple[str, ...]] = CALIBRATED_GIVABLE

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that answer the question."""
        tables = self.model.operators.table_parameters
        made_by = self.software
        own = calibrated.network_equations(SOLVER, hosted=made_by.hosted, unfused=made_by.unfused)
        return with_lookups(own) if tables else own

    @cached_property
    def calibrations(self) -> dict[str, Calibration]:
        """What the device was measured to reach; empty if all of it is given."""
        return calibrated.constants(self.device, (self.precision.name,), self.given)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which constants were measured on other devices."""
        lent = (loan for each in self.calibrations.values() for loan in each.loans)
        return tuple(without_given(lent, self.given))

    @property
    def operators(self) -> NetworkOperators:
        """All operators in order, with the width of each product."""
        return self._with_shares(self.model.operators.with_outputs)

    @property
    def table(self) -> NetworkOperators:
        """The operators to reckon with: equal ones in one row."""
        cache = self.model.operators.cache
        key = (self.software, self.device, self.precision, *self.given)
        if key not in cache:
            if len(cache) >= MOST_KEPT:
                cache.clear()
            table = self.model.operators.merged.with_outputs.with_tables
            cache[key] = self._with_shares(table)
        found: NetworkOperators = cache[key]
        return found

    def _with_shares(self, table: NetworkOperators) -> NetworkOperators:
        """Return a table with what each kind of operator reaches inside the program."""
        made_by, columns = self.software, {}
        for found in self.calibrations.values():
            columns["compute_fraction"] = [
                calibrated.in_program(
                    found.compute_fraction, made_by, each.kind, self.device, found.precision
                )
                for each in table
            ]
            columns["kernel_overhead"] = [
                calibrated.start_of(found.kernel_overhead, made_by, each.kind) for each in table
            ]
        if made_by.value("host_launch_time"):
            columns["launches"] = [made_by.kernels(each.kind) for each in table]
        kept = {name: values for name, values in columns.items() if name not in self.given}
        return NetworkOperators(table.operators, table.counted, {**table.extra, **kept})

    def _on_record(self) -> Known:
        known = super()._on_record()
        calibrated.add_tiling(known, self.device)
        calibrated.add_origins(known, self.device, self.calibrations, self.software)
        for found in self.calibrations.values():
            known.update(memory_fraction=calibrated.streamed(found.memory_fraction, self.software))
        self._add_program(known)
        return known

    def _add_program(self, known: Known) -> None:
        """Add what the program adds to its kernels."""
        made_by = self.software
        if made_by.unfused:
            calibrated.add_software(known, made_by, "activation_passes")
        if not made_by.hosted:
            return
        calibrated.add_software(known, made_by, *_OF_CALLS)
        if not made_by.value("host_launch_time"):
            known.add("starts of kernels hide behind the device", launch_count=0.0)
        inputs = float(self.model.operators.operators[0].activations_read)
        words = "the model's input, as numbers in 32 bits"
        known.add(words, call_bytes=float(brought_bytes(inputs, PRECISIONS["fp32"].bytes)))

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {**super().labels, "software": self.software.key}


CACHE = "last_level_cache"
KEPT = equations_of(cache_equations.ON_CHIP)


@lru_cache(maxsize=8)
def with_cache(equations: tuple[Equation, ...]) -> tuple[Equation, ...]:
    """Return the equations with those of the cache in place of what they yield too."""
    return tuple({each.yields: each for each in (*equations, *KEPT)}.values())


@dataclass(frozen=True, eq=False)
class OnChip(Configuration):
    """A question in which the last cache keeps the activations that fit.

    Raises
    ------
    InvalidValueError
        If no cache of the device is on record, and none is given.
    """

    givable: ClassVar[tuple[str, ...]] = (*GIVABLE, CACHE, "live_bytes")
    keeps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if CACHE not in self.given and self.device.last_level_figure is None:
            raise InvalidValueError(
                f"{self.device.name} has no cache on record that could keep activations. Give "
                f'one, such as {CACHE}="40 MiB", or leave out activations="on-chip".'
            )

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that answer the question."""
        return with_cache(super().equations)

    @property
    def operators(self) -> NetworkOperators:
        """All operators in order, with what is alive while each runs."""
        return super().operators.with_tables.with_live

    @property
    def table(self) -> NetworkOperators:
        """The operators to reckon with: equal ones differ in what is alive beside them."""
        return self.operators

    def _on_record(self) -> Known:
        known = super()._on_record()
        cache = self.device.last_level_figure
        if cache:
            known.add(recorded(self.device, cache), **{CACHE: cache.si})
        return known.columns(known.origins["activations_live"], *self.operators.extra)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        labels = super().labels
        return {**labels, "estimate": f"{labels['estimate']}, activations on chip"}


@dataclass(frozen=True, eq=False)
class CalibratedOnChip(OnChip, CalibratedConfiguration):
    """The same at the rates that were measured on the device."""

    givable: ClassVar[tuple[str, ...]] = (*CALIBRATED_GIVABLE, CACHE, "live_bytes")


def on_chip(estimate: str, activations: str) -> type[Configuration]:
    """Return the kind of question for an estimate whose activations may stay on chip.

    Raises
    ------
    InvalidValueError
        If there is no such estimate or place, or the estimate moves no activations.
    """
    check("estimate", estimate)
    check("activations", activations, "solve")
    if estimate == "bound":
        raise InvalidValueError(
            'the bound moves no activations between operators: leave out activations="on-chip".'
        )
    return CalibratedOnChip if estimate == CALIBRATED else OnChip
