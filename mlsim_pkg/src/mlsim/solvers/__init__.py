"""Layer 5: which equations answer which question."""

from mlsim.equations import Equation, equations_of, link
from mlsim.solvers.forward import ESTIMATES, SOLVER, Configuration, evaluate
from mlsim.solvers.phase import SERVING
from mlsim.solvers.profile import Profile
from mlsim.solvers.serving import Serving, StepProfile

# Which equations each solver uses, by the name of the call that a user makes.
SOLVERS: dict[str, tuple[Equation, ...]] = {
    "Engine.solve": SOLVER,
    "Engine.serve": (*SERVING, *equations_of(link)),
}

__all__ = [
    "ESTIMATES",
    "SOLVERS",
    "Configuration",
    "Profile",
    "Serving",
    "StepProfile",
    "evaluate",
]
