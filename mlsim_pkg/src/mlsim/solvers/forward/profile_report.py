"""A profile as text for people and as plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.solvers.reports import plain
from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.solvers.forward.profile import Profile

_RESULTS = (
    "latency",
    "throughput",
    "memory_bound_share",
    "total_flops",
    "total_bytes",
    "network_intensity",
    "ridge_point",
    "memory_required",
    "memory_capacity",
)


def as_dict(profile: Profile) -> dict[str, Any]:
    """Return inputs and results; each number is {"value": ..., "unit": ...}.

    What needs memory that is not there is null.
    """
    fits = profile.feasible
    shape = profile.configuration.shape
    results: dict[str, Any] = {}
    for name in _RESULTS:
        if not shape and not fits and name in ("latency", "throughput", "memory_bound_share"):
            value = None
        else:
            value = plain(profile.value(name))
        results[name] = {"value": value, "unit": term(name).unit}
    return {
        "model": profile.model.name,
        "hardware": profile.hardware.name,
        "precision": profile.precision,
        "estimate": profile.estimate,
        "batch_size": {"value": plain(profile.batch_size), "unit": "sample"},
        "feasible": plain(fits),
        "bottleneck": plain(profile.bottleneck) if shape or fits else None,
        **results,
    }


def as_text(profile: Profile) -> str:
    """Return a short table."""
    title = (
        f"{profile.model.name} on {profile.hardware.name}, {profile.precision}, {profile.estimate}"
    )
    if profile.configuration.shape:
        return _many(profile, title)
    required = text(float(profile.value("memory_required")), "B")
    memory = f"{required} of {text(profile.value('memory_capacity'), 'B')}"
    rows = [("batch size", str(profile.batch_size))]
    if profile.feasible or not profile._check_memory:
        share = profile.memory_bound_share
        rows += [
            ("latency", text(float(profile.value("latency")), "s")),
            ("throughput", text(profile.throughput, "sample/s")),
            (
                "bottleneck",
                f"{profile.bottleneck} ({share:.0%} of the time in memory-bound operators)",
            ),
            ("memory", memory),
        ]
    else:
        short = text(-float(profile.value("memory_free")), "B")
        rows += [("memory", memory), ("feasible", f"no: {short} too much")]
    return "\n".join([title, *(f"  {name:<12}{value}" for name, value in rows)])


def _many(profile: Profile, title: str) -> str:
    import numpy as np

    batches = np.broadcast_to(profile.batch_size, profile.configuration.shape).reshape(-1)
    latency = profile.value("latency").reshape(-1)
    rate = profile.throughput.reshape(-1)
    lines = [title, f"  {'batch':>8}  {'latency':>10}  {'samples/s':>10}  bottleneck"]
    # A long array is shown by its ends.
    shown = range(len(batches)) if len(batches) <= 20 else [*range(10), *range(-10, 0)]
    for index in shown:
        if index == -10:
            lines.append(f"  {'...':>8}")
        time = "-" if latency[index] != latency[index] else text(float(latency[index]), "s")
        speed = "-" if rate[index] != rate[index] else f"{rate[index]:,.0f}"
        name = profile.bottleneck.reshape(-1)[index]
        lines.append(f"  {batches[index]:>8,.0f}  {time:>10}  {speed:>10}  {name}")
    return "\n".join(lines)
