"""What would make a claim true: solved for, one thing at a time, all else as claimed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim.equations.serving import allowed_bits
from mlsim.errors import UnsupportedPrecisionError
from mlsim.precision import precision
from mlsim.solvers.claims.claim import MFU, Claim
from mlsim.solvers.claims.judge import WEIGHTS, AnyMachine, Finding
from mlsim.solvers.claims.machine import MOST_BATCH, MOST_DEVICES, Machine
from mlsim.solvers.formats import WIDE, Formats, formats

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
    found, tried = _format(machine, claims)
    return Remedies(
        batch=batch_that(machine, claims),
        smallest=shared,
        format=found,
        formats_tried=tried,
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
        return lambda batch: holds(machine.on(batch=batch), some)

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
        return holds(machine.on(devices=count), claims)

    high = machine.devices
    while not enough(high):
        high *= 2
        if high > MOST_DEVICES:
            return None
    return _first(enough, high)


def _format(machine: AnyMachine, claims: Sequence[Claim]) -> tuple[str | None, tuple[str, ...]]:
    """Return the first narrower format in which the claims hold, and those that were tried."""
    tried = []
    for name, changed in _narrower(machine):
        tried.append(name)
        if holds(machine.on(formats=changed), claims):
            return name, tuple(tried)
    return None, tuple(tried)


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
