"""Attention from the keys of a Hugging Face configuration: its heads, and its window."""

from __future__ import annotations

from typing import Any

from mlsim.workloads.blocks import Attention
from mlsim.workloads.huggingface.values import Config

FULL, SLIDING = "full_attention", "sliding_attention"
Window = dict[str, int]


def whole_sequence(config: Config) -> Window:
    """Return no window: each layer's attention sees all."""
    return {}


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


def _listed_window(config: Config) -> Window | None:
    """Return the window that `layer_types` tells, or None if there is no such list."""
    types = config.entries("layer_types", str)
    if types is None:
        return None
    layers = config.count("num_hidden_layers")
    if len(types) != layers:
        raise config.error(
            f"layer_types must have {layers} entries, one for each layer, not {len(types)}.",
            "layer_types",
        )
    other = next((each for each in types if each not in (FULL, SLIDING)), None)
    if other:
        raise config.error(
            f"layer_types may have {FULL} and {SLIDING}, not {other}.", "layer_types"
        )
    full = [number for number, each in enumerate(types, start=1) if each == FULL]
    if len(full) == layers:
        return {}
    every = full[0] if full else 0
    if full and full != list(range(every, layers + 1, every)):
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
