"""The verdict on a claim: each figure against the bound and the estimate, and the memory."""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.equations.serving import claimed_memory, claimed_share, weight_reading_share
from mlsim.errors import NotMeasuredError
from mlsim.solvers.claims.claim import FIRST, MFU, SAMPLES, Claim
from mlsim.solvers.claims.machine import MOST_BATCH, Machine
from mlsim.solvers.claims.network_machine import NetworkMachine
from mlsim.solvers.inputs import CALIBRATED

IMPOSSIBLE, POSSIBLE, PLAUSIBLE = "impossible", "possible", "plausible"
VERDICTS = (IMPOSSIBLE, POSSIBLE, PLAUSIBLE)

ARITHMETIC = "arithmetic"
WEIGHTS = "reading the weights"
CACHE = "reading weights and KV cache"
BYTES = "moving bytes"
CAPACITY = "memory capacity"
# What takes this part of the time of moving bytes is named alone.
HALF = 0.5


@dataclass(frozen=True)
class Finding:
    """What was found of one figure.

    Attributes
    ----------
    claim
        The figure; None for the memory that the stated batch needs.
    verdict
        "impossible", "possible" or "plausible".
    term
        What binds: what the bound is made of, or the capacity.
    batch
        How many sequences it was judged with.
    bound, excess
        The limit in the metric's unit, and the claimed speed over it: above 1 is impossible.
        Of memory, the capacity in bytes, and what is needed over it.
    estimate, estimated_by, over
        What is estimated, by which estimate, and the claimed speed over that.
    """

    claim: Claim | None
    verdict: str
    term: str
    batch: int
    bound: float
    excess: float
    estimate: float | None = None
    estimated_by: str = ""
    over: float | None = None


AnyMachine = Machine | NetworkMachine


def judge(machine: AnyMachine, claim: Claim, tolerance: float) -> Finding:
    """Hold a figure against the bound, and if it is below, against the estimate."""
    name = claim.metric.name
    batch = batch_for(machine, claim)
    bound = 1.0 if name == MFU else machine.limit(name, batch)
    excess = claim.excess(bound)
    term = ARITHMETIC if name == MFU else _term(machine, claim, batch)
    if excess > 1:
        return Finding(claim, IMPOSSIBLE, term, batch, bound, excess)
    if not machine.fitting:
        # The weights alone don't fit: that is said of the memory, not of the figure.
        return Finding(claim, POSSIBLE, term, batch, bound, excess)
    estimate, by = _estimate(machine, name, batch)
    over = claim.excess(estimate)
    verdict = PLAUSIBLE if over <= 1 + tolerance else POSSIBLE
    return Finding(claim, verdict, term, batch, bound, excess, estimate, by, over)


def memory(machine: AnyMachine) -> Finding:
    """Hold weights and the cache of the stated batch against the memory there is."""
    batch = machine.batch or 1
    copies = 1 if isinstance(machine, Machine) else machine.devices
    needed = claimed_memory(copies, machine.weights, batch, machine.cache_each)
    excess = float(claimed_share(needed, machine.capacity))
    verdict = IMPOSSIBLE if excess > 1 else PLAUSIBLE
    return Finding(None, verdict, CAPACITY, batch, machine.capacity, excess)


def batch_for(machine: AnyMachine, claim: Claim) -> int:
    """Return the batch to judge with: the stated one, else the one that helps most."""
    if machine.batch:
        return machine.batch
    # Where not even the weights fit, the memory decides, and any batch may be thought of.
    return (machine.fitting or MOST_BATCH) if claim.metric.shared else 1


def _term(machine: AnyMachine, claim: Claim, batch: int) -> str:
    """Name the largest part of the step, which is what makes the bound."""
    parts = machine.parts(claim.metric.name, batch)
    if parts.arithmetic >= parts.memory:
        return ARITHMETIC
    most = weight_reading_share(parts.weights, parts.memory) >= HALF
    if claim.metric.name in (FIRST, SAMPLES) or most:
        return WEIGHTS if most else BYTES
    return CACHE


def _estimate(machine: AnyMachine, metric: str, batch: int) -> tuple[float, str]:
    """Return the calibrated estimate, or where nobody measured the device, the roofline."""
    try:
        return machine.limit(metric, batch, CALIBRATED), CALIBRATED
    except NotMeasuredError:
        return machine.limit(metric, batch, "roofline"), "roofline"
