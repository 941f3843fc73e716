"""Layer 5: which equations answer which question, a room for each kind of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.equations import Equation

    # Pages and figures show these.
    SOLVERS: dict[str, tuple[Equation, ...]]

__all__ = ["SOLVERS"]


def __getattr__(name: str) -> Any:
    """Load all solvers when their equations are asked for, by the call that a user makes."""
    if name != "SOLVERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mlsim.equations import (
        arrivals,
        causes,
        energy,
        equations_of,
        linear_layer,
        links,
        roofline,
        serving,
        switches,
    )
    from mlsim.solvers.anatomy.limits import EPOCHS
    from mlsim.solvers.footprint.footprint import FOOTPRINT
    from mlsim.solvers.forward.configuration import SOLVER, lookups
    from mlsim.solvers.serving.steps import SERVING, SPREAD
    from mlsim.solvers.training.choices import OPTIMAL
    from mlsim.solvers.training.equations import NETWORK_TRAINING, TRAINING

    solvers = {
        "Engine.solve": (*lookups(), *equations_of(roofline.ON_CHIP, causes.CAUSES), *SOLVER),
        "Engine.serve": (
            *SERVING,
            *SPREAD,
            *equations_of(links.LINK, links.NODES, arrivals.POOLS, serving.SERVING_COUNTS),
            *equations_of(
                switches.OFFLOAD,
                switches.PREFIX_CACHE,
                switches.SERVED_ADAPTERS,
                switches.SPECULATION,
            ),
        ),
        "Engine.load": equations_of(arrivals.ARRIVALS, arrivals.POOLS, arrivals.PROMPT_LINES),
        "Engine.plan": equations_of(arrivals.PLANS),
        "Engine.train": tuple(dict.fromkeys((*TRAINING, *NETWORK_TRAINING))),
        "Engine.check_claim": equations_of(serving.CLAIMED),
        "Engine.footprint": (*FOOTPRINT, *equations_of(energy.FROM_RECORDS)),
        "Engine.optimal_size": OPTIMAL,
        "Engine.gemm": equations_of(
            linear_layer.BREAK_EVEN, linear_layer.LINEAR_LAYER, linear_layer.LINEAR_LAYER_TIMES
        ),
        "estimate_training_for": EPOCHS,
    }
    globals()[name] = solvers
    return solvers
