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
# Those of families whose layers are of several kinds.
FILE = Path(__file__).parents[1] / "fixtures" / "mixed_configs.json"
MIXED: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
del MIXED["about"]
LATENT = MIXED["kimi_k2"]


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
