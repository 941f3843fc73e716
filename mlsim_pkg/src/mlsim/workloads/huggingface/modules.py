"""Which modules of a checkpoint an operator's weights are in, and which of them a list leaves out.

Checkpoints name what they quantise, or leave alone, by the modules of the model's own code:
"model.layers.3.self_attn.o_proj". Only how many layers are left out matters here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

# Where the layers are, in code of one modality and of several.
_ROOTS = (
    "model.layers",
    "model.language_model.layers",
    "language_model.model.layers",
    "backbone.layers",
)
# Of a layer: where its parts are, unless a family says otherwise.
PARTS = {
    "attention": "self_attn",
    "indexer": "self_attn",
    "state": "linear_attn",
    "feed-forward": "mlp",
    "experts": "mlp.experts.0",
    "shared expert": "mlp.shared_experts",
    "latent": "mlp",
}
# Of an operator: its part, and the modules within it.
_UP, _DOWN = ("gate_proj", "up_proj", "w1", "w3"), ("down_proj", "w2")
OPERATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "queries, keys, values": ("attention", ("q_proj", "k_proj", "v_proj")),
    "attention output": ("attention", ("o_proj",)),
    "query reduction": ("attention", ("q_a_proj",)),
    "queries": ("attention", ("q_b_proj", "q_proj")),
    "key and value compression": ("attention", ("kv_a_proj_with_mqa",)),
    "keys and values": ("attention", ("kv_b_proj",)),
    "index queries": ("indexer", ("indexer.wq_b", "index_q_proj")),
    "index keys": ("indexer", ("indexer.wk", "index_k_proj")),
    "state inputs": ("state", ("in_proj_qkv", "in_proj_qkvz", "in_proj")),
    "state output": ("state", ("out_proj",)),
    "feed-forward, up": ("feed-forward", _UP),
    "feed-forward, down": ("feed-forward", _DOWN),
    "experts, up": ("experts", _UP),
    "experts, down": ("experts", _DOWN),
    "experts, to their width": ("latent", ("fc1_latent_proj",)),
    "experts, from their width": ("latent", ("fc2_latent_proj",)),
    "shared expert, up": ("shared expert", _UP),
    "shared expert, down": ("shared expert", _DOWN),
}


def paths(operator: str, layer: int, places: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the modules of an operator in a layer may be called."""
    part, leaves = OPERATORS[operator]
    return tuple(f"{root}.{layer}.{places[part]}.{leaf}" for root in _ROOTS for leaf in leaves)


def named(pattern: str, path: str) -> bool:
    """Tell whether an entry of a list means a module, or something that it is in.

    >>> named("model.layers.*.self_attn", "model.layers.3.self_attn.o_proj")
    True
    >>> named("gate", "model.layers.3.mlp.gate_proj")
    False
    """
    if pattern.startswith("re:"):
        return re.match(pattern[3:], path) is not None
    if "*" in pattern:
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")
    return f".{pattern}." in f".{path}."


def left_out(
    operator: str, layers: Iterable[int], places: Mapping[str, str], patterns: Sequence[str]
) -> int:
    """Return in how many of these layers a list names the operator's modules."""
    return sum(
        any(named(each, path) for path in paths(operator, layer, places) for each in patterns)
        for layer in layers
    )
