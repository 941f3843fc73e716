"""One linear layer: its matrix products, and the passes that change the format of a tensor.

The layer's input is M x K, its weights are K x N, its output is M x N. Its three products
(forward, gradient of the input, gradient of the weights) do the same work and move the same
three matrices, each another one as the result. So each kernel is a row of a table: what it
moves for an element of each matrix.
"""

from __future__ import annotations

from mlsim.equations.functions import Value, exceeds, floor, maximum, total
from mlsim.equations.registry import Topic

LINEAR_LAYER = equation = Topic(
    "linear_layer", "What does one linear layer cost in a number format?"
)


@equation(source="pytorch2026roofline", yields="flops")
def layer_flops(point_flops, layer_rows, layer_outputs, layer_inputs):
    """Work of one kernel of a linear layer: a product and a sum for each point of M x N x K.

    Assumes that a pass which changes a format does no work that counts.

    Valid for each of the three products of a layer, and for several at once, whose rows add up.

    >>> layer_flops(2.0, 4, 3, 5)
    120.0
    """
    return point_flops * layer_rows * layer_outputs * layer_inputs


@equation(source="pytorch2026roofline")
def input_bytes(input_element_bytes, layer_rows, layer_inputs):
    """Traffic of the matrix M x K: the input, its gradient, or a copy in another format.

    Assumes that each element crosses the memory once for each format that is read or written.
    Valid for one kernel.

    >>> input_bytes(2.0, 4, 5)
    40.0
    """
    return input_element_bytes * layer_rows * layer_inputs


@equation(source="pytorch2026roofline")
def layer_weight_bytes(weight_element_bytes, weight_sets, layer_inputs, layer_outputs):
    """Traffic of the matrix K x N: the weights, their gradient, or a copy in another format.

    Assumes that each element crosses the memory once for each format that is read or written.
    Valid for one kernel; of several products at once, each has its own weights.

    >>> layer_weight_bytes(2.0, 3, 5, 7)
    210.0
    """
    return weight_element_bytes * weight_sets * layer_inputs * layer_outputs


@equation(source="pytorch2026roofline")
def output_bytes(output_element_bytes, layer_rows, layer_outputs):
    """Traffic of the matrix M x N: the output, its gradient, or a copy in another format.

    Assumes that each element crosses the memory once for each format that is read or written.
    Valid for one kernel.

    >>> output_bytes(2.0, 4, 3)
    24.0
    """
    return output_element_bytes * layer_rows * layer_outputs


@equation(source="hennessy2019quantitative", yields="input_bytes")
def kept_input_bytes(
    input_element_bytes,
    output_element_bytes,
    layer_rows,
    layer_inputs,
    layer_outputs,
    last_level_cache,
):
    """Traffic of the input if the last cache keeps it and the output: none if both fit.

    Assumes that the kernel before wrote the input just now, and weights push nothing out.
    Valid as a lower estimate; a real cache keeps part of what is somewhat too large.

    >>> kept_input_bytes(2.0, 3.0, 4, 5, 7, 110.0)
    40.0
    >>> kept_input_bytes(2.0, 3.0, 4, 5, 7, 130.0)
    0.0
    """
    return (
        input_element_bytes
        * layer_rows
        * layer_inputs
        * exceeds(
            input_element_bytes * layer_rows * layer_inputs
            + output_element_bytes * layer_rows * layer_outputs,
            last_level_cache,
        )
    )


@equation(source="hennessy2019quantitative", yields="output_bytes")
def kept_output_bytes(
    input_element_bytes,
    output_element_bytes,
    layer_rows,
    layer_inputs,
    layer_outputs,
    last_level_cache,
):
    """Traffic of the output if the last cache keeps it and the input: none if both fit.

    Assumes that the next kernel reads the output at once, and weights push nothing out.
    Valid as a lower estimate; a real cache keeps part of what is somewhat too large.

    >>> kept_output_bytes(2.0, 3.0, 4, 5, 7, 110.0)
    84.0
    >>> kept_output_bytes(2.0, 3.0, 4, 5, 7, 130.0)
    0.0
    """
    return (
        output_element_bytes
        * layer_rows
        * layer_outputs
        * exceeds(
            input_element_bytes * layer_rows * layer_inputs
            + output_element_bytes * layer_rows * layer_outputs,
            last_level_cache,
        )
    )


@equation(source="nvidia2026transformerengine")
def scale_bytes(
    input_scale_bytes,
    weight_scale_bytes,
    output_scale_bytes,
    row_scale_bytes,
    outputs_scale_bytes,
    inputs_scale_bytes,
    weight_sets,
    layer_rows,
    layer_outputs,
    layer_inputs,
):
    """Traffic of the scales of numbers that share one: by blocks, by rows or by columns.

    Assumes whole blocks: the size of a block divides the sides that it lies along.
    Valid for one kernel that reads or writes a scaled format.

    >>> scale_bytes(0.5, 0.25, 2.0, 4.0, 3.0, 5.0, 2, 8, 3, 6)
    191.0
    """
    return (
        input_scale_bytes * layer_rows * layer_inputs
        + weight_scale_bytes * weight_sets * layer_inputs * layer_outputs
        + output_scale_bytes * layer_rows * layer_outputs
        + row_scale_bytes * layer_rows
        + outputs_scale_bytes * weight_sets * layer_outputs
        + inputs_scale_bytes * weight_sets * layer_inputs
    )


@equation(source="pytorch2026roofline", yields="scale_bytes")
def whole_block_scale_bytes(
    input_scale_bytes,
    weight_scale_bytes,
    output_scale_bytes,
    row_scale_bytes,
    whole_scale_bytes,
    reads_scale_share,
    depth_scale_share,
    input_read,
    weight_read,
    output_read,
    layer_rows,
    layer_outputs,
    layer_inputs,
):
    """Traffic of scales as PyTorch's roofline counts it: whole blocks, the rest of one dropped.

    A product counts blocks of all that it reads at once; a pass, those of each row.

    Assumes one product a kernel.
    Valid beside PyTorch's constants only: where a block does not divide a side, a real kernel
    pads or refuses.

    >>> whole_block_scale_bytes(0.5, 0.25, 2.0, 4.0, 3.0, 0.125, 0.6, 2, 3, 5, 8, 3, 6)
    279.5
    """
    return (
        input_scale_bytes * layer_rows * layer_inputs
        + weight_scale_bytes * layer_inputs * layer_outputs
        + output_scale_bytes * layer_rows * layer_outputs
        + row_scale_bytes * layer_rows
        + whole_scale_bytes * layer_rows * floor(layer_inputs * depth_scale_share)
        + whole_scale_bytes
        * floor(
            reads_scale_share
            * (
                input_read * layer_rows * layer_inputs
                + weight_read * layer_inputs * layer_outputs
                + output_read * layer_rows * layer_outputs
            )
        )
    )


@equation(source="pytorch2026roofline", yields="bytes_moved")
def layer_bytes_moved(input_bytes, layer_weight_bytes, output_bytes, scale_bytes):
    """All traffic of one kernel of a linear layer.

    Assumes that tiles of an operand which several cores need come from a cache.
    Valid for one kernel.

    >>> layer_bytes_moved(40.0, 30.0, 24.0, 6.0)
    100.0
    """
    return input_bytes + layer_weight_bytes + output_bytes + scale_bytes


@equation(source="hennessy2019quantitative")
def uncached_bytes(input_bytes, layer_weight_bytes, output_bytes, last_level_cache):
    """Traffic that no cache can save: what is more than it holds.

    Assumes that all of the last cache holds operands from the run before.
    Valid as a lower limit, also for a benchmark that repeats one product.

    >>> uncached_bytes(40.0, 30.0, 30.0, 60.0)
    40.0
    """
    return (
        maximum(input_bytes + layer_weight_bytes + output_bytes, last_level_cache)
        - last_level_cache
    )


@equation(source="pytorch2026roofline", yields="memory_required", sums=True)
def operands_memory(bytes_moved, held_repeats):
    """Memory for a layer's input, weights and output, with their scales.

    Assumes that nothing else is held: no copies in other formats, no gradients.
    Valid as a lower limit.

    >>> operands_memory([100.0, 60.0], [1, 0])
    100.0
    """
    return total(bytes_moved, held_repeats)


LINEAR_LAYER_TIMES = equation = Topic(
    "linear_layer_times", "How long does one linear layer take in a number format?"
)


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


BREAK_EVEN = equation = Topic("break_even", "From which size on does a shorter number format pay?")


@equation(source="pytorch2026roofline")
def point_saving(point_flops, layer_products, compute_fraction, baseline_peak, peak_flops):
    """Time that a faster peak saves on each point of M x N x K, over all products of a layer.

    Assumes that all products are limited by arithmetic, and reach the same part of both peaks.
    Valid for large sides; products limited by memory save bytes instead.

    >>> point_saving(2.0, 5, 0.5, 1e15, 5e15)
    1.6e-14
    """
    return point_flops * layer_products / compute_fraction * (1 / baseline_peak - 1 / peak_flops)


@equation(source="pytorch2026roofline")
def break_even_outputs(input_cast_bytes, memory_bandwidth, memory_fraction, point_saving):
    """Outputs of a layer above which a pass over its input pays: inference.

    Each input element is cast once and used N times.

    Assumes weights that were quantized beforehand, and passes limited by memory.
    Valid where the product is limited by arithmetic in both formats.

    >>> break_even_outputs(3.0, 2e12, 0.5, 1e-15)
    3000.0
    """
    return input_cast_bytes / (memory_bandwidth * memory_fraction * point_saving)


@equation(source="pytorch2026roofline")
def break_even_rows(
    input_cast_bytes,
    weight_cast_bytes,
    output_cast_bytes,
    layer_outputs,
    layer_inputs,
    memory_bandwidth,
    memory_fraction,
    point_saving,
):
    """Rows of a layer above which the passes over all its matrices pay: training.

    Assumes passes limited by memory, and none so short that its start counts.

    Valid where the products are limited by arithmetic in both formats; a result below zero
    means that N or K is too small for any M.

    >>> break_even_rows(2.0, 3.0, 3.0, 8000, 6000, 2e12, 0.5, 1e-15)
    12000.0
    """
    return weight_cast_bytes / (
        memory_bandwidth * memory_fraction * point_saving
        - input_cast_bytes / layer_outputs
        - output_cast_bytes / layer_inputs
    )


@equation(source="pytorch2026roofline")
def break_even_size(
    input_cast_bytes,
    weight_cast_bytes,
    output_cast_bytes,
    memory_bandwidth,
    memory_fraction,
    point_saving,
):
    """Side of a layer with M = N = K above which its passes pay.

    Assumes passes limited by memory, and none so short that its start counts.
    Valid where the products are limited by arithmetic in both formats.

    >>> break_even_size(1.0, 1.0, 1.0, 2e12, 0.5, 1e-15)
    3000.0
    """
    return (input_cast_bytes + weight_cast_bytes + output_cast_bytes) / (
        memory_bandwidth * memory_fraction * point_saving
    )
