"""One micro-batch of training: kernels forward, again, and backward, on one stage.

The equations of a kernel hold for one row of a table; its passes say how often
it runs.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds, maximum, minimum, total
from mlsim.equations.registry import Topic

TRAINING = equation = Topic("training", "How long does a device take to learn from a micro-batch?")


@equation(source="shoeybi2019megatron")
def device_tokens(micro_batch, sequence_tokens, context_parallel):
    """Tokens of a micro-batch that one device works on.

    Valid where sequences are of one length, and divided evenly.

    >>> device_tokens(4, 2048, 2)
    4096.0
    """
    return micro_batch * sequence_tokens / context_parallel


@equation(source="dao2022flashattention")
def device_pairs(micro_batch, attention_pairs, context_parallel):
    """Pairs of tokens for which a device computes attention.

    Assumes that devices which share a sequence share its pairs evenly.
    Valid for any attention.

    >>> device_pairs(2, 36, 1)
    72.0
    """
    return micro_batch * attention_pairs / context_parallel


@equation(source="hennessy2019quantitative", yields="flops")
def kernel_flops(
    flops_per_multiply_add, token_multiply_adds, device_tokens, pair_multiply_adds, device_pairs
):
    """Work of a kernel: by its tokens, and by its pairs.

    Assumes that only products and sums of matrix products count.
    Valid for any kernel.

    >>> kernel_flops(2.0, 1000, 10, 3, 55)
    20330.0
    """
    return flops_per_multiply_add * (
        token_multiply_adds * device_tokens + pair_multiply_adds * device_pairs
    )


@equation(source="narayanan2021megatron", yields="weight_bytes")
def kernel_weight_bytes(
    bytes_per_parameter, parameters_streamed, bytes_per_gradient, gradients_accumulated
):
    """Traffic of weights, which are read, and of their gradients, which are read and written.

    Assumes that each micro-batch adds to the gradients of the one before.
    Valid where the weights are larger than the caches.

    >>> kernel_weight_bytes(2.0, 100, 2.0, 100)
    600.0
    """
    return (
        bytes_per_parameter * parameters_streamed + 2 * bytes_per_gradient * gradients_accumulated
    )


@equation(source="williams2009roofline", yields="activation_bytes")
def kernel_activation_bytes(
    bytes_per_element,
    token_elements,
    pair_elements,
    token_masks,
    pair_masks,
    device_tokens,
    device_pairs,
):
    """Traffic of what a kernel reads and writes for its tokens and for its pairs.

    Masks say which numbers were dropped, one byte each.

    Assumes that nothing stays on chip between kernels.
    Valid as an upper estimate.

    >>> kernel_activation_bytes(2.0, 8, 2, 1, 1, 10, 50)
    420.0
    """
    return (bytes_per_element * token_elements + token_masks) * device_tokens + (
        bytes_per_element * pair_elements + pair_masks
    ) * device_pairs


@equation(source="patarasuk2009bandwidth", yields="link_bytes")
def kernel_link_bytes(bytes_per_element, link_elements, device_tokens):
    """Bytes of activations that a device sends to others of its stage.

    Valid for activations; gradients of weights are counted once a step.

    >>> kernel_link_bytes(2.0, 100, 10)
    2000.0
    """
    return bytes_per_element * link_elements * device_tokens


@equation(source="thakur2005optimization", yields="network_time")
def hop_network_time(link_hops, hop_latency, link_bytes, link_bandwidth, link_fraction):
    """Time to send: each message must start, and the bytes must pass.

    The roofline takes the link's full rate, and no time to start.

    Valid for one collective at a time.

    >>> hop_network_time(14, 1e-06, 1e6, 100e9, 0.5)
    3.4e-05
    """
    return link_hops * hop_latency + link_bytes / (link_bandwidth * link_fraction)


@equation(source="nvidia2023matmul", yields="product_rows", counts=True)
def kernel_rows(row_tokens, device_tokens, fixed_rows):
    """Rows of a product: one for each token, or a number of its own in a weight gradient.

    Valid for products of matrices.

    >>> kernel_rows(2, 2048, 5)
    4101
    """
    return row_tokens * device_tokens + fixed_rows


@equation(source="pytorch2026roofline", yields="kernel_time")
def started_kernel_time(roofline_time, kernel_overhead):
    """Time of a kernel that must be started first.

    Assumes that the host is ahead of the device.
    Valid for one kernel after another.

    >>> started_kernel_time(0.002, 0.001)
    0.003
    """
    return roofline_time + kernel_overhead


@equation(source="williams2009roofline", yields="kernel_time")
def ideal_kernel_time(roofline_time):
    """Time of a kernel that costs nothing to start.

    Valid as a lower limit.

    >>> ideal_kernel_time(0.002)
    0.002
    """
    return roofline_time


@equation(source="narayanan2021megatron", sums=True)
def forward_time(kernel_time, forward_repeats):
    """Time of the forward pass: its kernels, one after another.

    Valid for one micro-batch on one stage.

    >>> forward_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_time, forward_repeats)


@equation(source="korthikanti2022reducing", sums=True)
def recompute_time(kernel_time, recompute_repeats):
    """Time to compute again what was not kept.

    Valid for one micro-batch on one stage.

    >>> recompute_time([0.001, 0.002], [3, 0])
    0.003
    """
    return total(kernel_time, recompute_repeats)


@equation(source="narayanan2021megatron", sums=True)
def backward_time(kernel_time, backward_repeats):
    """Time of the backward pass: gradients of inputs, and of weights.

    Valid for one micro-batch on one stage.

    >>> backward_time([0.001, 0.002], [6, 2])
    0.01
    """
    return total(kernel_time, backward_repeats)


@equation(source="shoeybi2019megatron", sums=True)
def exchange_time(network_time, all_repeats):
    """Time to send activations and their gradients among the devices of a stage.

    Valid for tensor, context and expert parallelism.

    >>> exchange_time([0.001, 0.0], [4, 9])
    0.004
    """
    return total(network_time, all_repeats)


@equation(source="narayanan2021megatron", sums=True)
def output_time(kernel_time, output_repeats):
    """Time of the output layer and its loss, forward and backward, which only one stage has.

    Valid for one micro-batch. What is sent for it is left out.

    >>> output_time([0.001, 0.002], [0, 3])
    0.006
    """
    return total(kernel_time, output_repeats)


@equation(source="narayanan2021megatron")
def stage_time(forward_time, recompute_time, backward_time, exchange_time, exchange_overlap):
    """Time that a stage takes for one micro-batch, there and back.

    Assumes that sending which is not hidden waits for computing, and the reverse.
    Valid for the slowest stage, which the others wait for.

    >>> stage_time(2.0, 1.0, 4.0, 0.5, 0.25)
    7.375
    """
    return forward_time + recompute_time + backward_time + exchange_time * (1 - exchange_overlap)


PIPELINE = equation = Topic(
    "pipeline", "How long does a step of training take, and what is it spent on?"
)


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


STEP_PARTS = equation = Topic(
    "step_parts", "How long does a step of training take, and what is it spent on?"
)


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


TRAINING_MEMORY = equation = Topic("training_memory", "Does a model fit while it is trained?")


@equation(source="rajbhandari2020zero", yields="weight_memory")
def sharded_weight_memory(bytes_per_parameter, device_parameters, weight_shards):
    """Memory of the weights on a device, in the format in which it computes.

    Valid for equal shards; full copies have one shard.

    >>> sharded_weight_memory(2.0, 1e9, 4)
    500000000.0
    """
    return bytes_per_parameter * device_parameters / weight_shards


@equation(source="rajbhandari2020zero")
def gradient_memory(bytes_per_gradient, device_parameters, gradient_shards):
    """Memory of the gradients on a device.

    Valid for equal shards.

    >>> gradient_memory(2.0, 1e9, 4)
    500000000.0
    """
    return bytes_per_gradient * device_parameters / gradient_shards


@equation(source="rajbhandari2020zero")
def optimizer_memory(state_bytes, device_parameters, state_shards):
    """Memory of the optimizer's state; for Adam, two means and a precise copy of the weights.

    Valid for equal shards.

    >>> optimizer_memory(12.0, 1e9, 8)
    1500000000.0
    """
    return state_bytes * device_parameters / state_shards


@equation(source="rajbhandari2020zero")
def state_memory(weight_memory, gradient_memory, optimizer_memory):
    """Memory that does not depend on the batch.

    In mixed precision with Adam and full copies it is 16 bytes for each parameter.

    Valid for any optimizer.

    >>> state_memory(2.0, 2.0, 12.0)
    16.0
    """
    return weight_memory + gradient_memory + optimizer_memory


@equation(source="korthikanti2022reducing")
def saved_bytes(
    bytes_per_element,
    saved_elements,
    saved_masks,
    device_tokens,
    saved_pair_elements,
    saved_pair_masks,
    device_pairs,
):
    """What an operator keeps of one micro-batch: its inputs, and masks of what was dropped.

    Valid for operators whose gradients need their inputs.

    >>> saved_bytes(2.0, 3, 1, 10, 5, 2, 50)
    670.0
    """
    return (bytes_per_element * saved_elements + saved_masks) * device_tokens + (
        bytes_per_element * saved_pair_elements + saved_pair_masks
    ) * device_pairs


@equation(source="korthikanti2022reducing", sums=True)
def saved_memory(saved_bytes, saved_repeats):
    """What a stage keeps of one micro-batch until its backward pass.

    Valid for any recomputation: what is computed again is not kept.

    >>> saved_memory([70.0, 20.0], [2, 1])
    160.0
    """
    return total(saved_bytes, saved_repeats)


@equation(source="korthikanti2022reducing", sums=True)
def working_memory(saved_bytes, live_repeats):
    """Activations that are alive only while one layer is computed again.

    Valid where layers are computed again one at a time.

    >>> working_memory([70.0, 20.0], [1, 1])
    90.0
    """
    return total(saved_bytes, live_repeats)


@equation(source="korthikanti2022reducing", counts=True)
def in_flight(micro_batches, pipeline_parallel, interleaved):
    """Micro-batches whose activations the first stage keeps at one time.

    It sends in one for each stage before the first comes back. Where each stage holds
    several parts of the model, it sends in some more.

    Valid for one forward and one backward in turn.

    >>> in_flight(64.0, 8, 1)
    8.0
    >>> in_flight(4.0, 8, 1)
    4.0
    >>> in_flight(64.0, 5, 2)
    7.0
    """
    return minimum(
        micro_batches,
        pipeline_parallel + exceeds(interleaved, 1) * (pipeline_parallel - 1) / interleaved,
    )


@equation(source="korthikanti2022reducing", yields="activation_memory")
def training_activation_memory(
    saved_memory, in_flight, working_memory, bytes_per_parameter, gathered_parameters
):
    """Memory of activations, and of weights that are gathered to compute one layer.

    Valid for the first stage, which keeps most.

    >>> training_activation_memory(10.0, 4.0, 5.0, 2.0, 3.0)
    51.0
    """
    return saved_memory * in_flight + working_memory + bytes_per_parameter * gathered_parameters


@equation(source="rajbhandari2020zero", yields="memory_required")
def training_memory(state_memory, activation_memory):
    """Memory that training needs on one device.

    Assumes that nothing is moved to the host.
    Valid for the stage that needs most.

    >>> training_memory(16e9, 8e9)
    24000000000.0
    """
    return state_memory + activation_memory


@equation(source="kingma2015adam", yields="state_bytes")
def adam_state_bytes(moment_bytes, master_bytes):
    """Bytes of optimizer state for each parameter: two moments, and a precise copy of the weight.

    Assumes Adam. The copy is kept where the weights are stored in fewer than 32 bits.
    Valid for Adam and AdamW.

    >>> adam_state_bytes(4.0, 4.0)
    12.0
    """
    return 2 * moment_bytes + master_bytes


@equation(source="rajbhandari2020zero")
def state_shards(dense_parameters, expert_parameters, shard_group, expert_owners):
    """Devices among which optimizer state is sharded, on average over a device's parameters.

    Experts have fewer owners than the rest has copies, so they are cut into fewer shards.

    Valid for ZeRO; full copies have one shard.

    >>> state_shards(3e9, 1e9, 8.0, 2.0)
    4.571428571428571
    """
    return (dense_parameters + expert_parameters) / (
        dense_parameters / shard_group + expert_parameters / expert_owners
    )


@equation(source="rajbhandari2020zero", yields="gradient_shards")
def zero2_gradient_shards(state_shards):
    """Devices among which gradients are sharded: as many as share the optimizer state.

    Valid for ZeRO-2 and ZeRO-3; otherwise each copy keeps all gradients.

    >>> zero2_gradient_shards(8.0)
    8.0
    """
    return state_shards


@equation(source="rajbhandari2020zero", yields="weight_shards")
def zero3_weight_shards(state_shards):
    """Devices among which weights are sharded: as many as share the optimizer state.

    Valid for ZeRO-3 and FSDP; otherwise each copy keeps all weights.

    >>> zero3_weight_shards(8.0)
    8.0
    """
    return state_shards


@equation(source="rajbhandari2020zero")
def gathered_parameters(device_parameters, layers, pipeline_parallel):
    """Parameters that are gathered at one time: those of one layer, and of the next one.

    Assumes that the next layer is fetched while one is computed.
    Valid for ZeRO-3 and FSDP with layers of one size.

    >>> gathered_parameters(8e9, 32, 2)
    1000000000.0
    """
    return 2 * device_parameters / (layers / pipeline_parallel)
