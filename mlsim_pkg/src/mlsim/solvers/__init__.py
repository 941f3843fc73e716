"""Layer 5: which equations answer which question, a room for each kind of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.solvers.all_equations import SOLVERS

__all__ = ["SOLVERS"]


def __getattr__(name: str) -> Any:
    """Load all solvers when their equations are asked for."""
    if name != "SOLVERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mlsim.solvers.all_equations import SOLVERS

    globals()[name] = SOLVERS
    return SOLVERS
