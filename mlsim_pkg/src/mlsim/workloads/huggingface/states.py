"""Models with states instead of a cache in most layers, from a Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlsim.workloads.blocks import Experts, FeedForward
from mlsim.workloads.huggingface.attention import FULL, attention
from mlsim.workloads.huggingface.experts import chosen_experts, shared_experts
from mlsim.workloads.huggingface.mixed import counted, every, layers_of, places
from mlsim.workloads.huggingface.parts import sizes
from mlsim.workloads.huggingface.values import Config, shown
from mlsim.workloads.recurrent import DeltaRule, StateSpace

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
    full = attention(
        config,
        bias=bias,
        output_bias=bias,
        qk_norm=True,
        output_gate=config.flag("attn_output_gate"),
    )
    experts = None
    if "num_experts" in config.values:
        size = "moe_intermediate_size"
        shared = shared_experts(config, "shared_expert_intermediate_size", size)
        experts = chosen_experts(config, "num_experts", size, shared=shared, shared_gate=True)
    return {
        **sizes(config),
        "attention": full,
        "experts": experts,
        "feed_forward": None
        if experts
        else FeedForward(size=config.count("intermediate_size"), gated=True),
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
        "places": places(
            kinds, state="mamba", attention="attention", experts="moe", feed_forward="mlp"
        ),
    }
