"""The parts of a transformer from the keys of a Hugging Face configuration.

Each function reads one family's keys and returns arguments of Transformer, as
the class of that family in the transformers library builds its layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsim.workloads.blocks import Experts, FeedForward
from mlsim.workloads.huggingface.attention import Window, attention, whole_sequence
from mlsim.workloads.huggingface.values import Config


def sizes(config: Config) -> dict[str, Any]:
    """Return the sizes that each family has."""
    return {
        "layers": config.count("num_hidden_layers"),
        "hidden": config.count("hidden_size"),
        "vocabulary": config.count("vocab_size"),
        "context": config.count("max_position_embeddings"),
        "tied_embeddings": config.flag("tie_word_embeddings"),
    }


def gated(
    config: Config,
    *,
    window: Callable[[Config], Window] = whole_sequence,
    experts: Callable[[Config], Experts | None] | None = None,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    norm: str = "rms",
    norms: int = 2,
    after: bool = False,
) -> dict[str, Any]:
    """Return a Llama, or a relative: grouped-query attention and gated networks."""
    bias = config.flag("attention_bias")
    found = experts(config) if experts else None
    dense = FeedForward(
        size=config.count("intermediate_size"), gated=True, bias=config.flag("mlp_bias")
    )
    return {
        **sizes(config),
        "attention": attention(
            config,
            bias=bias or qkv_bias,
            output_bias=bias,
            qk_norm=qk_norm,
            # OLMo's norms stand behind each part, and those of queries and keys are wide.
            wide_norm=after and qk_norm,
            **window(config),
        ),
        "feed_forward": None if found and not found.dense_layers else dense,
        "experts": found,
        "norm": norm,
        "norms": norms,
        "norms_after": after,
    }


def _plain(config: Config, *, bias: bool, size: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a network without a gate, four times as wide unless the file says, and LayerNorm."""
    wide = size or 4 * config.count("hidden_size")
    return {
        **sizes(config),
        "feed_forward": FeedForward(size=wide, bias=bias),
        "norm": "layer",
        **more,
    }


def gpt2(config: Config) -> dict[str, Any]:
    """Return a GPT-2: biases, and a learned table of positions."""
    return _plain(
        config,
        bias=True,
        size=config.maybe("n_inner"),
        attention=attention(config, bias=True, output_bias=True),
        positions=config.count("max_position_embeddings"),
    )


def gptj(config: Config) -> dict[str, Any]:
    """Return a GPT-J: attention and network in parallel after one norm, no bias in attention."""
    return _plain(
        config,
        bias=True,
        size=config.maybe("n_inner"),
        attention=attention(config),
        norms=1,
        output_bias=True,
    )


def gpt_neox(config: Config) -> dict[str, Any]:
    """Return a GPT-NeoX: parallel or not, it has a norm before each part."""
    bias = config.flag("attention_bias")
    return _plain(
        config,
        bias=True,
        size=config.count("intermediate_size"),
        attention=attention(config, bias=bias, output_bias=bias),
    )


def bloom(config: Config) -> dict[str, Any]:
    """Return a BLOOM: biases, a norm on the embedding, no positions."""
    return _plain(
        config,
        bias=True,
        attention=attention(config, bias=True, output_bias=True),
        embedding_norm=True,
    )


def opt(config: Config) -> dict[str, Any]:
    """Return an OPT: two rows of its table of positions are never used."""
    hidden, embedded = config.count("hidden_size"), config.maybe("word_embed_proj_dim")
    if embedded not in (None, hidden):
        raise config.error(
            f"word_embed_proj_dim = {embedded} is not hidden_size = {hidden}: an embedding of "
            "another width than the layers can't be told here.",
            "word_embed_proj_dim",
        )
    bias = config.flag("enable_bias")
    removed = config.flag("_remove_final_layer_norm")
    return _plain(
        config,
        bias=bias,
        size=config.count("ffn_dim"),
        attention=attention(config, bias=bias, output_bias=bias),
        positions=config.count("max_position_embeddings") + 2,
        final_norm=config.flag("do_layer_norm_before") and not removed,
    )


def falcon(config: Config) -> dict[str, Any]:
    """Return a Falcon: one KV head, or groups in the new architecture."""
    bias, new = config.flag("bias"), config.flag("new_decoder_architecture")
    kv_heads = 1 if config.flag("multi_query") else config.count("num_attention_heads")
    if new:
        kv_heads = config.maybe("num_kv_heads") or config.count("num_attention_heads")
    norms = config.maybe("num_ln_in_parallel_attn") or (2 if new else 1)
    if not config.flag("parallel_attn"):
        norms = 2
    return _plain(
        config,
        bias=bias,
        size=config.maybe("ffn_hidden_size"),
        attention=attention(config, kv_heads=kv_heads, bias=bias, output_bias=bias),
        # Any number but two is one, in the library's code.
        norms=2 if norms == 2 else 1,
    )


def bert(config: Config) -> dict[str, Any]:
    """Return a BERT without its output layer, as an encoder: pooler and types of tokens."""
    return _plain(
        config,
        bias=True,
        size=config.count("intermediate_size"),
        attention=attention(config, bias=True, output_bias=True),
        positions=config.count("max_position_embeddings"),
        token_types=config.count("type_vocab_size"),
        decoder=False,
        embedding_norm=True,
        final_norm=False,
        pooler=True,
        output_layer=False,
    )
