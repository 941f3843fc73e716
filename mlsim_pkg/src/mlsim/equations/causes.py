"""What the time of a step goes into: arithmetic, memory, tiles, starts, the host, sending.

An operator takes the longer of computing and moving bytes. Where computing takes longer only
because its tiles don't fill the cores, the rest of that time is the tiles'.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds, maximum, total
from mlsim.equations.registry import Topic

CAUSES = equation = Topic("causes", "What does the time of a step go into?")


@equation(source="nvidia2023matmul")
def full_tile_time(compute_time, filled_share):
    """Time that an operator's arithmetic would take if its tiles filled all cores.

    Valid for the calibrated estimate, whose compute time has the share in it.

    >>> full_tile_time(0.004, 0.25)
    0.001
    """
    return compute_time * filled_share


@equation(source="williams2009roofline")
def untiled_time(full_tile_time, memory_time):
    """Time that an operator would take if its tiles filled all cores.

    Valid where computing and moving bytes overlap.

    >>> untiled_time(0.001, 0.002)
    0.002
    """
    return maximum(full_tile_time, memory_time)


@equation(source="nvidia2023matmul")
def operator_tile_time(roofline_time, untiled_time):
    """Time that an operator loses because its tiles don't fill all cores.

    Valid for matrix products and convolutions; zero for what is none.

    >>> operator_tile_time(0.005, 0.002)
    0.003
    """
    return roofline_time - untiled_time


@equation(source="nvidia2023matmul", sums=True)
def tile_time(operator_tile_time, repeats):
    """Time that a step loses to tiles that don't fill all cores.

    Valid where operators run one after another.

    >>> tile_time([0.002, 0.0], [3, 1])
    0.006
    """
    return total(operator_tile_time, repeats)


@equation(source="williams2009roofline")
def operator_streaming_time(untiled_time, memory_time, full_tile_time):
    """Time of an operator that waits for memory, and would with full tiles too; else zero.

    Valid for one operator; a tie counts as arithmetic.

    >>> operator_streaming_time(0.002, 0.002, 0.001)
    0.002
    >>> operator_streaming_time(0.002, 0.001, 0.003)
    0.0
    """
    return untiled_time * exceeds(memory_time, full_tile_time)


@equation(source="williams2009roofline", sums=True)
def streaming_time(operator_streaming_time, repeats):
    """Time of a step in which operators wait for memory, whatever their tiles.

    Valid where operators run one after another.

    >>> streaming_time([0.002, 0.0], [3, 1])
    0.006
    """
    return total(operator_streaming_time, repeats)


@equation(source="pytorch2026roofline", sums=True)
def start_time(kernel_overhead, repeats):
    """Time of a step in which the device starts its operators.

    Valid where operators run one after another.

    >>> start_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_overhead, repeats)


@equation(source="pytorch2026roofline")
def host_time(total_overhead_time, start_time):
    """Time of a step in which the device waits for its host.

    Valid from zero up: zero where the host is ahead of the device.

    >>> host_time(0.005, 0.003)
    0.002
    """
    return total_overhead_time - start_time


@equation(source="williams2009roofline")
def arithmetic_time(latency, streaming_time, tile_time, total_overhead_time, total_network_time):
    """Time of a step for which arithmetic is the limit: what all other causes leave.

    Valid where operators run one after another.

    >>> arithmetic_time(10.0, 3.0, 2.0, 1.0, 0.5)
    3.5
    """
    return latency - streaming_time - tile_time - total_overhead_time - total_network_time


@equation(source="williams2009roofline")
def arithmetic_share(arithmetic_time, latency):
    """Part of a step for which arithmetic is the limit.

    Valid from 0 to 1.

    >>> arithmetic_share(3.5, 10.0)
    0.35
    """
    return arithmetic_time / latency


@equation(source="williams2009roofline", yields="arithmetic_share")
def roofline_arithmetic_share(memory_bound_share, network_share):
    """Part of a step for which arithmetic is the limit, by the roofline.

    Valid from 0 to 1.

    >>> roofline_arithmetic_share(0.25, 0.125)
    0.625
    """
    return 1 - memory_bound_share - network_share


@equation(source="williams2009roofline")
def streaming_share(streaming_time, latency):
    """Part of a step in which operators wait for memory, whatever their tiles.

    Valid from 0 to 1.

    >>> streaming_share(3.0, 10.0)
    0.3
    """
    return streaming_time / latency


@equation(source="nvidia2023matmul")
def tile_share(tile_time, latency):
    """Part of a step that is lost to tiles that don't fill all cores.

    Valid from 0 to 1.

    >>> tile_share(2.0, 10.0)
    0.2
    """
    return tile_time / latency


@equation(source="pytorch2026roofline")
def start_share(start_time, latency):
    """Part of a step that the device spends starting operators.

    Valid from 0 to 1.

    >>> start_share(1.0, 10.0)
    0.1
    """
    return start_time / latency


@equation(source="pytorch2026roofline")
def host_share(host_time, latency):
    """Part of a step in which the device waits for its host.

    Valid from 0 to 1.

    >>> host_share(0.5, 10.0)
    0.05
    """
    return host_time / latency


@equation(source="pytorch2026roofline")
def lost_share(tile_share, start_share, host_share):
    """Part of a step that is overhead: neither arithmetic, nor memory, nor sending.

    Valid from 0 to 1.

    >>> lost_share(0.25, 0.125, 0.5)
    0.875
    """
    return tile_share + start_share + host_share


TRAINING_CAUSES = equation = Topic(
    "training_causes", "What does the time of a step of training go into?"
)


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
