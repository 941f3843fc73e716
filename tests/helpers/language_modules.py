"""Language models of the zoo as the transformers library builds them, without weights."""

from __future__ import annotations

from typing import Any

from pytorch_parts import torchvision_models
from real_configs import REAL
from zoo_modules import weightless

from mlsim.workloads.graph.fuse import fused
from mlsim.workloads.graph.nodes import Graph

# Of each kernel: what it is, computes, holds, reads and writes.
OPERATOR = (
    *("kind", "multiply_adds", "table_parameters"),
    *("activations_read", "activations_written", "outputs"),
)


def published(name: str) -> dict[str, Any]:
    """Return the keys of a published configuration."""
    return {key: value for key, value in REAL[name][0].items() if key != "model_type"}


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
    "BLOOM_176B": (
        "Bloom",
        "BloomForCausalLM",
        {"hidden_size": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250880},
    ),
    "DeepSeek_V3": (
        "DeepseekV3",
        "DeepseekV3ForCausalLM",
        {
            "vocab_size": 129280,
            "hidden_size": 7168,
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
        },
    ),
    "DeepSeek_V3_1": (
        "DeepseekV3",
        "DeepseekV3ForCausalLM",
        {
            "vocab_size": 129280,
            "hidden_size": 7168,
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
        },
    ),
    "DistilBERT_Base": ("DistilBert", "DistilBertModel", {}),
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
    "Gemma3_27B": (
        "Gemma3Text",
        "Gemma3ForCausalLM",
        {
            "vocab_size": 262144,
            "hidden_size": 5376,
            "num_hidden_layers": 62,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "intermediate_size": 21504,
            "head_dim": 128,
            "sliding_window": 1024,
        },
    ),
    "Gemma4_26B_A4B": ("Gemma4Text", "Gemma4ForCausalLM", published("Gemma-4-26B-A4B")),
    "Gemma4_31B": ("Gemma4Text", "Gemma4ForCausalLM", published("Gemma-4-31B")),
    "Gemma4_E2B": ("Gemma4Text", "Gemma4ForCausalLM", published("Gemma-4-E2B")),
    "Gemma4_E4B": ("Gemma4Text", "Gemma4ForCausalLM", published("Gemma-4-E4B")),
    "Gemma3n_E2B": (
        "Gemma3nText",
        "Gemma3nForCausalLM",
        {"num_hidden_layers": 30, "intermediate_size": 8192, "num_kv_shared_layers": 10},
    ),
    "Gemma3n_E4B": ("Gemma3nText", "Gemma3nForCausalLM", {}),
    "GLM_4_5": (
        "Glm4Moe",
        "Glm4MoeForCausalLM",
        {
            "vocab_size": 151552,
            "hidden_size": 5120,
            "num_hidden_layers": 92,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "intermediate_size": 12288,
            "head_dim": 128,
            "moe_intermediate_size": 1536,
            "n_routed_experts": 160,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
            "use_qk_norm": True,
            "attention_bias": True,
        },
    ),
    "GLM_4_5_Air": (
        "Glm4Moe",
        "Glm4MoeForCausalLM",
        {
            "vocab_size": 151552,
            "hidden_size": 4096,
            "num_hidden_layers": 46,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "intermediate_size": 10944,
            "head_dim": 128,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "use_qk_norm": False,
            "attention_bias": True,
        },
    ),
    "GLM_4_7": (
        "Glm4Moe",
        "Glm4MoeForCausalLM",
        {
            "vocab_size": 151552,
            "hidden_size": 5120,
            "num_hidden_layers": 92,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "intermediate_size": 12288,
            "head_dim": 128,
            "moe_intermediate_size": 1536,
            "n_routed_experts": 160,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
            "use_qk_norm": True,
            "attention_bias": True,
        },
    ),
    "GLM_4_7_Flash": (
        "Glm4MoeLite",
        "Glm4MoeLiteForCausalLM",
        {
            "vocab_size": 154880,
            "hidden_size": 2048,
            "num_hidden_layers": 47,
            "num_attention_heads": 20,
            "num_key_value_heads": 20,
            "intermediate_size": 10240,
            "moe_intermediate_size": 1536,
            "n_routed_experts": 64,
            "num_experts_per_tok": 4,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 768,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 192,
            "qk_rope_head_dim": 64,
            "v_head_dim": 256,
        },
    ),
    "GPT2": ("GPT2", "GPT2LMHeadModel", {}),
    "GPT2_Large": ("GPT2", "GPT2LMHeadModel", {"n_embd": 1280, "n_layer": 36, "n_head": 20}),
    "GPT2_Medium": ("GPT2", "GPT2LMHeadModel", {"n_embd": 1024, "n_layer": 24, "n_head": 16}),
    "GPT2_XL": ("GPT2", "GPT2LMHeadModel", {"n_embd": 1600, "n_layer": 48, "n_head": 25}),
    "GPT_J_6B": ("GPTJ", "GPTJForCausalLM", {}),
    "GPT_OSS_120B": (
        "GptOss",
        "GptOssForCausalLM",
        {"num_hidden_layers": 36, "num_local_experts": 128},
    ),
    "GPT_OSS_20B": (
        "GptOss",
        "GptOssForCausalLM",
        {"num_hidden_layers": 24, "num_local_experts": 32},
    ),
    "Kimi_K2": (
        "DeepseekV3",
        "DeepseekV3ForCausalLM",
        {
            "vocab_size": 163840,
            "hidden_size": 7168,
            "num_hidden_layers": 61,
            "num_attention_heads": 64,
            "num_key_value_heads": 64,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 384,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
        },
    ),
    "Llama2_13B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "num_attention_heads": 40,
            "num_key_value_heads": 40,
            "intermediate_size": 13824,
            "head_dim": 128,
        },
    ),
    "Llama2_70B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 8192,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "intermediate_size": 28672,
            "head_dim": 128,
        },
    ),
    "Llama2_7B": ("Llama", "LlamaForCausalLM", {}),
    "Llama3_405B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 128256,
            "hidden_size": 16384,
            "num_hidden_layers": 126,
            "num_attention_heads": 128,
            "num_key_value_heads": 8,
            "intermediate_size": 53248,
            "head_dim": 128,
        },
    ),
    "Llama3_70B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 128256,
            "hidden_size": 8192,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "intermediate_size": 28672,
            "head_dim": 128,
        },
    ),
    "Llama3_8B": (
        "Llama",
        "LlamaForCausalLM",
        {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256},
    ),
    "MiniMax_M2": (
        "MiniMaxM2",
        "MiniMaxM2ForCausalLM",
        {
            "vocab_size": 200064,
            "hidden_size": 3072,
            "num_hidden_layers": 62,
            "num_attention_heads": 48,
            "num_key_value_heads": 8,
            "intermediate_size": 1536,
            "head_dim": 128,
            "num_local_experts": 256,
            "num_experts_per_tok": 8,
        },
    ),
    "Mistral_7B": ("Mistral", "MistralForCausalLM", {}),
    "Mistral_Large_3": (
        "Mistral4",
        "Mistral4ForCausalLM",
        {
            "vocab_size": 131072,
            "hidden_size": 7168,
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "intermediate_size": 16384,
            "moe_intermediate_size": 4096,
            "n_routed_experts": 128,
            "num_experts_per_tok": 4,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
        },
    ),
    "Mistral_Small_3": (
        "Mistral",
        "MistralForCausalLM",
        {
            "vocab_size": 131072,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 32768,
            "head_dim": 128,
            "sliding_window": None,
        },
    ),
    "Mistral_Small_3_1": (
        "Mistral",
        "MistralForCausalLM",
        {
            "vocab_size": 131072,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 32768,
            "head_dim": 128,
            "sliding_window": None,
        },
    ),
    "Mixtral_8x7B": ("Mixtral", "MixtralForCausalLM", {}),
    "OLMo2_13B": (
        "Olmo2",
        "Olmo2ForCausalLM",
        {
            "vocab_size": 100352,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "num_attention_heads": 40,
            "num_key_value_heads": 40,
            "intermediate_size": 13824,
            "head_dim": 128,
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
    "OLMo3_32B": (
        "Olmo3",
        "Olmo3ForCausalLM",
        {
            "vocab_size": 100278,
            "hidden_size": 5120,
            "num_hidden_layers": 64,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "intermediate_size": 27648,
            "head_dim": 128,
        },
    ),
    "OLMo3_7B": (
        "Olmo3",
        "Olmo3ForCausalLM",
        {
            "vocab_size": 100278,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "intermediate_size": 11008,
            "head_dim": 128,
        },
    ),
    "OLMo_1B": (
        "Olmo",
        "OlmoForCausalLM",
        {
            "vocab_size": 50304,
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 8192,
            "head_dim": 128,
            "tie_word_embeddings": True,
        },
    ),
    "OLMo_7B": (
        "Olmo",
        "OlmoForCausalLM",
        {
            "vocab_size": 50304,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "intermediate_size": 11008,
            "head_dim": 128,
            "tie_word_embeddings": False,
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
    "Qwen3_235B_A22B": (
        "Qwen3Moe",
        "Qwen3MoeForCausalLM",
        {
            "vocab_size": 151936,
            "hidden_size": 4096,
            "num_hidden_layers": 94,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "moe_intermediate_size": 1536,
            "num_experts": 128,
            "num_experts_per_tok": 8,
        },
    ),
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
    "Qwen3_32B": (
        "Qwen3",
        "Qwen3ForCausalLM",
        {
            "vocab_size": 151936,
            "hidden_size": 5120,
            "num_hidden_layers": 64,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "intermediate_size": 25600,
            "head_dim": 128,
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
    "Qwen3_Coder_480B_A35B": (
        "Qwen3Moe",
        "Qwen3MoeForCausalLM",
        {
            "vocab_size": 151936,
            "hidden_size": 6144,
            "num_hidden_layers": 62,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "moe_intermediate_size": 2560,
            "num_experts": 160,
            "num_experts_per_tok": 8,
        },
    ),
    "Llama1_33B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 6656,
            "num_hidden_layers": 60,
            "num_attention_heads": 52,
            "intermediate_size": 17920,
        },
    ),
    "Llama1_65B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 8192,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "intermediate_size": 22016,
        },
    ),
    "Qwen3_4B": (
        "Qwen3",
        "Qwen3ForCausalLM",
        {
            "vocab_size": 151936,
            "hidden_size": 2560,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 9728,
            "tie_word_embeddings": True,
        },
    ),
    "SmolLM3_3B": ("SmolLM3", "SmolLM3ForCausalLM", {}),
    "StarCoder_15B": (
        "GPTBigCode",
        "GPTBigCodeForCausalLM",
        {
            "vocab_size": 49152,
            "n_positions": 8192,
            "n_embd": 6144,
            "n_layer": 40,
            "n_head": 48,
            "n_inner": 24576,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
    ),
    "TinyLlama_1_1B": (
        "Llama",
        "LlamaForCausalLM",
        {
            "vocab_size": 32000,
            "hidden_size": 2048,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "intermediate_size": 5632,
        },
    ),
}

# Those that are not compared, and why.
WITHOUT: dict[str, tuple[str, ...]] = {
    "the library adds both parts of a layer at once, these one after the other": (
        *("Falcon_180B", "Pythia_160M", "Pythia_1_4B", "Pythia_6_9B", "Pythia_12B"),
    ),
    "the library has no such model": (
        *("BigScience_181B", "GPT3_175B", "MT_NLG_530B", "Megatron_1T", "Megatron_22B"),
        *("GPT_20B", "GPT_6_7B", "PaLM_540B"),
    ),
    "the library's has ALiBi and no biases, these have learned positions and biases": (
        *("MPT_125M", "MPT_1B", "MPT_3B", "MPT_7B", "MPT_13B", "MPT_30B", "MPT_70B"),
    ),
    "the library writes out a state's recurrence as many operations, some of them not known": (
        *("Nemotron_3_Nano_30B_A3B", "Nemotron_H_56B", "Qwen3_Next_80B_A3B"),
    ),
    "the library lets all experts work on all tokens, and weighs most with zero": (
        *("Llama4_Maverick", "Llama4_Scout"),
    ),
    "the library computes all scores, and hides with a mask what an indexer leaves out": (
        *("DeepSeek_V3_2", "GLM_5"),
    ),
}


def language_module(name: str) -> Any:
    """Build the module of a language model, which has shapes only."""
    torchvision_models()
    import transformers

    kind, head, sizes = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    return weightless(lambda: getattr(transformers, head)._from_config(config))


def kernels(graph: Graph) -> list[list[object]]:
    """Return each kernel's counts, and the sides of what it puts out.

    What a router adds to its scores is a buffer in a module, which no gradient changes.
    """
    rows = []
    for each in fused(graph):
        held = each.operator.parameters + sum(node.buffers for node in each.nodes)
        read = sum(node.parameters_read() + node.buffers for node in each.nodes)
        counts = [getattr(each.operator, count) for count in OPERATOR]
        rows.append([*counts, held, read])
    return rows


def totals(graph: Graph) -> list[int]:
    """Return parameters, multiply-adds, and those that a causal mask hides."""
    held = graph.parameters + sum(node.buffers for node in graph)
    return [held, graph.multiply_adds, sum(node.masked_multiply_adds for node in graph)]
