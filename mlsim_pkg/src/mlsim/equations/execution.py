"""Where a peak comes from: so many units, so many multiply-adds each, so many times a second."""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "Where does a peak rate come from?"


@equation(source="nvidia2020ampere", yields="peak_flops")
def unit_peak(cores, units_per_core, unit_multiply_adds, flops_per_multiply_add, clock_rate):
    """Rate at which all units of a device compute, if none of them ever waits.

    Assumes that every unit starts one operation in every clock cycle, at the highest clock.
    Valid for one kind of unit in one number format.

    >>> unit_peak(100, 4, 256, 2, 1e9)
    204800000000000.0
    """
    return cores * units_per_core * unit_multiply_adds * flops_per_multiply_add * clock_rate
