"""Types of models that are known and can't be told here, each with the reason."""

from __future__ import annotations

_COMPRESSED = (
    "its attention reads groups of tokens that were compressed to one entry (compress_ratios), "
    "beside a window, and its residual has several streams (hc_mult): neither is counted here, "
    "so that cache and work would be wrong. DeepSeek-V3.2 (deepseek_v32) is understood"
)
REFUSED = {
    "deepseek_v4": _COMPRESSED,
    "deepseek_ref": _COMPRESSED,
    "kimi_k3": (
        "its linear attention gates each channel, residuals reach back over blocks of layers "
        "(attn_res_block_size), and latent attention stands beside it: a model with both is not "
        "counted here"
    ),
    "step3p7": (
        "its layers with a window have another number of heads than the others, and a gate for "
        "each head; a file of this type need not say how many (num_attention_heads is that of "
        "layers that see all), so that the count would be a guess"
    ),
}
