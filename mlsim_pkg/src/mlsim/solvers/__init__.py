"""Layer 5: which equations answer which question."""

from mlsim.equations import Equation, equations_of, link
from mlsim.solvers.evaluation import evaluate
from mlsim.solvers.footprint.account import FOOTPRINT
from mlsim.solvers.footprint.footprint import Footprint
from mlsim.solvers.footprint.interval import Interval
from mlsim.solvers.forward.configuration import LOOKUP, SOLVER, Configuration
from mlsim.solvers.forward.profile import Profile
from mlsim.solvers.inputs import ESTIMATES
from mlsim.solvers.load import Load
from mlsim.solvers.serving.phase import SERVING
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.step_profile import StepProfile
from mlsim.solvers.training.optimal_size import OPTIMAL
from mlsim.solvers.training.plan import TRAINING
from mlsim.solvers.training.training import Training

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
