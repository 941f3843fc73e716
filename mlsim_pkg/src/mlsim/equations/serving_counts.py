"""What a service counts before its steps are timed: tokens cached, and lengths that fit."""

from __future__ import annotations

from mlsim.equations.functions import ceil, exceeds, floor, maximum, minimum
from mlsim.equations.registry import equation

QUESTION = "How long do users wait, and how many fit?"


@equation(source="shoeybi2019megatron", yields="logits", counts=True)
def sharded_logits(vocabulary_size, tensor_parallel):
    """Scores that a device writes for one sequence: its part of the vocabulary.

    Valid for an output layer that is divided by columns.

    >>> sharded_logits(128256, 8)
    16032.0
    """
    return ceil(vocabulary_size / tensor_parallel)


@equation(source="autoawq2025", yields="bytes_per_parameter")
def mixed_bytes_per_parameter(
    parameters, wide_parameters, narrow_bytes_per_parameter, wide_bytes_per_parameter
):
    """Bytes per parameter of an operator of which quantisation leaves a part in 16 bits.

    Valid for a matrix with its biases and norms, which stay wide.

    >>> mixed_bytes_per_parameter(1000.0, 10.0, 0.5, 2.0)
    0.515
    """
    return (
        narrow_bytes_per_parameter * (parameters - wide_parameters)
        + wide_bytes_per_parameter * wide_parameters
    ) / parameters


@equation(source="deepseek2024v3", yields="bytes_per_sent_element")
def exchanged_bytes_per_element(bytes_per_element, bytes_per_returned_element):
    """Bytes of an element on its way to an expert and back, on average.

    Tokens go out in the format in which experts compute; results come back in the 16 bits in
    which they are added up.

    Valid for as many elements out as back.

    >>> exchanged_bytes_per_element(1.0, 2.0)
    1.5
    """
    return (bytes_per_element + bytes_per_returned_element) / 2


@equation(source="fedus2022switch", yields="outputs", counts=True)
def side_by_side_outputs(expert_outputs, experts_per_token):
    """Columns of the products of a token's experts, side by side as one wide product.

    Valid for experts of one size.

    >>> side_by_side_outputs(2048, 2)
    4096
    """
    return expert_outputs * experts_per_token


@equation(source="pope2023efficiently", counts=True)
def last_cached_tokens(prompt_tokens, output_tokens):
    """Tokens in the cache at the last decode step: all but the new one and the one it makes.

    Prefill makes the first token, so an output of one has no decode step.

    Valid for any output; of one token it is the prompt.

    >>> last_cached_tokens(1000.0, 128.0)
    1126.0
    >>> last_cached_tokens(1000.0, 1.0)
    1000.0
    """
    return prompt_tokens + maximum(output_tokens - 2, 0)


@equation(source="pope2023efficiently")
def middle_cached_tokens(first_cached_tokens, last_cached_tokens):
    """Tokens in the cache halfway between two decode steps.

    Valid for a cache that grows by one token a step.

    >>> middle_cached_tokens(1000.0, 1126.0)
    1063.0
    """
    return (first_cached_tokens + last_cached_tokens) / 2


@equation(source="beltagy2020longformer", counts=True)
def full_cached_tokens(first_cached_tokens, last_cached_tokens, attention_window):
    """Tokens in the cache when a window is full, if that is between the first and the last step.

    Valid for windows that include the new token.

    >>> full_cached_tokens(1000.0, 9000.0, 4096.0)
    4095.0
    """
    return minimum(last_cached_tokens, maximum(attention_window - 1, first_cached_tokens))


@equation(source="beltagy2020longformer", counts=True)
def filling_share(first_cached_tokens, full_cached_tokens, last_cached_tokens):
    """Part of the output that is written before a window is full.

    Valid for outputs of three tokens or more; a single decode step has no parts.

    >>> filling_share(1000.0, 4000.0, 9000.0)
    0.375
    >>> filling_share(1000.0, 1000.5, 1000.5)
    0.5
    """
    return (full_cached_tokens - first_cached_tokens) / maximum(
        last_cached_tokens - first_cached_tokens, 1
    )


@equation(source="kwon2023paged")
def context_memory(usable_memory, weight_memory, bytes_per_element, logits, device_batch):
    """Memory left for what grows with the sequences: all but weights and output scores.

    Valid for each device alike; below zero, not even the weights fit.

    >>> context_memory(72e9, 16e9, 2.0, 125000, 400)
    55900000000.0
    """
    return usable_memory - weight_memory - bytes_per_element * logits * device_batch


@equation(source="dao2024mamba2", yields="context_memory")
def memory_beside_states(context_memory, states_per_sequence, resident_batch):
    """Memory left for what grows with the sequences, beside the states, which don't.

    Valid for models of which some layers have a state.

    >>> memory_beside_states(50e9, 50e6, 4)
    49800000000.0
    """
    return context_memory - states_per_sequence * resident_batch


@equation(source="pope2023efficiently", counts=True)
def step_token_memory(bytes_per_element, live_elements, device_batch):
    """Memory of the activations of one more token of each sequence.

    Valid until a chunk of prefill is full.

    >>> step_token_memory(2.0, 20000, 4)
    160000.0
    """
    return bytes_per_element * live_elements * device_batch


@equation(source="pope2023efficiently", counts=True)
def token_activations(step_token_memory, resident_batch):
    """Activations of one more token of one sequence.

    Valid for sequences of one length.

    >>> token_activations(160000.0, 4)
    40000.0
    """
    return step_token_memory / resident_batch


@equation(source="agrawal2024sarathi", yields="sequence_memory")
def full_chunk_sequence_memory(context_memory, chunk_memory, resident_batch):
    """Memory that one sequence may take beside the activations of a full chunk.

    Valid for prompts of a chunk or more.

    >>> full_chunk_sequence_memory(50e9, 2e9, 4)
    12000000000.0
    """
    return (context_memory - chunk_memory) / resident_batch


@equation(source="agrawal2024sarathi", yields="sequence_memory", counts=True)
def growing_sequence_memory(context_memory, step_token_memory, output_tokens, resident_batch):
    """Memory that one sequence may take where activations grow with all tokens of the prompt.

    Those of the output are made one by one: they have no activations while it is read.

    Valid for prompts that are shorter than a chunk.

    >>> growing_sequence_memory(50e9, 1e9, 2, 4)
    13000000000.0
    """
    return (context_memory + output_tokens * step_token_memory) / resident_batch


@equation(source="kwon2023paged")
def layers_cache(bytes_per_cached_element, device_cached_elements):
    """KV cache that one token takes in some layers of a device.

    Valid for layers of any kind.

    >>> layers_cache(2.0, 65536)
    131072.0
    """
    return bytes_per_cached_element * device_cached_elements


@equation(source="kwon2023paged", yields="lasting_cache")
def growing_token_memory(layers_cache, token_activations):
    """Memory that a token takes however long its sequence is: cache, and growing activations.

    Valid for layers without a window.

    >>> growing_token_memory(131072.0, 40000.0)
    171072.0
    """
    return layers_cache + token_activations


@equation(source="kwon2023paged", yields="longest_sequence")
def short_sequence_length(sequence_memory, windowed_cache, lasting_cache):
    """Tokens that fit while the windows of all layers are filling.

    Valid up to the length of the window.

    >>> short_sequence_length(12e9, 1e5, 2e5)
    40000.0
    """
    return sequence_memory / (windowed_cache + lasting_cache)


@equation(source="beltagy2020longformer", yields="longest_sequence")
def long_sequence_length(sequence_memory, windowed_cache, attention_window, lasting_cache):
    """Tokens that fit once windows are full: only the other layers take more.

    Memory is a concave function of length, so of this and the short length the larger holds.

    Valid from the length of the window up.

    >>> long_sequence_length(12e9, 1e5, 20000, 2e5)
    50000.0
    """
    return (sequence_memory - windowed_cache * attention_window) / lasting_cache


@equation(source="beltagy2020longformer", yields="longest_sequence")
def windowed_sequence_length(sequence_memory, windowed_cache, attention_window, token_limit):
    """Tokens that fit where all layers have a window: as many as allowed, once windows fit.

    Valid for models in which nothing but the cache grows.

    >>> windowed_sequence_length(12e9, 1e5, 20000, 131072)
    131072.0
    >>> windowed_sequence_length(1e9, 1e5, 20000, 131072)
    0.0
    """
    return token_limit * (1 - exceeds(windowed_cache * attention_window, sequence_memory))


@equation(source="kwon2023paged", counts=True)
def fitting_tokens(longest_sequence, block_tokens):
    """Tokens that fit in whole blocks of the cache.

    Valid for a paged cache.

    >>> fitting_tokens(1000.5, 16)
    992
    """
    return floor(longest_sequence / block_tokens) * block_tokens


@equation(source="kwon2023paged", yields="cache_per_sequence")
def length_cache(windowed_cache, attention_window, lasting_cache, cache_tokens):
    """Cache that a sequence of a length takes: some layers stop at their window.

    Valid where all layers with a window have the same one.

    >>> length_cache(1e5, 4096, 2e5, 10000)
    2409600000.0
    """
    return windowed_cache * minimum(attention_window, cache_tokens) + lasting_cache * cache_tokens


@equation(source="kwon2023paged", yields="fitting_tokens", counts=True)
def tokens_beside_cache(sequence_memory, cache_per_sequence, token_activations, output_tokens):
    """Tokens of a sequence that fit beside its cache: those of the output, and of a prompt.

    Valid for prompts that are shorter than a chunk, in blocks that have room for them.

    >>> tokens_beside_cache(13e9, 12e9, 4e6, 16)
    266
    """
    return floor((sequence_memory - cache_per_sequence) / token_activations) + output_tokens


@equation(source="mlenergy2025", yields="busy_time")
def stage_busy_time(full_rate_time, micro_batches, pipeline_parallel):
    """Time that a device needs at the full rate for its stage in all parts of a batch.

    Valid for stages that are equally large.

    >>> stage_busy_time(0.5, 4, 2)
    1.0
    """
    return full_rate_time * micro_batches / pipeline_parallel


@equation(source="mlenergy2025", yields="busy_time", counts=True)
def generation_busy_time(prefill_busy_time, output_tokens, decode_busy_time):
    """Time that a device needs at the full rate for a prompt and its output.

    Valid for a batch of one length; prefill makes the first token.

    >>> generation_busy_time(0.5, 101, 0.01)
    1.5
    """
    return prefill_busy_time + (output_tokens - 1) * decode_busy_time


@equation(source="mlenergy2025", yields="load_tokens")
def batch_tokens(batch_size, output_tokens):
    """Tokens that a batch makes, or that an encoder reads.

    Valid for sequences of one length.

    >>> batch_tokens(64, 100)
    6400
    """
    return batch_size * output_tokens


@equation(source="nvidia2023matmul", yields="product_depth", counts=True)
def depth_of_product(token_multiply_adds, outputs):
    """Depth of a matrix product: multiply-adds of each number of its result.

    Valid for products; what is none has no outputs, and a depth that nothing asks for.

    >>> depth_of_product(4194304, 1024)
    4096.0
    >>> depth_of_product(4096, 1)
    4096.0
    """
    return token_multiply_adds / maximum(outputs, 1)
