"""Language models that tests share: those of the zoo, and a tiny one to work out by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism, StepOperator
from mlsim.zoo.spaces import Models

LANGUAGE = tuple(each for each in Models if isinstance(each, Transformer))
DECODERS = tuple(each for each in LANGUAGE if each.decoder)
MIXTURES = tuple(each for each in DECODERS if each.experts)
each_model = pytest.mark.parametrize("model", LANGUAGE, ids=lambda model: model.key)
each_decoder = pytest.mark.parametrize("model", DECODERS, ids=lambda model: model.key)
each_mixture = pytest.mark.parametrize("model", MIXTURES, ids=lambda model: model.key)


def kept_elements(model: Transformer, tokens: int) -> int:
    """Return the elements of keys and values that all layers keep of a sequence."""
    return sum(
        each * mixer.cached_elements * min(tokens, near or tokens)
        for each, mixer, near in _near_and_far(model)
    )


def read_elements(model: Transformer, tokens: int) -> int:
    """Return the elements that the next token reads: an indexer's keys all, others if chosen."""
    found = 0
    for each, mixer, near in _near_and_far(model):
        index = getattr(mixer, "indexer", None)
        keys = index.size if index else 0
        seen = min(tokens, near or mixer.chosen or tokens)
        if getattr(mixer, "shared_cache", False):
            # It reads what an earlier layer has cached, and adds nothing.
            found += (
                each * dataclasses.replace(mixer, shared_cache=False).cached_elements * (seen - 1)
            )
            continue
        found += each * ((mixer.cached_elements - keys) * seen + keys * tokens)
    return found


def _near_and_far(model: Transformer) -> list[tuple[int, Any, int]]:
    """Return how many layers have which attention or state, and the last tokens they see."""
    found: list[tuple[int, Any, int]] = []
    for each, mixer in model.mixers:
        far = each // mixer.full_every if mixer.full_every else 0
        found += [(far, mixer, 0), (each - far, mixer, mixer.window)]
    return found


def tiny(**changes: Any) -> Transformer:
    """Return a transformer of two layers, 4 wide, small enough to work out by hand.

    Two heads of 2 share one key and one value; the feed-forward network has a
    gate and 6 features inside; 10 tokens are known. For one token:

                          parameters  elements  multiply-adds
        embedding              40         8          0
        norms (5)               4         8          0
        queries, keys, values  32         8         32
        attention               0         8          8 for each pair; caches 4
        attention output       16        12         16
        feed-forward, up       48        10         48
        feed-forward, down     24        14         24
        output layer           40        14         40, for the last token only
    """
    arguments = {
        "key": "Tiny",
        "name": "Tiny",
        "architecture": "Transformer decoder",
        "source": "vaswani2017attention",
        "layers": 2,
        "hidden": 4,
        "vocabulary": 10,
        "context": 32,
        "attention": Attention(heads=2, kv_heads=1, head_size=2),
        "feed_forward": FeedForward(size=6, gated=True),
    }
    return Transformer(**{**arguments, **changes})


def by_name(model: Transformer, layout: Parallelism | None = None) -> dict[str, StepOperator]:
    return {operator.name: operator for operator in model.operators(layout)}


def counts(operator: StepOperator) -> dict[str, float]:
    """Return what is not as it is by default, without names and repeats.

    No token sees more than the context of 32, and no step has more tokens.
    """
    default = StepOperator(name="", kind="", attention_window=32, cache_window=32, token_limit=32)
    return {
        each.name: getattr(operator, each.name)
        for each in dataclasses.fields(operator)
        if each.name not in ("name", "kind", "repeats", "resident_repeats", "unquantised")
        and getattr(operator, each.name) != getattr(default, each.name)
    }


def shared_by(model: Transformer, tensor: int) -> bool:
    """Tell whether so many devices can share each matrix."""
    try:
        model.check_layout(Parallelism(tensor=tensor))
    except InvalidValueError:
        return False
    return True
