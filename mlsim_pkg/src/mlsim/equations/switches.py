"""What people switch on to serve more: cached prefixes, memory of the host, adapters.

Each equation here takes the place of a plainer one, or adds to it, where the switch is on.
"""

from __future__ import annotations

from mlsim.equations.functions import Value, floor, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "What do prefix caching, offload and adapters change?"


@equation(source="kwon2023paged", counts=True)
def prefix_tokens(prefix_share: Value, prompt_tokens: Value) -> Value:
    """Tokens of a prompt whose keys and values are in the cache already.

    At least one token is worked on: its scores make the first new token.

    Assumes that the share is a mean over requests, so it need not be whole blocks.
    Valid for shares from 0 to 1.

    >>> prefix_tokens(0.5, 2048)
    1024.0
    """
    return minimum(prefix_share * prompt_tokens, prompt_tokens - 1)


@equation(source="kwon2023paged")
def uncached_tokens(prompt_tokens: Value, prefix_tokens: Value) -> Value:
    """Tokens of a prompt that prefill works on. They still look at the cached ones.

    Valid for causal attention, where a prefix knows nothing of what follows.

    >>> uncached_tokens(2048, 1024)
    1024
    """
    return prompt_tokens - prefix_tokens


@equation(source="kwon2023paged", counts=True)
def shared_tokens(prefix_tokens: Value, block_tokens: Value) -> Value:
    """Tokens of a sequence whose blocks others use, too: whole blocks of the prefix.

    Valid for a paged cache.

    >>> shared_tokens(1000, 16)
    992
    """
    return floor(prefix_tokens / block_tokens) * block_tokens


@equation(source="kwon2023paged")
def operator_prefix_cache(
    bytes_per_cached_element: Value,
    cached_elements: Value,
    cache_window: Value,
    cache_tokens: Value,
    shared_tokens: Value,
    offloaded_cache: Value,
) -> Value:
    """Cache of one sequence in one layer, in device memory, that others use, too.

    Of a layer with a window, only what the window still holds of the prefix.

    Valid for each layer's attention; a state of a recurrent layer is not shared.

    >>> operator_prefix_cache(2.0, 2048, 4096, 3000, 1000, 0.0)
    4096000.0
    """
    return (
        bytes_per_cached_element
        * cached_elements
        * (
            minimum(cache_window, cache_tokens)
            - minimum(cache_window, cache_tokens - shared_tokens)
        )
        * (1 - offloaded_cache)
    )


@equation(source="kwon2023paged", sums=True)
def prefix_cache(operator_prefix_cache: Value, resident_repeats: Value) -> Value:
    """Cache of one sequence on one device that others use, too.

    Valid for any number of layers on the device.

    >>> prefix_cache([4096000.0, 0.0], [32, 1])
    131072000.0
    """
    return total(operator_prefix_cache, resident_repeats)


@equation(source="kwon2023paged", counts=True)
def cache_saved(prefix_cache: Value, resident_batch: Value, prefixes: Value) -> Value:
    """Memory that sharing saves: of each prefix, all sequences but one keep nothing.

    Valid for any number of prefixes; with as many as sequences nothing is saved.

    >>> cache_saved(100e6, 64, 4)
    6000000000.0
    """
    return prefix_cache * maximum(resident_batch - prefixes, 0)


@equation(source="kwon2023paged", yields="cache_memory")
def shared_cache_memory(
    cache_per_sequence: Value, resident_batch: Value, cache_saved: Value
) -> Value:
    """Memory of the KV cache where sequences share their prefixes.

    Valid at the end of the output, when it is largest.

    >>> shared_cache_memory(200e6, 64, 6e9)
    6800000000.0
    """
    return cache_per_sequence * resident_batch - cache_saved


@equation(source="kwon2023paged", yields="largest_batch", counts=True)
def largest_sharing_batch(
    usable_memory: Value,
    weight_memory: Value,
    cache_per_sequence: Value,
    prefix_cache: Value,
    prefixes: Value,
    sequence_activations: Value,
    sequence_logits: Value,
    chunk_memory: Value,
    data_parallel: Value,
) -> Value:
    """Sequences that fit together where they share their prefixes.

    With more sequences than prefixes, each further one takes only what is its own; with
    fewer, nothing is shared. The larger of the two numbers holds.

    Valid for sequences of one length; 0 if the weights alone don't fit.

    >>> largest_sharing_batch(72e9, 16e9, 0.3e9, 0.2e9, 1, 0.0, 0.0, 0.2e9, 1)
    558
    """
    return data_parallel * maximum(
        floor(
            maximum(
                maximum(
                    (usable_memory - weight_memory - chunk_memory - prefixes * prefix_cache)
                    / (cache_per_sequence - prefix_cache + sequence_logits),
                    (usable_memory - weight_memory - prefixes * prefix_cache)
                    / (cache_per_sequence - prefix_cache + sequence_logits + sequence_activations),
                ),
                maximum(
                    (usable_memory - weight_memory - chunk_memory)
                    / (cache_per_sequence + sequence_logits),
                    (usable_memory - weight_memory)
                    / (cache_per_sequence + sequence_logits + sequence_activations),
                ),
            )
        ),
        0,
    )


@equation(source="kwon2023paged", yields="context_memory")
def memory_beside_prefixes(context_memory: Value, cache_saved: Value) -> Value:
    """Memory for what grows with the sequences, with what sharing their prefixes saves.

    Assumes that the prefix stays as long as it is, however long the sequences are.
    Valid for sequences that are longer than their prefix.

    >>> memory_beside_prefixes(50e9, 6e9)
    56000000000.0
    """
    return context_memory + cache_saved


@equation(source="sheng2023flexgen")
def offload_bytes(
    offloaded_weights: Value, weight_bytes: Value, offloaded_cache: Value, cache_bytes: Value
) -> Value:
    """Bytes that an operator takes from the host in one step.

    Assumes that the same share of each matrix, and of each layer's cache, lies there.
    Valid for any step: what a step reads, it reads from where it lies.

    >>> offload_bytes(0.25, 4e6, 0.5, 2e6)
    2000000.0
    """
    return offloaded_weights * weight_bytes + offloaded_cache * cache_bytes


@equation(source="sheng2023flexgen")
def offload_time(offload_bytes: Value, host_link_bandwidth: Value) -> Value:
    """Time of an operator's bytes on the link from the host.

    Assumes that each device has the link to itself, at its printed rate.
    Valid as a lower limit.

    >>> offload_time(64e6, 64e9)
    0.001
    """
    return offload_bytes / host_link_bandwidth


@equation(source="nvidia2020ampere", yields="host_link_bandwidth")
def one_way_rate(both_ways_rate: Value) -> Value:
    """Rate of a link in one direction, of a figure that counts both.

    Valid for links that are as fast each way, as PCIe is.

    >>> one_way_rate(128e9)
    64000000000.0
    """
    return both_ways_rate / 2


@equation(source="sheng2023flexgen", yields="memory_time")
def offloaded_memory_time(
    bytes_moved: Value,
    offload_bytes: Value,
    memory_bandwidth: Value,
    offload_time: Value,
    offload_overlap: Value,
) -> Value:
    """Time of an operator's bytes, of which some come from the host.

    With full overlap the longer of the two ways counts, without any their sum.

    Assumes that an operator fetches its own bytes, and none ahead of time.
    Valid for overlaps from 0 to 1.

    >>> offloaded_memory_time(3e6, 1e6, 2e9, 0.004, 1.0)
    0.004
    >>> offloaded_memory_time(3e6, 1e6, 2e9, 0.004, 0.0)
    0.005
    """
    return maximum((bytes_moved - offload_bytes) / memory_bandwidth, offload_time) + (
        1 - offload_overlap
    ) * minimum((bytes_moved - offload_bytes) / memory_bandwidth, offload_time)


@equation(source="sheng2023flexgen", yields="memory_time")
def offloaded_calibrated_memory_time(
    bytes_moved: Value,
    offload_bytes: Value,
    memory_bandwidth: Value,
    memory_fraction: Value,
    offload_time: Value,
    offload_overlap: Value,
) -> Value:
    """Time of an operator's bytes, of which some come from the host, at the measured rate.

    The rate of device memory is the measured one, that of the link is the printed one.

    Assumes that an operator fetches its own bytes, and none ahead of time.
    Valid for overlaps from 0 to 1.

    >>> offloaded_calibrated_memory_time(3e6, 1e6, 4e9, 0.5, 0.004, 1.0)
    0.004
    """
    return maximum(
        (bytes_moved - offload_bytes) / (memory_bandwidth * memory_fraction), offload_time
    ) + (1 - offload_overlap) * minimum(
        (bytes_moved - offload_bytes) / (memory_bandwidth * memory_fraction), offload_time
    )


@equation(source="sheng2023flexgen", yields="memory_time")
def local_memory_time(bytes_moved: Value, offload_bytes: Value, memory_bandwidth: Value) -> Value:
    """Time of those bytes of an operator that come from the device's own memory.

    Valid for the bound, which takes the link's time of the whole step apart.

    >>> local_memory_time(3e6, 1e6, 2e9)
    0.001
    """
    return (bytes_moved - offload_bytes) / memory_bandwidth


@equation(source="sheng2023flexgen", yields="latency")
def offloaded_bound_latency(
    total_compute_time: Value, total_memory_time: Value, total_offload_time: Value
) -> Value:
    """Least time of a step with offload: all work, all local bytes, or all of the host's.

    Assumes that the three overlap perfectly over the whole step, as with fetching ahead.
    Valid as a lower limit.

    >>> offloaded_bound_latency(0.001, 0.003, 0.002)
    0.003
    """
    return maximum(maximum(total_compute_time, total_memory_time), total_offload_time)


@equation(source="sheng2023flexgen", sums=True)
def total_offload_bytes(offload_bytes: Value, repeats: Value) -> Value:
    """Bytes that a step takes from the host.

    Valid for one device; in a pipeline, for the way through all its stages.

    >>> total_offload_bytes([2e6, 1e6], [3, 1])
    7000000.0
    """
    return total(offload_bytes, repeats)


@equation(source="sheng2023flexgen", sums=True)
def total_offload_time(offload_time: Value, repeats: Value) -> Value:
    """Time of a step's bytes on the link from the host.

    Valid as a lower limit of the step.

    >>> total_offload_time([0.002, 0.001], [3, 1])
    0.007
    """
    return total(offload_time, repeats)


@equation(source="pope2023efficiently", sums=True)
def model_weight_memory(weights_held: Value, resident_repeats: Value) -> Value:
    """Memory of all the model's parameters that belong to one device, wherever they lie.

    Valid for inference.

    >>> model_weight_memory([100.0, 200.0], [1, 2])
    500.0
    """
    return total(weights_held, resident_repeats)


@equation(source="sheng2023flexgen", yields="weight_memory")
def weights_on_device(
    model_weight_memory: Value, offloaded_weights: Value, draft_weight_memory: Value
) -> Value:
    """Memory of the parameters that stay on one device, those of a draft among them.

    Valid for inference; nothing of a draft is offloaded.

    >>> weights_on_device(500.0, 0.5, 50.0)
    300.0
    """
    return model_weight_memory * (1 - offloaded_weights) + draft_weight_memory


@equation(source="kwon2023paged", sums=True)
def model_cache_per_sequence(operator_cache: Value, resident_repeats: Value) -> Value:
    """Cache of one sequence that belongs to one device, wherever it lies.

    Valid for any number of layers on the device.

    >>> model_cache_per_sequence([4e6, 0.0], [32, 1])
    128000000.0
    """
    return total(operator_cache, resident_repeats)


@equation(source="sheng2023flexgen", yields="cache_per_sequence")
def cache_on_device(
    model_cache_per_sequence: Value, offloaded_cache: Value, draft_cache_per_sequence: Value
) -> Value:
    """Cache of one sequence that stays on one device, that of a draft with it.

    Valid for any number of layers on the device; nothing of a draft is offloaded.

    >>> cache_on_device(128e6, 0.25, 2e6)
    98000000.0
    """
    return model_cache_per_sequence * (1 - offloaded_cache) + draft_cache_per_sequence


@equation(source="sheng2023flexgen")
def host_memory(
    offloaded_weights: Value,
    model_weight_memory: Value,
    offloaded_cache: Value,
    model_cache_per_sequence: Value,
    resident_batch: Value,
) -> Value:
    """Memory that one device uses of its host.

    Assumes that the host has as much: the zoo does not say how much a host has.
    Valid at the end of the output, when the cache is largest.

    >>> host_memory(0.5, 500.0, 0.25, 40.0, 10)
    350.0
    """
    return (
        offloaded_weights * model_weight_memory
        + offloaded_cache * model_cache_per_sequence * resident_batch
    )


@equation(source="sheng2023flexgen", yields="layers_cache")
def layers_cache_on_device(
    layers_cache: Value, offloaded_cache: Value, draft_cache_per_token: Value
) -> Value:
    """KV cache of one token that stays on one device, that of a draft with it.

    Valid for one token of one sequence.

    >>> layers_cache_on_device(131072.0, 0.25, 1000.0)
    99304.0
    """
    return layers_cache * (1 - offloaded_cache) + draft_cache_per_token
