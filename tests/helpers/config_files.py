"""Small files like Hugging Face's `config.json`, for tests to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlsim.workloads.blocks import Attention
from mlsim.workloads.huggingface import load_config
from mlsim.workloads.language import Transformer

# Smallest files: all that a family needs.
USUAL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
LLAMA = {"model_type": "llama", **USUAL}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
QWEN = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
}
# Those of families whose layers are of several kinds.
MIXED: dict[str, dict[str, Any]] = {
    "deepseek_v32": LATENT,
    "glm_moe_dsa": LATENT,
    "kimi_k2": LATENT,
    "minimax_m2": EXPERTS | {"num_key_value_heads": 2},
    "minimax_m3": EXPERTS
    | {
        "num_key_value_heads": 2,
        "dense_intermediate_size": 256,
        "shared_intermediate_size": 128,
        "moe_layer_freq": [0, 1, 1, 1, 1, 1],
        "sparse_attention_config": {
            "sparse_attention_freq": [0, 0, 1, 1, 1, 1],
            "sparse_index_dim": 8,
            "sparse_num_index_heads": 2,
            "sparse_topk_blocks": 4,
            "sparse_block_size": 16,
        },
    },
    "glm4_moe": {"num_key_value_heads": 2, "num_experts_per_tok": 2},
    "qwen3_vl_moe_text": QWEN | {"num_key_value_heads": 2},
    "qwen3_next": QWEN | {"shared_expert_intermediate_size": 16, "num_key_value_heads": 2},
    "qwen3_5_moe_text": QWEN | {"shared_expert_intermediate_size": 16, "num_key_value_heads": 2},
    "qwen3_5_text": {"num_key_value_heads": 2},
    "gemma3n_text": {"num_kv_shared_layers": 1, "layer_types": ["sliding_attention"] * 6},
    "gemma4_text": {"hidden_size_per_layer_input": 0, "num_key_value_heads": 2},
    "llama4_text": {"num_key_value_heads": 2},
    **{kind: {} for kind in ("granite", "olmo2", "olmo3", "roberta", "xlm-roberta")},
    "smollm3": {"num_key_value_heads": 2},
    "mimo": {"num_key_value_heads": 2, "attention_bias": True},
    "mimo_v2_flash": {
        "num_key_value_heads": 2,
        "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
        "moe_layer_freq": [0, 1, 1, 1, 1, 1],
    },
    "nemotron_h": {"num_key_value_heads": 2, "hybrid_override_pattern": "ME*-M*"},
}


def smallest(kind: str, **changes: Any) -> dict[str, Any]:
    """Return the smallest file of a family that has the usual names of keys."""
    more = {"mixtral": EXPERTS, "gpt_oss": EXPERTS, "qwen3_moe": QWEN}.get(kind, {})
    if kind == "qwen2_moe":
        more = QWEN | {"shared_expert_intermediate_size": 48}
    if kind.startswith("deepseek"):
        more = LATENT
    if kind == "opt":
        more = {"ffn_dim": 128}
    if kind in MIXED:
        more = MIXED[kind]
    data = {"model_type": kind, **USUAL, **more}
    if kind in ("opt", "falcon", "qwen3_5_moe_text"):
        del data["intermediate_size"]
    return data | changes


def write(folder: Path, data: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path


def load(folder: Path, kind: str, **changes: Any) -> Transformer:
    return load_config(write(folder, smallest(kind, **changes)))


def attention(folder: Path, kind: str, **changes: Any) -> Attention:
    found = load(folder, kind, **changes).attention
    assert isinstance(found, Attention)
    return found
