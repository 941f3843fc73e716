"""The computation graph of any model of the zoo."""

from __future__ import annotations

from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads.graph.language import language_graph
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Network


def graph(model: Any, tokens: int | None = None, *, all_logits: bool = False) -> Graph:
    """Return the computation graph of a model, for one sample.

    Parameters
    ----------
    model
        A network or a language model, of the zoo or of a file.
    tokens
        Of a language model, the length of the sequence; no other network has one.
    all_logits
        Of a language model, whether each token has an output, as in training.

    Raises
    ------
    InvalidValueError
        If a language model has no tokens, or a network has some.
    WrongKindError
        If it is neither.

    >>> from mlsim import Models
    >>> len(graph(Models.LeNet5_Variant).layers), len(graph(Models.GPT2, 512).layers)
    (12, 124)
    """
    if isinstance(model, Transformer):
        if tokens is None:
            several = min(512, model.context)
            raise InvalidValueError(
                f"{model.name} is a language model: say how many tokens a sequence has, such as "
                f"tokens={several} (1 to {model.context:,})."
            )
        return language_graph(model, tokens, all_logits=all_logits)
    if not isinstance(model, Network):
        raise WrongKindError(
            f"a model of the zoo or of a file belongs here, such as Models.ResNet50, not {model!r}."
        )
    if tokens is not None or all_logits:
        wrong = f"tokens={tokens!r}" if tokens is not None else "all_logits=True"
        raise InvalidValueError(
            f"{wrong} is for language models; the input of {model.name} has one size. Leave it out."
        )
    return graph_of(model)
