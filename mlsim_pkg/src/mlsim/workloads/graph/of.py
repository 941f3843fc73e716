"""The computation graph of whatever a model is described by."""

from __future__ import annotations

from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.model import Model, Network


def graph(model: Model, tokens: Any = None) -> Graph:
    """Return the computation graph of a network, or of a language model reading `tokens` tokens.

    Raises
    ------
    InvalidValueError
        If tokens are needed and not given, or given and not needed.
    """
    if isinstance(model, Network):
        if tokens is not None:
            raise InvalidValueError(
                f"{model.name} takes one sample of a fixed size: leave tokens= out."
            )
        return graph_of(model)
    raise InvalidValueError(f"{model.name}: language models have no graph yet.")
