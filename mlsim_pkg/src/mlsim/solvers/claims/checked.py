"""The answer to a claim: the verdict, why, by how much, and what would make it true."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from mlsim.equations.serving import (
    allowed_bits,
    claimed_memory,
    claimed_share,
    half_output,
    weight_reading_share,
)
from mlsim.errors import NotMeasuredError, UnsupportedPrecisionError, WrongKindError
from mlsim.parameters import CALIBRATED
from mlsim.precision import precision
from mlsim.solvers.answer import Form, Pairs, Row, Written
from mlsim.solvers.claims.claim import (
    FIRST,
    MFU,
    MOST_BATCH,
    MOST_DEVICES,
    SAMPLES,
    Claim,
    Machine,
    NetworkMachine,
)
from mlsim.solvers.explain import as_card
from mlsim.solvers.formats import WIDE, Formats, formats
from mlsim.solvers.question import Known
from mlsim.units import MEMORY, held, text
from mlsim.values import Origin, of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Plain, Quantity


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
    try:
        estimate, by = machine.limit(name, batch, CALIBRATED), CALIBRATED
    except NotMeasuredError:
        estimate, by = machine.limit(name, batch, "roofline"), "roofline"
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


# Formats that programs serve models in, widest first; those that a device lacks are left out.
TRIED = ("fp8", "int8", "w8a16", "w4a16", "mxfp4", "nvfp4")


@dataclass(frozen=True)
class Remedies:
    """What would make all figures true, by the bound; None where nothing does.

    Attributes
    ----------
    batch
        Of what all users get together, the smallest running batch; of what each user gets,
        the largest; of a stated batch that does not fit, the largest that does.
    smallest
        Whether `batch` is the smallest, or the largest.
    format, formats_tried
        The widest format that does it, and all that were tried.
    devices
        The fewest devices that do it, working as one without exchanges.
    tokens_per_step
        Tokens that each step must yield on average, as with speculative decoding.
    bits_per_weight
        The most bits that a weight may have, where reading the weights is too slow.
    """

    batch: int | None = None
    smallest: bool = True
    format: str | None = None
    formats_tried: tuple[str, ...] = ()
    devices: int | None = None
    tokens_per_step: float | None = None
    bits_per_weight: float | None = None


def holds(machine: AnyMachine, claims: Sequence[Claim]) -> bool:
    """Tell whether all figures are within the bound, and the batch within the memory."""
    room = machine.fitting
    if room < (machine.batch or 1):
        return False
    for claim in claims:
        if claim.metric.name == MFU:
            continue  # more than all of a machine's arithmetic was refused before
        batch = machine.batch or (room if claim.metric.shared else 1)
        if claim.excess(machine.limit(claim.metric.name, batch)) > 1:
            return False
    return True


def remedies(machine: AnyMachine, claims: Sequence[Claim], findings: Sequence[Finding]) -> Remedies:
    """Solve for the batch, the format and the devices that make an impossible claim true."""
    if any(each.metric.name == MFU and each.value > 1 for each in claims):
        return Remedies()  # no machine does more than all of its arithmetic
    shared = any(each.metric.shared for each in claims)
    found, tried = None, []
    for name, changed in _narrower(machine):
        tried.append(name)
        if holds(replace(machine, formats=changed), claims):
            found = name
            break
    return Remedies(
        batch=batch_that(machine, claims),
        smallest=shared,
        format=found,
        formats_tried=tuple(tried),
        devices=_devices(machine, claims),
        tokens_per_step=_tokens_per_step(findings),
        bits_per_weight=_bits(machine, findings),
    )


def batch_that(machine: AnyMachine, claims: Sequence[Claim]) -> int | None:
    """Return the smallest batch that makes claims true, or of each user's the largest."""
    most = min(machine.fitting, MOST_BATCH)
    if not most:
        return None
    shared = [each for each in claims if each.metric.shared]
    others = [each for each in claims if not each.metric.shared]

    def within(some: Sequence[Claim]) -> Callable[[int], bool]:
        return lambda batch: holds(replace(machine, batch=batch), some)

    # More users slow each of them down, and speed up all together.
    largest = _last(within(others), most)
    if not largest:
        return None
    if not shared:
        return largest
    if not within(shared)(largest):
        return None
    return _first(within(shared), largest)


def _first(true: Callable[[int], bool], most: int) -> int:
    """Return the first number from 1 up for which something is true that stays so."""
    return 1 + bisect_left(range(1, most), True, key=true)


def _last(true: Callable[[int], bool], most: int) -> int:
    """Return the last number for which something is true that was so before; 0 for none."""
    if true(most):
        return most
    return _first(lambda number: not true(number), most) - 1


def _devices(machine: AnyMachine, claims: Sequence[Claim]) -> int | None:
    def enough(count: int) -> bool:
        return holds(replace(machine, devices=count), claims)

    high = machine.devices
    while not enough(high):
        high *= 2
        if high > MOST_DEVICES:
            return None
    return _first(enough, high)


def _narrower(machine: AnyMachine) -> list[tuple[str, Any]]:
    known = machine.device.compute.precisions
    if not isinstance(machine, Machine):
        return [
            (name, precision(name))
            for name in ("bf16", "fp16", "fp8", "int8")
            if name in known and precision(name).bits < machine.formats.bits
        ]
    found: list[tuple[str, Formats]] = []
    for name in (*(("bf16",) if machine.formats.weights.bits > WIDE else ()), *TRIED):
        try:
            changed = formats(name, device=machine.device)
            changed.computing(machine.device)
        except UnsupportedPrecisionError:
            continue
        if changed.weights.bits < machine.formats.weights.bits:
            found.append((name, changed))
    return found


def _tokens_per_step(findings: Sequence[Finding]) -> float | None:
    """Return how many tokens a step must yield, where only the rate of steps is too high."""
    decoding = [
        each.excess
        for each in findings
        if each.claim and each.excess > 1 and each.claim.metric.decodes
    ]
    others = [each for each in findings if each.excess > 1]
    return max(decoding) if decoding and len(decoding) == len(others) else None


def _bits(machine: AnyMachine, findings: Sequence[Finding]) -> float | None:
    """Return the bits per weight at which reading weights beside the cache is fast enough."""
    if not isinstance(machine, Machine):
        return None
    for each in findings:
        if each.claim and each.excess > 1 and each.term == WEIGHTS:
            parts = machine.parts(each.claim.metric.name, each.batch)
            bits = allowed_bits(
                machine.formats.weights.bits,
                parts.memory,
                parts.arithmetic,
                parts.weights,
                each.excess,
            )
            return float(bits) if bits > 0 else None
    return None


def title(checked: Checked) -> str:
    """Say what is claimed of what."""
    machine = checked.machine
    count = f"{machine.devices:,} x " if machine.devices > 1 else ""
    claims = ", ".join(_value(each) for each in checked.findings if each.claim)
    return f"{machine.model.name} on {count}{machine.device.name}, {machine.formats.name}: {claims}"


def _value(finding: Finding) -> str:
    """Write what is claimed."""
    claim = finding.claim
    if claim is None:
        return ""
    if claim.metric.name == MFU:
        return f"MFU {claim.value:.1%}"
    shown = text(claim.value, claim.metric.unit)
    user = " for each user" if claim.metric.name.endswith("per_user") else ""
    to = {"time_to_first_token": " to the first token", "time_per_output_token": " per token"}
    return f"{shown}{user}{to.get(claim.metric.name, '')}"


def _verdict(checked: Checked) -> str:
    worst = checked.worst
    if worst.verdict == IMPOSSIBLE:
        if worst.claim is None:
            return f"impossible: it needs {worst.excess:.2f} times the memory there is"
        return f"impossible: {worst.excess:.2f} times as fast as the bound ({worst.term})"
    if worst.verdict == POSSIBLE and worst.over is not None:
        return (
            f"possible, but {worst.over:.2f} times as fast as the {worst.estimated_by} estimate: "
            "ask how it was measured"
        )
    return f"plausible: no more than {checked.tolerance:.0%} above the estimate"


def _memory(checked: Checked, finding: Finding) -> tuple[str, str]:
    machine = checked.machine
    has = held(machine.capacity)
    weights = f"weights {held(machine.weights)}"
    if not machine.cache_each:
        return "memory", f"{weights} of {has}"
    room = f"{_count(machine.fitting)} fit" if machine.fitting else "the weights don't fit"
    each = f"cache {held(machine.cache_each)} for each of {finding.batch:,}"
    return "memory", f"{weights} + {each}, of {has}: {room}"


def _figure(finding: Finding, claim: Claim) -> tuple[str, str]:
    if claim.metric.name == MFU:
        return "bound", "100% of the peak of the arithmetic"
    limit = "at most" if claim.metric.rate else "at least"
    return "bound", (
        f"{limit} {text(finding.bound, claim.metric.unit)} with {_batch(finding.batch)} together, "
        f"by {finding.term}; claimed is {finding.excess:.2g} times as fast"
    )


def _remedies(checked: Checked) -> list[str]:
    found, machine = checked.remedies, checked.machine
    words = []
    if found.batch:
        least = "at least" if found.smallest else "at most"
        words.append(f"{least} {_count(found.batch)} run together, all else as claimed")
    if found.format:
        words.append(f"{found.format} is used in place of {machine.formats.name}")
    if found.devices:
        words.append(f"{found.devices:,} devices or more work as one")
    if found.tokens_per_step:
        tokens = math.ceil(10 * found.tokens_per_step) / 10
        words.append(f"{tokens:.1f} tokens or more come from each step (speculative decoding)")
    if found.bits_per_weight and not found.format:
        names = ", ".join(found.formats_tried)
        tried = f"; none of these does: {names}" if names else ""
        bits = math.floor(10 * found.bits_per_weight) / 10
        words.append(f"weights take {bits:.1f} bits or fewer{tried}")
    return words


def _assumed(checked: Checked) -> str:
    machine = checked.machine
    stated = f"{_count(machine.batch)} at a time" if machine.batch else "the best batch"
    if not isinstance(machine, Machine):
        return f"{stated}; direct convolutions"
    if machine.training:
        return f"sequences of {machine.prompt:,} tokens; only the weights are held, once"
    return (
        f"{stated}, {machine.prompt:,} + {machine.output:,} tokens each, halfway on average; "
        "devices that work as one; nothing reserved"
    )


def _count(batch: int) -> str:
    many = f"{batch:,}" if batch < MOST_BATCH else "any number of"
    return "1 sequence" if batch == 1 else f"{many} sequences"


def _batch(batch: int) -> str:
    return f"{batch:,}" if batch < MOST_BATCH else "any number"


def _finding(finding: Finding) -> dict[str, Any]:
    claim, unit = finding.claim, finding.claim.metric.unit if finding.claim else "B"
    return {
        "claimed": claim.metric.name if claim else "memory",
        "value": {"value": claim.value, "unit": unit} if claim else None,
        "verdict": finding.verdict,
        "term": finding.term,
        "batch_size": finding.batch,
        "bound": {"value": finding.bound, "unit": unit},
        "excess": finding.excess,
        "estimate": (
            None if finding.estimate is None else {"value": finding.estimate, "unit": unit}
        ),
        "estimated_by": finding.estimated_by or None,
        "over_estimate": finding.over,
    }


def _findings(checked: Checked) -> Pairs:
    """Return rows with the memory, and with each figure beside the bound and the estimate."""
    rows: Pairs = []
    for finding in checked.findings:
        if finding.claim is None:
            rows.append(_memory(checked, finding))
            rows += Known().add_memory(checked.machine.device).guessed_memory()
            continue
        rows.append(_figure(finding, finding.claim))
        if finding.estimate is not None:
            unit, estimate = finding.claim.metric.unit, finding.estimate
            shown = f"{estimate:.1%}" if unit == "1" else text(estimate, unit)
            over = f"claimed is {finding.over or 0.0:.2g} times as fast"
            rows.append(("estimate", f"{shown} ({finding.estimated_by}, nothing sent); {over}"))
    return rows


def _true_if(checked: Checked) -> Pairs:
    """Return rows with what would make an impossible claim true."""
    if not checked.impossible:
        return []
    nothing = "nothing that was tried: no batch, format or number of devices helps"
    return [("true if", words) for words in _remedies(checked) or [nothing]]


def _length(name: str) -> Callable[[Checked], Any]:
    return lambda checked: getattr(checked.machine, name, "")


_FORM = Form(
    title=title,
    rows=(
        Row("verdict", _verdict),
        Row("", _findings),
        Row("", _true_if),
        Row("assumed", _assumed),
    ),
    inputs={
        "model": lambda checked: checked.machine.model.name,
        "hardware": lambda checked: checked.machine.device.name,
        "devices": lambda checked: checked.machine.devices,
        "precision": lambda checked: checked.machine.formats.name,
        "batch_size": lambda checked: checked.machine.batch,
        "prompt_tokens": _length("prompt"),
        "output_tokens": _length("output"),
        "verdict": lambda checked: checked.verdict,
        "term": lambda checked: checked.term,
        "excess": lambda checked: checked.worst.excess,
        "over_estimate": lambda checked: checked.over_estimate,
        "tolerance": lambda checked: checked.tolerance,
        "fitting": lambda checked: checked.fitting if checked.machine.cache_each else None,
        "findings": lambda checked: [_finding(each) for each in checked.findings],
        "remedies": lambda checked: (
            asdict(checked.remedies) if checked.verdict != PLAUSIBLE else None
        ),
    },
)


@dataclass(frozen=True, repr=False)
class Checked(Written):
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

    form = _FORM

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
        brief = f"{words}, nothing sent ({title(self)})"
        return of_base(found.estimate, found.claim.metric.unit, Origin(words, brief))

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        brief = f"{name} = {value.in_full} ({title(self)})"
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

    def __repr__(self) -> str:
        return str(self)


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
