"""Prompts of which a part is cached already, and sequences that share it.

Each equation here takes the place of a plainer one, or adds to it, where the switch is on.
"""

from __future__ import annotations

from mlsim.equations.functions import floor, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "What do prefix caching, offload and adapters change?"


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


@equation(source="kwon2023paged", yields="context_memory")
def memory_beside_prefixes(context_memory, cache_saved):
    """Memory for what grows with the sequences, with what sharing their prefixes saves.

    Assumes that the prefix stays as long as it is, however long the sequences are.
    Valid for sequences that are longer than their prefix.

    >>> memory_beside_prefixes(50e9, 6e9)
    56000000000.0
    """
    return context_memory + cache_saved
