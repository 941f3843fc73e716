"""The roofline: how long an operator takes, from its work and its traffic.

The equations hold for one operator; those with a sum turn operators into a
network. They assume that computing and moving bytes overlap perfectly, that
both run at the device's highest rates, and that starting an operator costs
nothing: real operators are slower.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "How long does it take, and what limits it?"


@equation(source="hennessy2019quantitative")
def flops(flops_per_multiply_add, multiply_adds, batch_size):
    """Work of an operator: its multiply-adds, for every sample of the batch.

    Assumes that only products and sums of matrix products and convolutions
    count; comparisons, additions of residuals and normalisation do not.

    Valid for any whole batch; a device that skips zeros or uses a faster algorithm (such as
    Winograd convolution) does fewer.

    >>> flops(2.0, 1e9, 4)
    8000000000.0
    """
    return flops_per_multiply_add * multiply_adds * batch_size


@equation(source="williams2009roofline")
def weight_bytes(bytes_per_parameter, parameters):
    """Traffic of an operator's parameters: read once per step, whatever the batch.

    Assumes that no parameter stays on chip from one step to the next.

    Valid where the parameters are larger than the caches; smaller ones may stay on chip.

    >>> weight_bytes(2.0, 1000)
    2000.0
    """
    return bytes_per_parameter * parameters


@equation(source="williams2009roofline")
def activation_bytes(bytes_per_element, activations_read, activations_written, batch_size):
    """Traffic of an operator's activations: each input read, each output written.

    Assumes that nothing stays on chip between operators.

    Valid as an upper estimate: a large cache keeps part of what one operator writes for the
    next.

    >>> activation_bytes(2.0, 300, 200, 4)
    4000.0
    """
    return bytes_per_element * (activations_read + activations_written) * batch_size


@equation(source="williams2009roofline")
def bytes_moved(weight_bytes, activation_bytes):
    """All traffic of an operator between the device and its memory.

    Assumes that nothing else moves: no workspace, no copies between layouts.
    Valid for an operator that runs as one kernel.

    >>> bytes_moved(2000.0, 4000.0)
    6000.0
    """
    return weight_bytes + activation_bytes


@equation(source="williams2009roofline")
def arithmetic_intensity(flops, bytes_moved):
    """Work done for each byte moved.

    Assumes that both counts are of the same piece of work.
    Valid for any work that moves at least one byte.

    >>> arithmetic_intensity(8000.0, 4000.0)
    2.0
    """
    return flops / bytes_moved


@equation(source="williams2009roofline")
def ridge_point(peak_flops, memory_bandwidth):
    """The intensity at which computing and moving bytes take equally long.

    It belongs to the device and the precision, not to the model or the batch.

    Assumes that the peak and the bandwidth are of the same device, and the peak of the
    precision in use.
    Valid for devices fed from one main memory.

    >>> ridge_point(300e12, 2e12)
    150.0
    """
    return peak_flops / memory_bandwidth


@equation(source="williams2009roofline")
def attainable_flops(arithmetic_intensity, memory_bandwidth, peak_flops):
    """The roof itself: the slope of the bandwidth up to the flat of the peak.

    Assumes perfect overlap of computing and moving bytes.
    Valid at any intensity; an upper limit for what a kernel reaches.

    >>> attainable_flops(10.0, 2e12, 300e12)
    20000000000000.0
    """
    return minimum(arithmetic_intensity * memory_bandwidth, peak_flops)


@equation(source="williams2009roofline")
def compute_time(flops, peak_flops):
    """Time to compute at the peak rate.

    Assumes that all arithmetic units are busy all the time.
    Valid as a lower limit; small operators do not fill a device.

    >>> compute_time(300e9, 300e12)
    0.001
    """
    return flops / peak_flops


@equation(source="williams2009roofline")
def memory_time(bytes_moved, memory_bandwidth):
    """Time to move the bytes at full memory bandwidth.

    Assumes that the full bandwidth is reached.
    Valid as a lower limit for the bytes that are counted.

    >>> memory_time(2e9, 2e12)
    0.001
    """
    return bytes_moved / memory_bandwidth


@equation(source="williams2009roofline")
def roofline_time(compute_time, memory_time):
    """Time of an operator: the longer of computing and moving bytes.

    Assumes perfect overlap of the two, and no cost to start.

    Valid for operators that take much longer than their launch; shorter ones are
    dominated by starting.

    >>> roofline_time(0.001, 0.003)
    0.003
    """
    return maximum(compute_time, memory_time)


@equation(source="williams2009roofline", sums=True)
def latency(roofline_time, repeats):
    """Time of a step: its operators run one after another.

    Assumes that operators do not overlap, and that nothing is paid between them.
    Valid for one device and one stream of work.

    >>> latency([0.001, 0.002], [3, 1])
    0.005
    """
    return total(roofline_time, repeats)


@equation(source="williams2009roofline")
def operator_memory_bound_time(roofline_time, memory_time, compute_time):
    """Time of an operator if it waits for memory, and zero if it computes for longer.

    Valid for one operator; a tie counts as compute-bound.

    >>> operator_memory_bound_time(0.003, 0.003, 0.001)
    0.003
    >>> operator_memory_bound_time(0.003, 0.001, 0.003)
    0.0
    """
    return roofline_time * exceeds(memory_time, compute_time)


@equation(source="williams2009roofline", sums=True)
def memory_bound_time(operator_memory_bound_time, repeats):
    """Time spent in operators for which moving bytes takes longer than computing.

    Valid for operators that run one after another.

    >>> memory_bound_time([0.003, 0.0], [2, 5])
    0.006
    """
    return total(operator_memory_bound_time, repeats)


@equation(source="williams2009roofline")
def memory_bound_share(memory_bound_time, latency):
    """Part of the latency that is spent in memory-bound operators.

    Valid from 0 to 1; it says how much of the time memory limits, not how long the arithmetic
    units are idle.

    >>> memory_bound_share(0.006, 0.008)
    0.75
    """
    return memory_bound_time / latency


@equation(source="hennessy2019quantitative")
def throughput(batch_size, latency):
    """Samples per second when steps follow one another.

    Assumes that the next step starts when the last one ends.
    Valid for steady work; a first step also pays for loading.

    >>> throughput(32, 0.002)
    16000.0
    """
    return batch_size / latency


@equation(source="hennessy2019quantitative", sums=True)
def total_flops(flops, repeats):
    """Work of the whole network in one step.

    Valid for any network given as operators.

    >>> total_flops([1e9, 2e9], [2, 1])
    4000000000.0
    """
    return total(flops, repeats)


@equation(source="williams2009roofline", sums=True)
def total_bytes(bytes_moved, repeats):
    """Traffic of the whole network in one step.

    Valid for any network given as operators.

    >>> total_bytes([1e6, 2e6], [2, 1])
    4000000.0
    """
    return total(bytes_moved, repeats)


@equation(source="williams2009roofline", sums=True)
def total_compute_time(compute_time, repeats):
    """Compute times added up: the step on a device with endless bandwidth.

    Valid as a lower limit for the latency.

    >>> total_compute_time([0.001, 0.002], [1, 2])
    0.005
    """
    return total(compute_time, repeats)


@equation(source="williams2009roofline", sums=True)
def total_memory_time(memory_time, repeats):
    """Memory times added up: the step on a device that computes in no time.

    Valid as a lower limit for the latency, as far as the bytes are counted right.

    >>> total_memory_time([0.001, 0.002], [1, 2])
    0.005
    """
    return total(memory_time, repeats)


@equation(source="williams2009roofline")
def network_intensity(total_flops, total_bytes):
    """Arithmetic intensity of the whole network: a mean that hides its layers.

    Valid as a description; comparing it with the ridge point hides how operators differ.

    >>> network_intensity(8e9, 2e8)
    40.0
    """
    return total_flops / total_bytes


@equation(source="williams2009roofline")
def achieved_flops(total_flops, latency):
    """Rate at which the network computes, its waiting for memory included.

    Valid from 0 up to the peak rate.

    >>> achieved_flops(8e9, 0.001)
    8000000000000.0
    """
    return total_flops / latency
