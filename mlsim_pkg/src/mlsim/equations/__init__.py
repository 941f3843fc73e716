"""The physics: every formula of the package, each a small pure function.

Importing this package registers all equations.
"""

from mlsim.equations import (
    calibration,
    collective,
    convolution,
    energy,
    footprint,
    link,
    lookup,
    memory,
    pipeline,
    roofline,
    run,
    service,
    step,
    training,
    training_memory,
    transformer,
)
from mlsim.equations.graph import Plan, plan
from mlsim.equations.registry import EQUATIONS, Equation, equation, equations_of

__all__ = [
    "EQUATIONS",
    "Equation",
    "Plan",
    "calibration",
    "collective",
    "convolution",
    "energy",
    "equation",
    "equations_of",
    "footprint",
    "link",
    "lookup",
    "memory",
    "pipeline",
    "plan",
    "roofline",
    "run",
    "service",
    "step",
    "training",
    "training_memory",
    "transformer",
]
