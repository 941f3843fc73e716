"""Models of several modalities: which type the text model within them may have."""

from __future__ import annotations

# The usual type first: that of a text_config that doesn't say.
WRAPPERS: dict[str, tuple[str, ...]] = {
    "gemma3": ("gemma3_text",),
    "gemma3n": ("gemma3n_text",),
    "gemma4": ("gemma4_text",),
    "kimi_k25": ("kimi_k2", "deepseek_v3"),
    "llama4": ("llama4_text",),
    "minimax_m3_vl": ("minimax_m3",),
    "mistral3": ("mistral", "ministral3"),
    "qwen3_5": ("qwen3_5_text",),
    "qwen3_5_moe": ("qwen3_5_moe_text",),
    "qwen3_vl": ("qwen3_vl_text",),
    "qwen3_vl_moe": ("qwen3_vl_moe_text",),
}
