"""What a training run can't answer: why, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError
from mlsim.solvers.training.names import OF_ADAPTERS
from mlsim.solvers.training.training_report import advice
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.training.training import Training


def must_get_on(training: Training) -> None:
    """Refuse a run that loses more to failures than it gains between them."""
    if training._value("goodput") > 0:
        return
    parts = {
        name: text(training._value(f"{name}_{unit}"), "s")
        for name, unit in (("failure", "interval"), ("checkpoint", "time"), ("restart", "time"))
    }
    raise InvalidValueError(
        f"such a run never ends: {training.devices:,} devices fail every {parts['failure']} on "
        f"average, a checkpoint takes {parts['checkpoint']} and a restart {parts['restart']}. "
        "Give a longer mean_time_to_failure (of one device), a faster checkpoint_bandwidth, "
        "or a shorter restart_time."
    )


def missing(training: Training, name: str, words: str) -> str:
    """Say why there is no such result, and what would have to be given for it."""
    if not training.has_parts and name not in training.question.known:
        return (
            f"{name} is no result of the bound, which is the least time of a whole step: "
            'ask estimate="roofline".'
        )
    if name in OF_ADAPTERS:
        return f"{name} is of adapters: give adapters=LoRA(rank=16), or QLoRA(rank=16)."
    for needed, example in (
        ("training_tokens", "tokens=300e9"),
        ("device_price", "price='2 USD/h'"),
        ("checkpoint_bandwidth", "checkpoint_bandwidth='100 GB/s'"),
        ("restart_time", "restart_time='10 min'"),
        ("mean_time_to_failure", "mean_time_to_failure='50000 h'"),
    ):
        if needed == name:
            return f"{name} was not given: give it as {example}."
        if needed in words:
            return f"{name} needs {needed}, which was not given: such as {example}."
    return words


def too_large(training: Training) -> str:
    """Say by how much it does not fit, and what would help."""
    run = training.run
    return (
        f"Training {run.model.name} on {run.hardware_name} with micro-batches of "
        f"{run.micro_batch:,.0f} x {run.sequence_tokens:,.0f} tokens needs "
        f"{held(training._value('memory_required'))} on each device, which has "
        f"{held(training._value('memory_capacity'))}, {run.reserve_share:.0%} of it reserved: "
        f"{held(-training._value('memory_free'))} too much. {advice(training)} "
        "check_memory=False gives the time it would take."
    )
