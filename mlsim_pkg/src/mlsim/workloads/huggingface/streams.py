"""Models whose residual is several streams, from a configuration: Gemma 3n."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.huggingface.attention import FULL, SLIDING, attention
from mlsim.workloads.huggingface.mixed import counted, every, layers_of, sharing_layers
from mlsim.workloads.huggingface.parts import sizes
from mlsim.workloads.huggingface.values import Config, shown

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
    if len(widths) != layers:
        raise config.error(
            f"{key} must have {layers} entries, one for each layer, not {len(widths)}.", key
        )
    wrong = next((each for each in widths if each < 1), None)
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
    if len(shares) != layers:
        raise config.error(
            f"{key} must have {layers} entries, one for each layer, not {len(shares)}.", key
        )
    for share in shares:
        number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not number or not 0 <= share < 1:
            raise config.error(f"{key} must be a share from 0 to below 1, not {shown(share)}.", key)
    return [share > 0 for share in shares]
