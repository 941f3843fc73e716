"""What a clock and the counters of a processor say of a run: waiting, cycles, bytes."""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import equation

QUESTION = "Where did the time of a run go?"


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
