"""What a step moves of a cache that several layers share.

The last layers of some models have queries of their own, and read the keys and values that
an earlier layer has cached.
"""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "What does one step of a language model do and move?"


@equation(source="brandon2024reducing", yields="cache_bytes")
def shared_cache_bytes(
    bytes_per_cached_element,
    cached_elements,
    written_elements,
    positions_read,
    new_tokens,
    device_batch,
):
    """Traffic of a cache that layers share: all of them read it, those that make it write it.

    Assumes that sequences share nothing: no common prefix.
    Valid for each layer's attention; one that reads the cache of an earlier layer writes none.

    >>> shared_cache_bytes(2.0, 2048, 512, 1000, 3, 4)
    16396288.0
    """
    return (
        bytes_per_cached_element
        * (cached_elements * positions_read + written_elements * new_tokens)
        * device_batch
    )
