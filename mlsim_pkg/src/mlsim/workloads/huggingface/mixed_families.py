"""Families whose layers are of several kinds, or choose what they look at.

Keys and defaults are those of the configuration classes of the transformers library
(`src/transformers/models/*/configuration_*.py`), release 5.23, and of a model's own
code, or a server's, where the library has none: MiMo, which extends Qwen2, and the searched
Llamas of NVIDIA (DeciLM in vLLM, SGLang and TensorRT-LLM).

The kinds of layers, each with its source in `references.bib`: states in `dao2024mamba2` and
`yang2024gated`, an indexer in `deepseek2025v32code`, latent attention in `deepseek2024v3`,
and what the library's modules build (chunks, gates of attention, values made of keys, experts
at a width of their own) in `huggingface2026transformers`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mlsim.workloads.huggingface import (
    attention,
    experts,
    ignored,
    mixed,
    parts,
    searched,
    sparse,
    states,
    streams,
)
from mlsim.workloads.huggingface.families import (
    FAMILIES as PLAIN,
    LATENT,
    LATENT_FIXED,
    PER_TOKEN,
    QWEN_WINDOW,
)
from mlsim.workloads.huggingface.family import Family, gated_keys, plain_keys
from mlsim.workloads.huggingface.values import NEEDED

_NOT_BIDIRECTIONAL = {"use_bidirectional_attention": (None, False, "vision")}
_INDEXER: dict[str, Any] = {
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": NEEDED,
    "mlp_layer_types": None,
    "layer_types": None,
    "indexer_types": None,
    "index_topk_freq": 1,
    "index_skip_topk_offset": None,
}
_LINEAR: dict[str, Any] = {
    "layer_types": None,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "attention_bias": False,
    "attn_output_gate": True,
    "mamba_ssm_dtype": None,
}
_SHARED = {
    "num_experts": NEEDED,
    "num_experts_per_tok": NEEDED,
    "moe_intermediate_size": NEEDED,
    "shared_expert_intermediate_size": NEEDED,
}
_NO_DENSE = {"mlp_only_layers": ([], None), "decoder_sparse_step": (1, None)}
_QWEN3 = PLAIN["qwen3"]
_QWEN3_MOE = PLAIN["qwen3_moe"]


def _linear(context: int, *, kv_heads: int, moe: bool) -> dict[str, Any]:
    keys = gated_keys(context, kv_heads=kv_heads, head_dim=256, **_LINEAR)
    if not moe:
        return keys
    del keys["intermediate_size"]
    return keys | _SHARED


FAMILIES: dict[str, Family] = {
    **PLAIN,
    "deepseek_v32": Family(
        sparse.sparse_latent,
        plain_keys(
            163840,
            tied=False,
            first_k_dense_replace=3,
            n_shared_experts=1,
            **(LATENT | _INDEXER | {"index_n_heads": 64}),
        ),
        spellings={"n_routed_experts": ("num_experts",)},
        fixed=LATENT_FIXED,
        without_effect=ignored.SPARSE,
    ),
    "gemma3n_text": Family(
        streams.gemma3n,
        gated_keys(
            32768,
            tied=True,
            kv_heads=2,
            head_dim=256,
            sliding_window=512,
            layer_types=None,
            hidden_size_per_layer_input=256,
            vocab_size_per_layer_input=262144,
            num_kv_shared_layers=15,
            altup_num_inputs=4,
            laurel_rank=64,
            activation_sparsity_pattern=None,
        ),
        fixed={
            **_NOT_BIDIRECTIONAL,
            "attention_bias": (False, None),
            "altup_correct_scale": (True, None),
        },
        without_effect=ignored.GEMMA3N,
    ),
    "gemma4_text": Family(
        mixed.gemma4,
        gated_keys(
            131072,
            tied=True,
            kv_heads=4,
            head_dim=256,
            global_head_dim=512,
            num_global_key_value_heads=None,
            attention_k_eq_v=False,
            sliding_window=512,
            layer_types=None,
            enable_moe_block=False,
            num_experts=None,
            top_k_experts=None,
            moe_intermediate_size=None,
            hidden_size_per_layer_input=256,
            vocab_size_per_layer_input=262144,
            num_kv_shared_layers=0,
            use_double_wide_mlp=False,
        ),
        fixed={
            **_NOT_BIDIRECTIONAL,
            "attention_bias": (False, None),
            "expert_intermediate_size": (None,),
        },
        without_effect=ignored.GEMMA,
        modules={"experts": "experts.0"},
    ),
    "glm4_moe": Family(
        experts.glm4_moe,
        gated_keys(
            131072,
            kv_heads=8,
            attention_bias=False,
            moe_intermediate_size=1408,
            n_routed_experts=128,
            n_shared_experts=1,
            first_k_dense_replace=1,
            use_qk_norm=False,
            **PER_TOKEN,
        ),
        without_effect=ignored.GLM4,
    ),
    "glm_moe_dsa": Family(
        sparse.sparse_latent,
        plain_keys(
            202752,
            tied=False,
            first_k_dense_replace=3,
            n_shared_experts=1,
            **(
                LATENT
                | _INDEXER
                | {
                    "index_n_heads": 32,
                    "q_lora_rank": 2048,
                    "qk_nope_head_dim": 192,
                    "v_head_dim": 256,
                }
            ),
        ),
        spellings={"n_routed_experts": ("num_experts",)},
        fixed=LATENT_FIXED | {"index_topk_pattern": (None,)},
        without_effect=ignored.SPARSE,
    ),
    # DeepSeek-V3 under another name.
    "kimi_k2": PLAIN["deepseek_v3"],
    "llama4_text": Family(
        mixed.llama4,
        gated_keys(
            131072,
            kv_heads=8,
            head_dim=128,
            attention_bias=False,
            intermediate_size_mlp=16384,
            num_local_experts=16,
            num_experts_per_tok=1,
            moe_layers=None,
            interleave_moe_layer_step=1,
            no_rope_layers=None,
            no_rope_layer_interval=4,
            attention_chunk_size=8192,
            layer_types=None,
        ),
        without_effect=ignored.LLAMA4,
        modules={
            "feed-forward": "feed_forward",
            "experts": "feed_forward.experts.0",
            "shared expert": "feed_forward.shared_expert",
        },
    ),
    "mimo": Family(
        partial(parts.gated, qkv_bias=True, window=attention.qwen_window),
        gated_keys(32768, kv_heads=32, **QWEN_WINDOW),
        # Biases are those of Qwen2: of queries, keys and values only.
        fixed={"attention_bias": (True, None)},
        without_effect=ignored.QWEN,
    ),
    "mimo_v2_flash": Family(
        mixed.mimo_flash,
        gated_keys(
            131072,
            kv_heads=4,
            head_dim=192,
            v_head_dim=128,
            moe_intermediate_size=2048,
            n_routed_experts=256,
            num_experts_per_tok=8,
            hybrid_layer_pattern=None,
            moe_layer_freq=None,
            sliding_window=128,
            swa_head_dim=None,
            swa_v_head_dim=None,
            swa_num_key_value_heads=None,
            swa_num_attention_heads=None,
            add_full_attention_sink_bias=False,
            add_swa_attention_sink_bias=False,
        ),
        fixed={"attention_bias": (False, None), "n_shared_experts": (None, 0)},
        without_effect=ignored.MIMO,
    ),
    "minimax_m2": Family(
        experts.minimax_m2,
        gated_keys(
            196608,
            kv_heads=8,
            head_dim=128,
            num_local_experts=256,
            attn_type_list=None,
            use_qk_norm=True,
            use_routing_bias=True,
            **PER_TOKEN,
        ),
        fixed={
            "shared_intermediate_size": (0, None),
            "sliding_window": (None,),
            "qk_norm_type": ("per_layer", None),
        },
        without_effect=ignored.MINIMAX,
        modules={"experts": "block_sparse_moe.experts.0"},
    ),
    "minimax_m3": Family(
        sparse.minimax_m3,
        gated_keys(
            1048576,
            kv_heads=4,
            head_dim=128,
            dense_intermediate_size=NEEDED,
            num_local_experts=NEEDED,
            shared_intermediate_size=NEEDED,
            moe_layer_freq=None,
            sparse_attention_config=NEEDED,
            use_qk_norm=True,
            use_routing_bias=True,
            **PER_TOKEN,
        ),
        spellings={"intermediate_size": ("moe_intermediate_size",)},
        fixed={
            "attention_output_gate": (False, None),
            "n_shared_experts": (1, None),
            "qk_norm_type": ("per_head", None),
        },
        without_effect=ignored.MINIMAX3,
        modules={
            "experts": "block_sparse_moe.experts.0",
            "shared expert": "block_sparse_moe.shared_experts",
        },
    ),
    "ministral3": Family(
        partial(parts.gated, window=attention.every_layer),
        gated_keys(262144, kv_heads=8, head_dim=128, sliding_window=None),
    ),
    "nemotron-nas": Family(
        searched.nemotron_nas,
        plain_keys(131072, tied=False, head_dim=None, block_configs=NEEDED),
        fixed={
            "attention_bias": (False, None),
            "mlp_bias": (False, None),
            "intermediate_size": (None,),
            "num_key_value_heads": (None,),
        },
    ),
    "granite": Family(
        parts.gated,
        gated_keys(2048, kv_heads=None, attention_bias=False, mlp_bias=False),
        without_effect=ignored.GRANITE,
    ),
    "olmo2": Family(
        partial(parts.gated, qk_norm=True, after=True),
        gated_keys(2048, kv_heads=None, attention_bias=False),
    ),
    "olmo3": Family(
        partial(parts.gated, qk_norm=True, after=True, window=attention.pattern_window),
        gated_keys(
            2048,
            kv_heads=None,
            attention_bias=False,
            sliding_window=4096,
            sliding_window_pattern=4,
            layer_types=None,
        ),
    ),
    "roberta": PLAIN["bert"],
    "smollm3": Family(
        partial(parts.gated, window=attention.listed_window),
        gated_keys(
            32768,
            tied=True,
            kv_heads=4,
            attention_bias=False,
            mlp_bias=False,
            use_sliding_window=False,
            sliding_window=None,
            layer_types=None,
        ),
        without_effect=ignored.SMOLLM3,
    ),
    "xlm-roberta": PLAIN["bert"],
    "nemotron_h": Family(
        states.nemotron_h,
        gated_keys(
            4096,
            kv_heads=8,
            head_dim=128,
            num_hidden_layers=None,
            attention_bias=False,
            intermediate_size=21504,
            hybrid_override_pattern=None,
            layers_block_type=None,
            mamba_num_heads=128,
            mamba_head_dim=64,
            ssm_state_size=128,
            n_groups=8,
            conv_kernel=4,
            use_conv_bias=True,
            mamba_ssm_cache_dtype=None,
            n_routed_experts=8,
            num_experts_per_tok=2,
            n_shared_experts=1,
            moe_intermediate_size=7688,
            moe_shared_expert_intermediate_size=7688,
            moe_latent_size=None,
        ),
        spellings={"head_dim": ("attention_head_dim",)},
        fixed={
            "sliding_window": (None,),
            "mamba_proj_bias": (False, None),
            "use_bias": (False, None),
            "mlp_bias": (False, None),
        },
        without_effect=ignored.NEMOTRON_H,
        modules={
            **dict.fromkeys(("attention", "state", "feed-forward", "latent"), "mixer"),
            "experts": "mixer.experts.0",
            "shared expert": "mixer.shared_experts",
        },
    ),
    "qwen3_5_text": Family(
        states.qwen_linear,
        _linear(32768, kv_heads=4, moe=False),
        fixed=_NO_DENSE,
        without_effect=ignored.QWEN_LINEAR,
    ),
    "qwen3_5_moe_text": Family(
        states.qwen_linear,
        _linear(32768, kv_heads=2, moe=True),
        fixed=_NO_DENSE,
        without_effect=ignored.QWEN_LINEAR,
        modules={"shared expert": "mlp.shared_expert"},
    ),
    "qwen3_next": Family(
        states.qwen_linear,
        _linear(32768, kv_heads=2, moe=True),
        fixed=_NO_DENSE,
        # No layer is without experts.
        without_effect=ignored.QWEN_LINEAR | {"intermediate_size": ignored.DERIVED},
        modules={"shared expert": "mlp.shared_expert"},
    ),
    "qwen3_vl_text": Family(
        _QWEN3.build,
        {**_QWEN3.keys, "max_position_embeddings": 128000},
        without_effect=ignored.QWEN,
    ),
    "qwen3_vl_moe_text": Family(
        _QWEN3_MOE.build,
        {**_QWEN3_MOE.keys, "max_position_embeddings": 128000, "num_key_value_heads": 16},
        spellings=_QWEN3_MOE.spellings,
        without_effect=ignored.QWEN_MOE,
    ),
}
