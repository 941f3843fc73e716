"""A service: what its users wait for, and what fits in the memory of its devices."""

from __future__ import annotations

from mlsim.equations.functions import ceil, floor, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "How long do users wait, and how many fit?"


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
