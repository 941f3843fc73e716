"""The parts of a transformer from the keys of a Hugging Face configuration: windows, experts.

Each function reads one family's keys and returns arguments of Transformer, as
the class of that family in the transformers library builds its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention
from mlsim.workloads.huggingface.config import Config, shown

FULL, SLIDING = "full_attention", "sliding_attention"
Window = dict[str, int]


def every_layer(config: Config) -> Window:
    """Return a window in all layers, if the file has one."""
    return {"window": config.maybe("sliding_window") or 0}


def switched_window(config: Config) -> Window:
    """Return a window in all layers, if the file switches it on."""
    return every_layer(config) if config.flag("use_sliding_window") else {}


def pattern_window(config: Config) -> Window:
    """Return a window in all but the last of each few layers; of two, if nothing else is said."""
    listed = _listed_window(config)
    if listed is not None:
        return listed
    key = "sliding_window_pattern"
    every = config.count(key) if key in config.values else 2
    return every_layer(config) | {"full_every": every} if config.maybe("sliding_window") else {}


def qwen_window(config: Config) -> Window:
    """Return a window that is switched on, and that the first layers don't have."""
    if not config.flag("use_sliding_window"):
        return {}
    listed = _listed_window(config)
    if listed is not None:
        return listed
    first, layers = config.count("max_window_layers", 0), config.count("num_hidden_layers")
    if 0 < first < layers:
        raise config.error(
            f"max_window_layers = {first} gives the last {layers - first} of {layers} layers a "
            "window; only a window in all layers or in none can be told here.",
            "max_window_layers",
        )
    return {} if first else every_layer(config)


def listed_window(config: Config) -> Window:
    """Return a window that is switched on, and told layer by layer.

    Releases of the library differ in what a file without such a list means.
    """
    if not config.flag("use_sliding_window"):
        return {}
    listed = _listed_window(config)
    if listed is None:
        raise config.error(
            "use_sliding_window is true, but no layer_types say in which layers.",
            "use_sliding_window",
        )
    return listed


def layers_of(config: Config, key: str, allowed: Iterable[Any]) -> list[Any] | None:
    """Return what each layer is, or None if the file doesn't say.

    Raises
    ------
    DataFileError
        If it is not a list with an entry for each layer, or has other entries.
    """
    found, allowed = config.values.get(key), tuple(allowed)
    if found is None:
        return None
    listed = config.one_each(key, found)
    other = next((each for each in listed if each not in allowed or isinstance(each, bool)), None)
    if other is not None:
        words = " and ".join(map(str, allowed))
        raise config.error(f"{config.name(key)} may have {words}, not {shown(other)}.", key)
    return listed


def _listed_window(config: Config) -> Window | None:
    """Return the window that `layer_types` tells, or None if there is no such list."""
    types = layers_of(config, "layer_types", (FULL, SLIDING))
    if types is None:
        return None
    full = [number for number, each in enumerate(types, start=1) if each == FULL]
    if len(full) == len(types):
        return {}
    every = full[0] if full else 0
    if full and full != list(range(every, len(types) + 1, every)):
        raise config.error(
            "layer_types must have full attention in the last of each few layers; here it is in "
            f"layers {', '.join(map(str, full[:6]))}{', ...' if len(full) > 6 else ''}.",
            "layer_types",
        )
    return {"window": config.count("sliding_window"), "full_every": every}


def attention(config: Config, **more: Any) -> Attention:
    """Return attention with heads; keys and values have as many, unless the file says."""
    heads, hidden = config.count("num_attention_heads"), config.count("hidden_size")
    kv_heads = more.pop("kv_heads", None) or config.maybe("num_key_value_heads") or heads
    if heads % kv_heads:
        key = "num_key_value_heads" if "num_key_value_heads" in config.values else "num_kv_heads"
        raise config.error(
            f"{config.name(key)} = {kv_heads} must divide "
            f"{config.name('num_attention_heads')} = {heads}.",
            key,
        )
    size = config.maybe("head_dim")
    if size is None and hidden % heads:
        raise config.error(
            f"{config.name('hidden_size')} = {hidden} must be a multiple of "
            f"{config.name('num_attention_heads')} = {heads}"
            f"{', or head_dim must be there' if 'head_dim' in config.values else ''}.",
            "hidden_size",
        )
    return Attention(heads=heads, kv_heads=kv_heads, head_size=size or hidden // heads, **more)


def sizes(config: Config) -> dict[str, Any]:
    """Return the sizes that each family has."""
    return {
        "layers": config.count("num_hidden_layers"),
        "hidden": config.count("hidden_size"),
        "vocabulary": config.count("vocab_size"),
        "context": config.count("max_position_embeddings"),
        "tied_embeddings": config.flag("tie_word_embeddings"),
    }


def gated_network(config: Config, key: str = "intermediate_size") -> FeedForward:
    """Return a feed-forward network with a gate."""
    return FeedForward(size=config.count(key), gated=True)


def gated(
    config: Config,
    *,
    window: Callable[[Config], Window] | None = None,
    experts: Callable[[Config], Experts | None] | None = None,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    norm: str = "rms",
    norms: int = 2,
    after: bool = False,
) -> dict[str, Any]:
    """Return a Llama, or a relative: grouped-query attention and gated networks."""
    bias = config.flag("attention_bias")
    found = experts(config) if experts else None
    dense = replace(gated_network(config), bias=config.flag("mlp_bias"))
    return {
        **sizes(config),
        "attention": attention(
            config,
            bias=bias or qkv_bias,
            output_bias=bias,
            qk_norm=qk_norm,
            # OLMo's norms stand behind each part, and those of queries and keys are wide.
            wide_norm=after and qk_norm,
            **(window(config) if window else {}),
        ),
        "feed_forward": None if found and not found.dense_layers else dense,
        "experts": found,
        "norm": norm,
        "norms": norms,
        "norms_after": after,
    }


def plain(
    config: Config,
    *,
    attention_bias: bool = False,
    bias: bool = True,
    size: str = "intermediate_size",
    inner: str = "",
    positions: int = -1,
    **more: Any,
) -> dict[str, Any]:
    """Return a model of networks without a gate, and of LayerNorm, such as GPT-2.

    `size` is the key of a network's width, and `inner` of one that may be null: without, it is
    four times the model's. `positions` is how many rows a learned table of them has besides
    those that are used, if there is one.
    """
    wide = config.count(size) if size in config.values else config.maybe(inner)
    biased = attention_bias or config.flag("attention_bias")
    if positions >= 0:
        more["positions"] = config.count("max_position_embeddings") + positions
    return {
        **sizes(config),
        "attention": attention(config, bias=biased, output_bias=biased),
        "feed_forward": FeedForward(size=wide or 4 * config.count("hidden_size"), bias=bias),
        "norm": "layer",
        **more,
    }


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
    last = config.flag("do_layer_norm_before") and not config.flag("_remove_final_layer_norm")
    return plain(
        config, attention_bias=bias, bias=bias, size="ffn_dim", positions=2, final_norm=last
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
    return plain(
        config,
        attention=attention(config, kv_heads=kv_heads, bias=bias, output_bias=bias),
        bias=bias,
        inner="ffn_hidden_size",
        # Any number but two is one, in the library's code.
        norms=2 if norms == 2 else 1,
    )


def bert(config: Config) -> dict[str, Any]:
    """Return a BERT without its output layer, as an encoder: pooler and types of tokens."""
    made = plain(config, attention_bias=True, positions=0, embedding_norm=True, final_norm=False)
    encoder = {"decoder": False, "pooler": True, "output_layer": False}
    return {**made, **encoder, "token_types": config.count("type_vocab_size")}


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
    bias = config.flag("qkv_bias")
    made = gated(config, qkv_bias=bias, window=listed_window, experts=qwen_experts)
    if made["experts"]:
        made["experts"] = replace(made["experts"], shared=shared, shared_gate=True)
    return made


def deepseek_experts(config: Config, router_bias: bool) -> Experts:
    """Return experts, some of them shared, in all layers but the first few."""
    return chosen_experts(
        config,
        "n_routed_experts",
        "moe_intermediate_size",
        shared=config.maybe("n_shared_experts", 0) or 0,
        dense_layers=config.count("first_k_dense_replace", 0),
        router_bias=router_bias,
    )


def latent(config: Config, *, router_bias: bool = False) -> dict[str, Any]:
    """Return a DeepSeek: latent attention, and experts but in the first layers.

    The router's bias is e_score_correction_bias, which corrects its choice.
    """
    experts = deepseek_experts(config, router_bias)
    dense = experts.dense_layers
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
        "feed_forward": gated_network(config) if dense else None,
        "experts": experts if dense < config.count("num_hidden_layers") else None,
    }


def gpt_oss(config: Config) -> dict[str, Any]:
    """Return a gpt-oss: sinks, a window in every other layer, experts with biases."""
    bias = config.flag("attention_bias")
    kind: dict[str, Any] = {"bias": bias, "output_bias": bias, "sinks": True}
    return {
        **sizes(config),
        "attention": attention(config, **kind, **pattern_window(config)),
        "experts": replace(mixtral_experts(config), bias=True, router_bias=True),
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
        "experts": replace(mixtral_experts(config), router_bias=config.flag("use_routing_bias")),
    }


def glm4_moe(config: Config) -> dict[str, Any]:
    """Return a GLM-4.5: grouped-query attention, and experts but in the first layers."""
    experts = partial(deepseek_experts, router_bias=True)
    made = gated(config, experts=experts, qk_norm=config.flag("use_qk_norm"))
    # Only queries, keys and values have a bias.
    return made | {"attention": replace(made["attention"], output_bias=False)}
