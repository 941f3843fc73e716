"""What the time of a step of training goes into, from what its kernels lose.

What a kernel loses to its tiles, or waits for memory, is as in any step. A step of training
runs its kernels for each micro-batch; besides, it sends, updates, and waits for its pipeline.
"""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "What does the time of a step of training go into?"


@equation(source="narayanan2021megatron", yields="latency")
def trained_latency(step_time):
    """Time of a step of training: from one update of the weights to the next.

    Valid while a run is under way.

    >>> trained_latency(2.5)
    2.5
    """
    return step_time


@equation(source="nvidia2023matmul", sums=True)
def micro_batch_tile_time(operator_tile_time, all_repeats):
    """Time that a micro-batch loses to tiles that don't fill all cores, there and back.

    Valid for one stage.

    >>> micro_batch_tile_time([0.002, 0.0], [3, 1])
    0.006
    """
    return total(operator_tile_time, all_repeats)


@equation(source="nvidia2023matmul", yields="tile_time")
def training_tile_time(micro_batches, micro_batch_tile_time):
    """Time that a step of training loses to tiles that don't fill all cores.

    Valid for the slowest stage.

    >>> training_tile_time(8, 0.25)
    2.0
    """
    return micro_batches * micro_batch_tile_time


@equation(source="williams2009roofline", sums=True)
def micro_batch_streaming_time(operator_streaming_time, all_repeats):
    """Time of a micro-batch in kernels that wait for memory, whatever their tiles.

    Valid for one stage.

    >>> micro_batch_streaming_time([0.002, 0.0], [3, 1])
    0.006
    """
    return total(operator_streaming_time, all_repeats)


@equation(source="williams2009roofline", yields="streaming_time")
def training_streaming_time(micro_batches, micro_batch_streaming_time, optimizer_time):
    """Time of a step of training that waits for memory: some kernels, and the update.

    Valid for the slowest stage.

    >>> training_streaming_time(8, 0.25, 0.5)
    2.5
    """
    return micro_batches * micro_batch_streaming_time + optimizer_time


@equation(source="pytorch2026roofline", sums=True)
def micro_batch_start_time(kernel_overhead, all_repeats):
    """Time of a micro-batch in which the device starts its kernels.

    Valid for one stage.

    >>> micro_batch_start_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_overhead, all_repeats)


@equation(source="pytorch2026roofline", yields="start_time")
def training_start_time(micro_batches, micro_batch_start_time):
    """Time of a step of training in which the device starts its kernels.

    Valid where the host is ahead of the device.

    >>> training_start_time(8, 0.25)
    2.0
    """
    return micro_batches * micro_batch_start_time


@equation(source="narayanan2021megatron", yields="total_network_time")
def training_network_time(step_exchange_time, exposed_pipeline_time, exposed_gradient_time):
    """Time of a step of training that waits for messages: in a stage, between stages, of copies.

    Valid for what is not hidden behind computing.

    >>> training_network_time(0.5, 0.25, 0.125)
    0.875
    """
    return step_exchange_time + exposed_pipeline_time + exposed_gradient_time


@equation(source="williams2009roofline", yields="arithmetic_time")
def training_arithmetic_time(
    latency, streaming_time, tile_time, start_time, total_network_time, bubble_time
):
    """Time of a step of training for which arithmetic is the limit: what the others leave.

    Valid for the slowest stage.

    >>> training_arithmetic_time(10.0, 3.0, 2.0, 1.0, 0.5, 0.5)
    3.0
    """
    return latency - streaming_time - tile_time - start_time - total_network_time - bubble_time


@equation(source="narayanan2021megatron")
def bubble_share(bubble_time, latency):
    """Part of a step of training in which a stage waits for the pipeline to fill and empty.

    Valid from 0 to 1.

    >>> bubble_share(0.5, 10.0)
    0.05
    """
    return bubble_time / latency


@equation(source="pytorch2026roofline", yields="lost_share")
def training_lost_share(tile_share, start_share, bubble_share):
    """Part of a step of training that is neither arithmetic, nor memory, nor sending.

    Valid from 0 to 1.

    >>> training_lost_share(0.25, 0.125, 0.125)
    0.5
    """
    return tile_share + start_share + bubble_share
