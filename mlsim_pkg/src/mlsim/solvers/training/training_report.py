"""A training run as text for people and as plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.hardware import Device
from mlsim.solvers.answer import Report, plain
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.training.training import Training

_STEP = (
    "step_time",
    "token_rate",
    "model_flops_utilization",
    "hardware_flops_utilization",
    "model_flops",
)
_MEMORY = (
    "weight_memory",
    "gradient_memory",
    "optimizer_memory",
    "activation_memory",
    "memory_required",
    "memory_free",
)
_WORDS = {
    "exchange": "sending within a stage",
    "bubble": "pipeline bubble",
    "pipeline": "sending between stages",
    "gradients": "gradients and weights",
}


def advice(training: Training) -> str:
    """Say what would make a run fit that does not."""
    run, value = training.run, training._value
    ways = []
    if run.recipe.recompute != "full":
        ways.append("recompute='full'")
    if run.parallelism.copies > 1 and run.parallelism.shard != "zero3":
        ways.append("shard='zero1' (or 'zero2', 'zero3')")
    if run.parallelism.tensor > 1 and not run.parallelism.sequence:
        ways.append("sequence_parallel=True")
    if run.micro_batch > 1 and value("activation_memory") > value("state_memory"):
        ways.append("a smaller micro_batch")
    adapters = run.recipe.adapters
    if adapters and not adapters.quantized:
        ways.append(f"adapters=QLoRA(rank={adapters.rank}), which keeps the model in 4 bits")
    ways.append("more tensor or pipeline parallelism")
    return f"Try {', '.join(ways)}; search=True looks for a layout that fits."


def reported(training: Training) -> tuple[str, ...]:
    """Name the results that JSON has."""
    return (*_STEP, *(_whole(training) if training.shows_times else ()), *_MEMORY)


def inputs(training: Training) -> dict[str, Any]:
    """Return what was asked, whether it fits, and where the time goes, for JSON."""
    run = training.run
    parallelism = run.parallelism
    return {
        "model": run.model.name,
        "hardware": run.hardware_name,
        "precision": run.precision.name,
        **({"formats_assumed": run.why} if run.why else {}),
        "gradients": run.gradients.name,
        "estimate": run.estimate,
        **({"software": run.software.key} if run.software else {}),
        **_adapters(training),
        "layout": {
            "devices": parallelism.devices,
            "tensor_parallel": parallelism.tensor,
            "pipeline_parallel": parallelism.pipeline,
            "data_parallel": parallelism.data,
            "context_parallel": parallelism.context,
            "expert_parallel": parallelism.expert,
            "interleaved": parallelism.interleaved,
            "sequence_parallel": parallelism.sequence,
            "shard": parallelism.shard,
            "recompute": run.recipe.recompute,
            "attention": run.recipe.attention,
        },
        "overlap": {
            "exchange": run.overlap.exchange,
            "pipeline": run.overlap.pipeline,
            "gradient": run.overlap.gradient,
        },
        "global_batch": {"value": plain(run.global_batch), "unit": "sample"},
        "micro_batch": {"value": plain(run.micro_batch), "unit": "sample"},
        "sequence_tokens": {"value": plain(run.sequence_tokens), "unit": "token/sample"},
        "feasible": training.feasible,
        **limits(training),
    }


def limits(training: Training) -> dict[str, Any]:
    """Return where the time of a step goes and what limits it, for JSON; null of a bound."""
    shown = training.shows_times and training.has_parts
    return {
        "breakdown": breakdown(training) if shown else None,
        "bottleneck": training.bottleneck if shown else None,
        "causes": {cause: plain(share) for cause, share in training.causes.items()}
        if shown
        else None,
    }


def _adapters(training: Training) -> dict[str, Any]:
    """Return what is trained beside a frozen model, for JSON."""
    adapters = training.run.recipe.adapters
    if adapters is None:
        return {}
    return {
        "adapters": {
            "kind": type(adapters).__name__,
            "rank": adapters.rank,
            "targets": list(adapters.targets),
            "trained_parameters": plain(training._value("trained_parameters")),
            "trained_share": plain(training._value("trained_share")),
        }
    }


def breakdown(training: Training) -> dict[str, Any]:
    """Return where the time of a step goes, for JSON."""
    return {name: {"value": plain(value), "unit": "s"} for name, value in training._parts().items()}


def _whole(training: Training) -> tuple[str, ...]:
    """Return the results of a whole run, as far as it was asked for."""
    run, names = training.run, []
    if run.tokens is not None:
        names += ["training_time", "device_time", "goodput"]
        if run.price is not None:
            names.append("training_cost")
    return tuple(names)


def report(training: Training) -> Report:
    """Return a short table."""
    run = training.run
    parallelism, recipe = run.parallelism, run.recipe
    where = "" if isinstance(run.hardware, Device) else f" of {run.hardware.name}"
    kept = "recomputes scores" if recipe.standard else "keeps all but scores"
    again = {"none": "keeps all", "selective": kept, "full": "recomputes layers"}
    rows = [
        ("devices", f"{parallelism.devices:,} x {run.device.name}{where}"),
        ("layout", f"{parallelism}; {again[recipe.recompute]}"),
        (
            "step",
            f"{run.global_batch:,.0f} x {run.sequence_tokens:,.0f} tokens in {_counted(training)}",
        ),
    ]
    if run.why:
        rows.append(("formats", run.why))
    if run.software:
        rows.append(("software", run.software.name))
    if recipe.adapters:
        rows.append(("adapters", _trained(training)))
    rows += training.noted()
    if training.shows_times:
        rows += _times(training)
    rows += memory_rows(training)
    title = f"Training {run.model.name}, {run.precision.name}, {run.estimate}"
    return Report(title, rows)


def _trained(training: Training) -> str:
    count, share = training._value("trained_parameters"), training._value("trained_share")
    return f"{training.run.recipe.adapters}: {count:,.0f} parameters, {share:.2%} of the model"


def _counted(training: Training) -> str:
    count, size = training._value("micro_batches"), training.run.micro_batch
    return f"{count:,.0f} micro-batches of {size:,.0f}" if count > 1 else "one micro-batch"


def _times(training: Training) -> list[tuple[str, str]]:
    run = training.run
    used = training.value("model_flops_utilization")
    rows = [
        (
            "time",
            (
                f"{text(training.value('step_time'), 's')} a step, "
                f"{training.value('token_rate'):,.0f} token/s"
            ),
        ),
        *training._banded("step_time"),
        ("use", f"MFU {used:.1%}, HFU {training.value('hardware_flops_utilization'):.1%}"),
    ]
    if training.has_parts:
        rows += [("spent on", spent(training)), ("overlap", _hidden(training))]
    if run.tokens is not None:
        rows.append(("run", _run(training)))
    return rows


def _hidden(training: Training) -> str:
    overlap = training.run.overlap
    hidden = [
        f"{n} {s:.0%}"
        for n, s in (
            ("exchange", overlap.exchange),
            ("pipeline", overlap.pipeline),
            ("gradient", overlap.gradient),
        )
        if s
    ]
    return ", ".join(hidden) or "none: sending waits for computing"


def spent(training: Training) -> str:
    """Say what the time of a step is spent on, the longest part first."""
    parts = sorted(training._parts().items(), key=lambda item: -item[1])
    whole = training.value("step_time")
    shares = ((_WORDS.get(name, name), time / whole) for name, time in parts)
    return ", ".join(f"{words} {share:.1%}" for words, share in shares if share >= 0.0005)


def _run(training: Training) -> str:
    return f"{_tokens(training.run.tokens)}: {whole_words(training)}"


def whole_words(training: Training) -> str:
    """Say how long a whole run takes, and what it costs."""
    run = training.run
    days = training.value("training_time") / 86400
    words = f"{days:,.1f} days, {training.value('device_time') / 3600:,.0f} device-hours"
    goodput = training.value("goodput")
    if goodput < 1:
        words += f", goodput {goodput:.1%}"
    if run.price is not None:
        words += f", {training.value('training_cost'):,.0f} USD"
    return words


def _tokens(count: float | None) -> str:
    for size, name in ((1e12, "trillion "), (1e9, "billion "), (1e6, "million ")):
        if count and count >= size:
            return f"{count / size:,.4g} {name}tokens"
    return f"{count:,.0f} tokens"


def memory_rows(training: Training) -> list[tuple[str, str]]:
    """Return rows of what a run holds, and whether it fits."""

    def size(name: str) -> str:
        return held(training.value(name))

    run = training.run
    rows = [
        (
            "memory",
            (
                f"{size('memory_required')} of {size('usable_memory')} "
                f"({run.reserve_share:.0%} of {size('memory_capacity')} reserved)"
            ),
        ),
        (
            "",
            (
                f"weights {size('weight_memory')}, gradients in {run.gradients.name} "
                f"{size('gradient_memory')}, optimizer {size('optimizer_memory')}, "
                f"activations {size('activation_memory')}"
            ),
        ),
    ]
    rows += training.question.known.doubts()
    if not training.feasible:
        rows.append(("feasible", f"no: {held(-training.value('memory_free'))} too much"))
    return rows
