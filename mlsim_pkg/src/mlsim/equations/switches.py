"""Weights and cache in the host's memory: what fits now, and what comes over the link.

Each equation here takes the place of a plainer one, or adds to it, where something is offloaded.
Some also count a draft, which takes memory beside the model.
"""

from __future__ import annotations

from mlsim.equations.functions import floor, geometric, maximum, minimum, total
from mlsim.equations.registry import Topic

OFFLOAD = equation = Topic("offload", "What do prefix caching, offload and adapters change?")


@equation(source="sheng2023flexgen")
def offload_bytes(offloaded_weights, weight_bytes, offloaded_cache, cache_bytes):
    """Bytes that an operator takes from the host in one step.

    Assumes that the same share of each matrix, and of each layer's cache, lies there.
    Valid for any step: what a step reads, it reads from where it lies.

    >>> offload_bytes(0.25, 4e6, 0.5, 2e6)
    2000000.0
    """
    return offloaded_weights * weight_bytes + offloaded_cache * cache_bytes


@equation(source="sheng2023flexgen")
def offload_time(offload_bytes, host_link_bandwidth):
    """Time of an operator's bytes on the link from the host.

    Assumes that each device has the link to itself, at its printed rate.
    Valid as a lower limit.

    >>> offload_time(64e6, 64e9)
    0.001
    """
    return offload_bytes / host_link_bandwidth


@equation(source="nvidia2020ampere", yields="host_link_bandwidth")
def one_way_rate(both_ways_rate):
    """Rate of a link in one direction, of a figure that counts both.

    Valid for links that are as fast each way, as PCIe is.

    >>> one_way_rate(128e9)
    64000000000.0
    """
    return both_ways_rate / 2


@equation(source="sheng2023flexgen", yields="memory_time")
def offloaded_memory_time(
    bytes_moved, offload_bytes, memory_bandwidth, offload_time, offload_overlap
):
    """Time of an operator's bytes, of which some come from the host.

    With full overlap the longer of the two ways counts, without any their sum.

    Assumes that an operator fetches its own bytes, and none ahead of time.
    Valid for overlaps from 0 to 1.

    >>> offloaded_memory_time(3e6, 1e6, 2e9, 0.004, 0.25)
    0.00475
    >>> offloaded_memory_time(17e6, 1e6, 2e9, 0.004, 0.25)
    0.011
    """
    return maximum((bytes_moved - offload_bytes) / memory_bandwidth, offload_time) + (
        1 - offload_overlap
    ) * minimum((bytes_moved - offload_bytes) / memory_bandwidth, offload_time)


@equation(source="sheng2023flexgen", yields="memory_time")
def offloaded_calibrated_memory_time(
    bytes_moved, offload_bytes, memory_bandwidth, memory_fraction, offload_time, offload_overlap
):
    """Time of an operator's bytes, of which some come from the host, at the measured rate.

    The rate of device memory is the measured one, that of the link is the printed one.

    Assumes that an operator fetches its own bytes, and none ahead of time.
    Valid for overlaps from 0 to 1.

    >>> offloaded_calibrated_memory_time(3e6, 1e6, 4e9, 0.5, 0.004, 0.25)
    0.00475
    >>> offloaded_calibrated_memory_time(17e6, 1e6, 4e9, 0.5, 0.004, 0.25)
    0.011
    """
    return maximum(
        (bytes_moved - offload_bytes) / (memory_bandwidth * memory_fraction), offload_time
    ) + (1 - offload_overlap) * minimum(
        (bytes_moved - offload_bytes) / (memory_bandwidth * memory_fraction), offload_time
    )


@equation(source="sheng2023flexgen", yields="memory_time")
def local_memory_time(bytes_moved, offload_bytes, memory_bandwidth):
    """Time of those bytes of an operator that come from the device's own memory.

    Valid for the bound, which takes the link's time of the whole step apart.

    >>> local_memory_time(3e6, 1e6, 2e9)
    0.001
    """
    return (bytes_moved - offload_bytes) / memory_bandwidth


@equation(source="sheng2023flexgen", yields="latency")
def offloaded_bound_latency(total_compute_time, total_memory_time, total_offload_time):
    """Least time of a step with offload: all work, all local bytes, or all of the host's.

    Assumes that the three overlap perfectly over the whole step, as with fetching ahead.
    Valid as a lower limit.

    >>> offloaded_bound_latency(0.001, 0.003, 0.002)
    0.003
    """
    return maximum(maximum(total_compute_time, total_memory_time), total_offload_time)


@equation(source="sheng2023flexgen", sums=True)
def total_offload_bytes(offload_bytes, repeats):
    """Bytes that a step takes from the host.

    Valid for one device; in a pipeline, for the way through all its stages.

    >>> total_offload_bytes([2e6, 1e6], [3, 1])
    7000000.0
    """
    return total(offload_bytes, repeats)


@equation(source="sheng2023flexgen", sums=True)
def total_offload_time(offload_time, repeats):
    """Time of a step's bytes on the link from the host.

    Valid as a lower limit of the step.

    >>> total_offload_time([0.002, 0.001], [3, 1])
    0.007
    """
    return total(offload_time, repeats)


@equation(source="pope2023efficiently", sums=True)
def model_weight_memory(weights_held, resident_repeats):
    """Memory of all the model's parameters that belong to one device, wherever they lie.

    Valid for inference.

    >>> model_weight_memory([100.0, 200.0], [1, 2])
    500.0
    """
    return total(weights_held, resident_repeats)


@equation(source="sheng2023flexgen", yields="weight_memory")
def weights_on_device(model_weight_memory, offloaded_weights, draft_weight_memory):
    """Memory of the parameters that stay on one device, those of a draft among them.

    Valid for inference; nothing of a draft is offloaded.

    >>> weights_on_device(500.0, 0.25, 50.0)
    425.0
    """
    return model_weight_memory * (1 - offloaded_weights) + draft_weight_memory


@equation(source="kwon2023paged", sums=True)
def model_cache_per_sequence(operator_cache, resident_repeats):
    """Cache of one sequence that belongs to one device, wherever it lies.

    Valid for any number of layers on the device.

    >>> model_cache_per_sequence([4e6, 0.0], [32, 1])
    128000000.0
    """
    return total(operator_cache, resident_repeats)


@equation(source="sheng2023flexgen", yields="cache_per_sequence")
def cache_on_device(model_cache_per_sequence, offloaded_cache, draft_cache_per_sequence):
    """Cache of one sequence that stays on one device, that of a draft with it.

    Valid for any number of layers on the device; nothing of a draft is offloaded.

    >>> cache_on_device(128e6, 0.25, 2e6)
    98000000.0
    """
    return model_cache_per_sequence * (1 - offloaded_cache) + draft_cache_per_sequence


@equation(source="sheng2023flexgen")
def host_memory(
    offloaded_weights,
    model_weight_memory,
    offloaded_cache,
    model_cache_per_sequence,
    resident_batch,
):
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


PREFIX_CACHE = equation = Topic(
    "prefix_cache", "What do prefix caching, offload and adapters change?"
)


@equation(source="kwon2023paged", counts=True)
def prefix_tokens(prefix_share, prompt_tokens):
    """Tokens of a prompt whose keys and values are in the cache already.

    At least one token is worked on: its scores make the first new token.

    Assumes that the share is a mean over requests, so it need not be whole blocks.
    Valid for shares from 0 to 1.

    >>> prefix_tokens(0.5, 2048)
    1024.0
    >>> prefix_tokens(1.0, 2048)
    2047
    """
    return minimum(prefix_share * prompt_tokens, prompt_tokens - 1)


@equation(source="kwon2023paged")
def uncached_tokens(prompt_tokens, prefix_tokens):
    """Tokens of a prompt that prefill works on. They still look at the cached ones.

    Valid for causal attention, where a prefix knows nothing of what follows.

    >>> uncached_tokens(2048, 512)
    1536
    """
    return prompt_tokens - prefix_tokens


@equation(source="kwon2023paged", counts=True)
def shared_tokens(prefix_tokens, block_tokens):
    """Tokens of a sequence whose blocks others use, too: whole blocks of the prefix.

    Valid for a paged cache.

    >>> shared_tokens(1000, 16)
    992
    """
    return floor(prefix_tokens / block_tokens) * block_tokens


@equation(source="kwon2023paged")
def operator_prefix_cache(
    bytes_per_cached_element,
    cached_elements,
    cache_window,
    cache_tokens,
    shared_tokens,
    offloaded_cache,
):
    """Cache of one sequence in one layer, in device memory, that others use, too.

    Of a layer with a window, only what the window still holds of the prefix.

    Valid for each layer's attention; a state of a recurrent layer is not shared.

    >>> operator_prefix_cache(2.0, 2048, 4096, 3000, 1000, 0.25)
    3072000.0
    >>> operator_prefix_cache(2.0, 2048, 2500, 3000, 1000, 0.25)
    1536000.0
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
def prefix_cache(operator_prefix_cache, resident_repeats):
    """Cache of one sequence on one device that others use, too.

    Valid for any number of layers on the device.

    >>> prefix_cache([4096000.0, 0.0], [32, 1])
    131072000.0
    """
    return total(operator_prefix_cache, resident_repeats)


@equation(source="kwon2023paged", counts=True)
def cache_saved(prefix_cache, resident_batch, prefixes):
    """Memory that sharing saves: of each prefix, all sequences but one keep nothing.

    Valid for any number of prefixes; with as many as sequences nothing is saved.

    >>> cache_saved(1e8, 64, 4)
    6000000000.0
    >>> cache_saved(1e8, 3, 4)
    0.0
    """
    return prefix_cache * maximum(resident_batch - prefixes, 0)


@equation(source="kwon2023paged", yields="cache_memory")
def shared_cache_memory(cache_per_sequence, resident_batch, cache_saved):
    """Memory of the KV cache where sequences share their prefixes.

    Assumes that a draft keeps a cache of its own for each sequence.
    Valid at the end of the output, when it is largest.

    >>> shared_cache_memory(200e6, 64, 6e9)
    6800000000.0
    """
    return cache_per_sequence * resident_batch - cache_saved


@equation(source="kwon2023paged", yields="largest_batch", counts=True)
def largest_sharing_batch(
    usable_memory,
    weight_memory,
    cache_per_sequence,
    prefix_cache,
    prefixes,
    sequence_activations,
    sequence_logits,
    chunk_memory,
    data_parallel,
):
    """Sequences that fit together where they share their prefixes.

    With more sequences than prefixes, each further one takes only what is its own; with
    fewer, nothing is shared. The larger of the two numbers holds.

    Valid for sequences of one length; 0 if the weights alone don't fit.

    >>> largest_sharing_batch(72e9, 16e9, 0.3e9, 0.1e9, 2, 0.1e9, 0.05e9, 0.8e9, 2)
    440
    >>> largest_sharing_batch(72e9, 16e9, 0.3e9, 0.1e9, 2, 0.1e9, 0.05e9, 20e9, 2)
    318
    >>> largest_sharing_batch(72e9, 16e9, 0.3e9, 0.1e9, 200, 0.1e9, 0.05e9, 0.8e9, 2)
    314
    >>> largest_sharing_batch(72e9, 16e9, 0.3e9, 0.1e9, 200, 0.1e9, 0.05e9, 20e9, 2)
    248
    >>> largest_sharing_batch(72e9, 80e9, 0.3e9, 0.1e9, 2, 0.1e9, 0.05e9, 0.8e9, 2)
    0
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


SERVED_ADAPTERS = equation = Topic(
    "served_adapters", "What do prefix caching, offload and adapters change?"
)


@equation(source="chen2023punica", counts=True)
def distinct_adapters(served_adapters, device_batch):
    """Different adapters that the sequences of a step have.

    Of N adapters one sequence has one; each further one misses a given adapter with
    chance 1 - 1/N.

    Assumes that requests choose their adapters evenly; favorites make it fewer.
    Valid for any number of sequences.

    >>> distinct_adapters(4, 2)
    1.75
    """
    return served_adapters * (1 - (1 - 1 / served_adapters) ** device_batch)


@equation(source="chen2023punica", yields="distinct_adapters", counts=True)
def compulsory_adapters(served_adapters):
    """Adapters that any step reads, even if all sequences have the same one.

    Valid as a lower limit.

    >>> compulsory_adapters(100)
    1
    """
    return minimum(served_adapters, 1)


@equation(source="chen2023punica", yields="parameters_read")
def parameters_and_adapters_read(
    parameters_streamed,
    parameters_routed,
    expert_share,
    served_adapter_parameters,
    distinct_adapters,
):
    """Parameters that an operator reads in a step: its own, or of each adapter in use its part.

    Assumes that one kernel serves all sequences, and reads each adapter once.
    Valid for any step.

    >>> parameters_and_adapters_read(300.0, 400.0, 0.25, 1000.0, 12.0)
    12400.0
    """
    return (
        parameters_streamed
        + parameters_routed * expert_share
        + served_adapter_parameters * distinct_adapters
    )


@equation(source="sheng2023slora")
def operator_adapter_memory(bytes_per_parameter, served_adapter_parameters, served_adapters):
    """Memory of all adapters of one operator on one device.

    Assumes that all stay in device memory; S-LoRA keeps those that no request uses on the host.
    Valid for adapters of one rank.

    >>> operator_adapter_memory(2.0, 1000.0, 10.0)
    20000.0
    """
    return bytes_per_parameter * served_adapter_parameters * served_adapters


@equation(source="sheng2023slora", sums=True)
def adapter_memory(operator_adapter_memory, resident_repeats):
    """Memory of all adapters on one device.

    Valid for any number of layers on the device.

    >>> adapter_memory([20000.0, 10000.0], [32, 32])
    960000.0
    """
    return total(operator_adapter_memory, resident_repeats)


SPECULATION = equation = Topic("speculation", "When does speculative decoding pay?")


@equation(source="leviathan2023speculative", counts=True)
def expected_tokens(acceptance_rate, draft_tokens):
    """Tokens that a round makes for each sequence: those accepted, and one of the model's own.

    The first is always made; a further one needs that all drafted ones before it were
    accepted. With an acceptance of 1 it is the drafted tokens and one more.

    Assumes that each drafted token is accepted with the same chance, whatever came before.
    Valid for acceptances from 0 to 1.

    >>> expected_tokens(0.5, 3)
    1.875
    """
    return geometric(acceptance_rate, draft_tokens + 1)


@equation(source="leviathan2023speculative", yields="draft_step_time")
def draft_time_by_cost(draft_cost, plain_step_time):
    """Time in which one token is drafted, where only the draft's cost is known.

    Valid for the batch and the context of the step that it is a part of.

    >>> draft_time_by_cost(0.05, 0.02)
    0.001
    """
    return draft_cost * plain_step_time


@equation(source="leviathan2023speculative")
def round_time(draft_tokens, draft_step_time, verification_time):
    """Time of a round: tokens are drafted one after another, then checked together.

    Assumes that draft and model don't run at one time.
    Valid for sequences that all speculate alike.

    >>> round_time(4, 0.001, 0.016)
    0.02
    """
    return draft_tokens * draft_step_time + verification_time


@equation(source="leviathan2023speculative")
def speculative_token_time(round_time, expected_tokens):
    """Time of a round for each token that it makes.

    Valid for the mean over many rounds.

    >>> speculative_token_time(0.02, 2.5)
    0.008
    """
    return round_time / expected_tokens


@equation(source="leviathan2023speculative")
def speculative_speedup(plain_step_time, speculative_token_time):
    """How many times faster tokens come with speculation; below 1 it costs time.

    Where checking takes as long as a plain step, this is E / (γ c + 1).

    Valid at one batch and context.

    >>> speculative_speedup(0.016, 0.008)
    2.0
    """
    return plain_step_time / speculative_token_time


@equation(source="leviathan2023speculative")
def break_even_tokens(round_time, plain_step_time):
    """Tokens that a round must make to be as fast as plain steps.

    More than the drafted tokens and one can't be: then no acceptance makes it pay.

    Valid at one batch and context.

    >>> break_even_tokens(0.02, 0.016)
    1.25
    """
    return round_time / plain_step_time


@equation(source="leviathan2023speculative", yields="time_to_first_token", counts=True)
def drafted_first_token(latency, micro_batches, pipeline_parallel, draft_prefill_time):
    """Time to the first token where a draft reads the prompts, too.

    Assumes that the draft reads them after the model, before tokens are sent.
    Valid for a batch that is started together.

    >>> drafted_first_token(0.5, 3, 4, 0.05)
    0.8
    """
    return (
        latency * (micro_batches + pipeline_parallel - 1) / pipeline_parallel + draft_prefill_time
    )


@equation(source="leviathan2023speculative", yields="logits", counts=True)
def checked_logits(logits, draft_tokens):
    """Scores that a device writes for one sequence where drafted tokens are checked together.

    Valid for an output layer that works on each drafted token, and one more.

    >>> checked_logits(128256, 4)
    641280
    """
    return logits * (draft_tokens + 1)
