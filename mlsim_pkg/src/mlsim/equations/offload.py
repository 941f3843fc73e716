"""Weights and cache in the host's memory: what fits now, and what comes over the link.

Each equation here takes the place of a plainer one, or adds to it, where something is offloaded.
Some also count a draft, which takes memory beside the model.
"""

from __future__ import annotations

from mlsim.equations.functions import maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "What do prefix caching, offload and adapters change?"


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


@equation(source="sheng2023flexgen", yields="layers_cache")
def layers_cache_on_device(layers_cache, offloaded_cache, draft_cache_per_token):
    """KV cache of one token that stays on one device, that of a draft with it.

    Valid for one token of one sequence.

    >>> layers_cache_on_device(131072.0, 0.25, 1000.0)
    99304.0
    """
    return layers_cache * (1 - offloaded_cache) + draft_cache_per_token
