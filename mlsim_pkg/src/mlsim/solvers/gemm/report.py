"""A linear layer's answer as text for people and as plain data for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mlsim.solvers.reports import Report, plain
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.gemm.gemm import Gemm

_HEADS = (("M", 9), ("N", 9), ("K", 9), ("time", 10), ("speed-up", 8), ("bottleneck", 0))


def inputs(gemm: Gemm) -> dict[str, Any]:
    """Return what was asked, whether it fits, and what binds, for JSON."""
    layer = gemm.layer
    sides = {"M": layer.rows, "N": layer.outputs, "K": layer.inputs, "batch": layer.weight_sets}
    return {
        "hardware": layer.device.name,
        "precision": layer.precision,
        "recipe": layer.recipe.key if layer.recipe else None,
        "phase": layer.phase,
        "fused": layer.fused,
        "estimate": layer.estimate_words,
        **{name: {"value": plain(value), "unit": "1"} for name, value in sides.items()},
        "feasible": plain(gemm.feasible),
        "bottleneck": plain(gemm.bottleneck) if gemm.shows_times else None,
        **({} if gemm.shape or not gemm.shows_times else {"kernels": gemm.kernels}),
    }


def report(gemm: Gemm) -> Report:
    """Return a short table; of many layers, a row for each."""
    layer = gemm.layer
    title = (
        f"Linear layer on {layer.device.name}, {layer.precision}, {layer.phase}"
        f"{', fused' if layer.fused else ''}, {layer.estimate_words}"
    )
    if gemm.shape:
        return Report(title, _points(gemm), heads=_HEADS)
    rows = [("sides", gemm._sides)]
    if gemm.shows_times:
        rows += [("time", text(gemm.value("latency"), "s")), *_parts(gemm)]
        rows.append(("bottleneck", _bound(gemm)))
        rows.append(("intensity", text(gemm.value("network_intensity"), "FLOP/B")))
    required = held(float(gemm.value("memory_required")))
    rows.append(("operands", f"{required} of {held(gemm.value('memory_capacity'))}"))
    rows += gemm.question.known.doubts()
    return Report(title, rows)


def _parts(gemm: Gemm) -> list[tuple[str, str]]:
    rows = []
    if gemm.value("casts_time"):
        products, casts = (text(gemm.value(n), "s") for n in ("products_time", "casts_time"))
        rows.append(("of which", f"{products} products, {casts} passes between formats"))
    base = [each for each in gemm.layer.kernels if each.baseline_repeats]
    if base and gemm.layer.precision != base[0].computes:
        took = text(gemm.value("baseline_time"), "s")
        rows.append(
            (f"in {base[0].computes}", f"{took}: {gemm.value('format_speedup'):.2f} times as long")
        )
    return rows


def _bound(gemm: Gemm) -> str:
    shares = {
        "arithmetic": gemm.value("compute_limited_share"),
        "memory": gemm.value("memory_limited_share"),
        "starts": gemm.value("start_limited_share"),
    }
    told = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share > 1e-9)
    return f"{gemm.bottleneck} (time limited by {told})"


def _points(gemm: Gemm) -> list[tuple[str, ...]]:
    import numpy as np

    def column(values: Any) -> Any:
        return np.broadcast_to(values, gemm.shape).reshape(-1)

    layer = gemm.layer
    speed = gemm.value("format_speedup") if "format_speedup" in gemm.names else float("nan")
    columns = (layer.rows, layer.outputs, layer.inputs, gemm.value("latency"), speed)
    rows: list[tuple[str, ...]] = []
    for m, n, k, time, gain, bound in zip(*map(column, (*columns, gemm.bottleneck)), strict=True):
        missing = math.isnan(time)  # it does not fit
        shown = "-" if missing else text(float(time), "s")
        gained = "-" if math.isnan(gain) else f"{gain:.2f}"
        rows.append((f"{m:,.0f}", f"{n:,.0f}", f"{k:,.0f}", shown, gained, str(bound)))
    return rows
