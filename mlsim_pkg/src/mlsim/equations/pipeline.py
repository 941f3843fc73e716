"""One step of training: all micro-batches through the pipeline, then the update."""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import equation

QUESTION = "How long does a step of training take, and what is it spent on?"


@equation(source="huang2019gpipe", yields="micro_batches")
def training_micro_batches(global_batch, data_parallel, micro_batch):
    """Micro-batches that follow one another through a pipeline in one step.

    Valid where they divide the batch evenly.

    >>> training_micro_batches(64, 4, 2)
    8.0
    """
    return global_batch / (data_parallel * micro_batch)


@equation(source="narayanan2021megatron")
def steady_time(micro_batches, stage_time):
    """Time in which a stage works on the micro-batches of a step, one after another.

    Valid for the slowest stage, which sets the pace.

    >>> steady_time(8, 0.25)
    2.0
    """
    return micro_batches * stage_time


@equation(source="narayanan2021megatron")
def bubble_time(pipeline_parallel, stage_time, output_time, interleaved):
    """Time in which the last stage waits while the pipeline fills and empties.

    It waits for one micro-batch to pass through all other stages, forward and backward. These
    have as many layers, but no output layer. Where each stage holds several smaller parts of
    the model, the first part comes through sooner.

    Assumes that the stages hold equally many layers, so that the last one is the slowest and
    never waits in between.
    Valid for one forward and one backward in turn, as in PipeDream and Megatron, interleaved
    or not. Stages that take equally long have no output layer to take off.

    >>> bubble_time(8, 0.25, 0.0, 1)
    1.75
    >>> bubble_time(9, 0.5, 0.25, 4)
    0.5
    """
    return (pipeline_parallel - 1) * (stage_time - output_time) / interleaved


@equation(source="narayanan2021megatron", yields="bubble_time")
def uneven_bubble_time(
    pipeline_parallel,
    stage_time,
    output_time,
    interleaved,
    micro_batches,
    stage_layers,
    spared_layers,
):
    """Time in which the last stage waits where stages hold unequally many layers.

    It has the output layer, and so is spared a layer, which a full stage has. Beside filling
    and emptying, it waits for a full stage with each micro-batch, if that takes longer.

    Assumes that layers are alike.
    Valid for one forward and one backward in turn; with equal stages it is as for those.

    >>> uneven_bubble_time(4, 0.5, 0.25, 1, 8, 3, 1)
    1.125
    >>> uneven_bubble_time(3, 2.0, 0.5, 2, 4, 3, 1)
    3.25
    """
    return (pipeline_parallel - 1) * (stage_time - output_time) * stage_layers / (
        stage_layers - spared_layers
    ) / interleaved + micro_batches * maximum(
        (stage_time - output_time) * stage_layers / (stage_layers - spared_layers) - stage_time,
        0 * stage_time,
    )


@equation(source="narayanan2021megatron")
def output_share(output_time, stage_time):
    """Part of the slowest stage's time that the output layer takes, and the other stages don't.

    Valid from 0 to 1.

    >>> output_share(0.25, 2.0)
    0.125
    """
    return output_time / stage_time


@equation(source="narayanan2021megatron")
def pipeline_sends(micro_batches, interleaved):
    """Messages that a stage waits for: each micro-batch comes in from both sides.

    Valid where there are two stages or more.

    >>> pipeline_sends(8, 3)
    48
    """
    return 2 * micro_batches * interleaved


@equation(source="narayanan2021megatron")
def pipeline_time(
    pipeline_sends,
    hop_latency,
    bytes_per_element,
    pipeline_elements,
    stage_bandwidth,
    link_fraction,
):
    """Time to send activations, and their gradients, from stage to stage.

    Valid for one step.

    >>> pipeline_time(10, 1e-06, 2.0, 1e6, 20e9, 0.5)
    0.00201
    """
    return pipeline_sends * (
        hop_latency + bytes_per_element * pipeline_elements / (stage_bandwidth * link_fraction)
    )


@equation(source="rajbhandari2020zero")
def exposed_gradient_time(
    gradient_time, gradient_overlap, micro_batches, forward_time, recompute_time, backward_time
):
    """What is left of bringing gradients together when computing hides the rest.

    Nothing hides behind more computing than there is.

    Valid for overlaps from 0 to 1.

    >>> exposed_gradient_time(2.0, 0.75, 2, 3.0, 1.0, 4.0)
    0.5
    >>> exposed_gradient_time(40.0, 0.75, 2, 3.0, 1.0, 4.0)
    24.0
    """
    return maximum(
        gradient_time * (1 - gradient_overlap),
        gradient_time - micro_batches * (forward_time + recompute_time + backward_time),
    )


@equation(source="kingma2015adam")
def optimizer_time(
    device_parameters,
    state_shards,
    bytes_per_gradient,
    state_bytes,
    bytes_per_parameter,
    memory_bandwidth,
    memory_fraction,
):
    """Time to update: gradients are read, state is read and written, weights are written.

    Assumes that one kernel does all. The roofline takes the full rate of memory.
    Valid as a lower limit.

    >>> optimizer_time(1e9, 4, 2.0, 12.0, 4.0, 2e12, 0.5)
    0.0075
    """
    return (
        device_parameters
        / state_shards
        * (bytes_per_gradient + 2 * state_bytes + bytes_per_parameter)
        / (memory_bandwidth * memory_fraction)
    )


@equation(source="narayanan2021megatron")
def step_time(
    steady_time, bubble_time, pipeline_time, pipeline_overlap, exposed_gradient_time, optimizer_time
):
    """Time of a step: work, waiting, sending, updating, one after another.

    Valid where nothing else is waited for: data, storage, slow devices.

    >>> step_time(2.0, 0.5, 0.25, 0.75, 0.125, 0.0625)
    2.75
    """
    return (
        steady_time
        + bubble_time
        + pipeline_time * (1 - pipeline_overlap)
        + exposed_gradient_time
        + optimizer_time
    )


@equation(source="chowdhery2022palm")
def token_rate(global_batch, sequence_tokens, step_time):
    """Tokens of training data that all devices together read per second.

    Valid while a run is under way.

    >>> token_rate(64, 2048, 4.0)
    32768.0
    """
    return global_batch * sequence_tokens / step_time


@equation(source="chowdhery2022palm")
def model_flops(global_batch, sequence_flops):
    """Work of a step that the model asks for: the backward pass is twice the forward one.

    Attention counts for the pairs that are worked on: of a program that skips the masked
    half, for the others.

    Valid for training of all weights.

    >>> model_flops(2, 10.0)
    60.0
    """
    return 3 * global_batch * sequence_flops


@equation(source="korthikanti2022reducing")
def hardware_flops(model_flops, global_batch, recomputed_flops):
    """Work of a step with what is computed again.

    Valid for any recomputation.

    >>> hardware_flops(60.0, 2, 10.0)
    80.0
    """
    return model_flops + global_batch * recomputed_flops


@equation(source="chowdhery2022palm")
def model_flops_utilization(model_flops, step_time, devices, peak_rate):
    """Work that the model asks for, per work that the devices could do at their peak.

    Valid from 0 to 1; computing again does not count.

    >>> model_flops_utilization(60.0, 4.0, 5, 10.0)
    0.3
    """
    return model_flops / (step_time * devices * peak_rate)


@equation(source="korthikanti2022reducing")
def hardware_flops_utilization(hardware_flops, step_time, devices, peak_rate):
    """Work that is done, what is computed again included, per peak work.

    Valid from 0 to 1; never below the model's share.

    >>> hardware_flops_utilization(70.0, 4.0, 5, 10.0)
    0.35
    """
    return hardware_flops / (step_time * devices * peak_rate)


@equation(source="narayanan2021megatron", counts=True)
def pipeline_elements(device_tokens, hidden_size, tensor_parallel):
    """Elements of a micro-batch that a device sends to the next stage.

    The devices of a stage hold copies of its output, so each sends a part.

    Valid for transformers.

    >>> pipeline_elements(4096.0, 8192, 8)
    4194304.0
    """
    return device_tokens * hidden_size / tensor_parallel


@equation(source="korthikanti2022reducing", yields="recomputed_flops")
def full_recomputed_flops(sequence_flops, flops_per_multiply_add, output_multiply_adds):
    """Work that is done again where whole layers are recomputed: all but the output layer.

    Valid for full recomputation.

    >>> full_recomputed_flops(100.0, 2.0, 10.0)
    80.0
    """
    return sequence_flops - flops_per_multiply_add * output_multiply_adds


@equation(source="korthikanti2022reducing", yields="recomputed_flops")
def selective_recomputed_flops(flops_per_multiply_add, score_multiply_adds):
    """Work that is done again where only attention is recomputed: its scores and their use.

    Valid for standard attention with selective recomputation.

    >>> selective_recomputed_flops(2.0, 15.0)
    30.0
    """
    return flops_per_multiply_add * score_multiply_adds
