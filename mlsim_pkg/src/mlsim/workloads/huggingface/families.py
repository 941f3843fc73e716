"""Families of language models on Hugging Face: how each one's keys make an architecture.

Keys and defaults are those of the configuration classes of the transformers
library (`src/transformers/models/*/configuration_*.py`), releases 4.57 and 5.23.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mlsim.workloads.huggingface import attention, experts, ignored, parts
from mlsim.workloads.huggingface.family import Family, gated_keys, plain_keys
from mlsim.workloads.huggingface.values import NEEDED

# GPT-2's names of the usual keys.
_SHORT = {
    "hidden_size": ("n_embd",),
    "num_hidden_layers": ("n_layer",),
    "num_attention_heads": ("n_head",),
    "max_position_embeddings": ("n_positions",),
}
PER_TOKEN: dict[str, Any] = {"num_experts_per_tok": NEEDED}
_MOE: dict[str, Any] = {"moe_intermediate_size": NEEDED, **PER_TOKEN}
_QWEN_MOE: dict[str, Any] = {
    "num_experts": NEEDED,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
    "use_sliding_window": False,
    "sliding_window": 4096,
    **_MOE,
}
QWEN_WINDOW: dict[str, Any] = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}
LATENT: dict[str, Any] = {
    "intermediate_size": NEEDED,
    "n_routed_experts": NEEDED,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    **_MOE,
}
_NO_BIAS = {"attention_bias": (False, None), "mlp_bias": (False, None)}
LATENT_FIXED = {"moe_layer_freq": (1, None), **_NO_BIAS}
_CAUSAL = {"use_bidirectional_attention": (False, None)}
_GEMMA3 = Family(
    partial(parts.gated, norms=4, qk_norm=True, window=attention.pattern_window),
    gated_keys(
        131072,
        tied=True,
        kv_heads=4,
        head_dim=256,
        attention_bias=False,
        sliding_window=4096,
        sliding_window_pattern=6,
        layer_types=None,
    ),
    spellings={"sliding_window_pattern": ("_sliding_window_pattern",)},
    fixed=_CAUSAL,
    without_effect=ignored.GEMMA,
)
# A nested text_config omits whatever equals the class's default.
GEMMA3_NESTED = replace(
    _GEMMA3,
    keys={
        **_GEMMA3.keys,
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
    },
)
FAMILIES: dict[str, Family] = {
    "bert": Family(
        parts.bert,
        plain_keys(512, tied=True, intermediate_size=NEEDED, type_vocab_size=2),
        fixed={"position_embedding_type": ("absolute", None), "is_decoder": (False, None)},
        without_effect=ignored.BERT,
    ),
    "bloom": Family(
        parts.bloom,
        # Its positions have no limit; it was trained on sequences of 2,048 tokens.
        plain_keys(2048, tied=True),
        spellings=_SHORT
        | {"hidden_size": ("n_embed",), "max_position_embeddings": ("seq_length",)},
        without_effect=ignored.BLOOM,
    ),
    "deepseek_v2": Family(
        experts.latent,
        plain_keys(2048, tied=False, first_k_dense_replace=0, n_shared_experts=2, **LATENT),
        fixed=LATENT_FIXED,
        without_effect=ignored.DEEPSEEK,
    ),
    "deepseek_v3": Family(
        partial(experts.latent, router_bias=True),
        plain_keys(4096, tied=False, first_k_dense_replace=3, n_shared_experts=1, **LATENT),
        fixed=LATENT_FIXED,
        without_effect=ignored.DEEPSEEK,
    ),
    "falcon": Family(
        parts.falcon,
        plain_keys(
            2048,
            tied=True,
            num_kv_heads=None,
            ffn_hidden_size=None,
            num_ln_in_parallel_attn=None,
            new_decoder_architecture=False,
            multi_query=True,
            parallel_attn=True,
            bias=False,
        ),
        spellings={"hidden_size": ("n_embed",)},
        without_effect=ignored.FALCON,
    ),
    "gemma": Family(
        parts.gated,
        gated_keys(8192, tied=True, kv_heads=16, head_dim=256, attention_bias=False),
        fixed=_CAUSAL,
    ),
    "gemma2": Family(
        partial(parts.gated, norms=4, window=attention.pattern_window),
        gated_keys(
            8192,
            tied=True,
            kv_heads=4,
            head_dim=256,
            attention_bias=False,
            sliding_window=4096,
            layer_types=None,
        ),
        fixed=_CAUSAL,
        without_effect=ignored.GEMMA,
    ),
    "gemma3_text": _GEMMA3,
    "gpt2": Family(
        parts.gpt2,
        plain_keys(1024, tied=True, n_inner=None),
        spellings=_SHORT,
        without_effect=ignored.GPT2,
    ),
    "gpt_neox": Family(
        parts.gpt_neox,
        plain_keys(2048, tied=False, intermediate_size=NEEDED, attention_bias=True),
    ),
    "gpt_oss": Family(
        experts.gpt_oss,
        gated_keys(
            131072,
            kv_heads=8,
            head_dim=64,
            attention_bias=True,
            sliding_window=128,
            layer_types=None,
            num_local_experts=NEEDED,
            **PER_TOKEN,
        ),
        spellings={
            "num_local_experts": ("num_experts",),
            "num_experts_per_tok": ("experts_per_token",),
        },
        without_effect=ignored.GPT_OSS,
    ),
    "gptj": Family(
        parts.gptj,
        plain_keys(2048, tied=False, n_inner=None),
        spellings=_SHORT,
        without_effect=ignored.GPT2,
    ),
    "llama": Family(
        parts.gated, gated_keys(2048, kv_heads=None, attention_bias=False, mlp_bias=False)
    ),
    "mistral": Family(
        partial(parts.gated, window=attention.every_layer),
        gated_keys(131072, kv_heads=8, sliding_window=4096),
    ),
    "mixtral": Family(
        partial(parts.gated, window=attention.every_layer, experts=experts.mixtral_experts),
        gated_keys(131072, kv_heads=8, sliding_window=None, num_local_experts=NEEDED, **PER_TOKEN),
        spellings={"num_local_experts": ("num_experts",)},
    ),
    # Its norms hold no learned numbers.
    "olmo": Family(
        partial(parts.gated, norm="plain"),
        gated_keys(2048, kv_heads=None, attention_bias=False),
        without_effect=ignored.OLMO,
    ),
    "opt": Family(
        parts.opt,
        plain_keys(
            2048,
            tied=True,
            ffn_dim=NEEDED,
            word_embed_proj_dim=None,
            do_layer_norm_before=True,
            _remove_final_layer_norm=False,
            enable_bias=True,
        ),
        fixed={"layer_norm_elementwise_affine": (True, None)},
        without_effect=ignored.OPT,
    ),
    "phi3": Family(
        partial(parts.gated, window=attention.every_layer),
        gated_keys(4096, kv_heads=None, sliding_window=None),
        fixed={"lm_head_bias": (False, None), **_NO_BIAS},
    ),
    "qwen2": Family(
        partial(parts.gated, qkv_bias=True, window=attention.qwen_window),
        gated_keys(32768, kv_heads=32, **QWEN_WINDOW),
        without_effect=ignored.QWEN,
    ),
    "qwen2_moe": Family(
        experts.qwen2_moe,
        gated_keys(
            32768,
            kv_heads=16,
            qkv_bias=True,
            layer_types=None,
            shared_expert_intermediate_size=NEEDED,
            **_QWEN_MOE,
        ),
        without_effect=ignored.QWEN_MOE,
    ),
    "qwen3": Family(
        partial(parts.gated, qk_norm=True, window=attention.qwen_window),
        gated_keys(32768, kv_heads=32, head_dim=128, attention_bias=False, **QWEN_WINDOW),
    ),
    "qwen3_moe": Family(
        partial(
            parts.gated,
            qk_norm=True,
            window=attention.switched_window,
            experts=experts.qwen_experts,
        ),
        gated_keys(
            32768, kv_heads=4, attention_bias=False, **(_QWEN_MOE | {"intermediate_size": 6144})
        ),
        spellings={"num_experts": ("num_local_experts",)},
        fixed={
            "qkv_bias": (False, None),
            "shared_expert_intermediate_size": (0, None),
            "use_qk_norm": (True, None),
        },
        without_effect=ignored.QWEN_MOE,
    ),
}
