"""The answer to a claim: the verdict, why, by how much, and what would make it true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from mlsim.equations.serving import half_output
from mlsim.errors import WrongKindError
from mlsim.solvers.answer import Report
from mlsim.solvers.claims import claims_report
from mlsim.solvers.claims.claim import MFU, SAMPLES, Claim
from mlsim.solvers.claims.judge import (
    IMPOSSIBLE,
    VERDICTS,
    AnyMachine,
    Finding,
    judge,
    memory,
)
from mlsim.solvers.claims.machine import Machine
from mlsim.solvers.claims.remedies import Remedies, remedies
from mlsim.solvers.explain import as_card
from mlsim.units import MEMORY
from mlsim.values import Origin, of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity
    from mlsim.values.plain import Plain


@dataclass(frozen=True, repr=False)
class Checked:
    """A claim and the verdict on it.

    Attributes
    ----------
    machine
        What is claimed of what: the model, devices, format, batch and lengths.
    findings
        One for each claimed figure, and one for the memory.
    tolerance
        By how much a plausible claim may pass the estimate.
    """

    machine: AnyMachine
    findings: tuple[Finding, ...]
    tolerance: float

    @property
    def worst(self) -> Finding:
        """The finding that decides: the least plausible, of those the furthest off.

        Weights that don't fit decide before any speed.
        """
        held, *_ = self.findings
        if not self.machine.fitting:
            return held
        return min(self.findings, key=lambda each: (VERDICTS.index(each.verdict), -each.excess))

    @property
    def verdict(self) -> str:
        """One of "impossible", "possible" and "plausible"."""
        return self.worst.verdict

    @property
    def impossible(self) -> bool:
        """Whether no layout and no program of this model can do what is claimed."""
        return self.verdict == IMPOSSIBLE

    @property
    def term(self) -> str:
        """What decides: a part of the bound, or the memory capacity."""
        return self.worst.term

    @property
    def excess(self) -> Plain:
        """The claimed speed over the bound, or the memory needed over that there is."""
        memory = self.worst.claim is None
        name = "memory needed over memory there is" if memory else "claim over bound"
        return cast("Plain", of_base(self.worst.excess, "1", partial(self._origin_of, name)))

    @property
    def bound(self) -> Quantity:
        """What decides: the bound of the claimed figure, or the memory there is."""
        claim = self.worst.claim
        name, unit = (
            ("memory", MEMORY) if claim is None else (claim.metric.words, claim.metric.unit)
        )
        return of_base(self.worst.bound, unit, partial(self._origin_of, f"bound on {name}"))

    @property
    def estimate(self) -> Quantity | None:
        """The estimate of the claimed figure; None where the bound already decides."""
        found = self.worst
        if found.claim is None or found.estimate is None:
            return None
        words = f"{found.estimated_by} estimate of {found.claim.metric.words}"
        brief = f"{words}, nothing sent ({claims_report.title(self)})"
        return of_base(found.estimate, found.claim.metric.unit, Origin(words, brief))

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        brief = f"{name} = {value.in_full} ({claims_report.title(self)})"
        return Origin(name, brief, lambda: f"{brief}\n\n{as_card(self.explain().to_dict())}")

    @property
    def over_estimate(self) -> float | None:
        """The claimed speed over the estimate; None where the bound already decides."""
        return self.worst.over

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The figures that are claimed."""
        return tuple(each.claim for each in self.findings if each.claim)

    @property
    def fitting(self) -> int:
        """Most sequences that fit in memory at the same time."""
        return self.machine.fitting

    @cached_property
    def remedies(self) -> Remedies:
        """What would make an impossible claim true by the bound; empty for any other."""
        if not self.impossible:
            return Remedies()
        return remedies(self.machine, self.claims, self.findings)

    def explain(self) -> Any:
        """Return how the deciding limit is computed, equation by equation, with sources."""
        finding, machine = self.worst, self.machine
        if finding.claim is None:
            if not isinstance(machine, Machine):
                return machine.profile(1).explain("weight_memory")
            half = int(half_output(machine.output))
            return machine.serving(finding.batch, output=half).explain("cache_memory")
        metric = finding.claim.metric
        if not isinstance(machine, Machine):
            return machine.profile(finding.batch).explain("throughput")
        serving = machine.serving(finding.batch)
        if metric.name == MFU:
            return serving.prefill.explain("total_flops")
        if metric.name == SAMPLES:
            return serving.explain("time_to_first_token")
        return serving.explain(metric.asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict for JSON: every value with its unit."""
        return claims_report.as_dict(self)

    def report(self) -> Report:
        """Return the verdict as a title and rows."""
        return claims_report.report(self)

    def __str__(self) -> str:
        return self.report().text()

    def __repr__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()


def check(machine: AnyMachine, claims: Sequence[Claim], tolerance: float) -> Checked:
    """Judge all figures of a claim, and the memory.

    Raises
    ------
    MlsimError
        If model, device, format or lengths don't go together.
    """
    findings = [memory(machine), *(judge(machine, each, tolerance) for each in claims)]
    if not findings[1:]:
        raise WrongKindError("a claim has at least one figure.")
    return Checked(machine, tuple(findings), tolerance)
