"""What a claimed speed is held against: all devices as one, and what would have to change."""

from __future__ import annotations

from mlsim.equations.functions import ceil, floor, maximum
from mlsim.equations.registry import equation

QUESTION = "Can a claimed speed be true?"


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
