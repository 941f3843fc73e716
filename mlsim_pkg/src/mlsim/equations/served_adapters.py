"""Adapters of low rank in serving: many small models beside one large one.

An adapter is two thin matrices beside a wide one: y = x W + (x A) B. A batch whose sequences
have different adapters reads W once, and of the adapters each one that is in use.
"""

from __future__ import annotations

from mlsim.equations.functions import minimum, total
from mlsim.equations.registry import equation

QUESTION = "What do prefix caching, offload and adapters change?"


@equation(source="chen2023punica", counts=True)
def distinct_adapters(served_adapters, device_batch):
    """Different adapters that the sequences of a step have.

    Of N adapters one sequence has one; each further one misses a given adapter with
    chance 1 - 1/N.

    Assumes that requests choose their adapters evenly; favorites make it fewer.
    Valid for any number of sequences.

    >>> distinct_adapters(4, 2)
    1.75
    """
    return served_adapters * (1 - (1 - 1 / served_adapters) ** device_batch)


@equation(source="chen2023punica", yields="distinct_adapters", counts=True)
def compulsory_adapters(served_adapters):
    """Adapters that any step reads, even if all sequences have the same one.

    Valid as a lower limit.

    >>> compulsory_adapters(100)
    1
    """
    return minimum(served_adapters, 1)


@equation(source="chen2023punica", yields="parameters_read")
def parameters_and_adapters_read(
    parameters_streamed,
    parameters_routed,
    expert_share,
    served_adapter_parameters,
    distinct_adapters,
):
    """Parameters that an operator reads in a step: its own, or of each adapter in use its part.

    Assumes that one kernel serves all sequences, and reads each adapter once.
    Valid for any step.

    >>> parameters_and_adapters_read(300.0, 400.0, 0.25, 1000.0, 12.0)
    12400.0
    """
    return (
        parameters_streamed
        + parameters_routed * expert_share
        + served_adapter_parameters * distinct_adapters
    )


@equation(source="sheng2023slora")
def operator_adapter_memory(bytes_per_parameter, served_adapter_parameters, served_adapters):
    """Memory of all adapters of one operator on one device.

    Assumes that all stay in device memory; S-LoRA keeps those that no request uses on the host.
    Valid for adapters of one rank.

    >>> operator_adapter_memory(2.0, 1000.0, 10.0)
    20000.0
    """
    return bytes_per_parameter * served_adapter_parameters * served_adapters


@equation(source="sheng2023slora", sums=True)
def adapter_memory(operator_adapter_memory, resident_repeats):
    """Memory of all adapters on one device.

    Valid for any number of layers on the device.

    >>> adapter_memory([20000.0, 10000.0], [32, 32])
    960000.0
    """
    return total(operator_adapter_memory, resident_repeats)
