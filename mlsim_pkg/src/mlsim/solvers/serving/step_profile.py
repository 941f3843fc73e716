"""One phase of a service: a step, its time, and what binds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    MEMORY_BOUND,
    NETWORK_BOUND,
    OVERHEAD_BOUND,
    Answer,
    Report,
    plain,
)
from mlsim.solvers.causes import (
    DECIDING,
    LABELS,
    Causes,
    cause_of,
    shares_of,
    with_causes,
)
from mlsim.solvers.explain import operator_rows
from mlsim.solvers.question import Question
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.steps import SERVING_GIVABLE, step_question
from mlsim.units import text
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.hardware.kernel_constants import Loan


# Of equal parts, the first is the label.
_ORDER = (MEMORY_BOUND, COMPUTE_BOUND, NETWORK_BOUND, OVERHEAD_BOUND)


class StepProfile(Answer):
    """One phase of a service: a step, its time, and what binds it.

    What has no attribute, `show(step, name)` gives by name. Memory is that of the service,
    which knows whether it fits.
    """

    noun, variable = "step", "serving"
    reported = ("latency", "total_flops", "total_bytes", "network_intensity")

    def __init__(self, service: Service, name: str, new_tokens: Any, cached_tokens: Any) -> None:
        super().__init__()
        self.service = service
        self.name = name
        self.new_tokens, self.cached_tokens = new_tokens, cached_tokens

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        return step_question(self.service, self.name, self.new_tokens, self.cached_tokens)

    def _asked(self, name: str) -> tuple[Question, str]:
        term(name)  # refuses what is none; whatever the equations reach will do
        return self.question, name

    latency = result("Time of the step.")
    total_flops = result("Work of the step.")
    total_bytes = result("Bytes that the step moves to and from main memory.")
    weight_bytes = result("Bytes of weights that the step reads.")
    total_compute_time = result("Time of the arithmetic alone, at its rate.")
    total_memory_time = result("Time of the bytes alone, at their rate.")
    total_network_time = result("Time of the exchanges between devices.")
    network_intensity = result("Work of the step over its bytes.")
    achieved_flops = result("Work over latency.")
    memory_bound_share = count("Part of the latency in operators that memory limits.")
    compute_bound_share = count("Part of the latency in operators that arithmetic limits.")
    network_share = count("Part of the latency in exchanges between devices.")
    expert_share = count("Part of the experts' weights that the step reads.")

    @property
    def shares(self) -> dict[str, Any]:
        """Part of the time by what limits it; they add up to 1.

        The calibrated estimate also has overhead: tiles that don't fill the device, starts
        of operators, and waiting for the host.
        """
        if self.service.calibrated:
            return {label: self._caused.value(DECIDING[label]) for label in _ORDER}
        if self.service.estimate == "bound":
            memory = self.value("total_memory_time") > self.value("total_compute_time")
            return {MEMORY_BOUND: memory * 1.0, COMPUTE_BOUND: 1.0 - memory, NETWORK_BOUND: 0.0}
        return {
            MEMORY_BOUND: self.value("memory_bound_share"),
            COMPUTE_BOUND: self.value("compute_bound_share"),
            NETWORK_BOUND: self.value("network_share"),
        }

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants of a calibrated answer that were measured on other devices, and on which."""
        return self.service.loans

    @cached_property
    def _caused(self) -> Question:
        """The question, with what the time goes into."""
        service = self.service
        return with_causes(self.question, calibrated=service.calibrated, alone=False)

    @property
    def causes(self) -> dict[str, Any]:
        """Part of the time by cause; the parts add up to 1.

        "arithmetic", "memory" and "network"; of the calibrated estimate also "tiles" that
        don't fill the device, "starts" of operators, and waiting for the "host".
        """
        if self.service.estimate == "bound":
            shares = self.shares
            held = ("arithmetic", "memory", "network")
            return {cause: shares[LABELS[cause]] for cause in held}
        return shares_of(self._caused, calibrated=self.service.calibrated)

    @property
    def cause(self) -> str:
        """The largest cause under the label of `bottleneck`, such as "tiles".

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("cause")
        return cause_of(self.causes, self.bottleneck)

    def explain(self, name: str = "") -> Any:
        """Show how a result came to be; "bottleneck" shows why it has its label.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        if name != "bottleneck":
            return super().explain(name)
        self.one_point("explain()")
        roofline = ""
        if self.service.calibrated:
            given = {n: v for n, v in self.service.given.items() if n in SERVING_GIVABLE}
            asked = replace(self.service, estimate="roofline", given=given)
            other = StepProfile(asked, self.name, self.new_tokens, self.cached_tokens)
            roofline = other.bottleneck
        return Causes(self.about, self.bottleneck, self.cause, self.causes, roofline)

    @property
    def bottleneck(self) -> Any:
        """What limits the step for the largest part of its time."""
        shares = self.shares
        if not self.shape:
            return max(shares, key=lambda name: shares[name])
        import numpy as np

        stacked = np.stack([np.broadcast_to(each, self.shape) for each in shares.values()])
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
        return operator_rows(self.question, self.question.table)

    @property
    def picked(self) -> str:
        """How code picks one point of many."""
        return f"serving[0].{self.name}"

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        service = self.service
        points = f"{self.shape} points"
        if not self.shape:
            tokens = f"{self.new_tokens:,.0f} new and {self.cached_tokens:,.0f} cached tokens"
            points = f"{service.batch_size:,.0f} x {tokens}"
        return (
            f"{self.name} of {service.model.name} on {service.hardware_name}, {points}, "
            f"{service.formats.name}, {service.estimate}"
        )

    def _inputs(self) -> Mapping[str, Any]:
        service = self.service
        return {
            "phase": self.name,
            "model": service.model.name,
            "hardware": service.hardware_name,
            "estimate": service.estimate,
            "batch_size": {"value": plain(service.batch_size), "unit": "sample"},
            "new_tokens": {"value": plain(self.new_tokens), "unit": "token/sample"},
            "cached_tokens": {"value": plain(self.cached_tokens), "unit": "token/sample"},
            "bottleneck": plain(self.bottleneck),
            "causes": {cause: plain(share) for cause, share in self.causes.items()},
        }

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        self.one_point("report()")
        shares = (f"{name} {share:.0%}" for name, share in self.shares.items() if share >= 0.005)
        sizes = {"work": "total_flops", "traffic": "total_bytes"}
        rows = [("latency", text(self.value("latency"), "s")), ("limits", ", ".join(shares))]
        rows += [(words, term(n).text(self.value(n))) for words, n in sizes.items()]
        return Report(self.about, rows)
