"""Layer 5: which equations answer which question."""

from mlsim.equations import Equation, equations_of, link
from mlsim.solvers.account import FOOTPRINT
from mlsim.solvers.footprint import Footprint
from mlsim.solvers.forward import ESTIMATES, LOOKUP, SOLVER, Configuration, evaluate
from mlsim.solvers.interval import Interval
from mlsim.solvers.load import Load
from mlsim.solvers.optimal import OPTIMAL
from mlsim.solvers.phase import SERVING
from mlsim.solvers.profile import Profile
from mlsim.solvers.run import TRAINING
from mlsim.solvers.serving import Serving
from mlsim.solvers.step_profile import StepProfile
from mlsim.solvers.training import Training

# Which equations each solver uses, by the name of the call that a user makes.
SOLVERS: dict[str, tuple[Equation, ...]] = {
    "Engine.solve": (*LOOKUP, *SOLVER),
    "Engine.serve": (*SERVING, *equations_of(link)),
    "Engine.train": TRAINING,
    "Engine.footprint": FOOTPRINT,
    "Engine.optimal_size": OPTIMAL,
}

__all__ = [
    "ESTIMATES",
    "SOLVERS",
    "Configuration",
    "Footprint",
    "Interval",
    "Load",
    "Profile",
    "Serving",
    "StepProfile",
    "Training",
    "evaluate",
]
