"""What counters of a processor say: operations from instructions, bytes from sectors, shares.

A counter counts events. These equations turn events into the work, traffic and time that a
roofline needs.
"""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import Topic

COUNTERS = equation = Topic("counters", "What did a program do, as counters saw it?")


@equation(source="yang2020hierarchical")
def counted_flops(additions, multiplications, fused_multiply_adds):
    """Floating-point operations from instructions that threads executed.

    Assumes that each instruction works on one number; instructions on pairs count twice.

    Valid for arithmetic units outside tensor cores, whose instructions these counters do not see.

    >>> counted_flops(10.0, 20.0, 100.0)
    230.0
    """
    return additions + multiplications + 2 * fused_multiply_adds


@equation(source="yang2020hierarchical")
def sector_traffic(sectors, sector_bytes):
    """Bytes that moved, from the sectors that a counter saw.

    Assumes that a sector moves whole, used or not.

    Valid for one level of memory, whose sectors are all of one size.

    >>> sector_traffic(1000.0, 32)
    32000.0
    """
    return sectors * sector_bytes


@equation(source="yang2020hierarchical")
def matrix_instruction_flops(
    matrix_instructions, instruction_rows, instruction_columns, instruction_depth
):
    """Floating-point operations of a tensor core, from the instructions of one shape.

    Assumes that every instruction is whole; padding counts as work.

    Valid for dense products whose instructions all have this shape.

    >>> matrix_instruction_flops(10.0, 8, 8, 4)
    5120.0
    """
    return 2 * matrix_instructions * instruction_rows * instruction_columns * instruction_depth


@equation(source="williams2009roofline")
def roof_share(achieved_flops, attainable_flops):
    """Part of what the roof allows at this intensity that was reached.

    Valid from 0 to 1; above 1, a count, a time or the roof is wrong.

    >>> roof_share(50e12, 200e12)
    0.25
    """
    return achieved_flops / attainable_flops


@equation(source="williams2009roofline")
def unfused_peak(peak_flops):
    """The ceiling of code that multiplies and adds in separate instructions.

    Assumes that a unit starts one instruction a cycle, fused or not.

    Valid for arithmetic units whose peak counts a fused multiply-add as two operations.

    >>> unfused_peak(20e12)
    10000000000000.0
    """
    return peak_flops / 2


@equation(source="williams2009roofline")
def one_core_peak(peak_flops, cores):
    """The ceiling of code that runs on one core alone.

    Assumes that the clock does not rise when the other cores are idle.

    Valid for devices whose cores are alike.

    >>> one_core_peak(20e12, 100)
    200000000000.0
    """
    return peak_flops / cores


@equation(source="hennessy2019quantitative")
def busy_share(occupied_time, observed_time):
    """Part of the time in which a device did anything at all.

    Assumes that overlapping intervals count once.

    Valid from 0 to 1; a busy device may still use a small part of its units.

    >>> busy_share(1.5, 2.0)
    0.75
    """
    return occupied_time / observed_time


@equation(source="hennessy2019quantitative")
def change_speedup(time_before, time_after):
    """How many times faster a piece of work is after a change.

    Valid for the same work before and after; of a whole program, see Amdahl's law.

    >>> change_speedup(0.006, 0.002)
    3.0
    """
    return time_before / time_after


TIMING = equation = Topic("timing", "Where did the time of a run go?")


@equation(source="hennessy2019quantitative")
def waiting_time(wall_time, user_time, system_time):
    """Time in which no core worked for the program: it waited for a disk, a network, a device.

    Assumes that one core at most worked at a time.

    Valid for one thread; with several, the program may wait although this is zero.

    >>> waiting_time(2.45, 0.43, 0.02)
    2.0
    >>> waiting_time(2.45, 2.0, 0.5)
    0.0
    """
    return maximum(wall_time - user_time - system_time, 0 * wall_time)


@equation(source="hennessy2019quantitative")
def cores_busy(wall_time, user_time, system_time):
    """Cores that worked for the program, on average over its time.

    Valid for any number of threads; a core that waits for memory counts as busy.

    >>> cores_busy(4.0, 3.0, 2.0)
    1.25
    """
    return (user_time + system_time) / wall_time


@equation(source="hennessy2019quantitative")
def cycles_per_instruction(cycles, instructions):
    """Clock cycles for each instruction that a processor finished: CPI.

    Valid for one program on one kind of core; fewer instructions can raise it and save time.

    >>> cycles_per_instruction(3e9, 2e9)
    1.5
    """
    return cycles / instructions


@equation(source="hennessy2019quantitative")
def instructions_per_cycle(cycles, instructions):
    """Instructions that a processor finished in each clock cycle: IPC.

    Valid from 0 up to the width of a core, which is 4 to 8 today.

    >>> instructions_per_cycle(2e9, 3e9)
    1.5
    """
    return instructions / cycles


@equation(source="hennessy2019quantitative")
def miss_traffic(cache_misses, cache_line):
    """Bytes that came from main memory, from the misses of the last cache.

    Assumes that each miss brings one line.

    Valid as a lower limit: lines that are written back, or fetched ahead of time, are no misses.

    >>> miss_traffic(1e6, 64.0)
    64000000.0
    """
    return cache_misses * cache_line


@equation(source="hennessy2019quantitative")
def used_bandwidth(miss_traffic, wall_time):
    """Rate at which a program moved bytes from main memory, over all of its time.

    Valid as a mean: a program that rests half of the time was twice as fast while it worked.

    >>> used_bandwidth(64e6, 0.002)
    32000000000.0
    """
    return miss_traffic / wall_time


@equation(source="williams2009roofline")
def bandwidth_use(used_bandwidth, memory_bandwidth):
    """Part of the memory's bandwidth that a program used.

    Valid from 0 to 1; above 1, the traffic, the time or the bandwidth is wrong.

    >>> bandwidth_use(32e9, 40e9)
    0.8
    """
    return used_bandwidth / memory_bandwidth
