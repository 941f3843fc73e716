"""What the time of a step goes into: arithmetic, memory, tiles, starts, the host, sending.

An operator takes the longer of computing and moving bytes. Where computing takes longer only
because its tiles don't fill the cores, the rest of that time is the tiles'.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds, maximum, total
from mlsim.equations.registry import equation

QUESTION = "What does the time of a step go into?"


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
