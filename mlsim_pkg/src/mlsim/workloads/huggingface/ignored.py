"""Keys of a Hugging Face configuration that change no count, each with the reason why.

And those that may not vary. A key that is neither read nor on a list here is refused.
"""

from __future__ import annotations

from typing import Any

# Values that no model here has otherwise: the first is the usual one.
FIXED: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "per_layer_config": (None, {}),
}

Reasons = dict[str, str]

NAME = "a name, or which program reads it"
TRAINING = "used in training only"
ARITHMETIC = "changes what is computed, not how much of it"
POSITIONS = "positions by rotation hold no parameters"
TOKENS = "which tokens stand for what"
OUTPUT = "what a call returns"
SAMPLING = "how words are drawn from the scores"
DERIVED = "follows from other keys, or is replaced by them"
DRAFT = "layers that draft tokens, which are not in the published count"
ROUTING = "how the router chooses, not among how many"
MODALITY = "a part for pictures, sound or video: the text part is counted"
FORMAT = "the format of the parameters, which an answer chooses"


def _because(reasons: dict[str, str]) -> Reasons:
    """Return each key with its reason; a reason may stand for many."""
    return {key: reason for reason, keys in reasons.items() for key in keys.split()}


IGNORED: Reasons = _because(
    {
        NAME: """
            _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path
            architectures attn_implementation auto_map cache_implementation finetuning_task
            model_type name_or_path tokenizer_class torchscript transformers_version use_cache
            use_kernels
            """,
        FORMAT: "dtype torch_dtype use_bfloat16",
        TRAINING: """
            attention_dropout attention_probs_dropout_prob attn_pdrop classifier_dropout dropout
            embd_pdrop gradient_checkpointing hidden_dropout hidden_dropout_prob init_std
            initializer_range output_router_logits pretraining_tp resid_pdrop
            router_aux_loss_coef router_jitter_noise
            """,
        ARITHMETIC: """
            activation activation_function hidden_act hidden_activation layer_norm_eps
            layer_norm_epsilon layernorm_epsilon norm_eps rms_norm_eps scale_attn_weights
            use_parallel_residual chunk_size_feed_forward
            """,
        POSITIONS: """
            original_max_position_embeddings partial_rotary_factor rope_interleave
            rope_parameters rope_scaling rope_theta rotary_dim rotary_emb_base rotary_pct
            """,
        TOKENS: """
            bos_token_id decoder_start_token_id eos_token_id pad_token_id sep_token_id
            unk_token_id
            """,
        OUTPUT: """
            cross_attention_hidden_size id2label is_decoder label2id num_labels
            output_attentions output_hidden_states output_scores prefix problem_type return_dict
            return_dict_in_generate summary_activation summary_first_dropout
            summary_proj_to_labels summary_type summary_use_proj task_specific_params
            tf_legacy_loss tie_encoder_decoder
            """,
        SAMPLING: """
            bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping
            encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id
            forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size
            num_beam_groups num_beams num_return_sequences remove_invalid_values
            repetition_penalty suppress_tokens temperature top_k top_p typical_p
            """,
    }
)

# For one family each, or for some that share a set.
BERT = _because(
    {
        OUTPUT: """
            directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
            pooler_size_per_head pooler_type
            """
    }
)
BLOOM = _because(
    {
        ARITHMETIC: """
            apply_residual_connection_post_layernorm attention_softmax_in_fp32
            bias_dropout_fusion masked_softmax_fusion offset_alibi skip_bias_add
            skip_bias_add_qkv slow_but_exact
            """,
        DERIVED: "n_inner",
    }
)
GLM4 = _because(
    {
        TRAINING: "aux_loss_alpha seq_aux",
        NAME: "ep_size",
        ROUTING: """
            moe_router_dtype n_group norm_topk_prob routed_scaling_factor scoring_func
            topk_group topk_method
            """,
        DRAFT: "num_mtp_layers num_nextn_predict_layers",
    }
)
DEEPSEEK = GLM4 | _because({DERIVED: "head_dim num_key_value_heads qk_head_dim"})
SPARSE = DEEPSEEK | _because(
    {
        POSITIONS: "indexer_rope_interleave",
        DRAFT: "index_share_for_mtp_iteration",
    }
)
FALCON = _because({ARITHMETIC: "alibi apply_residual_connection_post_layernorm"})
GEMMA = _because(
    {
        ARITHMETIC: "attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar",
        POSITIONS: "rope_local_base_freq",
        DERIVED: "sliding_window_size",
    }
)
GEMMA3N = GEMMA | _because({ARITHMETIC: "altup_active_idx altup_coef_clip"})
GPT2 = _because(
    {
        DERIVED: "n_ctx",
        OUTPUT: "n_special predict_special_tokens",
        ARITHMETIC: "reorder_and_upcast_attn scale_attn_by_inverse_layer_idx",
        POSITIONS: "rotary",
    }
)
GPT_OSS = _because({POSITIONS: "initial_context_length", ARITHMETIC: "swiglu_alpha swiglu_limit"})
GRANITE = _because(
    {
        ARITHMETIC: """
            attention_multiplier embedding_multiplier logits_scaling residual_multiplier
            """
    }
)
LLAMA4 = _because(
    {
        ARITHMETIC: "attn_scale attn_temperature_tuning floor_scale use_qk_norm",
        NAME: "for_llm_compressor",
    }
)
MIMO = _because(
    {
        ARITHMETIC: "attention_value_scale swa_rope_theta",
        DERIVED: "attention_chunk_size sliding_window_size",
        ROUTING: "n_group norm_topk_prob routed_scaling_factor scoring_func topk_group topk_method",
    }
)
MINIMAX = _because(
    {
        DRAFT: "mtp_transformer_layers num_mtp_modules use_mtp",
        ROUTING: "scoring_func",
    }
)
MINIMAX3 = MINIMAX | _because(
    {
        ARITHMETIC: "swiglu_alpha swiglu_limit use_gemma_norm",
        ROUTING: "routed_scaling_factor",
        DRAFT: "num_nextn_predict_layers",
        DERIVED: "first_k_dense_replace",
    }
)
NEMOTRON_H = _because(
    {
        ARITHMETIC: """
            chunk_size mamba_hidden_act mlp_hidden_act moe_shared_expert_overlap
            num_logits_to_keep rescale_prenorm_residual residual_in_fp32 use_mamba_kernels
            """,
        DERIVED: "expand time_step_rank",
        TRAINING: "time_step_floor time_step_limit time_step_max time_step_min",
        ROUTING: "n_group norm_topk_prob routed_scaling_factor topk_group",
        DRAFT: """
            mtp_hybrid_override_pattern mtp_layers_block_type num_nextn_predict_layers
            """,
    }
)
OLMO = _because({ARITHMETIC: "clip_qkv"})
OPT = _because({TRAINING: "activation_dropout layerdrop"})
SMOLLM3 = _because({POSITIONS: "no_rope_layer_interval no_rope_layers"})
QWEN = _because(
    {
        ROUTING: "norm_topk_prob",
        POSITIONS: "use_mrope",
        DRAFT: "num_nextn_predict_layers",
    }
)
QWEN_MOE = QWEN | _because({DERIVED: "max_window_layers"})
QWEN_LINEAR = QWEN_MOE | _because(
    {
        ARITHMETIC: "output_gate_type",
        DRAFT: "mtp_num_hidden_layers mtp_use_dedicated_embeddings",
    }
)

# The keys around a nested text_config: the other modalities, and what joins them.
AROUND = _because(
    {
        MODALITY: """
            audio_config audio_soft_tokens_per_image audio_token_id boa_token_id
            boi_token_id boi_token_index eoa_token_id eoa_token_index eoi_token_id
            eoi_token_index ignore_index image_grid_pinpoints image_placeholder
            image_seq_length image_token_id image_token_index
            img_token_compression_config language_model_only media_placeholder_token_id
            mm_tokens_per_image multimodal_projector_bias process_image_mode
            projector_hidden_act projector_hidden_size spatial_merge_size
            num_reward_heads use_unified_vision_chunk video_placeholder video_token_id
            video_token_index vision_config vision_end_token_id vision_feature_layer
            vision_feature_select_strategy vision_soft_tokens_per_image
            vision_start_token_id
            """,
    }
)
