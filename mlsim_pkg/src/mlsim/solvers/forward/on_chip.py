"""The question about a forward pass on a device whose last cache keeps activations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from mlsim.equations import Equation, equations_of, on_chip as cache_equations
from mlsim.errors import InvalidValueError
from mlsim.parameters import CALIBRATED, check
from mlsim.solvers.forward.calibrated_configuration import (
    CALIBRATED_GIVABLE,
    CalibratedConfiguration,
)
from mlsim.solvers.forward.configuration import GIVABLE, Configuration
from mlsim.solvers.question import Known, recorded
from mlsim.workloads.operators import NetworkOperators

CACHE = "last_level_cache"
KEPT = equations_of(cache_equations)


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
        super().__post_init__()
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
