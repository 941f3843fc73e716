"""The verdict on a claim in words, and for JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mlsim.solvers.answer import Report
from mlsim.solvers.claims.claim import MFU
from mlsim.solvers.claims.judge import IMPOSSIBLE, PLAUSIBLE, POSSIBLE, Finding
from mlsim.solvers.claims.machine import MOST_BATCH, Machine
from mlsim.solvers.question import Known
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.claims.checked import Checked


def report(checked: Checked) -> Report:
    """Return the verdict as a title and rows."""
    rows = [("verdict", _verdict(checked))]
    doubts = Known().add_memory(checked.machine.device).guessed_memory()
    for finding in checked.findings:
        rows += (
            [_memory(checked, finding), *doubts] if finding.claim is None else [_figure(finding)]
        )
        if finding.claim and finding.estimate is not None:
            rows.append(("estimate", _estimate(finding)))
    if checked.impossible:
        rows += [("true if", words) for words in _remedies(checked)] or [
            ("true if", "nothing that was tried: no batch, format or number of devices helps")
        ]
    rows.append(("assumed", _assumed(checked)))
    return Report(title(checked), rows, label=12)


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


def _figure(finding: Finding) -> tuple[str, str]:
    claim = finding.claim
    if claim is None:
        raise AssertionError("the memory is no figure")
    if claim.metric.name == MFU:
        return "bound", "100% of the peak of the arithmetic"
    limit = "at most" if claim.metric.rate else "at least"
    return "bound", (
        f"{limit} {text(finding.bound, claim.metric.unit)} with {_batch(finding.batch)} together, "
        f"by {finding.term}; claimed is {finding.excess:.2g} times as fast"
    )


def _estimate(finding: Finding) -> str:
    unit, estimate = finding.claim.metric.unit if finding.claim else "1", finding.estimate or 0.0
    shown = f"{estimate:.1%}" if unit == "1" else text(estimate, unit)
    return (
        f"{shown} ({finding.estimated_by}, nothing sent); "
        f"claimed is {finding.over or 0.0:.2g} times as fast"
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


def as_dict(checked: Checked) -> dict[str, Any]:
    """Return the verdict as plain data, for JSON."""
    machine = checked.machine
    lengths = (
        {"prompt_tokens": machine.prompt, "output_tokens": machine.output}
        if isinstance(machine, Machine)
        else {}
    )
    return {
        "model": machine.model.name,
        "hardware": machine.device.name,
        "devices": machine.devices,
        "precision": machine.formats.name,
        "batch_size": machine.batch,
        **lengths,
        "verdict": checked.verdict,
        "term": checked.term,
        "excess": checked.worst.excess,
        "over_estimate": checked.over_estimate,
        "tolerance": checked.tolerance,
        "fitting": machine.fitting if machine.cache_each else None,
        "findings": [_finding(each) for each in checked.findings],
        "remedies": asdict(checked.remedies) if checked.verdict != PLAUSIBLE else None,
    }


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
