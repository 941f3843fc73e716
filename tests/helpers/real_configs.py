"""What published configurations say of models whose layers are of several kinds.

Only the keys that are read, by hand; the counts are those of the transformers library,
release 5.23.0, for the whole files, with the routers' corrections that checkpoints have.
"""

from __future__ import annotations

from typing import Any

_DELTA = {
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_value_head_dim": 128,
    "head_dim": 256,
}
_LATENT = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "index_head_dim": 128,
    "index_topk": 2048,
}
_DEEPSEEK = {
    "vocab_size": 129280,
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "intermediate_size": 18432,
    **_LATENT,
}
_GLM5 = {
    "model_type": "glm_moe_dsa",
    "vocab_size": 154880,
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "num_attention_heads": 64,
    "intermediate_size": 12288,
    "q_lora_rank": 2048,
    "qk_nope_head_dim": 192,
    "v_head_dim": 256,
    "index_n_heads": 32,
    "max_position_embeddings": 202752,
    **_LATENT,
}
_NANO = {
    "model_type": "nemotron_h",
    "vocab_size": 131072,
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "intermediate_size": 1856,
    "max_position_embeddings": 262144,
}
_LLAMA4 = {
    "model_type": "llama4_text",
    "vocab_size": 202048,
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
}
_GEMMA4 = {
    "model_type": "gemma4_text",
    "vocab_size": 262144,
    "attention_k_eq_v": True,
    "sliding_window": 1024,
    "hidden_size_per_layer_input": 0,
}

REAL: dict[str, tuple[dict[str, Any], int]] = {
    "DeepSeek-V3.2": ({"model_type": "deepseek_v32", **_DEEPSEEK}, 671_877_944_064),
    "GLM-5": (_GLM5, 743_911_218_432),
    "GLM-5.2": (
        {**_GLM5, "index_topk_freq": 4, "index_skip_topk_offset": 3},
        743_377_019_904,
    ),
    "Kimi-K2": (
        {
            "model_type": "kimi_k2",
            **{key: value for key, value in _DEEPSEEK.items() if "index" not in key},
            "vocab_size": 163840,
            "num_attention_heads": 64,
            "n_routed_experts": 384,
            "first_k_dense_replace": 1,
        },
        1_026_408_232_448,
    ),
    "Nemotron-3-Nano-30B-A3B": (_NANO, 31_577_940_288),
    "Nemotron-3-Super-120B-A12B": (
        {
            **_NANO,
            "hidden_size": 4096,
            "num_hidden_layers": 88,
            "hybrid_override_pattern": (
                "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*"
                "EMEMEMEME"
            ),
            "mamba_num_heads": 128,
            "moe_latent_size": 1024,
            "n_routed_experts": 512,
            "num_experts_per_tok": 22,
            "moe_intermediate_size": 2688,
            "moe_shared_expert_intermediate_size": 5376,
        },
        120_668_707_840,
    ),
    "Qwen3.5-35B-A3B": (
        {
            "model_type": "qwen3_5_moe_text",
            "vocab_size": 248320,
            "hidden_size": 2048,
            "num_hidden_layers": 40,
            "num_attention_heads": 16,
            "num_key_value_heads": 2,
            "linear_num_value_heads": 32,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
            "max_position_embeddings": 262144,
            **_DELTA,
        },
        34_660_610_688,
    ),
    "Qwen3.5-27B": (
        {
            "model_type": "qwen3_5_text",
            "vocab_size": 248320,
            "hidden_size": 5120,
            "num_hidden_layers": 64,
            "num_attention_heads": 24,
            "num_key_value_heads": 4,
            "linear_num_value_heads": 48,
            "intermediate_size": 17408,
            "max_position_embeddings": 262144,
            **_DELTA,
        },
        26_895_998_464,
    ),
    "Gemma-4-26B-A4B": (
        {
            **_GEMMA4,
            "hidden_size": 2816,
            "num_hidden_layers": 30,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "num_global_key_value_heads": 2,
            "intermediate_size": 2112,
            "enable_moe_block": True,
            "num_experts": 128,
            "top_k_experts": 8,
            "moe_intermediate_size": 704,
        },
        25_233_141_760,
    ),
    "Gemma-4-31B": (
        {
            **_GEMMA4,
            "hidden_size": 5376,
            "num_hidden_layers": 60,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "num_global_key_value_heads": 4,
            "intermediate_size": 21504,
        },
        30_697_345_280,
    ),
    "Llama-4-Scout": (
        {**_LLAMA4, "num_local_experts": 16, "interleave_moe_layer_step": 1},
        107_769_861_120,
    ),
    "Llama-4-Maverick": (
        {**_LLAMA4, "num_local_experts": 128, "interleave_moe_layer_step": 2},
        400_711_848_960,
    ),
    "MiMo-V2-Flash": (
        {
            "model_type": "mimo_v2_flash",
            "vocab_size": 152576,
            "hidden_size": 4096,
            "num_hidden_layers": 48,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "swa_num_key_value_heads": 8,
            "head_dim": 192,
            "v_head_dim": 128,
            "intermediate_size": 16384,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "num_experts_per_tok": 8,
            "hybrid_layer_pattern": [int(layer > 0 and (layer + 1) % 6 > 0) for layer in range(48)],
            "moe_layer_freq": [int(layer > 0) for layer in range(48)],
            "add_swa_attention_sink_bias": True,
        },
        308_778_780_864,
    ),
    "MiniMax-M2": (
        {
            "model_type": "minimax_m2",
            "vocab_size": 200064,
            "hidden_size": 3072,
            "num_hidden_layers": 62,
            "num_attention_heads": 48,
            "intermediate_size": 1536,
            "num_experts_per_tok": 8,
        },
        228_689_764_864,
    ),
    "MiniMax-M3": (
        {
            "model_type": "minimax_m3",
            "vocab_size": 200064,
            "hidden_size": 6144,
            "num_hidden_layers": 60,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "dense_intermediate_size": 12288,
            "intermediate_size": 3072,
            "shared_intermediate_size": 3072,
            "num_local_experts": 128,
            "num_experts_per_tok": 4,
            "moe_layer_freq": [int(layer > 2) for layer in range(60)],
            "sparse_attention_config": {
                "sparse_attention_freq": [int(layer > 2) for layer in range(60)],
                "sparse_index_dim": 128,
                "sparse_num_index_heads": 4,
                "sparse_topk_blocks": 16,
                "sparse_block_size": 128,
            },
        },
        426_174_572_928,
    ),
    # The library's own defaults.
    "GLM-4.5-Air": (
        {
            "model_type": "glm4_moe",
            "vocab_size": 151552,
            "hidden_size": 4096,
            "num_hidden_layers": 46,
            "num_attention_heads": 96,
            "head_dim": 128,
            "intermediate_size": 10944,
            "num_experts_per_tok": 8,
            "attention_bias": True,
        },
        106_852_251_264,
    ),
    "Qwen3-Next-80B-A3B": (
        {
            "model_type": "qwen3_next",
            "vocab_size": 151936,
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "num_attention_heads": 16,
            "num_experts": 512,
            "num_experts_per_tok": 10,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
        },
        79_674_391_296,
    ),
}
