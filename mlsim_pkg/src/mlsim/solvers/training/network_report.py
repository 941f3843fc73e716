"""A training run of a network as text for people and as plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.hardware import Device
from mlsim.solvers.answer import Report, plain
from mlsim.solvers.training.training_report import limits, memory_rows, spent, whole_words
from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.solvers.training.network_training import NetworkTraining

_STEP = ("step_time", "throughput", "model_flops_utilization", "model_flops")
_MEMORY = (
    *("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory"),
    *("memory_required", "memory_free"),
)


def reported(training: NetworkTraining) -> tuple[str, ...]:
    """Name the results that JSON has."""
    run, names = training.network_run, list(_STEP)
    if run.samples is not None and training.shows_times:
        names += ["training_time", "device_time", "goodput"]
        names += ["training_cost"] if run.price is not None else []
    return (*names, *(() if run.graph.notes else _MEMORY))


def inputs(training: NetworkTraining) -> dict[str, Any]:
    """Return what was asked, whether it fits, and where the time goes, for JSON."""
    run = training.network_run
    return {
        "model": run.model.name,
        "hardware": run.hardware_name,
        "precision": run.precision.name,
        **({"formats_assumed": run.why} if run.why else {}),
        "gradients": run.gradients.name,
        "optimizer": run.optimizer,
        "estimate": run.estimate,
        "layout": {
            "devices": run.parallelism.devices,
            "data_parallel": run.parallelism.data,
            "shard": run.parallelism.shard,
        },
        "overlap": {"gradient": run.overlap.gradient},
        "global_batch": {"value": plain(run.global_batch), "unit": "sample"},
        "micro_batch": {"value": plain(run.micro_batch), "unit": "sample"},
        "feasible": None if run.graph.notes else training.feasible,
        **limits(training),
    }


def report(training: NetworkTraining) -> Report:
    """Return a short table."""
    run = training.network_run
    where = "" if isinstance(run.hardware, Device) else f" of {run.hardware.name}"
    count = training._value("micro_batches")
    batches = "one batch" if count == 1 else f"{count:,.0f} micro-batches"
    rows = [
        ("devices", f"{run.parallelism.devices:,} x {run.device.name}{where}"),
        (
            "step",
            f"{run.global_batch:,.0f} samples: {batches} of {run.micro_batch:,.0f} on each device",
        ),
        ("optimizer", _optimizer(training)),
    ]
    if run.why:
        rows.append(("formats", run.why))
    rows += training.noted()
    if training.shows_times:
        rows += _times(training)
    if run.graph.notes:
        rows.append(("memory", "not known: " + " ".join(run.graph.notes)))
    else:
        rows += memory_rows(training)
    return Report(f"Training {run.model.name}, {run.precision.name}, {run.estimate}", rows)


def _optimizer(training: NetworkTraining) -> str:
    run = training.network_run
    shared = "" if run.parallelism.shard == "none" else ", state shared by all devices"
    return f"{run.optimizer}{shared}"


def _times(training: NetworkTraining) -> list[tuple[str, str]]:
    run = training.network_run
    step = text(training.value("step_time"), "s")
    rows = [
        ("time", f"{step} a step, {training.value('throughput'):,.0f} sample/s"),
        *training._banded("step_time"),
        ("use", f"MFU {training.value('model_flops_utilization'):.1%}"),
    ]
    if training.has_parts:
        rows.append(("spent on", spent(training)))
        hidden = f"gradient {run.overlap.gradient:.0%}" if run.overlap.gradient else ""
        rows.append(("overlap", hidden or "none: sending waits for computing"))
    if run.samples is not None:
        rows.append(("run", f"{run.samples:,.0f} samples: {whole_words(training)}"))
    return rows
