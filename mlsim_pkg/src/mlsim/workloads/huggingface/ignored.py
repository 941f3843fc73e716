"""Keys of a Hugging Face configuration that change no count, and those that may not vary."""

from __future__ import annotations

from typing import Any

# Values that no model here has otherwise: the first is the usual one.
FIXED: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "per_layer_config": (None, {}),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For all families: names, training, sampling, positions by rotation, precision, labels.
IGNORED = _words(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path architectures
    attn_implementation auto_map cache_implementation dtype finetuning_task gradient_checkpointing
    model_type name_or_path tokenizer_class torch_dtype torchscript transformers_version
    use_bfloat16 use_cache

    attention_dropout attention_probs_dropout_prob attn_pdrop classifier_dropout dropout embd_pdrop
    hidden_dropout hidden_dropout_prob init_std initializer_range output_router_logits
    pretraining_tp resid_pdrop router_aux_loss_coef
    router_jitter_noise

    activation activation_function hidden_act hidden_activation layer_norm_eps layer_norm_epsilon
    rms_norm_eps scale_attn_weights use_parallel_residual

    original_max_position_embeddings partial_rotary_factor rope_parameters rope_scaling rope_theta
    rotary_emb_base rotary_pct

    bos_token_id decoder_start_token_id eos_token_id pad_token_id sep_token_id unk_token_id

    chunk_size_feed_forward cross_attention_hidden_size id2label is_decoder label2id num_labels
    output_attentions output_hidden_states prefix problem_type return_dict summary_activation
    summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
    task_specific_params tf_legacy_loss tie_encoder_decoder

    bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping
    encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id
    forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size num_beam_groups
    num_beams num_return_sequences output_scores remove_invalid_values repetition_penalty
    return_dict_in_generate suppress_tokens temperature top_k top_p typical_p
    """
)

# For one family each, or for some that share a set.
BERT = _words(
    """
    directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
    """
)
BLOOM = _words(
    """
    apply_residual_connection_post_layernorm attention_softmax_in_fp32 bias_dropout_fusion
    masked_softmax_fusion n_inner offset_alibi skip_bias_add skip_bias_add_qkv slow_but_exact
    """
)
# The draft layers of num_nextn_predict_layers are not in the published count.
DEEPSEEK = _words(
    """
    aux_loss_alpha ep_size head_dim n_group norm_topk_prob num_key_value_heads num_mtp_layers
    num_nextn_predict_layers qk_head_dim rope_interleave routed_scaling_factor scoring_func
    seq_aux topk_group topk_method
    """
)
FALCON = frozenset(("alibi", "apply_residual_connection_post_layernorm"))
GEMMA = _words(
    """
    attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar rope_local_base_freq
    sliding_window_size
    """
)
GEMMA3_AROUND = _words(
    """
    boi_token_id boi_token_index eoi_token_id eoi_token_index image_token_id image_token_index
    mm_tokens_per_image
    """
)
GPT2 = _words(
    """
    n_ctx n_special predict_special_tokens reorder_and_upcast_attn rotary rotary_dim
    scale_attn_by_inverse_layer_idx
    """
)
GPT_OSS = frozenset(("initial_context_length", "swiglu_alpha", "swiglu_limit"))
OPT = frozenset(("activation_dropout", "layerdrop"))
QWEN = frozenset(("max_window_layers", "norm_topk_prob", "use_mrope"))
