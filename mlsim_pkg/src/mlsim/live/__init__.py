"""Questions and figures that a reader moves where scripts run."""

from __future__ import annotations

from mlsim.live.compiled import Compiled, compiled
from mlsim.live.formulas import formula
from mlsim.live.handles import Choice, Handle

__all__ = ["Choice", "Compiled", "Handle", "compiled", "formula"]
