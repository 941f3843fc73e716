"""From which size on a shorter number format pays, as a formula.

A shorter format saves time on each of the M x N x K points of a product, and costs passes over
the three matrices. Divided by the points, a pass over M x K costs something over N, one over
K x N something over M, one over M x N something over K. So large sides win, and the smallest
side decides.
"""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "From which size on does a shorter number format pay?"


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
