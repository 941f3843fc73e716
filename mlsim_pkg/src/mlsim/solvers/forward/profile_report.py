"""A profile as text for people and as plain data for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mlsim.solvers.reports import Report, plain
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.forward.profile import Profile

_HEADS = (("batch", 8), ("latency", 10), ("samples/s", 10), ("bottleneck", 0))


def inputs(profile: Profile) -> dict[str, Any]:
    """Return what was asked, whether it fits, and what binds, for JSON."""
    return {
        "model": profile.model.name,
        "hardware": profile.hardware.name,
        "precision": profile.precision,
        **({"formats_assumed": profile.configuration.why} if profile.configuration.assumed else {}),
        "estimate": profile.configuration.labels["estimate"],
        **_software(profile),
        "batch_size": {"value": plain(profile.batch_size), "unit": "sample"},
        "feasible": plain(profile.feasible),
        "bottleneck": plain(profile.bottleneck) if profile.shows_times else None,
        **(_causes(profile) if profile.shows_times else {}),
    }


def _software(profile: Profile) -> dict[str, Any]:
    """Return the class of software of a calibrated answer, for JSON."""
    found = profile.configuration.labels.get("software")
    return {"software": found} if found else {}


def _causes(profile: Profile) -> dict[str, Any]:
    """Return what the time of a calibrated answer goes into, for JSON."""
    if not profile.configuration.calibrated:
        return {}
    causes = {cause: plain(share) for cause, share in profile.causes.items()}
    return {"causes": causes} if profile.shape else {"cause": profile.cause, "causes": causes}


def _bottleneck(profile: Profile) -> str:
    """Return what binds, and for how much of the time."""
    if not profile.configuration.calibrated:
        share = profile.value("memory_bound_share")
        return f"{profile.bottleneck} ({share:.0%} of the time in memory-bound operators)"
    from mlsim.solvers.causes import written

    return f"{profile.bottleneck}: {written(profile.causes)} of the time"


def report(profile: Profile) -> Report:
    """Return a short table; of many points, a row for each."""
    title = (
        f"{profile.model.name} on {profile.hardware.name}, {profile.precision}, "
        f"{profile.configuration.labels['estimate']}"
    )
    assumed = [("formats", profile.configuration.why)] if profile.configuration.assumed else []
    assumed += [(name, str(words)) for name, words in _software(profile).items()]
    if profile.shape:
        notes = [*assumed, *profile.noted()]
        return Report(title, _points(profile), heads=_HEADS, notes=notes)
    required = held(float(profile.value("memory_required")))
    memory = f"{required} of {held(profile.value('memory_capacity'))}"
    rows = [("batch size", str(profile.batch_size)), *assumed, *profile.noted()]
    if profile.shows_times:
        rows += [
            ("latency", text(float(profile.value("latency")), "s")),
            *profile._banded("latency"),
            ("throughput", text(profile.value("throughput"), "sample/s")),
            ("bottleneck", _bottleneck(profile)),
        ]
    rows += [("memory", memory), *profile.question.known.doubts()]
    if not profile.shows_times:
        short = held(-float(profile.value("memory_free")))
        rows.append(("feasible", f"no: {short} too much"))
    return Report(title, rows)


def _points(profile: Profile) -> list[tuple[str, ...]]:
    import numpy as np

    def column(values: Any) -> Any:
        return np.broadcast_to(values, profile.shape).reshape(-1)

    values = (profile.value(name) for name in ("latency", "throughput"))
    columns = (profile.batch_size, *values, profile.bottleneck)
    rows: list[tuple[str, ...]] = []
    for batch, latency, rate, bound in zip(*map(column, columns), strict=True):
        missing = math.isnan(latency)  # it does not fit
        time = "-" if missing else text(float(latency), "s")
        rows.append((f"{batch:,.0f}", time, "-" if missing else f"{rate:,.0f}", str(bound)))
    return rows
