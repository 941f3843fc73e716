"""Models whose attention looks at chosen tokens only, from a Hugging Face configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.workloads.huggingface.experts import latent
from mlsim.workloads.huggingface.mixed import counted, layers_of
from mlsim.workloads.huggingface.values import Config
from mlsim.workloads.latent import Indexer


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
