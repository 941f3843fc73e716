"""The equations of every solver, for pages and figures that show them."""

from __future__ import annotations

from mlsim.equations import (
    Equation,
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

# By the name of the call that a user makes.
SOLVERS: dict[str, tuple[Equation, ...]] = {
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
