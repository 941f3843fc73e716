"""One linear layer: its matrix products, and the passes that change the format of a tensor.

The layer's input is M x K, its weights are K x N, its output is M x N. Its three products
(forward, gradient of the input, gradient of the weights) do the same work and move the same
three matrices, each another one as the result. So each kernel is a row of a table: what it
moves for an element of each matrix.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds, floor, maximum, total
from mlsim.equations.registry import equation

QUESTION = "What does one linear layer cost in a number format?"


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
