"""Families of language models on Hugging Face: how each one's keys make an architecture.

Keys and defaults are those of the configuration classes of the transformers
library (`src/transformers/models/*/configuration_*.py`), releases 4.57 and 5.23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mlsim.workloads.huggingface import attention, ignored, parts
from mlsim.workloads.huggingface.values import NEEDED, Config


@dataclass(frozen=True)
class Family:
    """What a `model_type` means.

    `build` makes the arguments of a Transformer. `keys` has what it reads, each
    with its default; `spellings` other names of a key, the usual one first;
    `fixed` values that can't be otherwise; `without_effect` keys that change no count.
    """

    build: Callable[[Config], dict[str, Any]]
    keys: Mapping[str, Any]
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    without_effect: frozenset[str] = frozenset()

    @property
    def understood(self) -> frozenset[str]:
        """All names of keys that this family gives a meaning, or knows to have none."""
        named = {name for names in self.spellings.values() for name in names}
        without_effect = self.without_effect | ignored.IGNORED
        return without_effect.union(self.keys, named, self.fixed, ignored.FIXED)


def _keys(context: int, *, tied: bool, **more: Any) -> dict[str, Any]:
    """Return the keys that each family has, and more."""
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    return {
        **dict.fromkeys(sizes, NEEDED),
        "max_position_embeddings": context,
        "tie_word_embeddings": tied,
        **more,
    }


def _gated(
    context: int, *, tied: bool = False, kv_heads: int | None, **more: Any
) -> dict[str, Any]:
    """Return the keys of a family with grouped-query attention and a gated network."""
    head = {"num_key_value_heads": kv_heads, "head_dim": None, "intermediate_size": NEEDED}
    return _keys(context, tied=tied, **(head | more))


# GPT-2's names of the usual keys.
_SHORT = {
    "hidden_size": ("n_embd",),
    "num_hidden_layers": ("n_layer",),
    "num_attention_heads": ("n_head",),
    "max_position_embeddings": ("n_positions",),
}
_PER_TOKEN: dict[str, Any] = {"num_experts_per_tok": NEEDED}
_MOE: dict[str, Any] = {"moe_intermediate_size": NEEDED, **_PER_TOKEN}
_QWEN_MOE: dict[str, Any] = {
    "num_experts": NEEDED,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
    "use_sliding_window": False,
    "sliding_window": 4096,
    **_MOE,
}
_QWEN_WINDOW: dict[str, Any] = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}
_LATENT: dict[str, Any] = {
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
_LATENT_FIXED = {"moe_layer_freq": (1, None), **_NO_BIAS}
_CAUSAL = {"use_bidirectional_attention": (False, None)}
_GEMMA3 = Family(
    partial(parts.gated, norms=4, qk_norm=True, window=attention.pattern_window),
    _gated(
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
# The keys around a nested text_config: the text model has its own embedding.
GEMMA3_AROUND = Family(
    parts.gated,
    {"text_config": NEEDED},
    fixed={"tie_word_embeddings": (True, None)},
    without_effect=ignored.GEMMA3_AROUND,
)

FAMILIES: dict[str, Family] = {
    "bert": Family(
        parts.bert,
        _keys(512, tied=True, intermediate_size=NEEDED, type_vocab_size=2),
        fixed={"position_embedding_type": ("absolute", None), "is_decoder": (False, None)},
        without_effect=ignored.BERT,
    ),
    "bloom": Family(
        parts.bloom,
        # Its positions have no limit; it was trained on sequences of 2,048 tokens.
        _keys(2048, tied=True),
        spellings=_SHORT
        | {"hidden_size": ("n_embed",), "max_position_embeddings": ("seq_length",)},
        without_effect=ignored.BLOOM,
    ),
    "deepseek_v2": Family(
        parts.deepseek,
        _keys(2048, tied=False, first_k_dense_replace=0, n_shared_experts=2, **_LATENT),
        fixed=_LATENT_FIXED,
        without_effect=ignored.DEEPSEEK,
    ),
    "deepseek_v3": Family(
        partial(parts.deepseek, router_bias=True),
        _keys(4096, tied=False, first_k_dense_replace=3, n_shared_experts=1, **_LATENT),
        fixed=_LATENT_FIXED,
        without_effect=ignored.DEEPSEEK,
    ),
    "falcon": Family(
        parts.falcon,
        _keys(
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
        _gated(8192, tied=True, kv_heads=16, head_dim=256, attention_bias=False),
        fixed=_CAUSAL,
    ),
    "gemma2": Family(
        partial(parts.gated, norms=4, window=attention.pattern_window),
        _gated(
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
    "gemma3": GEMMA3_AROUND,
    "gemma3_text": _GEMMA3,
    "gpt2": Family(
        parts.gpt2,
        _keys(1024, tied=True, n_inner=None),
        spellings=_SHORT,
        without_effect=ignored.GPT2,
    ),
    "gpt_neox": Family(
        parts.gpt_neox,
        _keys(2048, tied=False, intermediate_size=NEEDED, attention_bias=True),
    ),
    "gpt_oss": Family(
        parts.gpt_oss,
        _gated(
            131072,
            kv_heads=8,
            head_dim=64,
            attention_bias=True,
            sliding_window=128,
            layer_types=None,
            num_local_experts=NEEDED,
            **_PER_TOKEN,
        ),
        spellings={
            "num_local_experts": ("num_experts",),
            "num_experts_per_tok": ("experts_per_token",),
        },
        without_effect=ignored.GPT_OSS,
    ),
    "gptj": Family(
        parts.gptj,
        _keys(2048, tied=False, n_inner=None),
        spellings=_SHORT,
        without_effect=ignored.GPT2,
    ),
    "llama": Family(parts.gated, _gated(2048, kv_heads=None, attention_bias=False, mlp_bias=False)),
    "mistral": Family(
        partial(parts.gated, window=attention.every_layer),
        _gated(131072, kv_heads=8, sliding_window=4096),
    ),
    "mixtral": Family(
        partial(parts.gated, window=attention.every_layer, experts=parts.mixtral_experts),
        _gated(131072, kv_heads=8, sliding_window=None, num_local_experts=NEEDED, **_PER_TOKEN),
        spellings={"num_local_experts": ("num_experts",)},
    ),
    "opt": Family(
        parts.opt,
        _keys(
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
        _gated(4096, kv_heads=None, sliding_window=None),
        fixed={"lm_head_bias": (False, None), **_NO_BIAS},
    ),
    "qwen2": Family(
        partial(parts.gated, qkv_bias=True, window=attention.qwen_window),
        _gated(32768, kv_heads=32, **_QWEN_WINDOW),
        without_effect=ignored.QWEN,
    ),
    "qwen2_moe": Family(
        parts.qwen2_moe,
        _gated(
            32768,
            kv_heads=16,
            qkv_bias=True,
            layer_types=None,
            shared_expert_intermediate_size=NEEDED,
            **_QWEN_MOE,
        ),
        without_effect=ignored.QWEN,
    ),
    "qwen3": Family(
        partial(parts.gated, qk_norm=True, window=attention.qwen_window),
        _gated(32768, kv_heads=32, head_dim=128, attention_bias=False, **_QWEN_WINDOW),
    ),
    "qwen3_moe": Family(
        partial(
            parts.gated, qk_norm=True, window=attention.switched_window, experts=parts.qwen_experts
        ),
        _gated(
            32768, kv_heads=4, attention_bias=False, **(_QWEN_MOE | {"intermediate_size": 6144})
        ),
        spellings={"num_experts": ("num_local_experts",)},
        without_effect=ignored.QWEN,
    ),
}
