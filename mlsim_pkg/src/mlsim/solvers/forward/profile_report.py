"""A profile as text for people and as plain data for programs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.units import text

if TYPE_CHECKING:
    import pandas

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


def plain(value: Any) -> Any:
    """Turn NumPy values into what JSON knows; NaN, which it doesn't, into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


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


# Columns of a sweep that carry a unit.
_UNITS = {
    "batch_size": "sample",
    "latency": "s",
    "throughput": "sample/s",
    "memory_bound_share": "1",
    "memory_required": "B",
}


def sweep_rows(table: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return a sweep's rows for JSON: numbers as {"value": ..., "unit": ...}."""
    return [
        {
            str(name): {"value": plain(value), "unit": _UNITS[str(name)]}
            if name in _UNITS
            else plain(value)
            for name, value in row.items()
        }
        for row in table.to_dict(orient="records")
    ]


def sweep_text(table: pandas.DataFrame) -> str:
    """Write a sweep for a terminal, a line a point."""
    header = ("model", "hardware", "precision", "batch", "latency", "samples/s", "bottleneck")
    rows = [header]
    for row in table.to_dict(orient="records"):
        runs = row["feasible"]
        rows.append(
            (
                row["model"],
                row["hardware"],
                row["precision"],
                f"{row['batch_size']:,}",
                text(row["latency"], "s") if runs else "-",
                f"{row['throughput']:,.0f}" if runs else "-",
                row["bottleneck"] if runs else row["reason"],
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    numbers = ("batch", "latency", "samples/s")
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if name in numbers else f"{cell:<{width}}"
            for cell, width, name in zip(row, widths, header, strict=True)
        ).rstrip()
        for row in rows
    )


def listed(rows: Iterable[tuple[str, str]], label: int, width: int = 66) -> list[str]:
    """Write names and values as lines; a long value goes on below its beginning.

    >>> listed([("time", "1 s"), ("used for", "this and that")], 10, 9)
    ['  time      1 s', '  used for  this and', '            that']
    """
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
        for index, part in enumerate(parts or [""]):
            lines.append(f"  {'' if index else name:<{label}}{part}")
    return lines
