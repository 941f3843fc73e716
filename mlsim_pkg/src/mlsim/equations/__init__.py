"""The physics: every formula of the package, each a small pure function.

Importing this package registers all equations.
"""

from mlsim.equations import convolution, link, memory, roofline, service, step, transformer
from mlsim.equations.graph import Plan, plan
from mlsim.equations.registry import EQUATIONS, Equation, equation, equations_of

__all__ = [
    "EQUATIONS",
    "Equation",
    "Plan",
    "convolution",
    "equation",
    "equations_of",
    "link",
    "memory",
    "plan",
    "roofline",
    "service",
    "step",
    "transformer",
]
