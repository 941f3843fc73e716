"""A service: what its users wait for, and what fits in the memory of its devices."""

from __future__ import annotations

from mlsim.equations.functions import (
    ceil,
    floor,
    greatest,
    maximum,
    minimum,
    square_root,
    total,
)
from mlsim.equations.registry import Topic

SERVICE = equation = Topic("service", "How long do users wait, and how many fit?")


@equation(source="pope2023efficiently", counts=True)
def time_to_first_token(latency, micro_batches, pipeline_parallel):
    """Time from the prompts' arrival to the first new token of the last sequence.

    Prefill is one step; in a pipeline the parts of the batch follow one another.

    Assumes that nothing else runs, and that no request waits for its turn.
    Valid for a batch that is started together.

    >>> time_to_first_token(0.2, 1, 4)
    0.2
    """
    return latency * (micro_batches + pipeline_parallel - 1) / pipeline_parallel


@equation(source="pope2023efficiently")
def resident_batch(batch_size, data_parallel):
    """Sequences whose cache a device holds.

    Valid for sequences of one length.

    >>> resident_batch(10.0, 4)
    3.0
    """
    return ceil(batch_size / data_parallel)


@equation(source="pope2023efficiently")
def micro_batches(resident_batch, device_batch):
    """Parts of a batch that follow one another through a pipeline.

    Valid for any pipeline; one without stages has a single part.

    >>> micro_batches(8.0, 2.0)
    4.0
    """
    return resident_batch / device_batch


@equation(source="pope2023efficiently")
def time_per_output_token(first_token_time, middle_token_time, last_token_time):
    """Mean time of a decode step, while the cache grows over the output.

    Simpson's rule on the first, the middle and the last step: exact while the same limit
    binds each operator, since then time grows in a straight line with the cache.

    Valid for outputs of two tokens or more.

    >>> time_per_output_token(1.0, 2.0, 3.0)
    2.0
    """
    return (first_token_time + 4 * middle_token_time + last_token_time) / 6


@equation(source="beltagy2020longformer", yields="time_per_output_token")
def windowed_time_per_output_token(
    filling_share,
    first_token_time,
    filling_token_time,
    full_window_time,
    later_token_time,
    last_token_time,
):
    """Mean time of a decode step where some layers see a window only.

    Simpson's rule before the window is full, and after: the time grows in another
    straight line then.

    Valid for outputs of two tokens or more.

    >>> windowed_time_per_output_token(0.25, 1.0, 2.0, 3.0, 3.5, 4.0)
    3.125
    """
    return (
        filling_share * (first_token_time + 4 * filling_token_time + full_window_time) / 6
        + (1 - filling_share) * (full_window_time + 4 * later_token_time + last_token_time) / 6
    )


@equation(source="pope2023efficiently", counts=True)
def generation_latency(time_to_first_token, output_tokens, time_per_output_token):
    """Time from the prompts' arrival to the last token: prefill makes the first one.

    Valid for a batch in which all sequences have the same lengths.

    >>> generation_latency(0.5, 101, 0.01)
    1.5
    """
    return time_to_first_token + (output_tokens - 1) * time_per_output_token


@equation(source="pope2023efficiently")
def user_token_rate(tokens_per_step, time_per_output_token):
    """Tokens per second that one user sees after the first.

    Valid while the sequence is being generated.

    >>> user_token_rate(1, 0.01)
    100.0
    """
    return tokens_per_step / time_per_output_token


@equation(source="pope2023efficiently")
def decode_throughput(batch_size, user_token_rate):
    """Tokens per second of all users together, after the first.

    Valid while all sequences of the batch are being generated.

    >>> decode_throughput(64, 50.0)
    3200.0
    """
    return batch_size * user_token_rate


@equation(source="pope2023efficiently")
def output_throughput(batch_size, output_tokens, generation_latency):
    """New tokens per second over the whole time, prefill included.

    Valid for batches that follow one another.

    >>> output_throughput(64, 100, 2.0)
    3200.0
    """
    return batch_size * output_tokens / generation_latency


@equation(source="pope2023efficiently", yields="weight_memory", sums=True)
def resident_weights(weights_held, resident_repeats):
    """Memory of the parameters that lie on one device.

    Assumes that the stages of a pipeline are equally large, but for the output layer.
    Valid for inference.

    >>> resident_weights([100.0, 200.0], [1, 2])
    500.0
    """
    return total(weights_held, resident_repeats)


@equation(source="pope2023efficiently")
def weights_held(bytes_per_parameter, parameters):
    """Memory of an operator's parameters on one device.

    Valid for any number format, its scales included in the bytes per parameter.

    >>> weights_held(2.0, 1000)
    2000.0
    """
    return bytes_per_parameter * parameters


@equation(source="kwon2023paged", counts=True)
def cache_tokens(prompt_tokens, output_tokens, block_tokens):
    """Tokens for which a sequence takes cache at its end: whole blocks of them.

    Assumes that blocks are given out as the sequence grows, and none is shared.
    Valid for a paged cache; a block of one token wastes nothing.

    >>> cache_tokens(100, 20, 16)
    128.0
    """
    return ceil((prompt_tokens + output_tokens) / block_tokens) * block_tokens


@equation(source="kwon2023paged")
def operator_cache(bytes_per_cached_element, cached_elements, cache_window, cache_tokens):
    """Cache of one sequence in one layer: all its tokens, or those in the window.

    Assumes that what has left the window is given back.
    Valid for each layer's attention.

    >>> operator_cache(2.0, 2048, 4096, 1000)
    4096000.0
    """
    return bytes_per_cached_element * cached_elements * minimum(cache_window, cache_tokens)


@equation(source="kwon2023paged", sums=True)
def cache_per_sequence(operator_cache, resident_repeats):
    """Cache that one sequence takes on one device.

    Valid for any number of layers on the device.

    >>> cache_per_sequence([4096000.0, 0.0], [32, 1])
    131072000.0
    """
    return total(operator_cache, resident_repeats)


@equation(source="kwon2023paged")
def cache_memory(cache_per_sequence, resident_batch):
    """Memory of the KV cache of all sequences on one device.

    Valid at the end of the output, when it is largest.

    >>> cache_memory(131072000.0, 8)
    1048576000.0
    """
    return cache_per_sequence * resident_batch


@equation(source="agrawal2024sarathi")
def pass_tokens(prompt_tokens, device_batch, chunk_tokens):
    """Tokens of the prompts that go through a layer together: at most a chunk of them.

    Valid for chunked prefill; a chunk that is long enough costs no time.

    >>> pass_tokens(2048, 16, 8192)
    8192
    """
    return minimum(prompt_tokens * device_batch, chunk_tokens)


@equation(source="pope2023efficiently", yields="activation_memory")
def pass_activation_memory(bytes_per_element, live_elements, pass_tokens, logits, device_batch):
    """Memory of the activations of one pass: those alive at one time, and the output scores.

    Assumes that an activation is freed once its last reader has run.
    Valid for inference.

    >>> pass_activation_memory(2.0, 20000, 8192, 128256, 16)
    331784192.0
    """
    return bytes_per_element * (live_elements * pass_tokens + logits * device_batch)


@equation(source="kwon2023paged", yields="memory_required")
def serving_memory(weight_memory, activation_memory, cache_memory):
    """Memory that serving needs on each device: weights, activations and KV cache.

    Assumes nothing for the framework; the reserve is for that.
    Valid as a lower limit for what a server allocates.

    >>> serving_memory(16e9, 0.3e9, 1e9)
    17300000000.0
    """
    return weight_memory + activation_memory + cache_memory


@equation(source="kwon2023paged")
def usable_memory(memory_capacity, reserve_share):
    """Memory that the model may use, when a share is kept for everything else.

    Valid for a device that nothing else uses.

    >>> usable_memory(80e9, 0.1)
    72000000000.0
    """
    return memory_capacity - memory_capacity * reserve_share


@equation(source="kwon2023paged", yields="memory_free")
def usable_memory_free(usable_memory, memory_required):
    """Memory that is left; below zero, the service does not fit.

    Valid for each device alike.

    >>> usable_memory_free(72e9, 73e9)
    -1000000000.0
    """
    return usable_memory - memory_required


@equation(source="kwon2023paged", counts=True)
def largest_batch(
    usable_memory,
    weight_memory,
    cache_per_sequence,
    sequence_activations,
    sequence_logits,
    chunk_memory,
    data_parallel,
):
    """Sequences that fit together: the memory left by the weights, over what each one takes.

    Activations grow with the batch until a chunk is full, and then no more.

    Valid for sequences of one length; 0 if the weights alone don't fit.

    >>> largest_batch(72e9, 16e9, 0.3e9, 0.1e9, 0.05e9, 0.8e9, 2)
    314
    >>> largest_batch(72e9, 16e9, 0.3e9, 0.1e9, 0.05e9, 20e9, 2)
    248
    >>> largest_batch(72e9, 80e9, 0.3e9, 0.1e9, 0.05e9, 0.8e9, 2)
    0
    """
    return data_parallel * maximum(
        floor(
            maximum(
                (usable_memory - weight_memory - chunk_memory)
                / (cache_per_sequence + sequence_logits),
                (usable_memory - weight_memory)
                / (cache_per_sequence + sequence_logits + sequence_activations),
            )
        ),
        0,
    )


@equation(source="devlin2019bert", yields="largest_batch", counts=True)
def largest_encoder_batch(
    usable_memory, weight_memory, sequence_activations, sequence_logits, data_parallel
):
    """Sequences that an encoder can read together: it keeps no cache, only activations.

    Valid for sequences of one length that go through the model at once.

    >>> largest_encoder_batch(14e9, 4e9, 0.1e9, 0.15e9, 3)
    120
    >>> largest_encoder_batch(4e9, 14e9, 0.1e9, 0.15e9, 3)
    0
    """
    return data_parallel * maximum(
        floor((usable_memory - weight_memory) / (sequence_activations + sequence_logits)), 0
    )


@equation(source="pope2023efficiently")
def sequence_activations(bytes_per_element, live_elements, prompt_tokens, pipeline_parallel):
    """Memory that the activations of one more prompt take, until a chunk is full.

    Valid while all prompts together are shorter than a chunk.

    >>> sequence_activations(2.0, 20000, 2048, 4)
    20480000.0
    """
    return bytes_per_element * live_elements * prompt_tokens / pipeline_parallel


@equation(source="pope2023efficiently")
def sequence_logits(bytes_per_element, logits, pipeline_parallel):
    """Memory that the output scores of one more sequence take.

    Valid for scores of the last token only.

    >>> sequence_logits(2.0, 128256, 4)
    64128.0
    """
    return bytes_per_element * logits / pipeline_parallel


@equation(source="agrawal2024sarathi")
def chunk_memory(bytes_per_element, live_elements, chunk_tokens):
    """Memory of the activations of a full chunk.

    Valid for chunked prefill.

    >>> chunk_memory(2.0, 20000, 8192)
    327680000.0
    """
    return bytes_per_element * live_elements * chunk_tokens


@equation(source="kwon2023paged")
def cache_bytes_per_token(bytes_per_cached_element, model_cached_elements):
    """KV cache that one more token takes in all layers, on all devices together.

    Assumes that no layer has a window; windowed layers stop growing.
    Valid for one copy of the cache, not repeated on several devices.

    >>> cache_bytes_per_token(2.0, 65536)
    131072.0
    """
    return bytes_per_cached_element * model_cached_elements


SERVING_COUNTS = equation = Topic("serving_counts", "How long do users wait, and how many fit?")


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
    """Bytes per parameter of an operator of which quantization leaves a part in 16 bits.

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


SPREAD_SEQUENCES = equation = Topic(
    "spread_sequences",
    "What changes where devices share a sequence, or experts are chosen unevenly?",
)


@equation(source="yang2025context", yields="tokens_worked")
def context_tokens_worked(new_tokens, device_batch, context_parallel, token_limit):
    """New tokens of a sequence on the fullest of the devices that share it.

    New tokens of all sequences are dealt out evenly: parts of a prompt, or whole
    sequences where each has one new token. None is cut.

    Valid for any step; the last tokens of prompts may all lie on one device.

    >>> context_tokens_worked(1001, 2, 4, 4096)
    250.5
    """
    return minimum(ceil(new_tokens * device_batch / context_parallel) / device_batch, token_limit)


@equation(source="yang2025context", yields="attention_pairs", counts=True)
def context_attention_pairs(
    unclipped_tokens, cached_tokens, new_tokens, attention_window, context_parallel
):
    """Pairs of a new token and one that it looks at, on each device that shares the sequence.

    Assumes that each device has an early and a late part of the prompt, so that all have as
    many pairs.
    Valid for causal attention.

    >>> context_attention_pairs(4, 10, 6, 11, 2)
    36.0
    """
    return (
        unclipped_tokens * (cached_tokens + (unclipped_tokens + 1) / 2)
        + (new_tokens - unclipped_tokens) * attention_window
    ) / context_parallel


@equation(source="yang2025context", yields="device_cached_elements")
def context_cached_elements(model_cached_elements, context_parallel):
    """Elements of cache of each token, on the average of the devices that share a sequence.

    Valid for sequences of many blocks.

    >>> context_cached_elements(2048.0, 4.0)
    512.0
    """
    return model_cached_elements / context_parallel


@equation(source="yang2025context", yields="live_elements")
def context_live_elements(token_live_elements, context_parallel):
    """Elements of activation alive for each token, on average of the devices that share it.

    Valid for prefill in chunks of the whole sequence, of which each device has its part.

    >>> context_live_elements(20000.0, 4.0)
    5000.0
    """
    return token_live_elements / context_parallel


@equation(source="yang2025context", yields="group_tokens")
def context_group_tokens(new_tokens, device_batch, expert_replicas, context_parallel):
    """New tokens in a step that choose among the same set of experts, of shared sequences.

    Valid where each device that shares a sequence has experts of its own.

    >>> context_group_tokens(1024, 3, 2, 4)
    1536.0
    """
    return new_tokens * device_batch * expert_replicas / context_parallel


@equation(source="yang2025context")
def ring_elements_sent(
    context_parallel, ring_cached_elements, positions_read, ring_query_elements, new_tokens
):
    """Elements of a sequence that a device sends so that all its tokens see one another.

    Either keys and values go round all devices, or queries do and their results come back:
    whatever is less. For a long prompt these are keys and values, in decode they are queries.

    Assumes that the few numbers which join partial results are negligible.
    Valid for attention without loss; a ring and a gather send as much.

    >>> ring_elements_sent(4, 2048, 1000, 16384, 1000)
    1536000.0
    >>> ring_elements_sent(4, 2048, 1000, 16384, 1)
    12288.0
    """
    return (
        (context_parallel - 1)
        / context_parallel
        * minimum(ring_cached_elements * positions_read, ring_query_elements * new_tokens)
    )


@equation(source="patarasuk2009bandwidth", yields="link_bytes")
def spread_link_bytes(
    bytes_per_sent_element,
    device_batch,
    link_elements,
    tokens_worked,
    load_factor,
    ring_elements_sent,
):
    """Bytes that a device sends for an operator in a step: by its tokens, and round a ring.

    Valid for activations; weights stay where they are.

    >>> spread_link_bytes(2.0, 4, 100, 10, 1.5, 500)
    16000.0
    """
    return (
        bytes_per_sent_element
        * device_batch
        * (link_elements * tokens_worked * load_factor + ring_elements_sent)
    )


@equation(source="chen1999maximum", yields="expert_imbalance", counts=True)
def uniform_imbalance(expert_parallel, experts, experts_per_token, group_tokens):
    """Tokens of the busiest device over the mean, where tokens choose experts by chance.

    A device's tokens are a sum of many small chances, so they are about normal: the busiest
    of them is as far above the mean as the greatest of so many normal numbers. Some device has
    one token at least, and none has more than all.

    Assumes that each expert is as likely as any other. Real routers prefer some, so this is
    the least that is to be expected.
    Valid for experts spread evenly; z with a hat is the mean of the greatest of so many standard
    normal numbers.

    >>> uniform_imbalance(32.0, 256.0, 8.0, 4096.0)
    1.062388076794228
    >>> uniform_imbalance(64.0, 64.0, 1.0, 1.0)
    64.0
    >>> uniform_imbalance(64.0, 8.0, 8.0, 2.0)
    4.0
    """
    return minimum(
        maximum(
            1
            + greatest(expert_parallel)
            * square_root(
                (expert_parallel - 1)
                * (experts - experts_per_token)
                / ((experts - 1) * group_tokens * experts_per_token)
            ),
            expert_parallel / (group_tokens * experts_per_token),
        ),
        expert_parallel,
    )


@equation(source="fedus2022switch")
def load_factor(routed_share, expert_imbalance):
    """Work of an operator on the busiest device over the mean.

    All wait for the busiest device. Only experts, and sending to them, differ between devices.

    Valid for experts that are spread; weights are read as on the average device.

    >>> load_factor(0.5, 1.5)
    1.25
    """
    return 1 + routed_share * (expert_imbalance - 1)


@equation(source="fedus2022switch", yields="flops")
def busiest_flops(flops_per_multiply_add, multiply_adds, device_batch, load_factor):
    """Work of an operator in one step, on the device that has most of it.

    Valid for any step.

    >>> busiest_flops(2.0, 1e9, 4, 1.5)
    12000000000.0
    """
    return flops_per_multiply_add * multiply_adds * device_batch * load_factor


@equation(source="fedus2022switch", yields="activation_bytes")
def busiest_token_bytes(
    bytes_per_element, token_elements, tokens_worked, device_batch, load_factor
):
    """Traffic of an operator's activations, on the device that has most tokens.

    Assumes that nothing stays on chip between operators.
    Valid as an upper estimate.

    >>> busiest_token_bytes(2.0, 8192, 10, 4, 1.5)
    983040.0
    """
    return bytes_per_element * token_elements * tokens_worked * device_batch * load_factor


CLAIMED = equation = Topic("claimed", "Can a claimed speed be true?")


@equation(source="williams2009roofline")
def pooled_peak(devices, peak_flops):
    """Rate of arithmetic of all devices together, as if they were one.

    Assumes that nothing is sent.
    Valid as an upper limit for any layout.

    >>> pooled_peak(8, 1e15)
    8000000000000000.0
    """
    return devices * peak_flops


@equation(source="williams2009roofline")
def pooled_bandwidth(devices, memory_bandwidth):
    """Rate of all memories together, as if they were one.

    Valid as an upper limit for any layout.

    >>> pooled_bandwidth(8, 3e12)
    24000000000000.0
    """
    return devices * memory_bandwidth


@equation(source="hennessy2019quantitative")
def pooled_capacity(devices, memory_capacity):
    """Memory of all devices together.

    Valid as an upper limit for any layout.

    >>> pooled_capacity(8, 80e9)
    640000000000.0
    """
    return devices * memory_capacity


@equation(source="hennessy2019quantitative", counts=True)
def claim_excess(claimed_value, value_limit):
    """A claimed rate over its limit; of times, the limit over the claimed time.

    Valid for two values of one unit; above 1 the claim is faster than the limit.

    >>> claim_excess(300.0, 100.0)
    3.0
    """
    return claimed_value / value_limit


@equation(source="pope2023efficiently")
def claimed_memory(model_copies, weight_memory, resident_batch, cache_per_sequence):
    """Memory that a claim needs: weights of each copy, and a cache for each sequence.

    Assumes nothing for activations.
    Valid as a lower limit.

    >>> claimed_memory(2, 16e9, 8, 1e9)
    40000000000.0
    """
    return model_copies * weight_memory + resident_batch * cache_per_sequence


@equation(source="pope2023efficiently")
def claimed_share(claimed_memory, pooled_capacity):
    """Memory that a claim needs over what there is: above 1 it can't be.

    Valid as a lower limit.

    >>> claimed_share(96e9, 64e9)
    1.5
    """
    return claimed_memory / pooled_capacity


@equation(source="pope2023efficiently")
def held_sequences(pooled_capacity, weight_memory, cache_per_sequence):
    """Sequences whose cache fits beside the weights.

    Assumes nothing for activations.
    Valid as an upper limit, where the weights fit.

    >>> held_sequences(80e9, 16e9, 0.3e9)
    213
    """
    return floor((pooled_capacity - weight_memory) / cache_per_sequence)


@equation(source="williams2009roofline")
def weight_reading_time(weight_memory, memory_bandwidth):
    """Time to read the weights once at full memory bandwidth.

    Valid as a lower limit for a step that meets all of them.

    >>> weight_reading_time(16e9, 2e12)
    0.008
    """
    return weight_memory / memory_bandwidth


@equation(source="williams2009roofline")
def weight_reading_share(weight_reading_time, total_memory_time):
    """Part of the time of moving bytes that reading weights takes.

    Valid from 0 to 1.

    >>> weight_reading_share(0.008, 0.01)
    0.8
    """
    return weight_reading_time / total_memory_time


@equation(source="williams2009roofline")
def allowed_bits(
    weight_bits, total_memory_time, total_compute_time, weight_reading_time, claim_excess
):
    """Bits of a weight with which reading weights would leave a claim true.

    The step may take as long as is claimed; what else it reads, it reads as before.

    Valid where it is positive, for claims that reading weights refutes.

    >>> allowed_bits(16, 0.01, 0.002, 0.008, 2.0)
    6.0
    """
    return (
        weight_bits
        * (
            maximum(total_memory_time, total_compute_time) / claim_excess
            - (total_memory_time - weight_reading_time)
        )
        / weight_reading_time
    )


@equation(source="hennessy2019quantitative", counts=True)
def device_share(batch_size, devices):
    """Samples of a batch that a device takes, where each has a copy of the network.

    Valid for the fullest device.

    >>> device_share(10, 4)
    3.0
    """
    return ceil(batch_size / devices)


@equation(source="pope2023efficiently", counts=True)
def half_output(output_tokens):
    """Tokens that a sequence has written on average, where sequences come and go.

    Valid for outputs of two tokens or more; one token is none yet.

    >>> half_output(9)
    4
    >>> half_output(1)
    1
    """
    return maximum(floor(output_tokens / 2), 1)
