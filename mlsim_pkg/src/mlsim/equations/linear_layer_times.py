"""How long one linear layer takes: its products and its passes, and what limits each.

Beside the roofline stand the rule of PyTorch's own estimate, and how the sides of a layer turn
into rows, columns and depth of each of its three products.
"""

from __future__ import annotations

from mlsim.equations.functions import Value, exceeds, maximum, total
from mlsim.equations.registry import equation

QUESTION = "How long does one linear layer take in a number format?"


@equation(source="williams2009roofline", yields="memory_time")
def uncached_memory_time(uncached_bytes, memory_bandwidth):
    """Time to move what no cache can hold, at full memory bandwidth.

    Valid as a lower limit.

    >>> uncached_memory_time(2e9, 2e12)
    0.001
    """
    return uncached_bytes / memory_bandwidth


@equation(source="pytorch2026roofline", yields="compute_time")
def reached_compute_time(flops, peak_flops, compute_fraction):
    """Time to compute at the part of the peak that large products reach.

    Assumes that the part is the same for all shapes.
    Valid for products of all cores; small ones reach less.

    >>> reached_compute_time(300e9, 300e12, 0.5)
    0.002
    """
    return flops / (peak_flops * compute_fraction)


@equation(source="pytorch2026roofline", yields="operator_time")
def longest_time(compute_time, memory_time, kernel_overhead):
    """Time of a kernel: the longest of computing, moving bytes, and being launched.

    Assumes that all three overlap perfectly; a kernel that moves nothing still is launched.
    Valid as an optimistic estimate: below sides of 1,000 its authors find it twice too fast.

    >>> longest_time(1e-6, 1e-6, 2e-6)
    2e-06
    """
    return maximum(maximum(compute_time, memory_time), kernel_overhead)


@equation(source="hennessy2019quantitative", counts=True, yields="layer_rows")
def stacked_rows(weight_sets, group_rows):
    """Rows of several products of one kernel, each with as many.

    Valid for products of one shape.

    >>> stacked_rows(8, 512)
    4096
    """
    return weight_sets * group_rows


@equation(source="hennessy2019quantitative", yields="layer_rows", sums=True)
def grouped_rows(group_rows, repeats):
    """Rows of several products of one kernel, each with its own number of them.

    Valid for groups such as the tokens of each expert.

    >>> grouped_rows([100, 28], [1, 1])
    128.0
    """
    return total(group_rows, repeats)


# How the sides of a layer become rows, columns and depth of each of its products.


@equation(source="pytorch2026roofline", yields="product_rows", counts=True)
def turned_rows(layer_rows, layer_inputs, weight_sets, turned_weight):
    """Rows of one of a layer's products: those of the input, or K for the gradient of weights.

    Valid for one of several products of one kernel, on average.

    >>> turned_rows(512, 64, 2, 0)
    256.0
    >>> turned_rows(512, 64, 2, 1)
    64.0
    """
    return layer_rows / weight_sets + turned_weight * (layer_inputs - layer_rows / weight_sets)


@equation(source="pytorch2026roofline", yields="outputs", counts=True)
def turned_outputs(layer_outputs, layer_inputs, turned_input):
    """Columns of one of a layer's products: N, or K for the gradient of the input.

    Valid for each of the three.

    >>> turned_outputs(128, 64, 1)
    64
    >>> turned_outputs(128, 64, 0)
    128
    """
    return layer_outputs + turned_input * (layer_inputs - layer_outputs)


@equation(source="pytorch2026roofline", yields="product_depth", counts=True)
def turned_depth(layer_rows, layer_outputs, layer_inputs, weight_sets, turned_input, turned_weight):
    """Depth of one of a layer's products: K, N or M, the side that is summed away.

    Valid for one of several products of one kernel, on average.

    >>> turned_depth(512, 128, 32, 2, 0, 1)
    256.0
    >>> turned_depth(512, 128, 32, 2, 1, 0)
    128.0
    """
    return (
        layer_inputs
        + turned_input * (layer_outputs - layer_inputs)
        + turned_weight * (layer_rows / weight_sets - layer_inputs)
    )


@equation(source="nvidia2023matmul", yields="cores", counts=True)
def shared_cores(device_cores, weight_sets):
    """Cores for each of several products that run as one kernel.

    Valid for products of one shape; below one, a core has several products to do.

    >>> shared_cores(132, 4)
    33.0
    """
    return device_cores / weight_sets


@equation(source="nvidia2026aiconfigurator", yields="quantized_bytes")
def input_quantized_bytes(quantized_element_bytes, layer_rows, layer_inputs):
    """Traffic of bringing the input to a shorter format, as measured with the product.

    Assumes that it grows with the input alone.
    Valid for kernels that were timed together with their pass over the input.

    >>> input_quantized_bytes(3.0, 4, 5)
    60.0
    """
    return quantized_element_bytes * layer_rows * layer_inputs


@equation(source="nvidia2026aiconfigurator", yields="operator_time")
def measured_kernel_time(product_time):
    """Time of a kernel, as the atlas of measured kernels has it.

    Valid for products, and for passes, whose arithmetic takes no time.

    >>> measured_kernel_time(3e-6)
    3e-06
    """
    return product_time


@equation(source="pytorch2026roofline", sums=True)
def products_time(operator_time, product_repeats):
    """Time of a layer's products in the asked formats.

    Valid for products that run one after another.

    >>> products_time([0.001, 0.002], [1, 0])
    0.001
    """
    return total(operator_time, product_repeats)


@equation(source="pytorch2026roofline", sums=True)
def casts_time(operator_time, cast_repeats):
    """Time of the passes that bring tensors to another format.

    Valid for passes that run one after another, and beside no product.

    >>> casts_time([0.001, 0.002], [0, 1])
    0.002
    """
    return total(operator_time, cast_repeats)


@equation(source="pytorch2026roofline", sums=True)
def baseline_time(operator_time, baseline_repeats):
    """Time of the same layer in the baseline format, which needs no passes.

    Valid for products that run one after another.

    >>> baseline_time([0.001, 0.002], [0, 1])
    0.002
    """
    return total(operator_time, baseline_repeats)


@equation(source="pytorch2026roofline", yields="latency")
def layer_latency(products_time, casts_time):
    """Time of a layer: its products, and the passes between formats.

    Assumes that they run one after another.
    Valid for one layer on one device.

    >>> layer_latency(0.003, 0.001)
    0.004
    """
    return products_time + casts_time


@equation(source="pytorch2026roofline")
def casts_share(casts_time, latency):
    """Part of a layer's time that goes into changing formats.

    Valid from 0 to 1.

    >>> casts_share(0.001, 0.004)
    0.25
    """
    return casts_time / latency


@equation(source="pytorch2026roofline")
def format_speedup(baseline_time, latency):
    """How many times as fast the layer is as in the baseline format.

    Below 1, the passes and starts cost more than the shorter format saves.

    Valid for the same layer on the same device.

    >>> format_speedup(0.006, 0.004)
    1.5
    """
    return baseline_time / latency


@equation(source="williams2009roofline")
def compute_limited(operator_time, compute_time, memory_time, kernel_overhead):
    """Time of a kernel if arithmetic takes longer than its traffic and its start, else none.

    Valid for one kernel.

    >>> compute_limited(0.003, 0.003, 0.001, 0.002)
    0.003
    >>> compute_limited(0.003, 0.001, 0.002, 0.0)
    0.0
    >>> compute_limited(0.003, 0.003, 0.001, 0.004)
    0.0
    """
    return operator_time * exceeds(compute_time, maximum(memory_time, kernel_overhead))


@equation(source="williams2009roofline")
def memory_limited(operator_time, compute_time, memory_time, kernel_overhead):
    """Time of a kernel if traffic takes as long as its arithmetic and longer than its start.

    Valid for one kernel.

    >>> memory_limited(0.003, 0.001, 0.003, 0.002)
    0.003
    >>> memory_limited(0.003, 0.004, 0.003, 0.002)
    0.0
    >>> memory_limited(0.003, 0.001, 0.002, 0.003)
    0.0
    """
    return (
        operator_time
        * exceeds(memory_time, kernel_overhead)
        * (1 - exceeds(compute_time, memory_time))
    )


@equation(source="williams2009roofline", sums=True)
def compute_limited_time(compute_limited, repeats):
    """Time in kernels for which arithmetic takes longest.

    Valid for kernels that run one after another.

    >>> compute_limited_time([0.003, 0.0], [1, 1])
    0.003
    """
    return total(compute_limited, repeats)


@equation(source="williams2009roofline", sums=True)
def memory_limited_time(memory_limited, repeats):
    """Time in kernels for which traffic takes longest.

    Valid for kernels that run one after another.

    >>> memory_limited_time([0.003, 0.0], [1, 1])
    0.003
    """
    return total(memory_limited, repeats)


@equation(source="williams2009roofline")
def compute_limited_share(compute_limited_time, latency):
    """Part of a layer's time in kernels for which arithmetic takes longest.

    Valid from 0 to 1.

    >>> compute_limited_share(0.003, 0.004)
    0.75
    """
    return compute_limited_time / latency


@equation(source="williams2009roofline")
def memory_limited_share(memory_limited_time, latency):
    """Part of a layer's time in kernels for which traffic takes longest.

    Valid from 0 to 1.

    >>> memory_limited_share(0.001, 0.004)
    0.25
    """
    return memory_limited_time / latency


@equation(source="williams2009roofline")
def start_limited_share(compute_limited_time, memory_limited_time, latency):
    """Part of a layer's time in kernels for which the start takes longest: what is left.

    Valid from 0 to 1.

    >>> start_limited_share(2.0, 1.0, 8.0)
    0.625
    """
    return (latency - compute_limited_time - memory_limited_time) / latency


def several_times(repeats: Value, operator_time: Value) -> Value:
    """Return sums of one table of kernels' times, each with other repeats: arrays.

    >>> import numpy as np
    >>> several_times(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[2.0], [5.0]]
    """
    return repeats @ operator_time
