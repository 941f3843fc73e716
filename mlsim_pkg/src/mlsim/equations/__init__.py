"""The physics: every formula of the package, each a small pure function.

A module contains the equations of related topics and registers them when it is imported, so a
question loads the topics that it needs. `EQUATIONS` here are those of all topics.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from mlsim.equations import registry
from mlsim.equations.graph import Plan, plan
from mlsim.equations.registry import Equation, Topic, equations_of

__all__ = ["EQUATIONS", "Equation", "Plan", "Topic", "equations_of", "plan"]

EQUATIONS: dict[str, Equation]


def __getattr__(name: str) -> Any:
    """Import all topics when all equations are asked for."""
    if name != "EQUATIONS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for each in iter_modules(__path__):
        import_module(f"{__name__}.{each.name}")
    globals()[name] = registry.sorted_by_topic()
    return globals()[name]
