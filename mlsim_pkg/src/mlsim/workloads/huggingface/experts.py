"""Experts from the keys of a Hugging Face configuration, and families that have them throughout.

As in `parts`, each function reads one family's keys and returns arguments of Transformer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mlsim.workloads.blocks import Experts, FeedForward
from mlsim.workloads.huggingface.attention import attention, listed_window, pattern_window
from mlsim.workloads.huggingface.parts import gated, sizes
from mlsim.workloads.huggingface.values import Config
from mlsim.workloads.latent import LatentAttention


def chosen_experts(
    config: Config, count: str, size: str, *, chosen: str = "num_experts_per_tok", **more: Any
) -> Experts:
    """Return experts, of which there must be as many as a token is sent to."""
    experts, number = config.count(count), config.count(chosen)
    if number > experts:
        raise config.error(
            f"{config.name(chosen)} = {number} experts can't be chosen from "
            f"{config.name(count)} = {experts}.",
            chosen,
        )
    return Experts(count=experts, per_token=number, size=config.count(size), **more)


def shared_experts(config: Config, shared: str, size: str) -> int:
    """Return how many experts a shared network is as wide as.

    Raises
    ------
    DataFileError
        If it is no multiple of an expert's width.
    """
    if config.count(shared) % config.count(size):
        raise config.error(
            f"{shared} = {config.count(shared)} must be a multiple of {size} = "
            f"{config.count(size)}: it is told as so many experts here.",
            shared,
        )
    return config.count(shared) // config.count(size)


def mixtral_experts(config: Config) -> Experts:
    """Return experts in all layers."""
    return chosen_experts(config, "num_local_experts", "intermediate_size")


def qwen_experts(config: Config) -> Experts | None:
    """Return experts in all layers but the first few; None if there are none at all."""
    layers, step = config.count("num_hidden_layers"), config.count("decoder_sparse_step")
    only = set(config.entries("mlp_only_layers", int) or [])
    dense = sum(1 for layer in only if 0 <= layer < layers)
    if step > layers:
        dense = layers
    elif step > 1:
        raise config.error(
            f"decoder_sparse_step = {step} gives experts to one layer in {step}; here all layers "
            "but the first few have them.",
            "decoder_sparse_step",
        )
    elif dense and not only.issuperset(range(dense)):
        raise config.error(
            "mlp_only_layers must be the first layers, 0, 1, ..., since here only they can be "
            "without experts.",
            "mlp_only_layers",
        )
    experts = chosen_experts(config, "num_experts", "moe_intermediate_size", dense_layers=dense)
    return experts if dense < layers else None


def qwen2_moe(config: Config) -> dict[str, Any]:
    """Return a Qwen2 with experts, one of them shared, as wide as several, behind a gate."""
    shared = shared_experts(config, "shared_expert_intermediate_size", "moe_intermediate_size")
    made = gated(
        config,
        qkv_bias=config.flag("qkv_bias"),
        window=listed_window,
        experts=qwen_experts,
    )
    if made["experts"]:
        made["experts"] = replace(made["experts"], shared=shared, shared_gate=True)
    return made


def latent(config: Config, *, router_bias: bool = False) -> dict[str, Any]:
    """Return a DeepSeek: latent attention, and experts but in the first layers.

    The router's bias is e_score_correction_bias, which corrects its choice.
    """
    layers, dense = config.count("num_hidden_layers"), config.count("first_k_dense_replace", 0)
    experts = chosen_experts(
        config,
        "n_routed_experts",
        "moe_intermediate_size",
        shared=config.maybe("n_shared_experts", 0) or 0,
        dense_layers=dense,
        router_bias=router_bias,
    )
    return {
        **sizes(config),
        "attention": LatentAttention(
            heads=config.count("num_attention_heads"),
            query_rank=config.maybe("q_lora_rank") or 0,
            kv_rank=config.count("kv_lora_rank"),
            content_size=config.count("qk_nope_head_dim"),
            rope_size=config.count("qk_rope_head_dim"),
            value_size=config.count("v_head_dim"),
        ),
        "feed_forward": (
            FeedForward(size=config.count("intermediate_size"), gated=True) if dense else None
        ),
        "experts": experts if dense < layers else None,
    }


def gpt_oss(config: Config) -> dict[str, Any]:
    """Return a gpt-oss: sinks, a window in every other layer, experts with biases."""
    bias = config.flag("attention_bias")
    return {
        **sizes(config),
        "attention": attention(
            config, bias=bias, output_bias=bias, sinks=True, **pattern_window(config)
        ),
        "experts": chosen_experts(
            config, "num_local_experts", "intermediate_size", bias=True, router_bias=True
        ),
        # Its published weights are in 4 bits in the experts only.
        "quantised": "experts",
    }


def minimax_m2(config: Config) -> dict[str, Any]:
    """Return a MiniMax-M2: a norm over all heads together, experts in all layers."""
    kinds = config.entries("attn_type_list", int) or []
    if set(kinds) - {1}:
        raise config.error(
            "attn_type_list may have 1 only, which is full attention.", "attn_type_list"
        )
    norm = config.flag("use_qk_norm")
    return {
        **sizes(config),
        "attention": attention(config, qk_norm=norm, wide_norm=norm),
        "experts": chosen_experts(
            config,
            "num_local_experts",
            "intermediate_size",
            router_bias=config.flag("use_routing_bias"),
        ),
    }


def glm4_moe(config: Config) -> dict[str, Any]:
    """Return a GLM-4.5: grouped-query attention, and experts but in the first layers."""
    experts = partial(
        chosen_experts,
        count="n_routed_experts",
        size="moe_intermediate_size",
        router_bias=True,
        shared=config.maybe("n_shared_experts", 0) or 0,
        dense_layers=config.count("first_k_dense_replace", 0),
    )
    made = gated(config, experts=experts, qk_norm=config.flag("use_qk_norm"))
    # Only queries, keys and values have a bias.
    return made | {"attention": replace(made["attention"], output_bias=False)}
