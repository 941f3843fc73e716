"""Layouts over nodes, shared sequences and uneven experts that can't be, each with what can."""

from __future__ import annotations

import math
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.serving.levels import UNIFORM
from mlsim.systems import Cluster
from mlsim.systems.spread import spread
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism


def check_nodes(cluster: Cluster, parallelism: Parallelism) -> None:
    """Refuse a layout whose groups would have to be torn to find room.

    Raises
    ------
    InvalidValueError
        If it takes more nodes than there are.
    """
    each = cluster.node.devices
    lies = spread(parallelism, each)
    if lies.nodes > cluster.nodes:
        raise InvalidValueError(
            f"{parallelism} on nodes of {each} takes {lies.nodes:,} nodes, since what fits in a "
            f"node is not torn; {cluster.name} has {cluster.nodes:,}. Choose sizes that divide "
            f"{each}, such as tensor_parallel={math.gcd(parallelism.tensor, each)}, or use fewer "
            "devices."
        )


def check_context_parallel(parallelism: Parallelism, model: Transformer) -> None:
    """Refuse to share the sequences of a model where that is not modeled.

    Raises
    ------
    WrongKindError
        If the model is an encoder, keeps states, or has layers that share a cache.
    """
    if parallelism.context == 1:
        return
    why = ""
    if not model.decoder:
        why = "is an encoder, which keeps no cache"
    elif model.state_bytes_per_sequence:
        why = "has layers with a state, which goes through a sequence in order"
    elif model.shares_cache:
        why = "has layers that read the cache of an earlier layer"
    if why:
        raise WrongKindError(
            f"context_parallel = {parallelism.context}: {model.name} {why}. How devices would "
            "share its sequences is not modeled: use tensor_parallel or data_parallel."
        )


def check_number(value: Any) -> float | str:
    """Return the tokens of the busiest device over the mean, wherever experts are.

    Raises
    ------
    InvalidValueError
        If it is no number from 1 up, and no rule.
    """
    if value == UNIFORM and isinstance(value, str):
        return UNIFORM
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 1:
        raise InvalidValueError(
            f"expert_imbalance must be a number from 1 up (tokens of the busiest device over the "
            f'mean), or "{UNIFORM}" for routing at random; not {value!r}.'
        )
    return float(value)


def check_imbalance(value: Any, parallelism: Parallelism, model: Transformer) -> float | str:
    """Return the tokens of the busiest device over the mean: a number, or the rule for it.

    Raises
    ------
    InvalidValueError
        If it is no number that can be, or no experts are spread.
    """
    found = check_number(value)
    if found == 1.0:
        return found
    spread_over = parallelism.expert
    if not model.experts or spread_over == 1:
        raise InvalidValueError(
            f"expert_imbalance = {value!r}, but {model.name} has its experts on one group of "
            "devices, which all have as much to do. Set expert_parallel, or leave it out."
        )
    if found != UNIFORM and float(found) > spread_over:
        raise InvalidValueError(
            f"expert_imbalance = {value!r} is more than expert_parallel = {spread_over}: one "
            f"device can't have more than all tokens. It is from 1 to {spread_over}."
        )
    return found
