"""The parts of a transformer from the keys of a Hugging Face configuration.

Each function reads one family's keys and returns arguments of Transformer, as
the class of that family in the transformers library builds its layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlsim.workloads.blocks import Experts, FeedForward, LatentAttention
from mlsim.workloads.huggingface.attention import (
    Window,
    attention,
    listed_window,
    pattern_window,
    whole_sequence,
)
from mlsim.workloads.huggingface.values import Config


def _sizes(config: Config) -> dict[str, Any]:
    return {
        "layers": config.count("num_hidden_layers"),
        "hidden": config.count("hidden_size"),
        "vocabulary": config.count("vocab_size"),
        "context": config.count("max_position_embeddings"),
        "tied_embeddings": config.flag("tie_word_embeddings"),
    }


def gated(
    config: Config,
    *,
    window: Callable[[Config], Window] = whole_sequence,
    experts: Callable[[Config], Experts | None] | None = None,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    norms: int = 2,
) -> dict[str, Any]:
    """Return a Llama, or a relative: grouped-query attention and gated networks."""
    bias = config.flag("attention_bias")
    found = experts(config) if experts else None
    dense = FeedForward(
        size=config.count("intermediate_size"), gated=True, bias=config.flag("mlp_bias")
    )
    return {
        **_sizes(config),
        "attention": attention(
            config,
            bias=bias or qkv_bias,
            output_bias=bias,
            qk_norm=qk_norm,
            **window(config),
        ),
        "feed_forward": None if found and not found.dense_layers else dense,
        "experts": found,
        "norms": norms,
    }


def _experts(config: Config, count: str, size: str, **more: Any) -> Experts:
    """Return experts, of which there must be as many as a token is sent to."""
    experts, chosen = config.count(count), config.count("num_experts_per_tok")
    if chosen > experts:
        raise config.error(
            f"{config.name('num_experts_per_tok')} = {chosen} experts can't be chosen from "
            f"{config.name(count)} = {experts}.",
            "num_experts_per_tok",
        )
    return Experts(count=experts, per_token=chosen, size=config.count(size), **more)


def mixtral_experts(config: Config) -> Experts:
    """Return experts in all layers."""
    return _experts(config, "num_local_experts", "intermediate_size")


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
    experts = _experts(config, "num_experts", "moe_intermediate_size", dense_layers=dense)
    return experts if dense < layers else None


def qwen2_moe(config: Config) -> dict[str, Any]:
    """Return a Qwen2 with experts, one of them shared, as wide as several, behind a gate."""
    size, shared = "moe_intermediate_size", "shared_expert_intermediate_size"
    if config.count(shared) % config.count(size):
        raise config.error(
            f"{shared} = {config.count(shared)} must be a multiple of {size} = "
            f"{config.count(size)}: it is told as so many experts here.",
            shared,
        )
    made = gated(
        config,
        qkv_bias=config.flag("qkv_bias"),
        window=listed_window,
        experts=qwen_experts,
    )
    if made["experts"]:
        made["experts"] = replace(
            made["experts"], shared=config.count(shared) // config.count(size), shared_gate=True
        )
    return made


def deepseek(config: Config, *, router_bias: bool = False) -> dict[str, Any]:
    """Return a DeepSeek: latent attention, and experts but in the first layers.

    The router's bias is e_score_correction_bias, which corrects its choice.
    """
    layers, dense = config.count("num_hidden_layers"), config.count("first_k_dense_replace", 0)
    experts = _experts(
        config,
        "n_routed_experts",
        "moe_intermediate_size",
        shared=config.maybe("n_shared_experts", 0) or 0,
        dense_layers=dense,
        router_bias=router_bias,
    )
    return {
        **_sizes(config),
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
        **_sizes(config),
        "attention": attention(
            config, bias=bias, output_bias=bias, sinks=True, **pattern_window(config)
        ),
        "experts": _experts(
            config, "num_local_experts", "intermediate_size", bias=True, router_bias=True
        ),
        # Its published weights are in 4 bits in the experts only.
        "quantised": "experts",
    }


def _plain(config: Config, *, bias: bool, size: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a network without a gate, four times as wide unless the file says, and LayerNorm."""
    wide = size or 4 * config.count("hidden_size")
    return {
        **_sizes(config),
        "feed_forward": FeedForward(size=wide, bias=bias),
        "norm": "layer",
        **more,
    }


def gpt2(config: Config) -> dict[str, Any]:
    """Return a GPT-2: biases, and a learned table of positions."""
    return _plain(
        config,
        bias=True,
        size=config.maybe("n_inner"),
        attention=attention(config, bias=True, output_bias=True),
        positions=config.count("max_position_embeddings"),
    )


def gptj(config: Config) -> dict[str, Any]:
    """Return a GPT-J: attention and network in parallel after one norm, no bias in attention."""
    return _plain(
        config,
        bias=True,
        size=config.maybe("n_inner"),
        attention=attention(config),
        norms=1,
        output_bias=True,
    )


def gpt_neox(config: Config) -> dict[str, Any]:
    """Return a GPT-NeoX: parallel or not, it has a norm before each part."""
    bias = config.flag("attention_bias")
    return _plain(
        config,
        bias=True,
        size=config.count("intermediate_size"),
        attention=attention(config, bias=bias, output_bias=bias),
    )


def bloom(config: Config) -> dict[str, Any]:
    """Return a BLOOM: biases, a norm on the embedding, no positions."""
    return _plain(
        config,
        bias=True,
        attention=attention(config, bias=True, output_bias=True),
        embedding_norm=True,
    )


def opt(config: Config) -> dict[str, Any]:
    """Return an OPT: two rows of its table of positions are never used."""
    hidden, embedded = config.count("hidden_size"), config.maybe("word_embed_proj_dim")
    if embedded not in (None, hidden):
        raise config.error(
            f"word_embed_proj_dim = {embedded} is not hidden_size = {hidden}: an embedding of "
            "another width than the layers can't be told here.",
            "word_embed_proj_dim",
        )
    bias = config.flag("enable_bias")
    removed = config.flag("_remove_final_layer_norm")
    return _plain(
        config,
        bias=bias,
        size=config.count("ffn_dim"),
        attention=attention(config, bias=bias, output_bias=bias),
        positions=config.count("max_position_embeddings") + 2,
        final_norm=config.flag("do_layer_norm_before") and not removed,
    )


def falcon(config: Config) -> dict[str, Any]:
    """Return a Falcon: one KV head, or groups in the new architecture."""
    bias, new = config.flag("bias"), config.flag("new_decoder_architecture")
    kv_heads = 1 if config.flag("multi_query") else config.count("num_attention_heads")
    if new:
        kv_heads = config.maybe("num_kv_heads") or config.count("num_attention_heads")
    norms = config.maybe("num_ln_in_parallel_attn") or (2 if new else 1)
    if not config.flag("parallel_attn"):
        norms = 2
    return _plain(
        config,
        bias=bias,
        size=config.maybe("ffn_hidden_size"),
        attention=attention(config, kv_heads=kv_heads, bias=bias, output_bias=bias),
        # Any number but two is one, in the library's code.
        norms=2 if norms == 2 else 1,
    )


def bert(config: Config) -> dict[str, Any]:
    """Return a BERT without its output layer, as an encoder: pooler and types of tokens."""
    return _plain(
        config,
        bias=True,
        size=config.count("intermediate_size"),
        attention=attention(config, bias=True, output_bias=True),
        positions=config.count("max_position_embeddings"),
        token_types=config.count("type_vocab_size"),
        decoder=False,
        embedding_norm=True,
        final_norm=False,
        pooler=True,
        output_layer=False,
    )
