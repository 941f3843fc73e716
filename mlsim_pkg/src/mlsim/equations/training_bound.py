"""The least that a step of training can take, however well it is programmed."""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import equation

QUESTION = "What can no step of training beat?"


@equation(source="williams2009roofline")
def compulsory_bytes(
    bytes_per_parameter,
    model_parameters,
    tensor_parallel,
    pipeline_parallel,
    all_parameters,
    state_bytes,
    devices,
):
    """Bytes that a device must move in a step: its weights once, and its share of the update.

    The optimizer's state is read and written and the weights are written, of which no device
    need do more than its share. Gradients and activations may stay on chip.

    Assumes that no weight stays on chip from one step to the next.
    Valid as a lower limit, for an optimizer that keeps its state in memory.

    >>> compulsory_bytes(2.0, 8e9, 4, 2, 1e9, 12.0, 10)
    4600000000.0
    """
    return (
        bytes_per_parameter * model_parameters / (tensor_parallel * pipeline_parallel)
        + all_parameters * (2 * state_bytes + bytes_per_parameter) / devices
    )


@equation(source="williams2009roofline")
def compulsory_time(compulsory_bytes, memory_bandwidth):
    """Time to move the bytes that no program can avoid, at full memory bandwidth.

    Valid as a lower limit.

    >>> compulsory_time(4e9, 2e12)
    0.002
    """
    return compulsory_bytes / memory_bandwidth


@equation(source="williams2009roofline", yields="step_time")
def bound_step_time(ideal_step_time, compulsory_time):
    """The least time of a step: its work at the peak rate, or its compulsory traffic.

    Nothing is waited for: neither other devices nor a pipeline.

    Valid as a lower limit, for programs that do the work that the model asks for.

    >>> bound_step_time(2.0, 0.5)
    2.0
    """
    return maximum(ideal_step_time, compulsory_time)


@equation(source="williams2009roofline", yields="memory_utilisation")
def bound_memory_utilisation(compulsory_time, step_time):
    """Compulsory bytes of a step, per bytes that the memory could move in the same time.

    Valid for one device.

    >>> bound_memory_utilisation(0.5, 2.0)
    0.25
    """
    return compulsory_time / step_time
