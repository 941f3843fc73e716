"""Layer 5: which equations answer which question, a room for each kind of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.solvers.all_equations import SOLVERS

__all__ = [
    "COMPUTE_BOUND",
    "DOES_NOT_FIT",
    "MEMORY_BOUND",
    "NETWORK_BOUND",
    "OVERHEAD_BOUND",
    "SOLVERS",
]

# What binds for most of the time, as answers name it; the last but one is of the calibrated
# estimate, whose operators take time to start.
MEMORY_BOUND, COMPUTE_BOUND, NETWORK_BOUND = "Memory Bound", "Compute Bound", "Network Bound"
OVERHEAD_BOUND, DOES_NOT_FIT = "Overhead Bound", "Does Not Fit"


def __getattr__(name: str) -> Any:
    """Load all solvers when their equations are asked for."""
    if name != "SOLVERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mlsim.solvers.all_equations import SOLVERS

    globals()[name] = SOLVERS
    return SOLVERS
