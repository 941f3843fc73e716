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
        break_even,
        causes,
        claimed,
        equations_of,
        from_records,
        linear_layer,
        linear_layer_times,
        link,
        nodes,
        offload,
        on_chip,
        plans,
        pools,
        prefix_cache,
        prompt_lines,
        served_adapters,
        serving_counts,
        speculation,
    )
    from mlsim.solvers.anatomy.limits import EPOCHS
    from mlsim.solvers.footprint.account import FOOTPRINT
    from mlsim.solvers.forward.configuration import SOLVER, lookups
    from mlsim.solvers.serving.phase import SERVING, SPREAD
    from mlsim.solvers.training.optimal_size import OPTIMAL
    from mlsim.solvers.training.plan import NETWORK_TRAINING, TRAINING

    solvers = {
        "Engine.solve": (*lookups(), *equations_of(on_chip, causes), *SOLVER),
        "Engine.serve": (
            *SERVING,
            *SPREAD,
            *equations_of(link, nodes, pools, serving_counts),
            *equations_of(offload, prefix_cache, served_adapters, speculation),
        ),
        "Engine.load": equations_of(arrivals, pools, prompt_lines),
        "Engine.plan": equations_of(plans),
        "Engine.train": tuple(dict.fromkeys((*TRAINING, *NETWORK_TRAINING))),
        "Engine.check_claim": equations_of(claimed),
        "Engine.footprint": (*FOOTPRINT, *equations_of(from_records)),
        "Engine.optimal_size": OPTIMAL,
        "Engine.gemm": equations_of(break_even, linear_layer, linear_layer_times),
        "estimate_training_for": EPOCHS,
    }
    globals()[name] = solvers
    return solvers
