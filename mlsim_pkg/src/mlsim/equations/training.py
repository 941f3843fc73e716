"""One micro-batch of training: kernels forward, again, and backward, on one stage.

The equations of a kernel hold for one row of a table; its passes say how often
it runs.
"""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "How long does a device take to learn from a micro-batch?"


@equation(source="shoeybi2019megatron")
def device_tokens(micro_batch, sequence_tokens, context_parallel):
    """Tokens of a micro-batch that one device works on.

    Valid where sequences are of one length, and divided evenly.

    >>> device_tokens(4, 2048, 2)
    4096.0
    """
    return micro_batch * sequence_tokens / context_parallel


@equation(source="dao2022flashattention")
def device_pairs(micro_batch, attention_pairs, context_parallel):
    """Pairs of tokens for which a device computes attention.

    Assumes that devices which share a sequence share its pairs evenly.
    Valid for any attention.

    >>> device_pairs(2, 36, 1)
    72.0
    """
    return micro_batch * attention_pairs / context_parallel


@equation(source="hennessy2019quantitative", yields="flops")
def kernel_flops(
    flops_per_multiply_add, token_multiply_adds, device_tokens, pair_multiply_adds, device_pairs
):
    """Work of a kernel: by its tokens, and by its pairs.

    Assumes that only products and sums of matrix products count.
    Valid for any kernel.

    >>> kernel_flops(2.0, 1000, 10, 3, 55)
    20330.0
    """
    return flops_per_multiply_add * (
        token_multiply_adds * device_tokens + pair_multiply_adds * device_pairs
    )


@equation(source="narayanan2021megatron", yields="weight_bytes")
def kernel_weight_bytes(
    bytes_per_parameter, parameters_streamed, bytes_per_gradient, gradients_accumulated
):
    """Traffic of weights, which are read, and of their gradients, which are read and written.

    Assumes that each micro-batch adds to the gradients of the one before.
    Valid where the weights are larger than the caches.

    >>> kernel_weight_bytes(2.0, 100, 2.0, 100)
    600.0
    """
    return (
        bytes_per_parameter * parameters_streamed + 2 * bytes_per_gradient * gradients_accumulated
    )


@equation(source="williams2009roofline", yields="activation_bytes")
def kernel_activation_bytes(
    bytes_per_element,
    token_elements,
    pair_elements,
    token_masks,
    pair_masks,
    device_tokens,
    device_pairs,
):
    """Traffic of what a kernel reads and writes for its tokens and for its pairs.

    Masks say which numbers were dropped, one byte each.

    Assumes that nothing stays on chip between kernels.
    Valid as an upper estimate.

    >>> kernel_activation_bytes(2.0, 8, 2, 1, 1, 10, 50)
    420.0
    """
    return (bytes_per_element * token_elements + token_masks) * device_tokens + (
        bytes_per_element * pair_elements + pair_masks
    ) * device_pairs


@equation(source="patarasuk2009bandwidth", yields="link_bytes")
def kernel_link_bytes(bytes_per_element, link_elements, device_tokens):
    """Bytes of activations that a device sends to others of its stage.

    Valid for activations; gradients of weights are counted once a step.

    >>> kernel_link_bytes(2.0, 100, 10)
    2000.0
    """
    return bytes_per_element * link_elements * device_tokens


@equation(source="thakur2005optimization", yields="network_time")
def hop_network_time(link_hops, hop_latency, link_bytes, link_bandwidth, link_fraction):
    """Time to send: each message must start, and the bytes must pass.

    The roofline takes the link's full rate, and no time to start.

    Valid for one collective at a time.

    >>> hop_network_time(14, 1e-06, 1e6, 100e9, 0.5)
    3.4e-05
    """
    return link_hops * hop_latency + link_bytes / (link_bandwidth * link_fraction)


@equation(source="nvidia2023matmul", yields="product_rows", counts=True)
def kernel_rows(row_tokens, device_tokens, fixed_rows):
    """Rows of a product: one for each token, or a number of its own in a weight gradient.

    Valid for products of matrices.

    >>> kernel_rows(2, 2048, 5)
    4101
    """
    return row_tokens * device_tokens + fixed_rows


@equation(source="pytorch2026roofline", yields="kernel_time")
def started_kernel_time(roofline_time, kernel_overhead):
    """Time of a kernel that must be started first.

    Assumes that the host is ahead of the device.
    Valid for one kernel after another.

    >>> started_kernel_time(0.002, 0.001)
    0.003
    """
    return roofline_time + kernel_overhead


@equation(source="williams2009roofline", yields="kernel_time")
def ideal_kernel_time(roofline_time):
    """Time of a kernel that costs nothing to start.

    Valid as a lower limit.

    >>> ideal_kernel_time(0.002)
    0.002
    """
    return roofline_time


@equation(source="narayanan2021megatron", sums=True)
def forward_time(kernel_time, forward_repeats):
    """Time of the forward pass: its kernels, one after another.

    Valid for one micro-batch on one stage.

    >>> forward_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_time, forward_repeats)


@equation(source="korthikanti2022reducing", sums=True)
def recompute_time(kernel_time, recompute_repeats):
    """Time to compute again what was not kept.

    Valid for one micro-batch on one stage.

    >>> recompute_time([0.001, 0.002], [3, 0])
    0.003
    """
    return total(kernel_time, recompute_repeats)


@equation(source="narayanan2021megatron", sums=True)
def backward_time(kernel_time, backward_repeats):
    """Time of the backward pass: gradients of inputs, and of weights.

    Valid for one micro-batch on one stage.

    >>> backward_time([0.001, 0.002], [6, 2])
    0.01
    """
    return total(kernel_time, backward_repeats)


@equation(source="shoeybi2019megatron", sums=True)
def exchange_time(network_time, all_repeats):
    """Time to send activations and their gradients among the devices of a stage.

    Valid for tensor, context and expert parallelism.

    >>> exchange_time([0.001, 0.0], [4, 9])
    0.004
    """
    return total(network_time, all_repeats)


@equation(source="narayanan2021megatron", sums=True)
def output_time(kernel_time, output_repeats):
    """Time of the output layer and its loss, forward and backward, which only one stage has.

    Valid for one micro-batch. What is sent for it is left out.

    >>> output_time([0.001, 0.002], [0, 3])
    0.006
    """
    return total(kernel_time, output_repeats)


@equation(source="narayanan2021megatron")
def stage_time(forward_time, recompute_time, backward_time, exchange_time, exchange_overlap):
    """Time that a stage takes for one micro-batch, there and back.

    Assumes that sending which is not hidden waits for computing, and the reverse.
    Valid for the slowest stage, which the others wait for.

    >>> stage_time(2.0, 1.0, 4.0, 0.5, 0.25)
    7.375
    """
    return forward_time + recompute_time + backward_time + exchange_time * (1 - exchange_overlap)
