"""Layer 5: which equations answer which question."""

from mlsim.equations import Equation
from mlsim.solvers.forward import ESTIMATES, SOLVER, Configuration, evaluate
from mlsim.solvers.profile import Profile

# Which equations each solver uses, by the name of the call that a user makes.
SOLVERS: dict[str, tuple[Equation, ...]] = {"Engine.solve": SOLVER}

__all__ = ["ESTIMATES", "SOLVERS", "Configuration", "Profile", "evaluate"]
