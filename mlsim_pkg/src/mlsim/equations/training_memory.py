"""What training holds on one device: weights, gradients, state, and what the way back needs."""

from __future__ import annotations

from mlsim.equations.functions import exceeds, minimum, total
from mlsim.equations.registry import equation

QUESTION = "Does a model fit while it is trained?"


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
