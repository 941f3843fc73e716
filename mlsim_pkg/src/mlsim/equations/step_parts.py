"""What a step of training consists of: times by part, limits at the peak, and traffic."""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "How long does a step of training take, and what is it spent on?"


@equation(source="chowdhery2022palm")
def step_tokens(global_batch, sequence_tokens):
    """Tokens of training data in one step.

    Valid for sequences of one length.

    >>> step_tokens(64, 2048)
    131072
    """
    return global_batch * sequence_tokens


@equation(source="narayanan2021megatron")
def step_forward_time(micro_batches, forward_time):
    """Time of a step in forward passes.

    Valid for the slowest stage.

    >>> step_forward_time(8, 0.25)
    2.0
    """
    return micro_batches * forward_time


@equation(source="korthikanti2022reducing")
def step_recompute_time(micro_batches, recompute_time):
    """Time of a step in which activations are computed again.

    Valid for the slowest stage.

    >>> step_recompute_time(8, 0.25)
    2.0
    """
    return micro_batches * recompute_time


@equation(source="narayanan2021megatron")
def step_backward_time(micro_batches, backward_time):
    """Time of a step in backward passes.

    Valid for the slowest stage.

    >>> step_backward_time(8, 0.25)
    2.0
    """
    return micro_batches * backward_time


@equation(source="shoeybi2019megatron")
def step_exchange_time(micro_batches, exchange_time, exchange_overlap):
    """Time of a step in which a stage waits for messages among its own devices.

    Valid for tensor, context and expert parallelism.

    >>> step_exchange_time(8, 0.5, 0.25)
    3.0
    """
    return micro_batches * exchange_time * (1 - exchange_overlap)


@equation(source="narayanan2021megatron")
def exposed_pipeline_time(pipeline_time, pipeline_overlap):
    """What is left of sending from stage to stage when computing hides the rest.

    Valid for overlaps from 0 to 1.

    >>> exposed_pipeline_time(4.0, 0.25)
    3.0
    """
    return pipeline_time * (1 - pipeline_overlap)


@equation(source="narayanan2021megatron")
def kernel_step_time(step_forward_time, step_recompute_time, step_backward_time):
    """Time of a step in kernels, without any waiting for others.

    Valid for the slowest stage.

    >>> kernel_step_time(2.0, 1.0, 4.0)
    7.0
    """
    return step_forward_time + step_recompute_time + step_backward_time


@equation(source="chowdhery2022palm")
def ideal_step_time(model_flops, devices, peak_rate):
    """Time of a step if all devices did the model's work at their peak rate.

    Valid as a lower limit.

    >>> ideal_step_time(50.0, 2, 5.0)
    5.0
    """
    return model_flops / (devices * peak_rate)


@equation(source="korthikanti2022reducing")
def peak_step_time(hardware_flops, devices, peak_rate):
    """Time of a step if all devices did all its work, recomputation included, at their peak rate.

    Valid as a lower limit.

    >>> peak_step_time(60.0, 2, 5.0)
    6.0
    """
    return hardware_flops / (devices * peak_rate)


@equation(source="williams2009roofline", sums=True)
def micro_batch_bytes(bytes_moved, all_repeats):
    """Bytes that the kernels of one micro-batch move in all passes.

    Valid for one stage.

    >>> micro_batch_bytes([100.0, 20.0], [2, 1])
    220.0
    """
    return total(bytes_moved, all_repeats)


@equation(source="williams2009roofline", yields="memory_utilisation")
def training_memory_utilisation(micro_batches, micro_batch_bytes, step_time, memory_bandwidth):
    """Bytes that a step moves, per bytes that the memory could move in the same time.

    Valid for one device; above 1 it says that a given time is too short.

    >>> training_memory_utilisation(8, 1e9, 0.5, 2e10)
    0.8
    """
    return micro_batches * micro_batch_bytes / (step_time * memory_bandwidth)
