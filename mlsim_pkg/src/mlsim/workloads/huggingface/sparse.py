"""Models whose attention looks at chosen tokens only, from a Hugging Face configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.huggingface.attention import attention
from mlsim.workloads.huggingface.experts import chosen_experts, latent, shared_experts
from mlsim.workloads.huggingface.mixed import counted, layers_of, places
from mlsim.workloads.huggingface.parts import sizes
from mlsim.workloads.huggingface.values import Config, shown
from mlsim.workloads.indexer import Indexer


def sparse_latent(config: Config) -> dict[str, Any]:
    """Return a DeepSeek-V3.2 or GLM-5: latent attention to tokens that an indexer chooses."""
    made = latent(config, router_bias=True)
    far = replace(made["attention"], chosen=config.count("index_topk"))
    own = replace(
        far,
        indexer=Indexer(heads=config.count("index_n_heads"), size=config.count("index_head_dim")),
    )
    layers = config.count("num_hidden_layers")
    routed = layers_of(config, "mlp_layer_types", ("dense", "sparse"))
    dense = config.count("first_k_dense_replace", 0)
    if routed is not None and routed.count("dense") != min(dense, layers):
        raise config.error(
            f"mlp_layer_types has {routed.count('dense')} dense layers, first_k_dense_replace = "
            f"{dense}.",
            "mlp_layer_types",
        )
    layers_of(config, "layer_types", ("deepseek_sparse_attention", "indexed_attention"))
    kinds = _indexers(config)
    return made | {
        "attention": own,
        "mixer_layers": counted(kinds, {"full": own, "shared": far}),
        "places": places(kinds, indexer="full"),
    }


def _indexers(config: Config) -> list[str]:
    """Return which layers have an indexer of their own; the others look at what one chose."""
    kinds = layers_of(config, "indexer_types", ("full", "shared"))
    if kinds is None:
        frequency = config.maybe("index_topk_freq") or 1
        offset = config.maybe("index_skip_topk_offset", 0)
        first = 2 if offset is None else offset
        kinds = [
            "shared" if max(layer - first + 1, 0) % frequency else "full"
            for layer in range(config.count("num_hidden_layers"))
        ]
    if kinds[0] != "full":
        raise config.error("the first layer must have an indexer of its own.", "indexer_types")
    return kinds


# What the sparse attention of a MiniMax-M3 may not say otherwise.
_SPARSE_FIXED: dict[str, tuple[Any, ...]] = {
    "use_sparse_attention": (True,),
    "sparse_init_block": (0, None),
    "sparse_score_type": ("max", None),
}
_SPARSE_COUNTS = (
    "sparse_index_dim",
    "sparse_num_index_heads",
    "sparse_topk_blocks",
    "sparse_block_size",
)
# Which layers have it, whose indexers have no values; and blocks among those chosen.
_SPARSE_OTHER = ("sparse_attention_freq", "sparse_disable_index_value", "sparse_local_block")


def minimax_m3(config: Config) -> dict[str, Any]:
    """Return a MiniMax-M3: grouped-query attention to blocks of tokens that an indexer chooses.

    A token looks at so many whole blocks at most, its own among them.
    """
    told, key = config.values["sparse_attention_config"], "sparse_attention_config"
    layers = config.count("num_hidden_layers")
    if not isinstance(told, dict):
        raise config.error(f"{key} must be an object, not {shown(told)}.", key)
    for name, value in told.items():
        allowed = _SPARSE_FIXED.get(name)
        if allowed and value not in allowed:
            raise config.error(
                f"{key}.{name} = {shown(value)} is not understood, only {shown(allowed[0])}.", key
            )
        if not allowed and name not in (*_SPARSE_COUNTS, *_SPARSE_OTHER):
            raise config.error(f"{key}.{name} is not understood.", key)
    inner = Config(config.source, {**config.values, **told}, config.spelled, config.within)
    sparse = layers_of(inner, "sparse_attention_freq", (0, 1))
    routed = layers_of(config, "moe_layer_freq", (0, 1))
    if (
        sparse is None
        or routed is None
        or (told.get("sparse_disable_index_value", sparse) != sparse)
    ):
        raise config.error(
            f"moe_layer_freq and {key}.sparse_attention_freq must say what each layer is, and "
            "sparse_disable_index_value the same as the latter.",
            key,
        )
    size, heads, blocks, block = (inner.count(name) for name in _SPARSE_COUNTS)
    far = attention(config, qk_norm=config.flag("use_qk_norm"))
    near = replace(
        far, chosen=blocks * block, indexer=Indexer(heads=heads, size=size, weighted=False)
    )
    experts = chosen_experts(
        config,
        "num_local_experts",
        "intermediate_size",
        router_bias=config.flag("use_routing_bias"),
        shared=shared_experts(config, "shared_intermediate_size", "intermediate_size"),
    )
    network = FeedForward(size=config.count("dense_intermediate_size"), gated=True)
    return {
        **sizes(config),
        "attention": near if any(sparse) else far,
        "experts": experts if any(routed) else None,
        "feed_forward": network if sum(routed) < layers else None,
        "mixer_layers": counted(sparse, {1: near, 0: far}),
        "feed_layers": counted(routed, {0: network, 1: experts}),
        "places": places(routed, feed_forward=0, experts=1) | places(sparse, indexer=1),
    }
