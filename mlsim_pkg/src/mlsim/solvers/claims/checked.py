"""The answer to a claim: the verdict, why, by how much, and what would make it true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations.claimed import half_output
from mlsim.errors import WrongKindError
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
from mlsim.solvers.reports import Report


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
    def excess(self) -> float:
        """The claimed speed over the bound, or the memory needed over that there is."""
        return self.worst.excess

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
