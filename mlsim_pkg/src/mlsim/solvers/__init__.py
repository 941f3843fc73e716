"""Layer 5: which equations answer which question."""

from mlsim.solvers.forward import ESTIMATES, Configuration, evaluate
from mlsim.solvers.profile import Profile

__all__ = ["ESTIMATES", "Configuration", "Profile", "evaluate"]
