"""Models that look at chosen tokens, or keep a state, from a Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlsim.workloads.blocks import DeltaRule, Experts, FeedForward, Indexer, StateSpace
from mlsim.workloads.huggingface.config import Config, shown
from mlsim.workloads.huggingface.mixed import counted, every, fed, places
from mlsim.workloads.huggingface.parts import (
    FULL,
    attention,
    chosen_experts,
    gated_network,
    latent,
    layers_of,
    mixtral_experts,
    shared_experts,
    sizes,
)


def sparse_latent(config: Config) -> dict[str, Any]:
    """Return a DeepSeek-V3.2 or GLM-5: latent attention to tokens that an indexer chooses."""
    made = latent(config, router_bias=True)
    far = replace(made["attention"], chosen=config.count("index_topk"))
    heads, size = config.count("index_n_heads"), config.count("index_head_dim")
    own = replace(far, indexer=Indexer(heads=heads, size=size))
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
    *("sparse_index_dim", "sparse_num_index_heads"),
    *("sparse_topk_blocks", "sparse_block_size"),
)
# Which layers have it, whose indexers have no values; and blocks among those chosen.
_SPARSE_OTHER = ("sparse_attention_freq", "sparse_disable_index_value", "sparse_local_block")


def minimax_m3(config: Config) -> dict[str, Any]:
    """Return a MiniMax-M3: grouped-query attention to blocks of tokens that an indexer chooses.

    A token looks at so many whole blocks at most, its own among them.
    """
    given, key = config.values["sparse_attention_config"], "sparse_attention_config"
    if not isinstance(given, dict):
        raise config.error(f"{key} must be an object, not {shown(given)}.", key)
    for name, value in given.items():
        allowed = _SPARSE_FIXED.get(name)
        if allowed and value not in allowed:
            raise config.error(
                f"{key}.{name} = {shown(value)} is not understood, only {shown(allowed[0])}.", key
            )
        if not allowed and name not in (*_SPARSE_COUNTS, *_SPARSE_OTHER):
            raise config.error(f"{key}.{name} is not understood.", key)
    inner = Config(config.source, {**config.values, **given}, config.spelled, config.within)
    sparse = layers_of(inner, "sparse_attention_freq", (0, 1))
    routed = layers_of(config, "moe_layer_freq", (0, 1))
    same = given.get("sparse_disable_index_value", sparse) == sparse
    if sparse is None or routed is None or not same:
        raise config.error(
            f"moe_layer_freq and {key}.sparse_attention_freq must say what each layer is, and "
            "sparse_disable_index_value the same as the latter.",
            key,
        )
    size, heads, blocks, block = (inner.count(name) for name in _SPARSE_COUNTS)
    far = attention(config, qk_norm=config.flag("use_qk_norm"))
    indexer = Indexer(heads=heads, size=size, weighted=False)
    near = replace(far, chosen=blocks * block, indexer=indexer)
    shared = shared_experts(config, "shared_intermediate_size", "intermediate_size")
    bias = config.flag("use_routing_bias")
    experts = replace(mixtral_experts(config), router_bias=bias, shared=shared)
    found = fed(routed, gated_network(config, "dense_intermediate_size"), experts)
    found["places"] |= places(sparse, indexer=1)
    return {
        **sizes(config),
        "attention": near if any(sparse) else far,
        "mixer_layers": counted(sparse, {1: near, 0: far}),
        **found,
    }


LINEAR = "linear_attention"
# Formats of a state, as files call them.
_STATE_FORMATS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def state_format(config: Config, key: str) -> str:
    """Return the format in which a state is kept; 32 bits unless the file says."""
    given = config.values.get(key) or "float32"
    if given not in _STATE_FORMATS:
        raise config.error(
            f"{key} must be one of {', '.join(_STATE_FORMATS)}, not {shown(given)}.", key
        )
    return _STATE_FORMATS[given]


def qwen_linear(config: Config) -> dict[str, Any]:
    """Return a Qwen3-Next or Qwen3.5: linear attention in most layers, full in the others."""
    kinds = layers_of(config, "layer_types", (LINEAR, FULL)) or every(
        config, "full_attention_interval", 4, LINEAR, FULL
    )
    key_heads, heads = (config.count(f"linear_num_{each}_heads") for each in ("key", "value"))
    if heads % key_heads:
        raise config.error(
            f"linear_num_key_heads = {key_heads} must divide linear_num_value_heads = {heads}.",
            "linear_num_key_heads",
        )
    linear = DeltaRule(
        key_heads=key_heads,
        heads=heads,
        key_size=config.count("linear_key_head_dim"),
        value_size=config.count("linear_value_head_dim"),
        kernel=config.count("linear_conv_kernel_dim"),
        state_format=state_format(config, "mamba_ssm_dtype"),
    )
    bias = config.flag("attention_bias")
    full = attention(config, bias=bias, output_bias=bias, qk_norm=True)
    full = replace(full, output_gate=config.flag("attn_output_gate"))
    experts = None
    if "num_experts" in config.values:
        size = "moe_intermediate_size"
        shared = shared_experts(config, "shared_expert_intermediate_size", size)
        experts = chosen_experts(config, "num_experts", size, shared=shared, shared_gate=True)
    return {
        **sizes(config),
        "attention": full,
        "experts": experts,
        "feed_forward": None if experts else gated_network(config),
        "mixer_layers": counted(kinds, {LINEAR: linear, FULL: full}),
        "places": places(kinds, state=LINEAR, attention=FULL),
    }


# Letters and words for what a layer of a Nemotron-H is.
_NEMOTRON = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_kinds(config: Config) -> list[str]:
    """Return what each layer is, from a list of words or a text of letters."""
    pattern = config.values.get("hybrid_override_pattern")
    listed = config.entries("layers_block_type", str)
    if (pattern is None) == (listed is None):
        raise config.error(
            "one of hybrid_override_pattern and layers_block_type must say what each layer is.",
            "hybrid_override_pattern" if pattern is not None else "layers_block_type",
        )
    key = "layers_block_type" if listed is not None else "hybrid_override_pattern"
    given: Sequence[str] = listed if listed is not None else str(pattern)
    known = set(_NEMOTRON.values()) if listed is not None else set(_NEMOTRON)
    other = next((each for each in given if each not in known), None)
    if other is not None:
        raise config.error(f"{key} may have {', '.join(sorted(known))}, not {other}.", key)
    layers = config.maybe("num_hidden_layers")
    if not given or layers not in (None, len(given)):
        raise config.error(
            f"{key} has {len(given)} layers, num_hidden_layers = {layers}.", "num_hidden_layers"
        )
    return [_NEMOTRON.get(each, each) for each in given]


def nemotron_h(config: Config) -> dict[str, Any]:
    """Return a Nemotron-H: each layer is one of state, attention, network or experts."""
    kinds = _nemotron_kinds(config)
    state = StateSpace(
        heads=config.count("mamba_num_heads"),
        head_size=config.count("mamba_head_dim"),
        state_size=config.count("ssm_state_size"),
        groups=config.count("n_groups"),
        kernel=config.count("conv_kernel"),
        convolution_bias=config.flag("use_conv_bias"),
        state_format=state_format(config, "mamba_ssm_cache_dtype"),
    )
    bias = config.flag("attention_bias")
    mixer = attention(config, bias=bias, output_bias=bias)
    if "attention" not in kinds:
        raise config.error("no layer has attention; only models with some can be told here.")
    network = FeedForward(size=config.count("intermediate_size"))
    feeds: dict[str, FeedForward | Experts] = {"mlp": network}
    if "moe" in kinds:
        size, shared = "moe_intermediate_size", "moe_shared_expert_intermediate_size"
        any_shared = config.count("n_shared_experts", 0) > 0
        feeds["moe"] = chosen_experts(
            config,
            "n_routed_experts",
            size,
            gated=False,
            router_bias=True,
            shared=shared_experts(config, shared, size) if any_shared else 0,
            latent=config.maybe("moe_latent_size") or 0,
        )
    return {
        **sizes(replace(config, values={**config.values, "num_hidden_layers": len(kinds)})),
        "attention": mixer,
        "experts": feeds.get("moe"),
        "feed_forward": network if "mlp" in kinds else None,
        "mixer_layers": counted(kinds, {"mamba": state, "attention": mixer}),
        "feed_layers": counted(kinds, feeds),
        "norms": 1,
        "places": places(kinds, state="mamba", attention="attention")
        | places(kinds, experts="moe", feed_forward="mlp"),
    }
