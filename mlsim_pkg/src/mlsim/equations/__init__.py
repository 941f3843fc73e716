"""The physics: every formula of the package, each a small pure function.

Importing this package registers all equations.
"""

from mlsim.equations import convolution, memory, roofline
from mlsim.equations.graph import Plan, plan
from mlsim.equations.registry import EQUATIONS, Equation, equation

__all__ = [
    "EQUATIONS",
    "Equation",
    "Plan",
    "convolution",
    "equation",
    "memory",
    "plan",
    "roofline",
]
