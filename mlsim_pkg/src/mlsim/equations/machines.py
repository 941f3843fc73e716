"""What many processors gain, and what a faster or smaller circuit takes.

These explain why machines look as they do; no solver asks them.
"""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "Why are there many processors, and what do they gain?"


@equation(source="pattbuzzwords")
def speedup(parallel_share, processors):
    """Speedup by several processors, by Amdahl's law.

    The part that they share takes one share of its time each; the rest takes as long as before.

    Assumes that the parallel part splits evenly, and that splitting costs nothing.

    Valid for work of a fixed size; real speedups are lower.

    >>> speedup(0.75, 3.0)
    2.0
    """
    return 1 / (1 - parallel_share + parallel_share / processors)


@equation(source="horowitz2000circuit")
def power_ratio(capacitance_ratio, voltage_ratio, frequency_ratio):
    """Power that switching takes, over the old one: capacitance, voltage squared, and clock.

    Assumes that leakage is small beside switching.

    Valid for the same circuit, at another size, voltage or clock.

    >>> power_ratio(0.5, 0.5, 2.0)
    0.25
    """
    return capacitance_ratio * voltage_ratio**2 * frequency_ratio


@equation(source="pop2024balance")
def load_balance(mean_busy_time, longest_busy_time):
    """How evenly processors share a job: the mean of their busy times over the longest.

    Assumes that all begin together and that the next step waits for the last one.

    Valid for one step that all share; 1 is a perfect balance.

    >>> load_balance(3.0, 4.0)
    0.75
    """
    return mean_busy_time / longest_busy_time
