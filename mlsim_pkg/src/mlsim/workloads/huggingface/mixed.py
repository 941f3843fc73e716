"""Models whose layers are of several kinds: which layer has what, from a configuration.

As in `parts`, each function reads one family's keys and returns arguments of
Transformer. Only how many layers have a part matters, not which ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mlsim.workloads.blocks import Experts, FeedForward
from mlsim.workloads.huggingface.config import Config, shown
from mlsim.workloads.huggingface.parts import (
    FULL,
    SLIDING,
    attention,
    chosen_experts,
    gated_network,
    layers_of,
    sizes,
)

CHUNKED = "chunked_attention"
Part = TypeVar("Part")


def counted(kinds: Sequence[Any], parts: Mapping[Any, Part]) -> tuple[tuple[int, Part], ...]:
    """Return how many layers have which part; a kind without one is left out."""
    numbers = Counter(kinds)
    return tuple((numbers[kind], part) for kind, part in parts.items() if numbers[kind])


def places(kinds: Sequence[Any], **parts: Any) -> dict[str, list[int]]:
    """Return the layers that have each part, for a part its kind of layer."""
    return {
        part.replace("_", "-"): [layer for layer, each in enumerate(kinds) if each == kind]
        for part, kind in parts.items()
    }


def fed(kinds: Sequence[Any], network: FeedForward, experts: Experts) -> dict[str, Any]:
    """Return what layers have of a network (0) and of experts (1)."""
    return {
        "feed_forward": network if 0 in kinds else None,
        "experts": experts if 1 in kinds else None,
        "feed_layers": counted(kinds, {0: network, 1: experts}),
        "places": places(kinds, feed_forward=0, experts=1),
    }


def every(config: Config, key: str, interval: int, usual: str, last: str) -> list[str]:
    """Return the kinds of layers where the last of each few is another one."""
    step = config.maybe(key) or interval
    return [
        last if number % step == 0 else usual
        for number in range(1, config.count("num_hidden_layers") + 1)
    ]


def gemma4(config: Config) -> dict[str, Any]:
    """Return a Gemma 4: wider heads in layers that see all, experts beside a network.

    The small ones have an embedding for each layer, and last layers that read the cache of
    earlier ones.
    """
    kinds = layers_of(config, "layer_types", (SLIDING, FULL)) or every(config, "", 6, SLIDING, FULL)
    if kinds[-1] != FULL:
        raise config.error("layer_types must end with full_attention.", "layer_types")
    near = attention(config, qk_norm=True, value_norm=True, window=config.count("sliding_window"))
    shared = config.flag("attention_k_eq_v")
    far = replace(
        near,
        head_size=config.count("global_head_dim"),
        kv_heads=(config.maybe("num_global_key_value_heads") if shared else None) or near.kv_heads,
        values_from_keys=shared,
        window=0,
    )
    layers, sharing = config.count("num_hidden_layers"), sharing_layers(config, kinds)
    network = gated_network(config)
    width = config.maybe("hidden_size_per_layer_input", 0) or 0
    readers = {
        SLIDING: replace(near, shared_cache=True),
        FULL: replace(far, shared_cache=True, values_from_keys=False),
    }
    found: dict[str, Any] = {
        **sizes(config),
        "attention": far,
        "mixer_layers": (
            *counted(kinds[: layers - sharing], {SLIDING: near, FULL: far}),
            *counted(kinds[layers - sharing :], readers),
        ),
        "feed_forward": network,
        # One more stands behind what a layer's embedding adds.
        "norms": 4 + (width > 0),
        "layer_embedding": width,
        "layer_vocabulary": config.count("vocab_size_per_layer_input") if width else 0,
    }
    if config.flag("use_double_wide_mlp") and sharing:
        wide = replace(network, size=2 * network.size)
        found["feed_layers"] = ((layers - sharing, network), (sharing, wide))
    if not config.flag("enable_moe_block"):
        return found
    # A norm in front of the experts, one behind each of the two, and the router's own
    # scale; it has one more for each expert.
    experts = chosen_experts(
        config, "num_experts", "moe_intermediate_size", chosen="top_k_experts", router_bias=True
    )
    feeds = (*found.get("feed_layers", ((layers, network),)), (layers, experts))
    both = dict.fromkeys(("feed-forward", "experts"), range(layers))
    return found | {
        "experts": experts,
        "feed_layers": feeds,
        "norms": 4 + found["norms"],
        "places": both,
    }


def sharing_layers(config: Config, kinds: Sequence[str]) -> int:
    """Return how many of the last layers read the cache of the last others of their kind."""
    sharing = config.maybe("num_kv_shared_layers", 0) or 0
    if not set(kinds) <= set(kinds[: len(kinds) - sharing]):
        raise config.error(
            f"num_kv_shared_layers = {sharing} of {len(kinds)} leaves no layer of each kind that "
            "caches what they read.",
            "num_kv_shared_layers",
        )
    return sharing


def llama4(config: Config) -> dict[str, Any]:
    """Return a Llama 4: attention within chunks in most layers, experts in some or all.

    A chunk is counted as a window of its length, which is the most that a token sees.
    """
    kinds = layers_of(config, "layer_types", (CHUNKED, FULL))
    if kinds is None:
        rotated = layers_of(config, "no_rope_layers", (0, 1))
        interval = config.count("no_rope_layer_interval")
        kinds = (
            [CHUNKED if each else FULL for each in rotated]
            if rotated
            else every(config, "", interval, CHUNKED, FULL)
        )
    bias = config.flag("attention_bias")
    far = attention(config, bias=bias, output_bias=bias)
    near = replace(far, window=config.maybe("attention_chunk_size") or 0)
    experts = chosen_experts(config, "num_local_experts", "intermediate_size", shared=1)
    layers, step = config.count("num_hidden_layers"), config.count("interleave_moe_layer_step")
    listed = config.entries("moe_layers", int)
    with_experts = set(range(step - 1, layers, step) if listed is None else listed)
    if not with_experts <= set(range(layers)):
        raise config.error(f"moe_layers must be among the {layers} layers.", "moe_layers")
    routed = [int(each in with_experts) for each in range(layers)]
    return {
        **sizes(config),
        "attention": far,
        "mixer_layers": counted(kinds, {CHUNKED: near, FULL: far}),
        **fed(routed, gated_network(config, "intermediate_size_mlp"), experts),
    }


def mimo_flash(config: Config) -> dict[str, Any]:
    """Return a MiMo-V2-Flash: a window in most layers, which have KV heads of their own."""
    kinds = layers_of(config, "hybrid_layer_pattern", (0, 1))
    routed = layers_of(config, "moe_layer_freq", (0, 1))
    if kinds is None or routed is None:
        missing = "hybrid_layer_pattern" if kinds is None else "moe_layer_freq"
        raise config.error(f"{missing} must say what each layer is.", missing)
    far = attention(
        config,
        value_size=config.count("v_head_dim"),
        sinks=config.flag("add_full_attention_sink_bias"),
    )
    near = replace(
        far,
        heads=config.maybe("swa_num_attention_heads") or far.heads,
        kv_heads=config.maybe("swa_num_key_value_heads") or far.kv_heads,
        head_size=config.maybe("swa_head_dim") or far.head_size,
        value_size=config.maybe("swa_v_head_dim") or far.value_size,
        sinks=config.flag("add_swa_attention_sink_bias"),
        window=config.count("sliding_window"),
    )
    experts = chosen_experts(config, "n_routed_experts", "moe_intermediate_size", router_bias=True)
    return {
        **sizes(config),
        "attention": far,
        "mixer_layers": counted(kinds, {1: near, 0: far}),
        **fed(routed, gated_network(config), experts),
    }


# Layers of which most inner numbers become zero, as the library's class has it.
_CUT_LAYERS = 10


def gemma3n(config: Config) -> dict[str, Any]:
    """Return a Gemma 3n: AltUp's streams, LAuReL's path, an embedding for each layer.

    The last layers read the cache of earlier ones, and layers may differ in the width of
    their networks. Of the first layers' networks most inner numbers become zero
    (`activation_sparsity_pattern`): programs find a bound for each token, and set to zero what
    is below it; then they multiply with all numbers, and all are counted.
    """
    kinds = layers_of(config, "layer_types", (SLIDING, FULL)) or every(config, "", 5, SLIDING, FULL)
    near = attention(config, qk_norm=True, value_norm=True, window=config.count("sliding_window"))
    far = replace(near, window=0)
    own = len(kinds) - sharing_layers(config, kinds)
    readers = {
        kind: replace(part, shared_cache=True) for kind, part in {SLIDING: near, FULL: far}.items()
    }
    networks = _networks(config)
    width = config.count("hidden_size_per_layer_input")
    return {
        **sizes(config),
        "attention": far if FULL in kinds else near,
        "mixer_layers": (
            *counted(kinds[:own], {SLIDING: near, FULL: far}),
            *counted(kinds[own:], readers),
        ),
        "feed_forward": networks[0],
        "feed_layers": counted(networks, {each: each for each in networks}),
        # Around attention, around the network, and behind what a layer's embedding adds.
        "norms": 5,
        "layer_embedding": width,
        "layer_vocabulary": config.count("vocab_size_per_layer_input"),
        "residual_streams": config.count("altup_num_inputs"),
        "residual_rank": config.count("laurel_rank"),
    }


def _networks(config: Config) -> list[FeedForward]:
    """Return the feed-forward network of each layer: one width for all, or a list of them."""
    key, layers = "intermediate_size", config.count("num_hidden_layers")
    given = config.values[key]
    widths = config.entries(key, int) if isinstance(given, list) else [config.count(key)] * layers
    assert widths is not None
    wrong = next((each for each in config.one_each(key, widths) if each < 1), None)
    if wrong is not None:
        raise config.error(f"{key} must be 1 or more in each layer, not {wrong}.", key)
    cut = _cut(config, layers)
    return [
        FeedForward(size=size, gated=True, cut=each) for size, each in zip(widths, cut, strict=True)
    ]


def _cut(config: Config, layers: int) -> list[bool]:
    """Return of which layers' networks numbers become zero: ten, if the file does not say."""
    key = "activation_sparsity_pattern"
    given = config.values.get(key)
    if given is None:
        first = _CUT_LAYERS if layers > _CUT_LAYERS else 0
        return [number < first for number in range(layers)]
    shares = given if isinstance(given, list) else [given] * layers
    for share in config.one_each(key, shares):
        number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not number or not 0 <= share < 1:
            raise config.error(f"{key} must be a share from 0 to below 1, not {shown(share)}.", key)
    return [share > 0 for share in shares]
