"""One phase of a service: a step, its time, and what binds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.solvers.evaluation import (
    COMPUTE_BOUND,
    MEMORY_BOUND,
    NETWORK_BOUND,
    OVERHEAD_BOUND,
    Answer,
    evaluate,
    quiet,
)
from mlsim.solvers.explain import Explanation, operator_rows
from mlsim.solvers.serving.phase import Phase

if TYPE_CHECKING:
    from pint import Quantity


class StepProfile(Answer):
    """One phase of a service: a step, its time, and what binds it.

    Any quantity of the step is to be had by name: `step["total_flops"]`.
    """

    noun, variable = "service", "serving"

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self._values: dict[str, Any] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        return self.phase.shape

    def value(self, name: str) -> Any:
        """Return a quantity in its base unit: a float or an array.

        Raises
        ------
        UnknownNameError
            If the vocabulary has no such name.
        UnreachableError
            If no equation leads to it.
        """
        term(name)
        known = self.phase.known
        if name in known:
            return known[name]
        if name not in self._values:
            # What computes and moves nothing, as sending does, has no intensity.
            with quiet():
                found = evaluate(self.phase, name)[name]
            # One number for one point, even where a sum came out of NumPy.
            single = not self.phase.shape and not getattr(found, "ndim", 0)
            self._values[name] = float(found) if single and type(found) is not list else found
        return self._values[name]

    @property
    def latency(self) -> Quantity[Any]:
        """Time of the step."""
        found: Quantity[Any] = self["latency"]
        return found

    @property
    def shares(self) -> dict[str, Any]:
        """Part of the time by what limits it; they add up to 1.

        The calibrated estimate also has what goes into starting operators.
        """
        measured = self.phase.service.calibrated
        if self.phase.service.estimate == "bound":
            memory = self.value("total_memory_time") > self.value("total_compute_time")
            return {MEMORY_BOUND: memory * 1.0, COMPUTE_BOUND: 1.0 - memory, NETWORK_BOUND: 0.0}
        return {
            MEMORY_BOUND: self.value("memory_bound_share"),
            COMPUTE_BOUND: self.value("compute_bound_share"),
            NETWORK_BOUND: self.value("network_share"),
            **({OVERHEAD_BOUND: self.value("overhead_share")} if measured else {}),
        }

    @property
    def bottleneck(self) -> Any:
        """What limits the step for the largest part of its time."""
        shares = self.shares
        if not self.phase.shape:
            return max(shares, key=lambda name: shares[name])
        import numpy as np

        stacked = np.stack([np.broadcast_to(each, self.phase.shape) for each in shares.values()])
        return np.array(list(shares))[stacked.argmax(axis=0)]

    @property
    def operators(self) -> list[dict[str, Any]]:
        """One record per operator, in base units, with what binds it.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("operators")
        return operator_rows(self.phase, self.phase.table)

    def explain(self, name: str = "latency") -> Explanation:
        """Show how a quantity of this step came to be."""
        self.one_point("explain()")
        self.value(name)
        return Explanation(self.phase, name)

    def __repr__(self) -> str:
        service = self.phase.service
        return f"<{self.phase.name} of {service.model.name} on {service.hardware_name}>"
