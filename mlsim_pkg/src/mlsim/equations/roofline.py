"""The roofline: how long an operator takes, from its work and its traffic.

The equations hold for one operator; those with a sum turn operators into a
network. They assume that computing and moving bytes overlap perfectly, that
both run at the device's highest rates, and that starting an operator costs
nothing: real operators are slower.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, exceeds, floor, maximum, minimum, total
from mlsim.equations.registry import Topic

CONVOLUTION = equation = Topic("convolution", "What does a layer compute, and how large is it?")


@equation(source="dumoulin2016convolution", counts=True)
def output_size(input_size, padding, kernel_size, stride):
    """Pixels along one side of the output: windows that fit in the padded input.

    Assumes square windows and the same padding on all sides.
    Valid where the window fits into the padded input.

    >>> output_size(224, 3, 7, 2)
    112
    """
    return floor((input_size + 2 * padding - kernel_size) / stride) + 1


@equation(source="dumoulin2016convolution", counts=True)
def multiply_adds(output_size, out_channels, kernel_size, in_channels, groups):
    """Multiply-adds of a convolution: one window of its group's inputs per output.

    A linear layer is the case of one pixel and a window of one.

    Assumes direct convolution, with every window counted, those over padding too.
    Valid where the groups divide both numbers of channels.

    >>> multiply_adds(112, 64, 7, 3, 1)
    118013952.0
    """
    return output_size**2 * out_channels * kernel_size**2 * in_channels / groups


@equation(source="dumoulin2016convolution", counts=True)
def parameters(kernel_size, in_channels, out_channels, groups):
    """Weights of a convolution, without bias or normalization.

    Assumes that each group has windows of its own.
    Valid where the groups divide both numbers of channels.

    >>> parameters(7, 3, 64, 1)
    9408.0
    """
    return kernel_size**2 * in_channels * out_channels / groups


ROOFLINE = equation = Topic("roofline", "How long does it take, and what limits it?")


@equation(source="hennessy2019quantitative")
def flops(flops_per_multiply_add, multiply_adds, batch_size):
    """Work of an operator: its multiply-adds, for every sample of the batch.

    Assumes that only products and sums of matrix products and convolutions
    count; comparisons, additions of residuals and normalization do not.

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


MEMORY = equation = Topic("memory", "Does it fit in memory?")


@equation(source="hennessy2019quantitative", sums=True)
def weight_memory(weight_bytes, repeats):
    """Memory of all parameters.

    Assumes one copy of the parameters.
    Valid for inference; training also keeps gradients and the state of the optimizer.

    >>> weight_memory([100.0, 200.0], [1, 2])
    500.0
    """
    return total(weight_bytes, repeats)


@equation(source="hennessy2019quantitative")
def activation_memory(bytes_per_element, activations_live, batch_size):
    """Memory of the activations at the moment when most of them are alive.

    Assumes that an activation is freed once its last reader has run.

    Valid for inference; training keeps the activations of all layers.

    >>> activation_memory(2.0, 1e6, 8)
    16000000.0
    """
    return bytes_per_element * activations_live * batch_size


@equation(source="hennessy2019quantitative")
def memory_required(weight_memory, activation_memory):
    """Memory that the network needs, weights and live activations together.

    Assumes nothing for the framework, for workspaces or for fragmentation.
    Valid as a lower limit for what a framework allocates.

    >>> memory_required(51e6, 16e6)
    67000000.0
    """
    return weight_memory + activation_memory


@equation(source="hennessy2019quantitative")
def memory_free(memory_capacity, memory_required):
    """Memory that is left; below zero, the network does not fit.

    Valid for a device that nothing else uses.

    >>> memory_free(80e9, 81e9)
    -1000000000.0
    """
    return memory_capacity - memory_required


ON_CHIP = equation = Topic("on_chip", "What does a step move if a cache keeps the activations?")


@equation(source="hennessy2019quantitative")
def live_bytes(bytes_per_element, operator_live, batch_size):
    """All activations that are alive while an operator runs: what a cache has to hold.

    Assumes that an operator is done for the whole batch before the next one starts.

    Valid for what an operator reads and writes, and what is kept for a later one, such as
    the input of a block that is added to its output.

    >>> live_bytes(2.0, 500, 4)
    4000.0
    """
    return bytes_per_element * operator_live * batch_size


@equation(source="hennessy2019quantitative", yields="activation_bytes")
def kept_activation_bytes(
    bytes_per_element,
    boundary_elements,
    activations_read,
    activations_written,
    live_bytes,
    last_level_cache,
    batch_size,
):
    """Traffic of an operator's activations to memory, if a cache keeps all that fit.

    While all that is alive fits in the last cache, an operator moves only what enters or
    leaves the network; else all that it reads and writes.

    Assumes that the cache holds activations alone: weights pass through and push nothing
    out, and nothing is emptied between operators.

    Valid as a lower estimate where activations fit; a real cache keeps part of what is
    somewhat too large, and loses part of what would just fit.

    >>> kept_activation_bytes(2.0, 100, 300, 200, 4000.0, 5000.0, 4)
    800.0
    >>> kept_activation_bytes(2.0, 100, 300, 200, 4000.0, 3000.0, 4)
    4000.0
    """
    return (
        bytes_per_element
        * (
            boundary_elements
            + exceeds(live_bytes, last_level_cache)
            * (activations_read + activations_written - boundary_elements)
        )
        * batch_size
    )


LOOKUP = equation = Topic("lookup", "What does a table take, of which a few rows are read?")


@equation(source="naumov2019dlrm", yields="weights_held")
def tables_held(weight_bytes, bytes_per_parameter, table_parameters):
    """Memory of all that an operator learned: what a step reads, and tables of rows.

    Assumes that rows are stored as the other parameters are.
    Valid for tables that lie in the device's main memory.

    >>> tables_held(100.0, 2.0, 1000)
    2100.0
    """
    return weight_bytes + bytes_per_parameter * table_parameters


@equation(source="naumov2019dlrm", yields="weight_memory", sums=True)
def held_memory(weights_held, repeats):
    """Memory of all parameters, those in tables included.

    Assumes one copy of the parameters.
    Valid for inference; training also keeps gradients and the state of the optimizer.

    >>> held_memory([2100.0, 200.0], [1, 2])
    2500.0
    """
    return total(weights_held, repeats)


EPOCHS = equation = Topic("epochs", "How long do epochs take, and what if memory ends?")


@equation(source="hennessy2019quantitative")
def memory_excess(memory_free):
    """Memory that is needed beyond what there is; zero if all fits.

    Valid for a device that nothing else uses.

    >>> memory_excess(-2e9)
    2000000000.0
    >>> memory_excess(2e9)
    0.0
    """
    return maximum(-memory_free, 0 * memory_free)


@equation(source="hennessy2019quantitative")
def paging_time(memory_excess, disk_bandwidth):
    """Time in which what does not fit is written to a disk and read again, once a step.

    Assumes that the disk reads and writes at one rate, in one stream, while nothing else
    runs.
    Valid as a lower limit: a program that comes back to its pages moves them more often.

    >>> paging_time(2e9, 4e9)
    1.0
    """
    return 2 * memory_excess / disk_bandwidth


@equation(source="hennessy2019quantitative")
def paged_latency(latency, paging_time):
    """Time of a step that also waits for its pages.

    Assumes that nothing is computed meanwhile.
    Valid where pages are moved on demand.

    >>> paged_latency(0.5, 1.0)
    1.5
    """
    return latency + paging_time


@equation(source="goyal2017imagenet")
def epoch_steps(dataset_samples, batch_size):
    """Steps in which every sample of a data set is seen once; the last batch may be smaller.

    Valid for a data set of at least one sample.

    >>> epoch_steps(60000, 128)
    469.0
    """
    return ceil(dataset_samples / batch_size)


@equation(source="goyal2017imagenet")
def epochs_time(epochs, epoch_time):
    """Time of all epochs, once the time of one is known.

    Assumes that each takes as long as the first.
    Valid where nothing is evaluated or saved between them.

    >>> epochs_time(1000, 2.4)
    2400.0
    """
    return epochs * epoch_time


@equation(source="goyal2017imagenet")
def epoch_time(epoch_steps, paged_latency):
    """Time in which every sample of a data set is seen once.

    Assumes that the device never waits for its samples.
    Valid for steps that all take as long.

    >>> epoch_time(469, 0.005)
    2.345
    """
    return epoch_steps * paged_latency
