"""Language models of the zoo have the parameters and operations of their PyTorch modules."""

from __future__ import annotations

from typing import Any

import pytest
from pytorch_parts import torchvision_models
from zoo_modules import weightless

from mlsim import Models

torch = pytest.importorskip("torch")
torchvision_models()
transformers = pytest.importorskip("transformers")

from mlsim.workloads.pytorch import read_module  # noqa: E402

TOKENS = 64
# The zoo's name: the library's configuration and model, and what differs from its defaults.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "BERT_Base": ("Bert", "BertModel", {}),
    "BERT_Large": (
        "Bert",
        "BertModel",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
    ),
    "DistilBERT_Base": ("DistilBert", "DistilBertModel", {}),
    "GPT2": ("GPT2", "GPT2LMHeadModel", {}),
    "GPT2_Medium": ("GPT2", "GPT2LMHeadModel", {"n_embd": 1024, "n_layer": 24, "n_head": 16}),
    "GPT2_XL": ("GPT2", "GPT2LMHeadModel", {"n_embd": 1600, "n_layer": 48, "n_head": 25}),
    "Llama2_7B": ("Llama", "LlamaForCausalLM", {}),
    "Llama3_8B": (
        "Llama",
        "LlamaForCausalLM",
        {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256},
    ),
    "Mistral_7B": ("Mistral", "MistralForCausalLM", {}),
    "Qwen2_5_7B": (
        "Qwen2",
        "Qwen2ForCausalLM",
        {
            "hidden_size": 3584,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "intermediate_size": 18944,
            "vocab_size": 152064,
        },
    ),
    "Qwen3_8B": (
        "Qwen3",
        "Qwen3ForCausalLM",
        {
            "hidden_size": 4096,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 12288,
            "vocab_size": 151936,
        },
    ),
    "OPT_175B": (
        "OPT",
        "OPTForCausalLM",
        {
            "hidden_size": 12288,
            "word_embed_proj_dim": 12288,
            "num_hidden_layers": 96,
            "num_attention_heads": 96,
            "ffn_dim": 49152,
            "vocab_size": 50272,
        },
    ),
    "GPT_J_6B": ("GPTJ", "GPTJForCausalLM", {}),
    "BLOOM_176B": (
        "Bloom",
        "BloomForCausalLM",
        {"hidden_size": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250880},
    ),
    "Mixtral_8x7B": ("Mixtral", "MixtralForCausalLM", {}),
    "Qwen3_30B_A3B": (
        "Qwen3Moe",
        "Qwen3MoeForCausalLM",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "moe_intermediate_size": 768,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "vocab_size": 151936,
        },
    ),
    "Gemma2_9B": (
        "Gemma2",
        "Gemma2ForCausalLM",
        {
            "hidden_size": 3584,
            "num_hidden_layers": 42,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 256,
            "intermediate_size": 14336,
            "vocab_size": 256000,
        },
    ),
    "Gemma3n_E2B": (
        "Gemma3nText",
        "Gemma3nForCausalLM",
        {"num_hidden_layers": 30, "intermediate_size": 8192, "num_kv_shared_layers": 10},
    ),
    "Gemma3n_E4B": ("Gemma3nText", "Gemma3nForCausalLM", {}),
    "Phi_4": (
        "Phi3",
        "Phi3ForCausalLM",
        {
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "num_attention_heads": 40,
            "num_key_value_heads": 10,
            "intermediate_size": 17920,
            "vocab_size": 100352,
        },
    ),
    "OLMo2_7B": (
        "Olmo2",
        "Olmo2ForCausalLM",
        {
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "intermediate_size": 11008,
            "vocab_size": 100352,
        },
    ),
    "GPT_OSS_20B": (
        "GptOss",
        "GptOssForCausalLM",
        {"num_hidden_layers": 24, "num_local_experts": 32},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_language_model_has_the_zoos_counts(name: str) -> None:
    kind, head, sizes = MODELS[name]
    build = getattr(transformers, head)._from_config
    config = getattr(transformers, f"{kind}Config")(**sizes)
    graph = read_module(weightless(lambda: build(config)), tokens=TOKENS)
    model = getattr(Models, name)
    assert graph.parameters == model.parameter_count
    # What a causal mask hides stands beside the count on both sides.
    assert 2 * graph.multiply_adds == model.flop_count(TOKENS, all_logits=True)
    whole = sum(2 * (node.multiply_adds + node.masked_multiply_adds) for node in graph)
    assert whole == model.flop_count(TOKENS, all_logits=True, causal=False)
