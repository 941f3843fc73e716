"""Models whose layers are of several kinds: which layer has what, from a configuration.

As in `parts`, each function reads one family's keys and returns arguments of
Transformer. Only how many layers have a part matters, not which ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.huggingface.attention import FULL, SLIDING, attention
from mlsim.workloads.huggingface.experts import chosen_experts
from mlsim.workloads.huggingface.parts import sizes
from mlsim.workloads.huggingface.values import Config, shown

CHUNKED = "chunked_attention"
Part = TypeVar("Part")


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
    layers = config.count("num_hidden_layers")
    if not isinstance(found, list) or len(found) != layers:
        what = f"{len(found)} entries" if isinstance(found, list) else shown(found)
        raise config.error(
            f"{config.name(key)} must have {layers} entries, one for each layer, not {what}.", key
        )
    other = next((each for each in found if each not in allowed or isinstance(each, bool)), None)
    if other is not None:
        words = " and ".join(map(str, allowed))
        raise config.error(f"{config.name(key)} may have {words}, not {shown(other)}.", key)
    return found


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
    network = FeedForward(size=config.count("intermediate_size"), gated=True)
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
    routed = len(with_experts)
    network = FeedForward(size=config.count("intermediate_size_mlp"), gated=True)
    feeds = tuple(each for each in ((layers - routed, network), (routed, experts)) if each[0])
    return {
        **sizes(config),
        "attention": far,
        "experts": experts if routed else None,
        "mixer_layers": counted(kinds, {CHUNKED: near, FULL: far}),
        "feed_layers": feeds,
        "places": places(
            [each in with_experts for each in range(layers)], feed_forward=False, experts=True
        ),
    }


def mimo_flash(config: Config) -> dict[str, Any]:
    """Return a MiMo-V2-Flash: a window in most layers, which have KV heads of their own."""
    layers = config.count("num_hidden_layers")
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
    network = FeedForward(size=config.count("intermediate_size"), gated=True)
    return {
        **sizes(config),
        "attention": far,
        "experts": experts if sum(routed) else None,
        "mixer_layers": counted(kinds, {1: near, 0: far}),
        "feed_layers": counted(routed, {0: network, 1: experts}),
        "places": places(routed, feed_forward=0, experts=1),
        "feed_forward": network if sum(routed) < layers else None,
    }
