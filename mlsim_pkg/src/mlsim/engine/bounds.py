"""What an answer was asked of: its device, its estimate, and the bound of the same question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.solvers.answer import Answer


def device_of(answer: Any) -> Any:
    """Return the device of an answer, or each device of its system."""
    return answer.device if hasattr(answer, "run") else answer.hardware


def estimate_of(answer: Any) -> str:
    """Return which estimate an answer is."""
    holder = next(getattr(answer, each) for each in _HOLDERS if hasattr(answer, each))
    return str(holder.estimate)


# Where answers keep what was asked.
_HOLDERS = ("configuration", "service", "run")


def bound_of(answer: Answer) -> Any:
    """Return the answer of the bound to the same question; of training, a time in s."""
    from mlsim.solvers.forward import configuration, profile
    from mlsim.solvers.serving.serving import Serving

    if isinstance(answer, profile.Profile):
        held = answer.configuration
        known = configuration.Configuration.givable
        return profile.solve(
            held.model,
            held.device,
            batch_size=held.batch_size,
            precision=held.precision,
            estimate="bound",
            check_memory=False,
            given={name: value for name, value in held.given.items() if name in known},
        )
    if isinstance(answer, Serving):
        return Serving(replace(answer.service, estimate="bound"), check_memory=False)
    run: Any = answer.run  # type: ignore[attr-defined]
    least = type(answer)(replace(run, estimate="bound"), check_memory=False)
    return float(least.value("step_time"))
