"""Models whose layers were searched one by one: each has an attention and a network of its own."""

from __future__ import annotations

from typing import Any

from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.huggingface.attention import attention
from mlsim.workloads.huggingface.mixed import counted
from mlsim.workloads.huggingface.parts import sizes
from mlsim.workloads.huggingface.values import Config, shown

# What a block of a searched model may not say otherwise.
_PLAIN_BLOCK: dict[str, tuple[Any, ...]] = {
    "replace_with_linear": (False, None),
    "sparsify": (None,),
    "num_sink_tokens": (None,),
    "window_length": (None,),
    "unshifted_sink": (False, None),
    "use_prefill_window_in_sink_attention": (False, None),
}
_ROUNDED = 256


def nemotron_nas(config: Config) -> dict[str, Any]:
    """Return a Llama whose layers were searched: some without attention, networks of many widths.

    A multiple of the width is rounded as in the model's own code: two thirds of it, up
    to a multiple of 256.
    """
    blocks, hidden = config.objects("block_configs"), config.count("hidden_size")
    heads, layers = config.count("num_attention_heads"), config.count("num_hidden_layers")
    if len(blocks) != layers:
        raise config.error(
            f"block_configs must have {layers} entries, one for each layer, not {len(blocks)}.",
            "block_configs",
        )
    mixers: list[Attention] = []
    networks: list[FeedForward] = []
    for number, block in enumerate(blocks):
        mixed, fed = (_block_part(config, number, block, each) for each in ("attention", "ffn"))
        if not mixed.get("no_op"):
            group = mixed.get("n_heads_in_group")
            if type(group) is not int or group < 1 or heads % group:
                raise config.error(
                    f"block_configs[{number}]: n_heads_in_group = {shown(group)} must be a whole "
                    f"number that divides num_attention_heads = {heads}.",
                    "block_configs",
                )
            mixers.append(attention(config, kv_heads=heads // group))
        if not fed.get("no_op"):
            times = fed.get("ffn_mult")
            if isinstance(times, bool) or not isinstance(times, (int, float)) or not 0 < times < 99:
                raise config.error(
                    f"block_configs[{number}]: ffn_mult = {shown(times)} must be a number of "
                    "widths.",
                    "block_configs",
                )
            size = int(2 * times * hidden / 3)
            networks.append(FeedForward(size=size + -size % _ROUNDED, gated=True))
    if not mixers:
        raise config.error("no layer has attention.", "block_configs")
    return {
        **sizes(config),
        "attention": mixers[0],
        "feed_forward": networks[0] if networks else None,
        "mixer_layers": counted(mixers, {each: each for each in mixers}),
        "feed_layers": counted(networks, {each: each for each in networks}),
        # A part that is left out has no norm either.
        "layer_norms": len(mixers) + len(networks),
    }


def _block_part(config: Config, number: int, block: Any, name: str) -> dict[str, Any]:
    """Return the attention or the network of a block, which is as plain as can be told here."""
    part = block.get(name) if isinstance(block, dict) else None
    if not isinstance(part, dict):
        raise config.error(f"block_configs[{number}].{name} must be an object.", "block_configs")
    for key, value in part.items():
        if key in _PLAIN_BLOCK and value not in _PLAIN_BLOCK[key]:
            raise config.error(
                f"block_configs[{number}].{name}.{key} = {shown(value)} is not understood, only "
                f"{shown(_PLAIN_BLOCK[key][0])}.",
                "block_configs",
            )
        if key not in (*_PLAIN_BLOCK, "no_op", "n_heads_in_group", "ffn_mult"):
            raise config.error(
                f"block_configs[{number}].{name}.{key} is not understood.", "block_configs"
            )
    return part
